//! Caches of searches, which grow while an expression is searched for.

use crate::engine::{Account, Charge};
use parking_lot::Mutex;

/// Searches between two counts of the memory of a cache.
const COUNT_EVERY: u32 = 64;

/// Caches of threads that search no more. Their memory is counted.
pub(super) struct Caches<C> {
    account: Account,
    kept: Mutex<Vec<Kept<C>>>,
}

struct Kept<C> {
    cache: C,
    charge: Charge,
    searches: u32,
}

impl<C> Caches<C> {
    pub(super) fn new(account: &Account) -> Self {
        Self { account: account.clone(), kept: Mutex::default() }
    }

    /// Searches with a cache. `bytes` is the memory that it has.
    #[inline]
    pub(super) fn with<T>(
        &self,
        create: impl FnOnce() -> C,
        bytes: impl FnOnce(&C) -> usize,
        search: impl FnOnce(&mut C) -> T,
    ) -> T {
        let kept = self.kept.lock().pop();
        let mut kept =
            kept.unwrap_or_else(|| Kept { cache: create(), charge: self.account.charge(), searches: 0 });
        let found = search(&mut kept.cache);
        let is_counted = !kept.searches.is_multiple_of(COUNT_EVERY);
        kept.searches = kept.searches.wrapping_add(1);
        // Without memory for it, the next search begins with an empty one.
        if is_counted || kept.charge.cover(bytes(&kept.cache)).is_ok() {
            self.kept.lock().push(kept);
        }
        found
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
        let caches = Caches::new(&account);
        let search = |bytes: usize| caches.with(|| 0_usize, |cache| *cache, |cache| *cache = bytes);
        search(1 << 20);
        assert!(memory.used() >= 1 << 20 && caches.kept.lock().len() == 1);
        (0..COUNT_EVERY).for_each(|_| search(3 << 20));
        assert_eq!((memory.used(), caches.kept.lock().len()), (0, 0));
        search(4000);
        assert_eq!(caches.kept.lock().len(), 1);
        drop(caches);
        assert_eq!(memory.used(), 0);
    }
}
