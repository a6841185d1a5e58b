//! The map of the cached blocks: sets of slots, their flags, and the order of replacement in a set.

use frit_core::convert::{count_u32, low_u16, to_u64, to_usize};
use frit_media::memory::prefetch;

/// Block of a slot without a block.
const NO_BLOCK: u32 = u32::MAX;
/// End of a list of a set.
const END: u16 = u16::MAX;

/// Flags of a slot.
pub(super) mod flag {
    /// The metadata on the SSD may state that the block is dirty: only the SSD may have its data.
    pub(in crate::flashcache) const DIRTY: u8 = 1;
    /// The entry belongs to the current epoch, which is not committed.
    pub(in crate::flashcache) const FRESH: u8 = 2;
    /// The block was written to the disk, which was not flushed since.
    pub(in crate::flashcache) const WRITTEN: u8 = 4;
    /// The block was written to the disk, and the disk was flushed.
    pub(in crate::flashcache) const FLUSHED: u8 = 8;
    /// The data of the dirty block is damaged. It cannot be written to the disk.
    pub(in crate::flashcache) const DAMAGED: u8 = 16;
}

/// Sets of slots.
///
/// A block has one set: `(block / blocks of a set) mod sets`, so that a range of the disk is in one
/// set.
#[derive(Debug)]
pub(super) struct Sets {
    set_blocks: u32,
    sets: u32,
    blocks: Vec<u32>,
    flags: Vec<u8>,
    /// First slot of each chain: the blocks of a set that have the same place in their range of the disk.
    chains: Vec<u16>,
    /// Next slot of the chain of each slot.
    chained: Vec<u16>,
    older: Vec<u16>,
    newer: Vec<u16>,
    /// Oldest and newest slot of each set.
    ends: Vec<(u16, u16)>,
    /// Number of blocks of each set that have to be written to the disk.
    to_clean: Vec<u16>,
    /// Slot of each set before which, from the oldest on, no block has to be written to the disk.
    hand: Vec<u16>,
    valid: u32,
}

impl Sets {
    pub(super) fn new(set_blocks: u32, sets: u32) -> Sets {
        let slots = to_usize(set_blocks * sets);
        let mut all = Sets {
            set_blocks,
            sets,
            blocks: vec![NO_BLOCK; slots],
            flags: vec![0; slots],
            chains: vec![END; slots],
            chained: vec![END; slots],
            older: vec![END; slots],
            newer: vec![END; slots],
            ends: vec![(END, END); to_usize(sets)],
            to_clean: vec![0; to_usize(sets)],
            hand: vec![END; to_usize(sets)],
            valid: 0,
        };
        // The first slot of each set is the oldest, so that slots are used in order.
        (0..set_blocks * sets).for_each(|slot| all.link_newest(slot));
        all
    }

