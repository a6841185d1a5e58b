//! The store of a medium, of a kind that is chosen at run time.

use super::{CustomStore, DirectStore, FileStore, MemoryStore, MmapStore, NoStore, Store};
use frit_core::{BlockingMedium, Result, SyncGate};
use std::sync::Arc;

/// The store of a medium. Media and layers are compiled once, for this type: a branch for each access is
/// the price.
#[derive(Debug)]
pub enum AnyStore {
    /// No bytes: a simulation at full speed.
    None(NoStore),
    /// A store in memory.
    Memory(MemoryStore),
    /// A file that is accessed with `pread` and `pwrite`.
    File(FileStore),
    /// A file that is accessed without the page cache.
    Direct(DirectStore),
    /// A file that is mapped into memory.
    Mmap(MmapStore),
    /// A store that the caller implements.
    Custom(Box<dyn CustomStore>),
}

macro_rules! each {
    ($self:ident, $s:ident => $e:expr) => {
        match $self {
            AnyStore::None($s) => $e,
            AnyStore::Memory($s) => $e,
            AnyStore::File($s) => $e,
            AnyStore::Direct($s) => $e,
            AnyStore::Mmap($s) => $e,
            AnyStore::Custom($s) => $e,
        }
    };
}

impl Store for AnyStore {
    fn len(&self) -> u64 {
        each!(self, s => Store::len(s))
    }

    fn is_blank(&self) -> bool {
        each!(self, s => Store::is_blank(s))
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        each!(self, s => Store::read(s, at, into))
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        each!(self, s => Store::write(s, at, data))
    }

    fn write_digested(&mut self, at: u64, data: &[u8]) -> Result<u64> {
        each!(self, s => Store::write_digested(s, at, data))
    }

    fn zero(&mut self, at: u64, len: u64) -> Result<()> {
        each!(self, s => Store::zero(s, at, len))
    }

    fn sync(&mut self) -> Result<()> {
        each!(self, s => Store::sync(s))
    }

    fn sync_gate(&self) -> Option<&SyncGate> {
        each!(self, s => Store::sync_gate(s))
    }

    fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        each!(self, s => Store::slice(s, at, len))
    }

    fn copy(&mut self, from: u64, to: u64, len: usize) -> Option<Result<()>> {
        each!(self, s => Store::copy(s, from, to, len))
    }

    fn copies(&self) -> bool {
        each!(self, s => Store::copies(s))
    }

    fn prefetch(&self, at: u64, len: usize) {
        each!(self, s => Store::prefetch(s, at, len));
    }

    fn volatile(&self) -> bool {
        each!(self, s => Store::volatile(s))
    }

    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        each!(self, s => Store::shared(s))
    }
}

impl AnyStore {
    /// Returns `true` if the store keeps the bytes that are written. If it does not, media and layers skip
    /// all work on bytes.
    #[inline]
    #[must_use]
    pub fn stores_bytes(&self) -> bool {
        !matches!(self, AnyStore::None(_))
    }
}

impl<C: CustomStore + 'static> From<C> for AnyStore {
    fn from(store: C) -> AnyStore {
        AnyStore::Custom(Box::new(store))
    }
}

macro_rules! from {
    ($($kind:ident: $store:ty),*) => {
        $(impl From<$store> for AnyStore {
            fn from(store: $store) -> AnyStore {
                AnyStore::$kind(store)
            }
        })*
    };
}

from!(None: NoStore, Memory: MemoryStore, File: FileStore, Direct: DirectStore, Mmap: MmapStore);
