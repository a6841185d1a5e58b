//! Opening of an image with its overlay, and verification that an existing one matches the image.

use super::disk::Disk;
use super::files::ImageFile;
use super::log::{SyncStamp, recover};
use super::overlay_file::{OverlayOptions, OverlaySearch, os, same};
use super::overlay_mark::remove;
use super::stale::{refuse_moved, sweep};
use super::store::OverlayStore;
use super::{Overlaid, dirs};
use crate::error::{Error, Result};
use crate::planted::ImageFileBug;
use frit_core::paths;
use frit_core::planted::is_planted;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Overlaid {
    /// Opens a whole existing file.
    ///
    /// # Errors
    /// As [`super::super::Image::open`].
    pub fn open(path: &Path, overlay: &OverlayOptions) -> Result<Self> {
        let disk = ImageFile::open(path)?;
        dirs::bases(overlay.dir.as_deref())?;
        let at = recover(&disk)?;
        Self::find(disk, at, overlay)
    }

    /// Opens a file that is about to be formatted, and discards what a crash left of its file
    /// system.
    ///
    /// # Errors
    /// As [`super::super::Image::fresh`].
    pub fn fresh(path: &Path, overlay: &OverlayOptions) -> Result<Self> {
        let disk = ImageFile::open(path)?;
        let wanted = OverlaySearch::new(&disk, overlay)?;
        disk.remove_log()?;
        while let Some((file, path)) = wanted.find_existing()? {
            paths::remove_file(&path).map_err(os("cannot remove", &path))?;
            drop(file);
            remove(disk.image(), &path);
        }
        let at = SyncStamp::read(&disk);
        Self::find(disk, at, overlay)
    }

    /// Opens the existing overlay, or creates one.
    fn find(disk: ImageFile, at: SyncStamp, overlay: &OverlayOptions) -> Result<Self> {
        let wanted = OverlaySearch::new(&disk, overlay)?;
        let (store, path) = match wanted.find_existing()? {
            Some((file, path)) => (open_existing(file, &path, &wanted, at)?, path),
            None => {
                refuse_moved(&wanted)?;
                wanted.create(at)?
            }
        };
        let notes = sweep(&wanted);
        let mut opened = Self::with(disk, store, Some(path), overlay.bound);
        opened.notes = notes;
        Ok(opened)
    }
}

/// Opens an overlay that belongs to the image and to its last sync. One without changes is created
/// again.
fn open_existing(file: File, path: &Path, wanted: &OverlaySearch<'_>, at: SyncStamp) -> Result<OverlayStore> {
    let (disk, image) = (wanted.disk, &wanted.image);
    let again = |file| wanted.store(file, at).map_err(os("cannot create", path));
    let Some((of, _)) = OverlayStore::image_of(&file).map_err(os("cannot use", path))? else {
        return again(file);
    };
    let store = OverlayStore::map(file, of[3]).map_err(os("cannot map", path))?;
    if same(&of, image) && (store.expected().contains(&at) || is_planted(ImageFileBug::NumberIgnored)) {
        store.settle(at);
        store.set_path(disk.path().as_os_str().as_bytes());
        return Ok(store);
    }
    if store.count(0) + store.count(1) == 0 {
        return again(store.into_file());
    }
    let newest = store.expected().into_iter().max_by_key(|stamp| stamp.number).unwrap_or_default();
    Err(Error::Image(format!(
        "{} has changes that a killed process made to {} after sync {}, but this image is at sync {}: it was replaced, \
         or changed in another way. Restore the image that they belong to, or remove {} to continue without them",
        path.display(),
        disk.path().display(),
        newest.number,
        at.number,
        path.display()
    )))
}
