//! Belady's MIN ("A Study of Replacement Algorithms for a Virtual-Storage Computer", IBM Systems
//! Journal 1966): evicts the block whose next access is farthest in the future. It knows the
//! future, so it bounds the hits of all other policies if every miss inserts its block. It is not a
//! bound of disk time.

use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use frit_core::convert::{size_in_memory, to_u64, to_usize};
use frit_core::{Error, Result};
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The next use of a slot that holds no block.
const ABSENT: u64 = u64::MAX - 1;

/// A heap of next uses. An entry is valid while its slot still has that next use.
#[derive(Clone, Debug, Default)]
pub struct Belady {
    future: Option<Arc<[u64]>>,
    heap: BinaryHeap<(u64, CacheSlot)>,
    next: Vec<u64>,
    lbns: Vec<Lbn>,
}

impl Belady {
    fn expect(&mut self, slot: CacheSlot, at: u64) {
        let next = self.future.as_ref().and_then(|f| f.get(size_in_memory(at))).copied().unwrap_or(u64::MAX);
        self.schedule(slot, next);
    }

    fn schedule(&mut self, slot: CacheSlot, next: u64) {
        self.next[slot.idx()] = next;
        self.heap.push((next, slot));
        // Invalid entries may lie below valid ones and would never be popped, so they are removed
        // here.
        if self.heap.len() > 2 * self.next.len() + 64 {
            let next = &self.next;
            self.heap.retain(|&(n, slot)| next[slot.idx()] == n);
        }
    }
}

impl EvictionPolicy for Belady {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        let future = setup.next_use.ok_or_else(|| {
            Error::param("policy", "belady", "needs to know the future accesses: it is for `frit cache` only")
        })?;
        *self = Belady {
            future: Some(Arc::clone(future)),
            heap: BinaryHeap::new(),
            next: vec![ABSENT; to_usize(setup.slots)],
            lbns: vec![Lbn(0); to_usize(setup.slots)],
        };
        Ok(())
    }

    fn hit(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.expect(slot, access.at);
    }

    fn moved(&mut self, from: CacheSlot, to: CacheSlot) {
        let next = std::mem::replace(&mut self.next[from.idx()], ABSENT);
        self.lbns[to.idx()] = self.lbns[from.idx()];
        self.schedule(to, next);
    }

    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess) {
        self.lbns[slot.idx()] = access.lbn;
        self.expect(slot, access.at);
    }

    fn remove(&mut self, slot: CacheSlot, _: Lbn) {
        self.next[slot.idx()] = ABSENT;
    }

    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        while let Some((next, slot)) = self.heap.pop() {
            if self.next[slot.idx()] == next {
                self.next[slot.idx()] = ABSENT;
                out.push(Victim { lbn: self.lbns[slot.idx()], slot });
                return;
            }
        }
    }

    fn dram_bytes(&self) -> u64 {
        let future = self.future.as_ref().map_or(0, |f| f.len() * size_of::<u64>());
        let heap = self.heap.capacity() * size_of::<(u64, CacheSlot)>();
        to_u64(future + heap + self.next.len() * size_of::<u64>() + self.lbns.len() * size_of::<Lbn>())
    }
}
