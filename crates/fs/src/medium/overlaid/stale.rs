//! Overlays of other images that killed processes left behind. An image is refused if such an
//! overlay belongs to its file system in another file; overlays of deleted images are removed.

use super::dirs;
use super::overlay_file::{NAME, OverlaySearch, file_system_of};
use super::store::{IMAGE_WORDS, OverlayStore};
use crate::error::{Error, Result};
use crate::format::BLOCK;
use frit_core::paths;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An overlay in one of the searched directories.
struct StaleOverlay {
    file: File,
    path: PathBuf,
    /// Identity of its image, the former path of the image, and the file system that contained it.
    of: [u64; IMAGE_WORDS],
    former_path: PathBuf,
    file_system: u64,
}

/// State of the image of an overlay, judged by its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ImageLocation {
    /// The image is at its former path.
    There,
    /// The former path has another file or none.
    Elsewhere,
    /// The former path is not accessible.
    Unknown,
}

impl StaleOverlay {
    fn image_location(&self) -> ImageLocation {
        match std::fs::metadata(&self.former_path) {
            Ok(meta) if [meta.dev(), meta.ino()] == self.of[..2] => ImageLocation::There,
            Ok(_) => ImageLocation::Elsewhere,
            Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => {
                ImageLocation::Elsewhere
            }
            Err(_) => ImageLocation::Unknown,
        }
    }

    /// Returns the bytes of changes in the overlay, in whole pages.
    fn changes(&self) -> u64 {
        let file = self.file.try_clone().ok();
        let store = file.and_then(|file| OverlayStore::map(file, self.of[3]).ok());
        store.map_or(0, |store| (store.count(0) + store.count(1)) * BLOCK)
    }

    /// Returns `true` if the image of this overlay no longer exists: its inode number on the same
    /// file system belongs to a file with another time of birth.
    fn is_of_deleted(&self, wanted: &OverlaySearch<'_>) -> bool {
        let (of, image) = (&self.of, &wanted.image);
        let file_system = file_system_of(wanted.disk.image());
        // A time of birth of 0 is unknown.
        let births = of[2] != 0 && image[2] != 0 && of[2] != image[2];
        of[..2] == image[..2] && births && file_system != 0 && file_system == self.file_system
    }
}

/// Returns all overlays in the searched directories that this process may write to and that belong
/// to users who may change the image.
fn all(wanted: &OverlaySearch<'_>) -> Vec<StaleOverlay> {
    let dirs = wanted.dirs();
    let entries = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
    entries.filter_map(|entry| read_stale(&entry.path(), wanted)).collect()
}

fn read_stale(path: &Path, wanted: &OverlaySearch<'_>) -> Option<StaleOverlay> {
    let name = path.file_name()?.to_string_lossy();
    if !name.starts_with(NAME.0) || !name.ends_with(NAME.1) {
        return None;
    }
    let file = dirs::open(path, OFlags::empty()).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || !wanted.trusts(meta.uid()) {
        return None;
    }
    let (of, former_path) = OverlayStore::image_of(&file).ok()??;
    let file_system = OverlayStore::file_system_of(&file).ok()?;
    Some(StaleOverlay { file, path: path.into(), of, former_path, file_system })
}

/// Fails if an overlay with unsynced changes has the UUID of this image, but belongs to an image
/// that is no longer at its former path. The image was moved to another file system, or a copy
/// replaced it.
pub(super) fn refuse_moved(wanted: &OverlaySearch<'_>) -> Result<()> {
    let (disk, image) = (wanted.disk, &wanted.image);
    if image[4..] == [0; 2] {
        return Ok(());
    }
    let of_this = |one: &StaleOverlay| {
        one.of[4..] == image[4..] && one.image_location() != ImageLocation::There && one.changes() > 0
    };
    let Some(stale) = all(wanted).into_iter().find(of_this) else { return Ok(()) };
    let (path, image_path) = (stale.path.display(), disk.path().display());
    let how = if stale.former_path == disk.path() {
        format!(
            "to the file that was {image_path} before: it was replaced. Restore the image that they belong to"
        )
    } else {
        format!(
            "to this file system when it was {0}: move {image_path} back there",
            stale.former_path.display()
        )
    };
    Err(Error::Image(format!(
        "{path} has changes that a killed process made {how}, or remove {path} to continue without them"
    )))
}

/// Note about an overlay of another image, with unsynced changes that a killed process left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OverlayNote {
    /// It was removed, because its image was deleted. A message.
    Removed(String),
    /// It was left, because its image is no longer at its former path. A message.
    Left(String),
}

impl OverlayNote {
    /// Returns the message for the user.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Removed(message) | Self::Left(message) => message,
        }
    }
}

/// Removes overlays of images that no longer exist. Returns a note about each of these, and about
/// each overlay of an image that is no longer at its former path.
pub(super) fn sweep(wanted: &OverlaySearch<'_>) -> Vec<OverlayNote> {
    let mut notes = Vec::new();
    // Overlays of this image itself are not examined.
    for stale in all(wanted).into_iter().filter(|stale| stale.of[..3] != wanted.image[..3]) {
        // An overlay in use is skipped.
        if stale.file.try_lock().is_err() {
            continue;
        }
        let (path, former_path, changes) =
            (stale.path.display(), stale.former_path.display(), stale.changes());
        let kib = changes >> 10;
        if stale.is_of_deleted(wanted) {
            let removed = paths::remove_file(&stale.path).is_ok();
            if removed && changes > 0 {
                notes.push(OverlayNote::Removed(format!(
                    "removed {path}: {kib} KiB of changes to {former_path}, which was deleted before they were synced"
                )));
            }
        } else if changes > 0 && stale.image_location() == ImageLocation::Elsewhere {
            notes.push(OverlayNote::Left(format!(
                "{path} has {kib} KiB of changes that were not synced to {former_path}, which is no longer there: open the image \
                 at its new path, or remove {path} if it was deleted"
            )));
        }
    }
    notes
}
