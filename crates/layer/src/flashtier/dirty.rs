//! The dirty blocks of the cache, and the order in which they are cleaned.

use crate::cache::Lbn;
use crate::cache::directory::Directory;
use crate::cache::policy::{CacheAccess, EvictionPolicy, Policy, PolicyConfig, PolicySetup, Victim};
use frit_core::convert::to_usize;
use frit_core::{Error, Result};
use roaring::RoaringBitmap;
use serde::Deserialize;
use std::ops::RangeBounds;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Order in which dirty blocks are cleaned: by address, or as an eviction policy of the
/// [cache](crate::cache::policy) chooses victims among them.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CleanOrder {
    /// From the last cleaned block on, with wrap-around.
    #[default]
    Address,
    /// Buckets of 256 blocks, first those with many dirty blocks and no recent write.
    Halo,
    /// The least recently written block.
    Lru,
    /// The block that became dirty first.
    Fifo,
    /// By address, without groups of blocks that were written since the last pass.
    Wow,
    /// Dense buckets, several in one pass.
    Sweep,
}

/// The dirty blocks.
#[derive(Debug)]
pub(super) struct DirtyBlocks {
    blocks: RoaringBitmap,
    /// Block at which the next batch by address begins.
    hand: u32,
    chosen: Option<Box<ChosenOrder>>,
}

/// The order of a policy. Each dirty block has a slot of a directory, as a cached block has.
#[derive(Debug)]
struct ChosenOrder {
    dir: Directory,
    policy: Policy,
    victims: Vec<Victim>,
    /// Writes so far.
    clock: u32,
}

impl ChosenOrder {
    /// Creates an order for at most `slots` of `blocks`.
    fn new(order: CleanOrder, blocks: u32, slots: u32) -> Result<ChosenOrder> {
        let name: &'static str = order.into();
        let config = PolicyConfig { policy: name.into(), ..PolicyConfig::default() };
        let setup = PolicySetup { slots, disk_blocks: blocks, config: &config, next_use: None };
        let policy = Policy::new(&setup)?;
        Ok(ChosenOrder { dir: Directory::new(blocks, slots)?, policy, victims: Vec::new(), clock: 0 })
    }

    fn written(&mut self, block: u32) {
        self.clock = self.clock.wrapping_add(1);
        let access = CacheAccess { lbn: Lbn(block), write: true, at: 0, clock: self.clock };
        if let Some(slot) = self.dir.get(access.lbn) {
            self.policy.hit(slot, &access);
        } else {
            self.policy.miss(&access);
            // Without a slot, the block is cleaned in the order of addresses.
            let Some(slot) = self.dir.alloc() else { return };
            self.dir.insert(access.lbn, slot, 0xFF, true);
            self.policy.insert(slot, &access);
        }
        self.dir.touch(access.lbn, self.clock);
    }

    fn removed(&mut self, block: u32) {
        if let Some(slot) = self.dir.remove(Lbn(block)) {
            self.policy.remove(slot, Lbn(block));
            self.dir.free(slot);
        }
    }

    /// Takes the next victims out of the policy.
    fn next(&mut self) -> &[Victim] {
        self.victims.clear();
        self.policy.victims(&self.dir, self.clock, &mut self.victims);
        for victim in &self.victims {
            self.dir.remove(victim.lbn);
            self.dir.free(victim.slot);
        }
        &self.victims
    }
}

impl DirtyBlocks {
    /// Creates an empty set for a cache of `slots` blocks of a volume of `blocks`.
    ///
    /// # Errors
    /// A volume or a cache that is too large for the order.
    pub(super) fn new(order: CleanOrder, blocks: u32, slots: u64) -> Result<DirtyBlocks> {
        let chosen = match order {
            CleanOrder::Address => None,
            order => {
                let slots = u32::try_from(slots.min(u64::from(blocks))).unwrap_or(blocks);
                let chosen = ChosenOrder::new(order, blocks, slots.max(1));
                Some(Box::new(chosen.map_err(|e| {
                    let name: &'static str = order.into();
                    Error::param("clean_order", name, format!("is not possible: {e}"))
                })?))
            }
        };
        Ok(DirtyBlocks { blocks: RoaringBitmap::new(), hand: 0, chosen })
    }

    /// Notes a write of a block, which is dirty now.
    pub(super) fn insert(&mut self, block: u32) {
        self.blocks.insert(block);
        if let Some(chosen) = &mut self.chosen {
            chosen.written(block);
        }
    }

    pub(super) fn remove(&mut self, block: u32) {
        if self.blocks.remove(block)
            && let Some(chosen) = &mut self.chosen
        {
            chosen.removed(block);
        }
    }

    pub(super) fn clear(&mut self) {
        for block in std::mem::take(&mut self.blocks) {
            if let Some(chosen) = &mut self.chosen {
                chosen.removed(block);
            }
        }
        self.hand = 0;
    }

    pub(super) fn len(&self) -> u64 {
        self.blocks.len()
    }

