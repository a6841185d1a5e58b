//! A store that the caller implements, for example one that records accesses or injects errors.

use super::Store;
use frit_core::{BlockingMedium, Result, SyncGate};
use std::fmt::Debug;
use std::sync::Arc;

/// Object-safe form of [`Store`], with which a stack can be built on stores that this crate does
/// not define.
pub trait CustomStore: Debug + Send {
    /// See [`Store::len`].
    fn len(&self) -> u64;

    /// See [`Store::is_empty`].
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`Store::is_blank`].
    fn is_blank(&self) -> bool;

    /// See [`Store::read`].
    ///
    /// # Errors
    /// The errors of [`Store::read`].
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// See [`Store::write`].
    ///
    /// # Errors
    /// The errors of [`Store::write`].
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()>;

    /// See [`Store::sync`].
    ///
    /// # Errors
    /// The errors of [`Store::sync`].
    fn sync(&mut self) -> Result<()>;

    /// See [`Store::sync_gate`].
    fn sync_gate(&self) -> Option<&SyncGate> {
        None
    }

    /// See [`Store::slice`].
    fn slice(&self, _at: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    /// See [`Store::volatile`].
    fn volatile(&self) -> bool {
        false
    }

    /// See [`Store::shared`].
    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        None
    }
}

impl Store for Box<dyn CustomStore> {
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

    fn sync(&mut self) -> Result<()> {
        (**self).sync()
    }

    fn sync_gate(&self) -> Option<&SyncGate> {
        (**self).sync_gate()
    }

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        (**self).slice(at, len)
    }

    fn volatile(&self) -> bool {
        (**self).volatile()
    }

    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        (**self).shared()
    }
}
