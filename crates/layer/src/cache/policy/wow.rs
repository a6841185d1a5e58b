//! WOW (Gill and Modha, "WOW: Wise Ordering for Writes", FAST 2005, section IV): CSCAN over write
//! groups, with CLOCK's reference bit.
//!
//! A hand moves cyclically over the groups that hold blocks, in the order of the disk. A group
//! whose recency bit is set loses the bit; one without it is evicted as a whole. A write to a
//! cached block sets the bit of its group. A new group starts without the bit.
//!
//! The paper keeps the groups in a sorted queue, where insertion costs O(log n). Here they are a
//! bitmap with one bit for each group of the disk, so insertion is O(1).

use super::{CacheAccess, EvictionPolicy, PolicySetup, Victim};
use crate::cache::BLOCK_BYTES;
use crate::cache::directory::{Directory, PINNED, SparseBitmap};
use crate::numbers::{CacheSlot, Lbn};
use frit_core::Result;
use frit_core::convert::bounded_u32;

/// Bitmaps of the groups. A group whose last block left for another reason is found empty when the
/// hand reaches it.
#[derive(Clone, Debug, Default)]
pub struct Wow {
    /// Groups that hold blocks, or did.
    filled: SparseBitmap,
    recent: SparseBitmap,
    hand: u32,
    group_blocks: u32,
    disk_blocks: u32,
}

impl Wow {
    #[inline]
    fn group_of(&self, lbn: Lbn) -> u32 {
        lbn.0 / self.group_blocks
    }

    /// Appends the blocks of a group to `out`. Returns `true` if the group is empty afterwards.
    fn take(&self, dir: &Directory, group: u32, out: &mut Vec<Victim>) -> bool {
        let first = group * self.group_blocks;
        let mut empty = true;
        let end = first.saturating_add(self.group_blocks).min(self.disk_blocks);
        for lbn in Lbn::range(Lbn(first), Lbn(end)) {
            let Some(slot) = dir.get(lbn) else { continue };
            if dir.flags(slot) & PINNED == 0 {
                out.push(Victim { lbn, slot });
            } else {
                empty = false;
            }
        }
        empty
    }
}

impl EvictionPolicy for Wow {
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()> {
        let group_blocks = bounded_u32(setup.config.wow_group / BLOCK_BYTES);
        let groups = u64::from(setup.disk_blocks.div_ceil(group_blocks));
        let (filled, recent) = (SparseBitmap::new(groups), SparseBitmap::new(groups));
        *self = Wow { filled, recent, hand: 0, group_blocks, disk_blocks: setup.disk_blocks };
        Ok(())
    }

    #[inline]
    fn hit(&mut self, _: CacheSlot, access: &CacheAccess) {
        if access.write {
            self.recent.insert(self.group_of(access.lbn));
        }
    }

    #[inline]
    fn moved(&mut self, _: CacheSlot, _: CacheSlot) {}

    #[inline]
    fn insert(&mut self, _: CacheSlot, access: &CacheAccess) {
        let group = self.group_of(access.lbn);
        if self.filled.insert(group) {
            self.recent.remove(group);
        }
    }

    #[inline]
    fn remove(&mut self, _: CacheSlot, _: Lbn) {}

    fn victims(&mut self, dir: &Directory, _: u32, out: &mut Vec<Victim>) {
        let before = out.len();
        // The first round clears the bits, the second finds any group that can be evicted.
        for _ in 0..2 * u64::from(self.filled.len()) {
            let Some(group) = self.filled.next(self.hand) else { return };
            self.hand = group + 1;
            if self.recent.remove(group) {
                continue;
            }
            if self.take(dir, group, out) {
                self.filled.remove(group);
            }
            if out.len() > before {
                return;
            }
        }
    }

    fn by_address(&self) -> bool {
        true
    }

    fn dram_bytes(&self) -> u64 {
        self.filled.bytes() + self.recent.bytes()
    }
}
