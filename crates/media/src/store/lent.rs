//! A store that tests lend to a medium.

use super::{AnyStore, CustomStore, Store};
use frit_core::{BlockingMedium, Result};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle of a store for tests: media get the store by reference, the bytes outlive them, and a test
/// changes and examines the store between accesses. An access by two media at a time is no error.
#[derive(Debug)]
pub struct LentStore<S>(Arc<Mutex<S>>);

impl<S> LentStore<S> {
    /// Returns the first handle of a store.
    #[must_use]
    pub fn new(store: S) -> LentStore<S> {
        LentStore(Arc::new(Mutex::new(store)))
    }

    /// Access to the store itself. Media must not be used before the end of the access.
    pub fn get(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store + Debug + Send> CustomStore for LentStore<S> {
    fn len(&self) -> u64 {
        self.get().len()
    }

    fn is_blank(&self) -> bool {
        self.get().is_blank()
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.get().read(at, into)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<()> {
        self.get().write(at, data)
    }

    fn sync(&mut self) -> Result<()> {
        self.get().sync()
    }

    fn volatile(&self) -> bool {
        self.get().volatile()
    }

    fn shared(&self) -> Option<Arc<dyn BlockingMedium>> {
        self.get().shared()
    }
}

impl<S: Store + Debug + Send + 'static> From<&LentStore<S>> for AnyStore {
    fn from(store: &LentStore<S>) -> AnyStore {
        AnyStore::Custom(Box::new(LentStore(store.0.clone())))
    }
}
