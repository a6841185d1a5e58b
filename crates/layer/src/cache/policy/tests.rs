//! Properties of all policies, and examples by hand for HALO and WOW.

use super::*;
use crate::cache::directory::PINNED;
use crate::numbers::{BucketId, CacheSlot, Lbn};
use proptest::prelude::*;
use std::collections::HashMap;

const DISK: u32 = 64 * 256;

fn make(name: &str, slots: u32) -> Policy {
    let config = PolicyConfig::named(name);
    // An arbitrary future, not that of the accesses: the policy `belady` must stay consistent with
    // any.
    let future: std::sync::Arc<[u64]> = (0..1000).map(|at| at + 1 + at * at % 97).collect();
    Policy::new(&PolicySetup { slots, disk_blocks: DISK, config: &config, next_use: Some(&future) }).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Access(Lbn, bool),
    Move(Lbn),
    Remove(Lbn),
    Shrink,
}

fn op() -> impl Strategy<Value = Op> {
    let lbn = prop_oneof![3 => 0u32..60, 1 => 0..DISK].prop_map(Lbn);
    prop_oneof![
        12 => (lbn.clone(), any::<bool>()).prop_map(|(l, w)| Op::Access(l, w)),
        1 => lbn.clone().prop_map(Op::Move),
        1 => lbn.prop_map(Op::Remove),
        1 => Just(Op::Shrink),
    ]
}

/// A cache around a policy that checks every victim.
struct Checked {
    policy: Policy,
    dir: Directory,
    held: HashMap<Lbn, CacheSlot>,
    clock: u32,
}

impl Checked {
    fn new(name: &str, slots: u32) -> Checked {
        let dir = Directory::new(DISK, slots).unwrap();
        Checked { policy: make(name, slots), dir, held: HashMap::new(), clock: 0 }
    }

    fn evict(&mut self) -> usize {
        let mut out = Vec::new();
        self.policy.victims(&self.dir, self.clock, &mut out);
        assert!(self.held.is_empty() || !out.is_empty(), "nothing leaves of {}", self.held.len());
        for v in &out {
            assert_eq!(self.held.remove(&v.lbn), Some(v.slot), "victim {v:?}");
            assert_eq!(self.dir.remove(v.lbn), Some(v.slot));
            self.dir.free(v.slot);
        }
        out.len()
    }

    fn apply(&mut self, op: Op) {
        self.clock += 1;
        match op {
            Op::Access(lbn, write) => {
                let access = CacheAccess { lbn, write, at: u64::from(self.clock) - 1, clock: self.clock };
                if let Some(&slot) = self.held.get(&lbn) {
                    self.policy.hit(slot, &access);
                } else {
                    self.policy.miss(&access);
                    while self.dir.free_len() == 0 {
                        assert!(self.evict() > 0, "a full cache lets nothing go");
                    }
                    let slot = self.dir.alloc().unwrap();
                    self.dir.insert(lbn, slot, 0xff, write);
                    self.policy.insert(slot, &access);
                    self.held.insert(lbn, slot);
                }
                self.dir.touch(lbn, self.clock);
            }
            Op::Move(lbn) => {
                if let Some(slot) = self.held.get_mut(&lbn)
                    && let Some(to) = self.dir.alloc()
                {
                    self.dir.relocate(lbn, *slot, to);
                    self.dir.free(*slot);
                    self.policy.moved(*slot, to);
                    *slot = to;
                }
            }
            Op::Remove(lbn) => {
                if let Some(slot) = self.held.remove(&lbn) {
                    self.dir.remove(lbn);
                    self.dir.free(slot);
                    self.policy.remove(slot, lbn);
                }
            }
            Op::Shrink => {
                self.evict();
            }
        }
    }
}

proptest! {
    #[test]
    fn a_policy_neither_invents_nor_loses_blocks(ops in prop::collection::vec(op(), 1..600), slots in 1u32..40) {
        for name in <Policy as VariantNames>::VARIANTS {
            let mut cache = Checked::new(name, slots);
            for &op in &ops {
                cache.apply(op);
            }
            // All inserted blocks can be evicted, and then nothing more.
            let mut left = cache.held.len();
            while left > 0 {
                left -= cache.evict();
            }
            prop_assert_eq!(cache.evict(), 0);
        }
    }
}

