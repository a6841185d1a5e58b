//! The file with the memory that is shared with programs, and its mapping.

// The mapping is shared with other processes, so that it is accessed as a reference to atomics.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use frit_core::paths::{self, OpenOptions};
use frit_direct::segment::{MAGIC, Segment, path_of};
use frit_media::SigbusGuard;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Returns `true` if a file is none of a mount of an image of this owner.
fn is_foreign(user: u32, owner: u32) -> bool {
    ![owner, 0, rustix::process::geteuid().as_raw()].contains(&user)
}

/// A mapped segment.
///
/// Whoever may write the image may also truncate this file. The kernel then has no page for an access of the server,
/// and sends SIGBUS, which by default ends the server. So the mapping is guarded: such an access finds zeros, and
/// [`SharedSegment::is_lost`] tells.
#[derive(Debug)]
pub(super) struct SharedSegment {
    // Dropped before the map.
    guard: SigbusGuard,
    map: MmapRaw,
    path: PathBuf,
    /// Device and inode of the file.
    file: (u64, u64),
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
        let map = Self::set_up(&file, &of).map_err(os)?;
        let created = Self::new(map, path.clone(), &file.metadata().map_err(os)?);
        fill(created.get());
        created.get().head.magic.store(MAGIC, Ordering::Release);
        Ok(created)
    }

    fn new(map: MmapRaw, path: PathBuf, meta: &std::fs::Metadata) -> Self {
        let guard = SigbusGuard::new(map.as_ptr(), map.len());
        Self { guard, map, path, file: (meta.dev(), meta.ino()) }
    }

    fn set_up(file: &File, image: &std::fs::Metadata) -> std::io::Result<MmapRaw> {
        if file.metadata()?.uid() != image.uid() || file.metadata()?.gid() != image.gid() {
            std::os::unix::fs::fchown(file, Some(image.uid()), Some(image.gid()))?;
        }
        file.set_permissions(image.permissions())?;
        // With its memory, so that a file system without space is an error here, and not at a later access.
        let bytes = size_of::<Segment>() as u64;
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(bytes)?,
            result => result?,
        }
        MmapOptions::new().len(size_of::<Segment>()).map_raw(file)
    }

    /// Opens the segment that a mount of the image left, if there is one. A file of a user who is neither the owner of
    /// the image, nor root, nor the caller is none: in a directory such as `/dev/shm`, anybody can create it, and must
    /// not keep the owner from the image.
    ///
    /// # Errors
    /// The file cannot be opened, or has another size.
    pub(super) fn left(image: &Path) -> Result<Option<Self>> {
        let path = path_of(image);
        let os = |error| Error::Os { what: "cannot open", path: path.clone(), error };
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = match OpenOptions::new().read(true).write(true).any_user(true).flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let of = std::fs::symlink_metadata(&path).map_err(os)?;
                let owner = std::fs::metadata(image).map_err(os)?.uid();
                return if is_foreign(of.uid(), owner) { Ok(None) } else { Err(os(error)) };
            }
        };
        let (meta, of) = (file.metadata().map_err(os)?, std::fs::metadata(image).map_err(os)?);
        if is_foreign(meta.uid(), of.uid()) {
            return Ok(None);
        }
        if meta.len() != size_of::<Segment>() as u64 || !meta.is_file() {
            let why = format!("{}: not the file of a mount of this image; move it away", path.display());
            return Err(Error::Image(why));
        }
        let map = MmapOptions::new().len(size_of::<Segment>()).map_raw(&file).map_err(os)?;
        Ok(Some(Self::new(map, path, &meta)))
    }

    /// Path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode of the file.
    pub(super) fn file(&self) -> (u64, u64) {
        self.file
    }

    /// Returns `true` if the file was truncated, so that programs and this process no longer share it.
    pub(super) fn is_lost(&self) -> bool {
        self.guard.is_lost(0, self.map.len())
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
        paths::remove_file(&self.path).map_err(|error| Error::Os {
            what: "cannot remove",
            path: self.path.clone(),
            error,
        })
    }
}
