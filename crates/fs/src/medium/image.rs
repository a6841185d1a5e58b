//! An image in any file, or in virtual blocks. The type of medium depends on the file system that contains
//! the file.

use super::mapped::is_dax;
use super::overlaid::in_memory;
use super::{Mapped, Medium, Overlaid, OverlayNote, OverlayOptions};
use crate::error::{Error, Result};
use crate::nameless::VirtualBlocks;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A medium in a file.
#[derive(Debug)]
pub enum Image {
    /// The file is memory: on DAX, tmpfs, ramfs or hugetlbfs.
    Mapped(Mapped),
    /// The file is on a disk, behind the page cache.
    Overlaid(Box<Overlaid>),
    /// There is no file: the metadata is in virtual blocks of a nameless-write device.
    Virtual(Arc<VirtualBlocks>),
}

impl Image {
    /// Opens an existing file as a whole. For an image on a disk, changes by a process that was
    /// killed are recovered from the overlay, and a sync that was interrupted by a power loss is
    /// completed.
    ///
    /// # Errors
    /// The file cannot be opened or mapped. For an image on a disk also: no directory in memory is
    /// available for the overlay, an overlay or a double-write file belongs to another state of the
    /// image, or the image is in use.
    pub fn open(path: &Path, overlay: &OverlayOptions) -> Result<Self> {
        if is_memory(path)? {
            return Mapped::file(path).map(Self::Mapped);
        }
        Overlaid::open(path, overlay).map(|image| Self::Overlaid(Box::new(image)))
    }

    /// Opens a file that is about to be formatted. Changes that a crash left of the previous file
    /// system are discarded.
    ///
    /// # Errors
    /// As [`Image::open`], except for files that belong to another state.
    pub fn fresh(path: &Path, overlay: &OverlayOptions) -> Result<Self> {
        if is_memory(path)? {
            return Mapped::file(path).map(Self::Mapped);
        }
        Overlaid::fresh(path, overlay).map(|image| Self::Overlaid(Box::new(image)))
    }

    /// Returns notes about overlays of other images that killed processes left behind.
    #[must_use]
    pub fn notes(&self) -> &[OverlayNote] {
        match self {
            Self::Mapped(_) | Self::Virtual(_) => &[],
            Self::Overlaid(image) => image.notes(),
        }
    }

    /// Reserves disk space for syncs, so that they do not fail on a full disk.
    ///
    /// # Errors
    /// Not enough disk space is available for the double-write file. An image in memory needs none.
    pub fn reserve(&self) -> Result<()> {
        match self {
            Self::Mapped(_) | Self::Virtual(_) => Ok(()),
            Self::Overlaid(image) => image.reserve(),
        }
    }

    /// Returns the overlay file in memory, which holds the unsynced changes of an image on a disk.
    #[must_use]
    pub fn overlay(&self) -> Option<&Path> {
        match self {
            Self::Mapped(_) | Self::Virtual(_) => None,
            Self::Overlaid(image) => image.overlay(),
        }
    }

    /// Returns the number of bytes that a power loss would lose, in whole pages. It is 0 for media
    /// on which a fence is sufficient, or on which nothing survives a power loss.
    #[must_use]
    pub fn unsynced(&self) -> u64 {
        match self {
            Self::Mapped(_) | Self::Virtual(_) => 0,
            Self::Overlaid(image) => image.unsynced(),
        }
    }
}

/// Returns `true` if the file is on a file system in memory or on DAX, so that a mapping is
/// sufficient.
fn is_memory(path: &Path) -> Result<bool> {
    let os = |error| Error::Os { what: "cannot open", path: path.to_owned(), error };
    let file = File::open(path).map_err(os)?;
    Ok(in_memory(&file) || is_dax(&file))
}

impl Medium for Image {
    fn bytes(&self) -> u64 {
        match self {
            Self::Mapped(image) => image.bytes(),
            Self::Overlaid(image) => image.bytes(),
            Self::Virtual(image) => image.bytes(),
        }
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        match self {
            Self::Mapped(image) => image.read(at, into),
            Self::Overlaid(image) => image.read(at, into),
            Self::Virtual(image) => image.read(at, into),
        }
    }

    #[inline]
    fn scan(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> bool {
        match self {
            Self::Mapped(image) => image.scan(at, len, each),
            Self::Overlaid(_) | Self::Virtual(_) => false,
        }
    }

    #[inline]
    fn update(&self, at: u64, len: usize, each: &mut dyn FnMut(&mut [u8])) -> bool {
        match self {
            Self::Mapped(image) => image.update(at, len, each),
            Self::Overlaid(_) | Self::Virtual(_) => false,
        }
    }

    fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Mapped(image) => image.file(),
            Self::Overlaid(_) | Self::Virtual(_) => None,
        }
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        match self {
            Self::Mapped(image) => image.write(at, data),
            Self::Overlaid(image) => image.write(at, data),
            Self::Virtual(image) => image.write(at, data),
        }
    }

    #[inline]
    fn write_data(&self, at: u64, data: &[u8]) {
        match self {
            Self::Mapped(image) => image.write_data(at, data),
            Self::Overlaid(image) => image.write_data(at, data),
            Self::Virtual(image) => image.write_data(at, data),
        }
    }

    #[inline]
    fn zero(&self, at: u64, len: u64) {
        match self {
            Self::Mapped(image) => image.zero(at, len),
            Self::Overlaid(image) => image.zero(at, len),
            Self::Virtual(image) => image.zero(at, len),
        }
    }

    #[inline]
    fn fence(&self) {
        match self {
            Self::Mapped(image) => image.fence(),
            Self::Overlaid(image) => image.fence(),
            Self::Virtual(image) => image.fence(),
        }
    }

    fn sync(&self) -> Result<()> {
        match self {
            Self::Mapped(image) => image.sync(),
            Self::Overlaid(image) => image.sync(),
            Self::Virtual(image) => image.sync(),
        }
    }
}