    /// DRAM of the map, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let slot = size_of::<u32>() + size_of::<u8>() + 4 * size_of::<u16>();
        let set = size_of::<(u16, u16)>() + 2 * size_of::<u16>();
        to_u64(self.blocks.len() * slot + self.ends.len() * set)
    }

    /// Number of cached blocks.
    pub(super) fn valid(&self) -> u32 {
        self.valid
    }

    /// Set of a block.
    #[inline]
    pub(super) fn set_of(&self, block: u32) -> u32 {
        block / self.set_blocks % self.sets
    }

    /// Set of a slot.
    #[inline]
    pub(super) fn set_of_slot(&self, slot: u32) -> u32 {
        slot / self.set_blocks
    }

    /// Slot of a block, if it is cached.
    #[inline]
    pub(super) fn find(&self, block: u32) -> Option<u32> {
        let first = self.set_of(block) * self.set_blocks;
        let mut next = self.chains[self.chain_of(block)];
        while next != END {
            let slot = first + u32::from(next);
            if self.blocks[to_usize(slot)] == block {
                return Some(slot);
            }
            next = self.chained[to_usize(slot)];
        }
        None
    }

    /// Chain in which a block is found.
    #[inline]
    fn chain_of(&self, block: u32) -> usize {
        to_usize(self.set_of(block) * self.set_blocks + block % self.set_blocks)
    }

    fn chain(&mut self, slot: u32, block: u32) {
        let head = self.chain_of(block);
        self.chained[to_usize(slot)] = self.chains[head];
        self.chains[head] = low_u16(u64::from(slot % self.set_blocks));
    }

    fn unchain(&mut self, slot: u32, block: u32) {
        let (head, first) = (self.chain_of(block), slot - slot % self.set_blocks);
        let own = low_u16(u64::from(slot % self.set_blocks));
        let after = self.chained[to_usize(slot)];
        if self.chains[head] == own {
            self.chains[head] = after;
            return;
        }
        let mut at = self.chains[head];
        while at != END {
            let link = &mut self.chained[to_usize(first + u32::from(at))];
            if *link == own {
                *link = after;
                return;
            }
            at = *link;
        }
    }

    /// Prefetches the chain of a block.
    #[inline]
    pub(super) fn prefetch(&self, block: u32) {
        prefetch(self.chains.get(self.chain_of(block)));
        prefetch(self.ends.get(to_usize(self.set_of(block))));
    }

    /// Prefetches the first slot of the chain of a block, or the one that it would replace.
    #[inline]
    pub(super) fn prefetch_slot(&self, block: u32) {
        let chain = self.chain_of(block);
        let i = match self.chains[chain] {
            END => self.ends[to_usize(self.set_of(block))].0,
            first => first,
        };
        let slot = chain - to_usize(block % self.set_blocks) + usize::from(i);
        prefetch(self.blocks.get(slot));
        prefetch(self.flags.get(slot));
        prefetch(self.older.get(slot));
        prefetch(self.newer.get(slot));
        prefetch(self.chained.get(slot));
    }

    /// Slot of a block, or the oldest of its set. Prefetches the chain of the block that is replaced.
    #[inline]
    pub(super) fn prefetch_victim(&self, block: u32) -> u32 {
        if let Some(slot) = self.find(block) {
            return slot;
        }
        let set = self.set_of(block);
        let slot = set * self.set_blocks + u32::from(self.ends[to_usize(set)].0);
        if let Some(old) = self.block(slot) {
            prefetch(self.chains.get(self.chain_of(old)));
        }
        slot
    }

    /// Block of a slot, if it has one.
    #[inline]
    pub(super) fn block(&self, slot: u32) -> Option<u32> {
        Some(self.blocks[to_usize(slot)]).filter(|&b| b != NO_BLOCK)
    }

    /// Returns `true` if a slot has any of the flags.
    #[inline]
    pub(super) fn is(&self, slot: u32, flags: u8) -> bool {
        self.flags[to_usize(slot)] & flags != 0
    }

    /// Sets flags, and removes others.
    pub(super) fn change(&mut self, slot: u32, set: u8, remove: u8) {
        let before = self.flags[to_usize(slot)];
        let after = (before & !remove) | set;
        self.flags[to_usize(slot)] = after;
        let set = to_usize(slot / self.set_blocks);
        match (needs_cleaning(before), needs_cleaning(after)) {
            (false, true) => {
                self.to_clean[set] += 1;
                if self.newer[to_usize(slot)] != END {
                    // It may be older than the hand.
                    self.hand[set] = self.ends[set].0;
                } else if self.hand[set] == END {
                    self.hand[set] = low_u16(u64::from(slot % self.set_blocks));
                }
            }
            (true, false) => self.to_clean[set] -= 1,
            _ => {}
        }
    }

    /// Returns `true` if the block of a slot has to be written to the disk.
    #[inline]
    pub(super) fn needs_cleaning(&self, slot: u32) -> bool {
        needs_cleaning(self.flags[to_usize(slot)])
    }

    /// Slots of a set whose blocks have to be written to the disk, the oldest first, and at most `count`.
    pub(super) fn oldest_to_clean(&mut self, set: u32, count: u32) -> Vec<u32> {
        let count = count.min(self.to_clean(set));
        let mut slots = Vec::with_capacity(to_usize(count));
        let mut next = self.hand[to_usize(set)];
        while next != END && count_u32(slots.len()) < count {
            let slot = set * self.set_blocks + u32::from(next);
            if needs_cleaning(self.flags[to_usize(slot)]) {
                if slots.is_empty() {
                    self.hand[to_usize(set)] = next;
                }
                slots.push(slot);
            }
            next = self.newer[to_usize(slot)];
        }
        slots
    }

    /// Number of blocks of a set that have to be written to the disk.
    #[inline]
    pub(super) fn to_clean(&self, set: u32) -> u32 {
        u32::from(self.to_clean[to_usize(set)])
    }

    /// Puts a block into a slot, without flags, as the newest of its set.
    pub(super) fn put(&mut self, slot: u32, block: u32) {
        match self.blocks[to_usize(slot)] {
            NO_BLOCK => self.valid += 1,
            before => self.unchain(slot, before),
        }
        self.blocks[to_usize(slot)] = block;
        self.chain(slot, block);
        self.change(slot, 0, u8::MAX);
        self.make_newest(slot);
    }

    /// Removes the block of a slot, which becomes the oldest of its set.
    pub(super) fn remove(&mut self, slot: u32) {
        let before = std::mem::replace(&mut self.blocks[to_usize(slot)], NO_BLOCK);
        if before != NO_BLOCK {
            self.unchain(slot, before);
            self.valid -= 1;
        }
        self.change(slot, 0, u8::MAX);
        self.unlink(slot);
        self.link_oldest(slot);
    }

    /// Makes a slot the newest of its set.
    pub(super) fn make_newest(&mut self, slot: u32) {
        self.unlink(slot);
        self.link_newest(slot);
    }

    /// Iterates over the slots of a set, the oldest first.
    pub(super) fn oldest_first(&self, set: u32) -> impl Iterator<Item = u32> {
        let mut next = self.ends[to_usize(set)].0;
        std::iter::from_fn(move || {
            let slot = set * self.set_blocks + u32::from(next);
            (next != END).then(|| {
                next = self.newer[to_usize(slot)];
                slot
            })
        })
    }

    /// Slot of a set that a block can take: the oldest that is not dirty.
    pub(super) fn victim(&self, set: u32) -> Option<u32> {
        self.oldest_first(set).find(|&slot| !self.is(slot, flag::DIRTY))
    }

    fn unlink(&mut self, slot: u32) {
        let set = slot / self.set_blocks;
        let at = |i: u16| to_usize(set * self.set_blocks + u32::from(i));
        let (older, newer) = (self.older[to_usize(slot)], self.newer[to_usize(slot)]);
        let hand = &mut self.hand[to_usize(set)];
        if u32::from(*hand) == slot % self.set_blocks {
            *hand = newer;
        }
        match older {
            END => self.ends[to_usize(set)].0 = newer,
            _ => self.newer[at(older)] = newer,
        }
        match newer {
            END => self.ends[to_usize(set)].1 = older,
            _ => self.older[at(newer)] = older,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let (set, i) = (slot / self.set_blocks, low_u16(u64::from(slot % self.set_blocks)));
        let before = std::mem::replace(&mut self.ends[to_usize(set)].1, i);
        (self.older[to_usize(slot)], self.newer[to_usize(slot)]) = (before, END);
        match before {
            END => self.ends[to_usize(set)].0 = i,
            _ => self.newer[to_usize(set * self.set_blocks + u32::from(before))] = i,
        }
        if self.hand[to_usize(set)] == END && needs_cleaning(self.flags[to_usize(slot)]) {
            self.hand[to_usize(set)] = i;
        }
    }

    fn link_oldest(&mut self, slot: u32) {
        let (set, i) = (slot / self.set_blocks, low_u16(u64::from(slot % self.set_blocks)));
        let after = std::mem::replace(&mut self.ends[to_usize(set)].0, i);
        (self.older[to_usize(slot)], self.newer[to_usize(slot)]) = (END, after);
        match after {
            END => self.ends[to_usize(set)].1 = i,
            _ => self.older[to_usize(set * self.set_blocks + u32::from(after))] = i,
        }
    }
}

