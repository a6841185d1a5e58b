//! An image in any file: which medium is right for it depends on the file system that it is on.

use super::mapped::is_dax;
use super::overlaid::in_memory;
use super::{Mapped, Medium, Overlaid, Overlay};
use crate::error::{Error, Result};
use std::fs::File;
use std::path::Path;

/// An image in a file.
#[derive(Debug)]
pub enum Image {
    /// The file is memory: on DAX, tmpfs, ramfs or hugetlbfs.
    Mapped(Mapped),
    /// The file is on a disk, behind the page cache.
    Overlaid(Box<Overlaid>),
}

impl Image {
    /// Opens a file that exists, whole. On a disk, changes that a killed process left are there again, and a sync that
    /// a power cut of the machine cut off is completed.
    ///
    /// # Errors
    /// It cannot be opened or mapped. On a disk also: there is no directory in memory for the overlay, an overlay or a
    /// double-write file belongs to another state of the image, or somebody has the image open.
    pub fn open(path: &Path, overlay: &Overlay) -> Result<Self> {
        if is_memory(path)? {
            return Mapped::file(path).map(Self::Mapped);
        }
        Overlaid::open(path, overlay).map(|image| Self::Overlaid(Box::new(image)))
    }

    /// The same for a file that is about to get a new file system: what a stop left of the one that it held is given
    /// up.
    ///
    /// # Errors
    /// As [`Image::open`], but for what belongs to another state.
    pub fn fresh(path: &Path, overlay: &Overlay) -> Result<Self> {
        if is_memory(path)? {
            return Mapped::file(path).map(Self::Mapped);
        }
        Overlaid::fresh(path, overlay).map(|image| Self::Overlaid(Box::new(image)))
    }

    /// Sentences about overlays of other images that killed processes left.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Mapped(_) => &[],
            Self::Overlaid(image) => image.notes(),
        }
    }

    /// Reserves disk space for syncs, so that they do not fail on a full disk.
    ///
    /// # Errors
    /// There is not as much space beside the image. An image in memory needs none.
    pub fn reserve(&self) -> Result<()> {
        match self {
            Self::Mapped(_) => Ok(()),
            Self::Overlaid(image) => image.reserve(),
        }
    }

    /// Returns the file in memory that holds what was changed and not synced, of an image on a disk.
    #[must_use]
    pub fn overlay(&self) -> Option<&Path> {
        match self {
            Self::Mapped(_) => None,
            Self::Overlaid(image) => image.overlay(),
        }
    }

    /// Bytes that a power cut of the machine would lose, in whole pages: 0 where fences or nothing at all outlive it.
    #[must_use]
    pub fn unsynced(&self) -> u64 {
        match self {
            Self::Mapped(_) => 0,
            Self::Overlaid(image) => image.unsynced(),
        }
    }
}

/// Whether a mapping of the file is all there is of it.
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
        }
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        match self {
            Self::Mapped(image) => image.read(at, into),
            Self::Overlaid(image) => image.read(at, into),
        }
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        match self {
            Self::Mapped(image) => image.write(at, data),
            Self::Overlaid(image) => image.write(at, data),
        }
    }

    #[inline]
    fn write_data(&self, at: u64, data: &[u8]) {
        match self {
            Self::Mapped(image) => image.write_data(at, data),
            Self::Overlaid(image) => image.write_data(at, data),
        }
    }

    #[inline]
    fn zero(&self, at: u64, len: u64) {
        match self {
            Self::Mapped(image) => image.zero(at, len),
            Self::Overlaid(image) => image.zero(at, len),
        }
    }

    #[inline]
    fn fence(&self) {
        match self {
            Self::Mapped(image) => image.fence(),
            Self::Overlaid(image) => image.fence(),
        }
    }

    fn sync(&self) -> Result<()> {
        match self {
            Self::Mapped(image) => image.sync(),
            Self::Overlaid(image) => image.sync(),
        }
    }
}
