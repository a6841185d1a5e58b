//! One of the stores that hold bytes, chosen at run time.

use super::{FileStore, MemoryStore, MmapStore, Store};
use frit_core::Result;

/// A store that holds bytes. A medium is generic over its store; this keeps the number of compiled
/// stacks at two (with bytes and without), for a branch a page.
#[derive(Debug)]
pub enum AnyStore {
    /// In memory.
    Memory(MemoryStore),
    /// In a file, by `pread` and `pwrite`.
    File(FileStore),
    /// In a file, mapped.
    Mmap(MmapStore),
}

macro_rules! each {
    ($self:ident, $s:ident => $e:expr) => {
        match $self {
            AnyStore::Memory($s) => $e,
            AnyStore::File($s) => $e,
            AnyStore::Mmap($s) => $e,
        }
    };
}

impl Store for AnyStore {
    const HOLDS: bool = true;

    fn len(&self) -> u64 {
        each!(self, s => s.len())
    }

    fn is_blank(&self) -> bool {
        each!(self, s => s.is_blank())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        each!(self, s => s.read(at, into))
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        each!(self, s => s.write(at, data))
    }

    fn sync(&mut self) -> Result<()> {
        each!(self, s => s.sync())
    }

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        each!(self, s => s.slice(at, len))
    }
}