#[test]
fn names_that_there_are_not_are_refused_with_those_that_there_are() {
    let config = PolicyConfig::named("mru");
    let e =
        Policy::new(&PolicySetup { slots: 4, disk_blocks: 9, config: &config, next_use: None }).unwrap_err();
    assert!(e.to_string().contains("halo, lru"), "{e}");
}

/// Creates buckets from `(bucket, blocks, age)` at clock 1000.
fn buckets(all: &[(u32, u32, u32)]) -> Directory {
    let mut dir = Directory::new(DISK, 4096).unwrap();
    for &(bucket, blocks, age) in all {
        for block in 0..blocks {
            let slot = dir.alloc().unwrap();
            dir.insert(BucketId(bucket).block(block * 3 % 256), slot, 0xff, true);
        }
        dir.touch(BucketId(bucket).block(0), 1000 - age);
    }
    dir
}

fn leaves(halo: &mut Policy, dir: &mut Directory) -> (u32, usize) {
    let mut out = Vec::new();
    halo.victims(dir, 1000, &mut out);
    assert!(out.is_sorted_by_key(|v| v.lbn));
    for v in &out {
        assert_eq!(dir.remove(v.lbn), Some(v.slot));
    }
    (out[0].lbn.bucket().0, out.len())
}

/// HALO with TH_BCOUNTS 4, TH_RECENCY 100 requests, OUTDATE_RECENCY 500 requests, and both
/// thresholds zero after 8 buckets.
fn halo() -> Policy {
    let config = PolicyConfig {
        th_bcounts: 4,
        th_recency: 100.0 / 4096.0,
        outdate_recency: 500.0 / 4096.0,
        halo_scan: 8,
        ..PolicyConfig::default()
    };
    Policy::new(&PolicySetup { slots: 4096, disk_blocks: DISK, config: &config, next_use: None }).unwrap()
}

#[test]
fn halo_takes_the_first_bucket_that_is_full_enough_and_old_enough() {
    // 40 blocks in 4 buckets: the average is 10. Bucket 3 is large but was just accessed, 7 is old
    // but small, 9 has 22 blocks and an age of 200.
    let all = [(3, 16, 10), (7, 1, 200), (9, 22, 200), (12, 1, 300)];
    let (mut dir, mut halo) = (buckets(&all), halo());
    assert_eq!(leaves(&mut halo, &mut dir), (9, 22));
    // 18 blocks in 3 buckets remain: the average is 6, and both thresholds, 10 and 100, are zero
    // after 8 buckets. From bucket 10 on the search visits 12, 3, 7, 12, 3, 7, 12, 3. Buckets of
    // one block stay below the count threshold, which is 1.25 at the end; bucket 3 stays below the
    // age threshold, which is 12.5 at the end. The ninth bucket is evicted in any case: 7. Of two
    // buckets the ninth is 12.
    let order: Vec<u32> = (0..3).map(|_| leaves(&mut halo, &mut dir).0).collect();
    assert_eq!(order, [7, 12, 3]);
}

#[test]
fn halo_lets_outdated_buckets_go_however_small() {
    let (mut dir, mut halo) = (buckets(&[(1, 30, 400), (2, 1, 501), (3, 30, 50)]), halo());
    // The average is 20 and a third; bucket 1 exceeds it by more than 4.
    assert_eq!(leaves(&mut halo, &mut dir), (1, 30));
    assert_eq!(leaves(&mut halo, &mut dir), (2, 1));
}

#[test]
fn halo_passes_over_pinned_blocks() {
    let (mut dir, mut halo) = (buckets(&[(1, 2, 600), (2, 3, 1)]), halo());
    for lbn in [256, 259].map(Lbn) {
        let slot = dir.get(lbn).unwrap();
        dir.set_flags(slot, PINNED);
    }
    assert_eq!(leaves(&mut halo, &mut dir), (2, 3));
    let mut out = Vec::new();
    halo.victims(&dir, 1000, &mut out);
    assert!(out.is_empty());
    dir.set_flags(dir.get(Lbn(259)).unwrap(), 0);
    assert_eq!(leaves(&mut halo, &mut dir), (1, 1));
}

