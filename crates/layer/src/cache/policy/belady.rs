//! Belady's MIN ("A Study of Replacement Algorithms for a Virtual-Storage Computer", IBM Systems
//! Journal 1966): evicts the block whose next access is farthest in the future. It knows the
//! future, so it bounds the hits of all other policies if every miss inserts its block. It is not a
//! bound of disk time.

use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::directory::Directory;
use frit_core::{Error, Result};
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The next use of a slot that holds no block.
const ABSENT: u64 = u64::MAX - 1;

/// A heap of next uses. An entry is valid while its slot still has that next use.
#[derive(Clone, Debug, Default)]
pub struct Belady {
    future: Option<Arc<[u64]>>,
    heap: BinaryHeap<(u64, u32)>,
    next: Vec<u64>,
    lbns: Vec<u32>,
}

impl Belady {
    fn expect(&mut self, slot: u32, at: u64) {
        let next = self.future.as_ref().and_then(|f| f.get(at as usize)).copied().unwrap_or(u64::MAX);
        self.schedule(slot, next);
    }

    fn schedule(&mut self, slot: u32, next: u64) {
        self.next[slot as usize] = next;
        self.heap.push((next, slot));
        // Invalid entries may lie below valid ones and would never be popped, so they are removed
        // here.
        if self.heap.len() > 2 * self.next.len() + 64 {
            let next = &self.next;
            self.heap.retain(|&(n, slot)| next[slot as usize] == n);
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
            next: vec![ABSENT; setup.slots as usize],
            lbns: vec![0; setup.slots as usize],
        };
        Ok(())
    }

    fn hit(&mut self, slot: u32, access: &CacheAccess) {
        self.expect(slot, access.at);
    }

    fn moved(&mut self, from: u32, to: u32) {
        let next = std::mem::replace(&mut self.next[from as usize], ABSENT);
        self.lbns[to as usize] = self.lbns[from as usize];
        self.schedule(to, next);
    }

    fn insert(&mut self, slot: u32, access: &CacheAccess) {
        self.lbns[slot as usize] = access.lbn;
        self.expect(slot, access.at);
    }

    fn remove(&mut self, slot: u32, _: u32) {
        self.next[slot as usize] = ABSENT;
    }

    fn victims(&mut self, _: &Directory, _: u32, out: &mut Vec<Victim>) {
        while let Some((next, slot)) = self.heap.pop() {
            if self.next[slot as usize] == next {
                self.next[slot as usize] = ABSENT;
                out.push(Victim { lbn: self.lbns[slot as usize], slot });
                return;
            }
        }
    }

    fn dram_bytes(&self) -> u64 {
        let future = self.future.as_ref().map_or(0, |f| f.len() * size_of::<u64>());
        let heap = self.heap.capacity() * size_of::<(u64, u32)>();
        (future + heap + self.next.len() * size_of::<u64>() + self.lbns.len() * size_of::<u32>()) as u64
    }
}
