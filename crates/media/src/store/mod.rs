//! Storage for the bytes of a medium: none, memory, or a file.
//!
//! All stores return the same contents for the same calls; bytes that were never written read as
//! zeros. A store applies no rules of a device: those belong to the medium.

mod aligned;
mod any;
mod cache;
mod custom;
mod direct;
mod file;
mod lent;
mod map;
mod memory;
mod populate;
mod sigbus;

pub use any::AnyStore;
pub use cache::prefetch_value;
pub use custom::CustomStore;
pub use direct::{DirectFile, DirectStore, FileAccess};
pub use file::FileStore;
#[doc(hidden)]
pub use lent::LentStore;
pub use map::{MapMode, MmapStore};
pub use memory::MemoryStore;
pub use sigbus::SigbusGuard;

use crate::checksum::digest;
use frit_core::{BlockingMedium, Error, Result, SyncGate};
use std::sync::Arc;

/// Bytes by address. A medium accesses its bytes only through this trait, so that a store that
/// records or fails can replace a plain one.
pub trait Store {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// Returns `true` if the store has a size of zero bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if nothing was ever written to the store. A medium on a blank store is new.
    fn is_blank(&self) -> bool;

    /// Fills `into` with the bytes that start at `at`.
    ///
    /// # Errors
    /// A range past the end, or a read error of the host.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// Writes `data` at `at`.
    ///
    /// # Errors
    /// A range past the end, or a write error of the host.
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()>;

    /// Writes `data` at `at`, and returns its [`digest`]. A store in memory computes the digest while
    /// it waits for the memory.
    ///
    /// # Errors
    /// The errors of [`Store::write`].
    fn write_digested(&mut self, at: u64, data: &[u8]) -> Result<u64> {
        self.write(at, data)?;
        Ok(digest(data))
    }

    /// Zeros `len` bytes at `at`.
    ///
    /// # Errors
    /// The errors of [`Store::write`].
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

    /// Makes all written bytes durable: they survive a power loss of the host.
    ///
    /// # Errors
    /// A sync error of the host. Once a sync of a file has failed, all do ([`Store::sync_gate`]).
    fn sync(&mut self) -> Result<()>;

    /// Returns the gate of the syncs, if a sync of the store can fail.
    fn sync_gate(&self) -> Option<&SyncGate> {
        None
    }

    /// Returns the bytes by reference, if the store has them contiguously in memory.
    fn slice(&self, _at: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    /// Copies `len` bytes that [`Store::slice`] can borrow to another address. Returns `None` if
    /// the store does not have both ranges contiguously in memory.
    ///
    /// # Errors
    /// The errors of [`Store::read`] and [`Store::write`].
    fn copy(&mut self, _from: u64, _to: u64, _len: usize) -> Option<Result<()>> {
        None
    }

    /// Returns `true` if [`Store::copy`] is supported.
    fn copies(&self) -> bool {
        false
    }

    /// Prefetches bytes that will be read soon, if the store has them in memory.
    fn prefetch(&self, _at: u64, _len: usize) {}

    /// Returns a handle to the same bytes for use from any thread, if accesses are slow and the
    /// store supports it.
    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        None
    }

    /// Returns `true` if written bytes may be lost in a power loss of the host until
    /// [`Store::sync`], as with files behind a page cache. A modelled medium in memory is not
    /// volatile in this sense.
    fn volatile(&self) -> bool {
        false
    }
}

/// A store without bytes, for simulation at full speed. It has the largest size possible and reads
/// as zeros.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoStore;

impl Store for NoStore {
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

/// Returns an error for a range that ends past `size`.
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
