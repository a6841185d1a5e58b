//! The file with the memory that is shared with programs, and its mapping.

// The mapping is shared with other processes, so that it is accessed as a reference to atomics.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use frit_direct::segment::{MAGIC, Segment, path_of};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A mapped segment.
#[derive(Debug)]
pub(super) struct SharedSegment {
    map: MmapRaw,
    path: PathBuf,
}

impl SharedSegment {
    /// Creates the segment of an image, with the owner and the mode of the image. `fill` writes the start.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(super) fn create(image: &Path, fill: impl FnOnce(&Segment)) -> Result<Self> {
        let path = path_of(image);
        let os = |error| Error::Os { what: "cannot create", path: path.clone(), error };
        let of = std::fs::metadata(image).map_err(os)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(os)?;
        let created = Self { map: Self::set_up(&file, &of).map_err(os)?, path: path.clone() };
        fill(created.get());
        created.get().head.magic.store(MAGIC, Ordering::Release);
        Ok(created)
    }

    fn set_up(file: &File, image: &std::fs::Metadata) -> std::io::Result<MmapRaw> {
        if file.metadata()?.uid() != image.uid() || file.metadata()?.gid() != image.gid() {
            std::os::unix::fs::fchown(file, Some(image.uid()), Some(image.gid()))?;
        }
        file.set_permissions(image.permissions())?;
        file.set_len(size_of::<Segment>() as u64)?;
        MmapOptions::new().len(size_of::<Segment>()).map_raw(file)
    }

    /// Opens the segment that a mount of the image left, if there is one.
    ///
    /// # Errors
    /// The file cannot be opened, or belongs to another user than the image.
    pub(super) fn left(image: &Path) -> Result<Option<Self>> {
        let path = path_of(image);
        let os = |error| Error::Os { what: "cannot open", path: path.clone(), error };
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let file = match OpenOptions::new().read(true).write(true).custom_flags(no_follow).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(os(error)),
        };
        let (meta, of) = (file.metadata().map_err(os)?, std::fs::metadata(image).map_err(os)?);
        if meta.len() != size_of::<Segment>() as u64 || !meta.is_file() || meta.uid() != of.uid() {
            let why = format!("{}: not the file of a mount of this image; move it away", path.display());
            return Err(Error::Image(why));
        }
        let map = MmapOptions::new().len(size_of::<Segment>()).map_raw(&file).map_err(os)?;
        Ok(Some(Self { map, path }))
    }

    /// The shared memory.
    pub(super) fn get(&self) -> &Segment {
        // SAFETY: the mapping has the size and the alignment of a segment and lives as long as `self`. All
        // fields are atomic and valid with any bits, so other processes may change them.
        unsafe { &*self.map.as_ptr().cast::<Segment>() }
    }

    /// Forbids all accesses, also future ones.
    pub(super) fn close(&self) {
        let segment = self.get();
        segment.head.closed.store(1, Ordering::SeqCst);
        for file in &segment.files {
            // Most pages of the file were never written, and stay so.
            if file.generation.load(Ordering::Relaxed) != 0 {
                file.generation.store(0, Ordering::SeqCst);
            }
        }
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(|error| Error::Os {
            what: "cannot remove",
            path: self.path.clone(),
            error,
        })
    }
}