/// Returns `true` if a block has to be written to the disk.
fn needs_cleaning(flags: u8) -> bool {
    flags & flag::DIRTY != 0 && flags & (flag::WRITTEN | flag::FLUSHED | flag::DAMAGED) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_agree_with_a_list(actions in prop::collection::vec((0..5u8, 0..64u32), 0..300)) {
            let mut sets = Sets::new(8, 3);
            // Slots of each set, the oldest first, with their blocks.
            let mut model: Vec<Vec<(u32, Option<u32>, bool)>> =
                (0..3).map(|s| (s * 8..s * 8 + 8).map(|slot| (slot, None, false)).collect()).collect();
            for (kind, block) in actions {
                let set = sets.set_of(block) as usize;
                prop_assert_eq!(set, block as usize / 8 % 3);
                let at = model[set].iter().position(|m| m.1 == Some(block));
                prop_assert_eq!(sets.find(block), at.map(|i| model[set][i].0));
                match (kind, at) {
                    (0, None) => {
                        let victim = model[set].iter().position(|m| !m.2);
                        prop_assert_eq!(sets.victim(set as u32), victim.map(|i| model[set][i].0));
                        if let Some(i) = victim {
                            let (slot, ..) = model[set].remove(i);
                            model[set].push((slot, Some(block), false));
                            sets.put(slot, block);
                        }
                    }
                    (1, Some(i)) => {
                        let m = model[set].remove(i);
                        sets.make_newest(m.0);
                        model[set].push(m);
                    }
                    (2, Some(i)) => {
                        model[set][i].2 = true;
                        sets.change(model[set][i].0, flag::DIRTY, 0);
                    }
                    // A block is clean again, in its place.
                    (4, Some(i)) => {
                        model[set][i].2 = false;
                        sets.change(model[set][i].0, flag::WRITTEN, 0);
                        sets.change(model[set][i].0, 0, flag::DIRTY | flag::WRITTEN);
                    }
                    (3, Some(i)) => {
                        let (slot, ..) = model[set].remove(i);
                        model[set].insert(0, (slot, None, false));
                        sets.remove(slot);
                    }
                    _ => {}
                }
                prop_assert!(sets.oldest_first(set as u32).eq(model[set].iter().map(|m| m.0)));
                let dirty = sets.oldest_to_clean(set as u32, u32::from(kind) * 3);
                let model_dirty = model[set].iter().filter(|m| m.2).map(|m| m.0).take(usize::from(kind) * 3);
                prop_assert_eq!(dirty, model_dirty.collect::<Vec<_>>());
                prop_assert_eq!(sets.to_clean(set as u32) as usize, model[set].iter().filter(|m| m.2).count());
                prop_assert_eq!(sets.valid() as usize, model.iter().flatten().filter(|m| m.1.is_some()).count());
            }
        }
    }
}
