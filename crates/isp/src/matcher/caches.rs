//! Caches of searches, which grow while an expression is searched for.

use crate::engine::{Account, Charge};
use parking_lot::Mutex;

/// Searches between two counts of the memory of a cache.
const COUNT_EVERY: u32 = 64;

/// Caches that no thread searches with. Their memory is counted.
pub(super) struct Caches<C> {
    account: Account,
    kept: Mutex<Vec<Box<Kept<C>>>>,
    /// Returns the memory of a cache in bytes.
    bytes: fn(&C) -> usize,
}

struct Kept<C> {
    cache: C,
    charge: Charge,
    searches: u32,
}

impl<C> Caches<C> {
    pub(super) fn new(account: &Account, bytes: fn(&C) -> usize) -> Self {
        Self { account: account.clone(), kept: Mutex::default(), bytes }
    }

    /// Returns a place for the cache of a thread, which takes one at its first search.
    pub(super) fn hold(&self) -> Held<'_, C> {
        Held { caches: self, kept: None }
    }

    #[cold]
    fn take(&self, create: impl FnOnce() -> C) -> Box<Kept<C>> {
        let kept = self.kept.lock().pop();
        kept.unwrap_or_else(|| Box::new(Kept { cache: create(), charge: self.account.charge(), searches: 0 }))
    }
}

/// Cache of a thread for many searches: to take one from the others for each line would take longer than most searches.
pub(super) struct Held<'c, C> {
    caches: &'c Caches<C>,
    kept: Option<Box<Kept<C>>>,
}

impl<C> Held<'_, C> {
    /// Searches with the cache.
    #[inline]
    pub(super) fn search<T>(&mut self, create: impl FnOnce() -> C, search: impl FnOnce(&mut C) -> T) -> T {
        let caches = self.caches;
        let kept = self.kept.get_or_insert_with(|| caches.take(create));
        let found = search(&mut kept.cache);
        let is_counted = !kept.searches.is_multiple_of(COUNT_EVERY);
        kept.searches = kept.searches.wrapping_add(1);
        // Without memory for it, the next search begins with an empty one.
        if !is_counted && kept.charge.cover((caches.bytes)(&kept.cache)).is_err() {
            self.kept = None;
        }
        found
    }
}

impl<C> Drop for Held<'_, C> {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.caches.kept.lock().push(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{TestMemory as Memory, User};

    #[test]
    fn a_cache_without_memory_is_not_kept() {
        let memory = Memory::new(4 << 20);
        let account = Account::new(&memory, User::default());
        let caches = Caches::new(&account, |cache: &usize| *cache);
        let search = |times: u32, bytes: usize| {
            let mut held = caches.hold();
            (0..times).for_each(|_| held.search(|| 0, |cache| *cache = bytes));
        };
        search(1, 1 << 20);
        assert!(memory.used() >= 1 << 20 && caches.kept.lock().len() == 1);
        search(COUNT_EVERY, 3 << 20);
        assert_eq!((memory.used(), caches.kept.lock().len()), (0, 0));
        search(1, 4000);
        assert_eq!(caches.kept.lock().len(), 1);
        drop(caches);
        assert_eq!(memory.used(), 0);
    }
}