    pub(super) fn contains(&self, block: u32) -> bool {
        self.blocks.contains(block)
    }

    /// Returns the dirty blocks of a range, in ascending order.
    pub(super) fn range(&self, range: impl RangeBounds<u32>) -> impl Iterator<Item = u32> + '_ {
        self.blocks.range(range)
    }

    /// Returns up to `count` blocks to be cleaned next, in ascending order, without those that `skips`
    /// refuses. They stay dirty until they are removed. A block whose cleaning failed is returned again, in the
    /// order of addresses.
    pub(super) fn next_batch(&mut self, count: u32, skips: impl Fn(u32) -> bool) -> Vec<u32> {
        let count = to_usize(count);
        let mut batch = Vec::new();
        if let Some(chosen) = &mut self.chosen {
            while batch.len() < count {
                let victims = chosen.next();
                if victims.is_empty() {
                    break;
                }
                batch.extend(victims.iter().map(|v| v.lbn.0).filter(|&b| !skips(b)));
            }
        }
        let mut taken = RoaringBitmap::from_iter(batch.iter().copied());
        let around = self.blocks.range(self.hand..).chain(self.blocks.range(..self.hand));
        let missing = count.saturating_sub(batch.len());
        let rest: Vec<u32> = around.filter(|&b| !skips(b) && taken.insert(b)).take(missing).collect();
        if let Some(last) = rest.last() {
            self.hand = last + 1;
        } else if batch.is_empty() {
            self.hand = 0;
        }
        batch.extend(rest);
        batch.sort_unstable();
        batch
    }

    /// DRAM of the set and of its order, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let s = self.blocks.statistics();
        let order = self.chosen.as_ref().map_or(0, |c| {
            let dir = c.dir.bytes();
            dir.blocks + dir.buckets + c.policy.dram_bytes()
        });
        s.n_bytes_array_containers + s.n_bytes_bitset_containers + s.n_bytes_run_containers + order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const BLOCKS: u32 = 4096;

    fn dirty(order: CleanOrder, written: &[u32]) -> DirtyBlocks {
        let mut all = DirtyBlocks::new(order, BLOCKS, 512).unwrap();
        written.iter().for_each(|&b| all.insert(b));
        all
    }

    #[test]
    fn orders_choose_other_blocks() {
        // A dense bucket of old writes at 1024, and single blocks of new ones.
        let written: Vec<u32> = (1024..1280).chain([7, 2000, 3000, 2000, 7]).collect();
        let first = |order, count| dirty(order, &written).next_batch(count, |_| false);
        assert_eq!(first(CleanOrder::Address, 2), [7, 1024]);
        assert_eq!(first(CleanOrder::Fifo, 2), [1024, 1025]);
        let mut lru = dirty(CleanOrder::Lru, &[3, 4, 5, 3]);
        assert_eq!(lru.next_batch(2, |_| false), [4, 5]);
        // HALO takes the whole bucket, although fewer blocks are asked for.
        assert_eq!(first(CleanOrder::Halo, 2), (1024..1280).collect::<Vec<_>>());
    }

    #[test]
    fn blocks_that_were_not_cleaned_come_again() {
        for order in [CleanOrder::Lru, CleanOrder::Halo, CleanOrder::Sweep] {
            let mut all = dirty(order, &[1, 2, 3]);
            assert_eq!(all.next_batch(9, |b| b == 2), [1, 3], "{order:?}");
            assert_eq!(all.next_batch(9, |_| false), [1, 2, 3], "{order:?}");
            [1, 2, 3].into_iter().for_each(|b| all.remove(b));
            assert_eq!(all.next_batch(9, |_| false), [0; 0], "{order:?}");
        }
    }

    proptest! {
        /// Every order returns dirty blocks only, each once in a batch, and comes to an end.
        #[test]
        fn all_dirty_blocks_are_cleaned(
            steps in prop::collection::vec((0..BLOCKS, 0u8..8), 1..200),
            count in 1u32..40,
        ) {
            use CleanOrder::{Address, Fifo, Halo, Lru, Sweep, Wow};
            for order in [Address, Halo, Lru, Fifo, Wow, Sweep] {
                let (mut all, mut model) = (dirty(order, &[]), BTreeSet::new());
                for &(block, what) in &steps {
                    match what {
                        0 => {
                            all.remove(block);
                            model.remove(&block);
                        }
                        1 => {
                            let batch = all.next_batch(count, |_| false);
                            prop_assert!(batch.len() as u32 >= count.min(model.len() as u32), "{:?}", order);
                            for b in batch {
                                prop_assert!(model.remove(&b), "{:?} returned {}", order, b);
                                all.remove(b);
                            }
                        }
                        _ => {
                            all.insert(block);
                            model.insert(block);
                        }
                    }
                    prop_assert_eq!(all.len(), model.len() as u64);
                }
                while !model.is_empty() {
                    for b in all.next_batch(count, |_| false) {
                        prop_assert!(model.remove(&b));
                        all.remove(b);
                    }
                }
            }
        }
    }
}
