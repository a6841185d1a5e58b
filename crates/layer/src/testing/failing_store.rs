//! A store that fails on request.

use frit_core::{Error, Result};
use frit_media::{CustomStore, MemoryStore, Store};
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
    store: MemoryStore,
    fails: Arc<AtomicBool>,
    access: FailingAccess,
    error: fn() -> Error,
}

impl FailingStore {
    /// Returns a store that works, and the switch that makes these accesses fail.
    pub(crate) fn new(
        store: MemoryStore,
        access: FailingAccess,
        error: fn() -> Error,
    ) -> (FailingStore, Arc<AtomicBool>) {
        let fails = Arc::new(AtomicBool::new(false));
        (FailingStore { store, fails: fails.clone(), access, error }, fails)
    }

    fn check(&self, access: FailingAccess) -> Result<()> {
        let concerned = self.access == FailingAccess::Any || self.access == access;
        if concerned && self.fails.load(Ordering::Relaxed) { Err((self.error)()) } else { Ok(()) }
    }
}

impl CustomStore for FailingStore {
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
