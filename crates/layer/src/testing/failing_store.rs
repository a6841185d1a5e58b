//! A store that fails on request.

use frit_core::{Error, Result};
use frit_media::{MemoryStore, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Accesses that fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailingAccess {
    /// All.
    Any,
    /// Writes.
    Write,
    /// Syncs.
    Sync,
}

/// A memory store whose accesses fail while `fails` is set.
#[derive(Debug)]
pub(crate) struct FailingStore {
    pub(crate) store: MemoryStore,
    pub(crate) fails: Arc<AtomicBool>,
    pub(crate) access: FailingAccess,
    pub(crate) error: fn() -> Error,
}

impl FailingStore {
    fn check(&self, access: FailingAccess) -> Result<()> {
        let concerned = self.access == FailingAccess::Any || self.access == access;
        if concerned && self.fails.load(Ordering::Relaxed) { Err((self.error)()) } else { Ok(()) }
    }
}

impl Store for FailingStore {
    const STORES_BYTES: bool = true;
    fn len(&self) -> u64 {
        self.store.len()
    }
    fn is_blank(&self) -> bool {
        self.store.is_blank()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.check(FailingAccess::Any)?;
        self.store.read(at, into)
    }
    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.check(FailingAccess::Write)?;
        self.store.write(at, data)
    }
    fn sync(&mut self) -> Result<()> {
        self.check(FailingAccess::Sync)
    }
}
