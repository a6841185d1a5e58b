//! A sharded readers-writer lock: each thread takes its own shard for shared access, so that
//! readers do not contend, and a writer takes all shards.

use crate::sync::{RwLock, RwLockReadGuard};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of shards. Additional threads share them.
const LOCK_SHARDS: usize = 16;

/// One shard. The alignment of two cache lines prevents false sharing, as processors prefetch
/// pairs.
#[derive(Debug)]
#[repr(align(128))]
struct LockShard(RwLock<()>);

/// The sharded lock.
#[derive(Debug)]
pub(super) struct ShardedRwLock([LockShard; LOCK_SHARDS]);

/// Returns the index of this thread's shard.
fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: Cell<Option<usize>> = const { Cell::new(None) });
    MINE.with(|own_shard| {
        own_shard.get().unwrap_or_else(|| {
            let stripe = NEXT.fetch_add(1, Ordering::Relaxed) % LOCK_SHARDS;
            own_shard.set(Some(stripe));
            stripe
        })
    })
}

impl ShardedRwLock {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| LockShard(RwLock::new(()))))
    }

    /// Takes shared access. A thread must not call this while it holds a guard: a waiting writer
    /// has priority, so the second call would deadlock.
    #[inline]
    pub(super) fn lock_shared(&self) -> RwLockReadGuard<'_, ()> {
        self.0[own_shard()].0.read()
    }

    /// Runs `act` with exclusive access.
    pub(super) fn with_exclusive<T>(&self, act: impl FnOnce() -> T) -> T {
        let _all: [_; LOCK_SHARDS] = std::array::from_fn(|i| self.0[i].0.write());
        act()
    }
}
