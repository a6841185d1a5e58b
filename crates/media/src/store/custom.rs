//! A store from outside: one that records, fails, or lies elsewhere.

use super::Store;
use frit_core::Result;
use std::fmt::Debug;

/// [`Store`] as an object, so that a stack can be built on stores that this crate does not know.
pub trait CustomStore: Debug + Send {
    /// As [`Store::len`].
    fn len(&self) -> u64;

    /// As [`Store::is_empty`].
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`Store::is_blank`].
    fn is_blank(&self) -> bool;

    /// As [`Store::read`].
    ///
    /// # Errors
    /// As there.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// As [`Store::write`].
    ///
    /// # Errors
    /// As there.
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()>;

    /// As [`Store::sync`].
    ///
    /// # Errors
    /// As there.
    fn sync(&mut self) -> Result<()>;

    /// As [`Store::slice`].
    fn slice(&self, _at: u64, _len: usize) -> Option<&[u8]> {
        None
    }

    /// As [`Store::volatile`].
    fn volatile(&self) -> bool {
        false
    }
}

impl Store for Box<dyn CustomStore> {
    const HOLDS: bool = true;

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

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        (**self).slice(at, len)
    }

    fn volatile(&self) -> bool {
        (**self).volatile()
    }
}
