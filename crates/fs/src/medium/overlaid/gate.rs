//! A lock that many threads pass at once without meeting: each takes its own stripe of it, and who wants to be alone
//! takes all.

use crate::sync::{RwLock, RwLockReadGuard};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stripes: threads beyond as many share them.
const STRIPES: usize = 16;

/// A stripe on cache lines of its own; processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe(RwLock<()>);

/// The lock.
#[derive(Debug)]
pub(super) struct Gate([Stripe; STRIPES]);

/// The stripe of this thread.
fn mine() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: Cell<Option<usize>> = const { Cell::new(None) });
    MINE.with(|mine| {
        mine.get().unwrap_or_else(|| {
            let stripe = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
            mine.set(Some(stripe));
            stripe
        })
    })
}

impl Gate {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Stripe(RwLock::new(()))))
    }

    /// Until the guard is gone nobody is alone. Not to be called while one is held: who waits to be alone goes first.
    #[inline]
    pub(super) fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0[mine()].0.read()
    }

    /// Does something while nobody else is inside.
    pub(super) fn alone<T>(&self, act: impl FnOnce() -> T) -> T {
        let _all: [_; STRIPES] = std::array::from_fn(|i| self.0[i].0.write());
        act()
    }
}
