//! A memory budget that all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limit on the memory that the connections of a server hold together, in addition to the small
/// buffers of each.
///
/// No connection waits for the budget: a connection whose request is refused continues in pieces
/// that fit its own buffers. Hence connections that hold memory cannot block one another.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    used: AtomicUsize,
}

impl Budget {
    /// Creates a budget of `bytes_max` bytes, none of them granted.
    pub(crate) fn new(bytes_max: usize) -> Arc<Budget> {
        Arc::new(Budget { bytes_max, used: AtomicUsize::new(0) })
    }

    /// Returns the number of bytes granted at present.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

/// A part of a budget. Dropping it returns its bytes.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Grant {
    /// Returns a grant of no bytes.
    pub(crate) fn none(budget: &Arc<Budget>) -> Grant {
        Grant { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Returns a grant of `bytes` bytes, or `None` if the budget does not have them.
    pub(crate) fn of(budget: &Arc<Budget>, bytes: usize) -> Option<Grant> {
        let mut grant = Grant::none(budget);
        grant.resize(bytes).then_some(grant)
    }

    /// Returns another grant of the same budget, or `None` if the budget does not have `bytes`
    /// bytes.
    pub(crate) fn like(&self, bytes: usize) -> Option<Grant> {
        Grant::of(&self.budget, bytes)
    }

    /// Returns the number of bytes granted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the grant to `bytes` bytes. Returns `false`, and changes nothing, if the budget does
    /// not have them. A grant can always become smaller.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes && !self.budget.reserve(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_never_exceed_the_budget_and_return_what_they_had() {
        let budget = Budget::new(100);
        let mut a = Grant::of(&budget, 60).unwrap();
        assert!(Grant::of(&budget, 41).is_none());
        assert!(!a.resize(101) && a.bytes() == 60, "a refusal changes nothing");
        let b = Grant::of(&budget, 40).unwrap();
        assert_eq!(budget.used(), 100);
        assert!(!a.resize(61) && a.resize(10));
        assert_eq!(budget.used(), 50);
        drop((a, b));
        assert_eq!(budget.used(), 0);
        assert!(Grant::of(&budget, usize::MAX).is_none());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let budget = Arc::clone(&budget);
                std::thread::spawn(move || {
                    for n in 0..2000 {
                        let grant = Grant::of(&budget, n % 90);
                        assert!(budget.used() <= 100, "{grant:?}");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(budget.used(), 0);
    }
}
