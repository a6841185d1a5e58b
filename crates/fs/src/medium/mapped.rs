//! A medium in memory of this machine: anonymous, or a mapped file.

use super::Medium;
use super::cache_lines::CacheLineFlush;
use super::memory::MappedMemory;
use crate::error::{Error, Result};
use frit_core::paths::OpenOptions;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A mapped medium. Writes to a file survive this process immediately. On a DAX file system they
/// are durable after a fence. Elsewhere the kernel writes them to the file at any time, and at the
/// latest in [`Medium::sync`].
#[derive(Debug)]
pub struct Mapped {
    memory: MappedMemory,
    file: Option<PathBuf>,
}

impl Mapped {
    /// Allocates zeroed memory, on huge pages if the kernel provides them. It ends with the
    /// process.
    ///
    /// # Errors
    /// Not enough memory is available.
    pub fn anonymous(bytes: u64) -> Result<Self> {
        let os = |error| Error::Os { what: "cannot allocate memory for", path: "a medium".into(), error };
        let map = MmapOptions::new().len(bytes as usize).map_anon().map_err(os)?;
        let map = MmapRaw::from(map);
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { memory: MappedMemory::new(map, CacheLineFlush::NoFlush), file: None })
    }

    /// Maps a whole existing file.
    ///
    /// # Errors
    /// The file cannot be opened or mapped.
    pub fn file(path: &Path) -> Result<Self> {
        let os = |what| move |error| Error::Os { what, path: path.to_owned(), error };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).any_user(true).open(path).map_err(os("cannot open"))?;
        let bytes = file.metadata().map_err(os("cannot stat"))?.len() / 4096 * 4096;
        if bytes == 0 {
            return Err(Error::Image(format!("{}: too small for a file system", path.display())));
        }
        let map = MmapOptions::new().len(bytes as usize).map_raw(&file).map_err(os("cannot map"))?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        // Without DAX, cache line writeback is useless: the page cache is durable only after a
        // sync.
        let lines = if is_dax(&file) { CacheLineFlush::detect() } else { CacheLineFlush::NoFlush };
        Ok(Self { memory: MappedMemory::new(map, lines), file: Some(path.to_owned()) })
    }
}

/// Returns `true` if a file is on DAX, so that a mapping of it is the memory itself.
pub(super) fn is_dax(file: &File) -> bool {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};

    statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::DAX))
}

impl Medium for Mapped {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        self.memory.read(at, into);
    }

    #[inline]
    fn scan(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> bool {
        each(self.memory.slice(at, len));
        true
    }

    #[inline]
    fn update(&self, at: u64, len: usize, each: &mut dyn FnMut(&mut [u8])) -> bool {
        self.memory.update(at, len, each);
        true
    }

    fn file(&self) -> Option<PathBuf> {
        self.file.clone()
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        debug_assert!(at.is_multiple_of(8) && data.len().is_multiple_of(8));
        self.memory.write(at, data);
    }

    #[inline]
    fn write_data(&self, at: u64, data: &[u8]) {
        self.memory.write(at, data);
    }

    #[inline]
    fn zero(&self, at: u64, len: u64) {
        self.memory.zero(at, len);
    }

    fn write_back(&self, at: u64, len: u64) {
        self.memory.write_back(at, len);
    }

    #[inline]
    fn fence(&self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn sync(&self) -> Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        self.memory.flush().map_err(|error| Error::Os { what: "cannot sync", path: path.clone(), error })
    }
}
