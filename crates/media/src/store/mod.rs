//! Where the bytes of a medium live: nowhere, in memory, in a file.
//!
//! All stores hold the same contents for the same calls; what was never written reads as zeros.
//! A store knows no rules: those are the medium's.

mod any;
mod cache;
mod custom;
mod file;
mod map;
mod memory;
mod populate;
mod sigbus;

pub use any::AnyStore;
pub use custom::CustomStore;
pub use file::FileStore;
pub use map::{Mapping, MmapStore};
pub use memory::MemoryStore;

use frit_core::{Error, Result, SlowMedium};
use std::sync::Arc;

/// Bytes by address. The only door from a medium to what holds its bytes, so that a recording or a
/// faulty store can stand in for a plain one.
pub trait Store {
    /// Whether bytes can be had back at all. Media skip all work on bytes when not.
    const HOLDS: bool;

    /// Size in bytes.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing was ever written to it: a medium on it is new.
    fn is_blank(&self) -> bool;

    /// Fills `into` from `at`.
    ///
    /// # Errors
    /// A range past the end, or a host that fails to read.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// Writes `data` at `at`.
    ///
    /// # Errors
    /// A range past the end, or a host that fails to write.
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()>;

    /// Makes bytes zero.
    ///
    /// # Errors
    /// As for [`Store::write`].
    fn zero(&mut self, at: u64, len: u64) -> Result<()> {
        let zeros = vec![0; len.min(1 << 20) as usize];
        let mut done = 0;
        while done < len {
            let n = (len - done).min(zeros.len() as u64);
            self.write(at + done, &zeros[..n as usize])?;
            done += n;
        }
        Ok(())
    }

    /// Makes all that was written outlive the machine.
    ///
    /// # Errors
    /// A host that fails to.
    fn sync(&mut self) -> Result<()>;

    /// The bytes themselves, where the store has them in one piece in memory.
    fn slice(&self, _at: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    /// Copies `len` bytes, which [`Store::slice`] can borrow, to another place, where the store has both
    /// in one piece in memory; nothing when it does not.
    ///
    /// # Errors
    /// As for [`Store::read`] and [`Store::write`].
    fn copy(&mut self, _from: u64, _to: u64, _len: usize) -> Option<Result<()>> {
        None
    }

    /// Whether [`Store::copy`] does anything.
    fn copies(&self) -> bool {
        false
    }

    /// Bytes will be read soon: loads them ahead, where the store has them in memory.
    fn fetch(&self, _at: u64, _len: usize) {}

    /// The same bytes from any thread, where accesses take long and the store allows it.
    fn shared(&self) -> Option<Arc<dyn SlowMedium>> {
        None
    }

    /// Whether what was written may be lost with the machine until [`Store::sync`]: files behind a page
    /// cache, as against modelled media.
    fn volatile(&self) -> bool {
        false
    }
}

/// A borrowed store: the medium goes, the bytes stay.
impl<S: Store> Store for &mut S {
    const HOLDS: bool = S::HOLDS;

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn is_blank(&self) -> bool {
        (**self).is_blank()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        (**self).read(at, into)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        (**self).write(at, data)
    }

    fn zero(&mut self, at: u64, len: u64) -> Result<()> {
        (**self).zero(at, len)
    }

    fn sync(&mut self) -> Result<()> {
        (**self).sync()
    }

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        (**self).slice(at, len)
    }

    fn copy(&mut self, from: u64, to: u64, len: usize) -> Option<Result<()>> {
        (**self).copy(from, to, len)
    }

    fn copies(&self) -> bool {
        (**self).copies()
    }

    fn fetch(&self, at: u64, len: usize) {
        (**self).fetch(at, len);
    }

    fn volatile(&self) -> bool {
        (**self).volatile()
    }

    fn shared(&self) -> Option<Arc<dyn SlowMedium>> {
        (**self).shared()
    }
}

/// No bytes at all: pure simulation, at full speed. Reads as zeros, of any size.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoStore;

impl Store for NoStore {
    const HOLDS: bool = false;

    fn len(&self) -> u64 {
        u64::MAX
    }

    fn is_blank(&self) -> bool {
        true
    }

    fn read(&self, _at: u64, into: &mut [u8]) -> Result<()> {
        into.fill(0);
        Ok(())
    }

    fn write(&mut self, _at: u64, _data: &[u8]) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Refuses a range that ends past `size`.
#[inline]
fn check_range(at: u64, len: usize, size: u64) -> Result<()> {
    match at.checked_add(len as u64) {
        Some(end) if end <= size => Ok(()),
        _ => Err(Error::Io {
            what: format!("{len} bytes at {at} of a store of {size} bytes"),
            source: std::io::ErrorKind::UnexpectedEof.into(),
        }),
    }
}

#[cfg(test)]
mod tests;