/// Returns the next victims.
fn next_out(c: &mut Checked) -> Vec<u32> {
    let mut out = Vec::new();
    c.policy.victims(&c.dir, c.clock, &mut out);
    for v in &out {
        assert_eq!(c.dir.remove(v.lbn), Some(v.slot));
        c.held.remove(&v.lbn);
    }
    out.iter().map(|v| v.lbn.0).collect()
}

#[test]
fn wow_goes_over_the_disk_and_spares_groups_that_were_hit_once() {
    let mut c = Checked::new("wow", 40);
    // Groups of 16 blocks: 6 (blocks 97 and 100), 0, 2, and 1, which is written a second time.
    for lbn in [100, 97, 3, 40, 20, 20] {
        c.apply(Op::Access(Lbn(lbn), true));
    }
    // A read does not set the bit of a group.
    c.apply(Op::Access(Lbn(40), false));
    assert_eq!(next_out(&mut c), [3]);
    assert_eq!(next_out(&mut c), [40]);
    // Block 5 is behind the hand: it is evicted in the next round, before group 1.
    c.apply(Op::Access(Lbn(5), true));
    assert_eq!(next_out(&mut c), [97, 100]);
    assert_eq!(next_out(&mut c), [5]);
    assert_eq!(next_out(&mut c), [20]);
    assert_eq!(next_out(&mut c), [0; 0]);
}

#[test]
fn sieve_leaves_accessed_blocks_in_place_and_goes_on_where_it_stopped() {
    let mut c = Checked::new("sieve", 40);
    let access = |c: &mut Checked, lbns: &[u32]| lbns.iter().for_each(|&l| c.apply(Op::Access(Lbn(l), true)));
    // Oldest first: 1, 2, 3, 4, 5; 1 and 3 are accessed again.
    access(&mut c, &[1, 2, 3, 4, 5, 3, 1]);
    // The hand passes 1 and evicts 2, then passes 3 and evicts 4.
    assert_eq!(next_out(&mut c), [2]);
    assert_eq!(next_out(&mut c), [4]);
    // Block 6 is newer than the hand, which goes on to 5 and 6, and not back to 1 and 3.
    access(&mut c, &[6]);
    assert_eq!(next_out(&mut c), [5]);
    assert_eq!(next_out(&mut c), [6]);
    // The hand begins again at the oldest, whose bit was cleared. CLOCK would have moved 1 and 3 to
    // the newest end.
    access(&mut c, &[7, 1]);
    assert_eq!(next_out(&mut c), [3]);
    // A block that leaves otherwise takes the hand along to the next newer one.
    access(&mut c, &[8]);
    c.apply(Op::Remove(Lbn(7)));
    assert_eq!(next_out(&mut c), [8]);
    assert_eq!(next_out(&mut c), [1]);
    assert_eq!(next_out(&mut c), [0; 0]);
}

#[test]
fn an_oracle_lets_go_what_is_needed_last_and_hits_most() {
    use crate::cache::sim::{BlockAccess, Sim, next_uses};
    let mut x = 7u32;
    let blocks: Vec<BlockAccess> = (0..5000)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // The product of two random numbers makes some blocks far more frequent than others.
            BlockAccess { lbn: Lbn((x >> 27) * (x >> 22 & 31)), write: true, begins: true }
        })
        .collect();
    let future = next_uses(&blocks);
    let hits = |name: &str, slots: u32| {
        let mut sim = Sim::new(&PolicyConfig::named(name), slots, DISK, false, Some(&future)).unwrap();
        sim.run(&blocks);
        sim.outcome().hits
    };
    for slots in [20, 60, 150] {
        // A simple implementation of MIN.
        let (mut held, mut best) = (HashMap::new(), 0);
        for (a, &next) in blocks.iter().zip(&*future) {
            if held.insert(a.lbn, next).is_some() {
                best += 1;
            } else if held.len() > slots as usize {
                let (&last, _) = held.iter().filter(|h| *h.0 != a.lbn).max_by_key(|h| (h.1, h.0)).unwrap();
                held.remove(&last);
            }
        }
        assert_eq!(hits("belady", slots), best, "{slots} slots");
        for name in <Policy as VariantNames>::VARIANTS {
            assert!(hits(name, slots) <= best, "{name} at {slots} slots");
        }
    }
}
