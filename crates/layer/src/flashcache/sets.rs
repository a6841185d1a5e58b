//! The map of the cached blocks: sets of slots, their flags, and the order of replacement in a set.

use frit_core::convert::{count_u32, low_u16, to_u64, to_usize};

/// Block of a slot without a block.
const NO_BLOCK: u32 = u32::MAX;
/// End of a list of a set.
const END: u16 = u16::MAX;
/// Blocks that are compared together: a loop without a branch in it is compiled to vector
/// instructions.
const LANES: usize = 16;

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
    older: Vec<u16>,
    newer: Vec<u16>,
    /// Oldest and newest slot of each set.
    ends: Vec<(u16, u16)>,
    /// Number of blocks of each set that have to be written to the disk.
    to_clean: Vec<u16>,
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
            older: vec![END; slots],
            newer: vec![END; slots],
            ends: vec![(END, END); to_usize(sets)],
            to_clean: vec![0; to_usize(sets)],
            valid: 0,
        };
        // The first slot of each set is the oldest, so that slots are used in order.
        (0..set_blocks * sets).for_each(|slot| all.link_newest(slot));
        all
    }

    /// DRAM of the map, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let slot = size_of::<u32>() + size_of::<u8>() + 2 * size_of::<u16>();
        let set = size_of::<(u16, u16)>() + size_of::<u16>();
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
        let first = to_usize(self.set_of(block) * self.set_blocks);
        let set = &self.blocks[first..first + to_usize(self.set_blocks)];
        for (i, lanes) in set.chunks(LANES).enumerate() {
            if lanes.iter().fold(false, |any, &b| any | (b == block)) {
                let at = lanes.iter().position(|&b| b == block)?;
                return Some(count_u32(first + i * LANES + at));
            }
        }
        None
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
        let count = &mut self.to_clean[to_usize(slot / self.set_blocks)];
        match (needs_cleaning(before), needs_cleaning(after)) {
            (false, true) => *count += 1,
            (true, false) => *count -= 1,
            _ => {}
        }
    }

    /// Number of blocks of a set that have to be written to the disk.
    #[inline]
    pub(super) fn to_clean(&self, set: u32) -> u32 {
        u32::from(self.to_clean[to_usize(set)])
    }

    /// Puts a block into a slot, without flags, as the newest of its set.
    pub(super) fn put(&mut self, slot: u32, block: u32) {
        if self.blocks[to_usize(slot)] == NO_BLOCK {
            self.valid += 1;
        }
        self.blocks[to_usize(slot)] = block;
        self.change(slot, 0, u8::MAX);
        self.make_newest(slot);
    }

    /// Removes the block of a slot, which becomes the oldest of its set.
    pub(super) fn remove(&mut self, slot: u32) {
        if std::mem::replace(&mut self.blocks[to_usize(slot)], NO_BLOCK) != NO_BLOCK {
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
        fn sets_agree_with_a_list(actions in prop::collection::vec((0..4u8, 0..64u32), 0..300)) {
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
                    (3, Some(i)) => {
                        let (slot, ..) = model[set].remove(i);
                        model[set].insert(0, (slot, None, false));
                        sets.remove(slot);
                    }
                    _ => {}
                }
                prop_assert!(sets.oldest_first(set as u32).eq(model[set].iter().map(|m| m.0)));
                prop_assert_eq!(sets.to_clean(set as u32) as usize, model[set].iter().filter(|m| m.2).count());
                prop_assert_eq!(sets.valid() as usize, model.iter().flatten().filter(|m| m.1.is_some()).count());
            }
        }
    }
}
