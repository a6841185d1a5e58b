//! One word for each slot: links, valid fragments and flags if it holds a block, otherwise the link
//! of a list of free slots.

use crate::numbers::CacheSlot;
use frit_core::convert::{count_u32, low_u8, to_u64, to_usize};
use frit_core::{Error, Result};
use frit_media::memory::{prefetch, table32};

/// Bit of a slot that holds a block. The only other bit that belongs to the directory is [`DIRTY`].
const USED: u32 = 1 << 31;

/// Flag of a dirty block, as [`super::Directory::flags`] returns it.
pub const DIRTY: u8 = 1;

/// Flag of a block that must not be evicted now, because it is being read or written back. The
/// caller sets and clears it.
pub const PINNED: u8 = 2;

/// The end of a list of free slots.
const END: CacheSlot = CacheSlot(!USED);

/// Number of lists of free slots, which are used in turn. With a single list, the next slot is
/// known only after the word of the previous one has been read from memory. With several lists,
/// that read overlaps with the turns of the other lists.
const LISTS: usize = 16;

/// The words of all slots. Bits 0 to 7 of a used slot are the next block of the bucket's chain, 8
/// to 15 the previous one, 16 to 23 the valid fragments, 24 to 30 the flags.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    words: Vec<u32>,
    /// First slot that was never used. Unused slots are allocated first.
    fresh: CacheSlot,
    /// Free slots that were used, oldest first, so that wear spreads over all slots. The oldest is
    /// the head of list `taken`, the next one the head of the list after it. A freed slot is
    /// appended to list `given`.
    heads: [CacheSlot; LISTS],
    tails: [CacheSlot; LISTS],
    taken: u8,
    given: u8,
    free: u32,
}

impl Slots {
    pub(super) fn new(slots: u32) -> Result<Slots> {
        if slots >= END.0 {
            return Err(Error::param("slots", slots, "a cache has at most 2^31 - 2 blocks"));
        }
        Ok(Slots {
            words: table32(to_usize(slots)),
            fresh: CacheSlot(0),
            heads: [END; LISTS],
            tails: [END; LISTS],
            taken: 0,
            given: 0,
            free: slots,
        })
    }

    pub(super) fn len(&self) -> u32 {
        count_u32(self.words.len())
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    pub(super) fn bytes(&self) -> u64 {
        to_u64(size_of_val(self.words.as_slice()))
    }

    pub(super) fn word(&self, slot: CacheSlot) -> Option<&u32> {
        self.words.get(slot.idx())
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<CacheSlot> {
        if self.free == 0 {
            return None;
        }
        self.free -= 1;
        if self.fresh.0 < self.len() {
            let slot = self.fresh;
            self.fresh = slot.plus(1);
            return Some(slot);
        }
        let list = next_turn(&mut self.taken);
        let slot = self.heads[list];
        let next = CacheSlot(std::mem::take(&mut self.words[slot.idx()]));
        self.heads[list] = next;
        prefetch(self.words.get(next.idx()));
        if next == END {
            self.tails[list] = END;
        }
        Some(slot)
    }

    /// Returns the slot that [`Slots::take`] returns after some more calls. That leaves enough time
    /// to prefetch its data.
    #[inline]
    pub(super) fn soon(&self) -> Option<CacheSlot> {
        let slot = self.heads[(usize::from(self.taken) + LISTS - 1) % LISTS];
        (slot != END).then_some(slot)
    }

    #[inline]
    pub(super) fn give(&mut self, slot: CacheSlot) {
        debug_assert!(!self.used(slot), "slot {slot} holds a block");
        self.words[slot.idx()] = END.0;
        let list = next_turn(&mut self.given);
        match self.tails[list] {
            END => self.heads[list] = slot,
            tail => self.words[tail.idx()] = slot.0,
        }
        self.tails[list] = slot;
        self.free += 1;
    }

    /// Frees all slots that hold no block, and rebuilds the lists.
    pub(super) fn rebuild(&mut self) {
        (self.heads, self.tails) = ([END; LISTS], [END; LISTS]);
        (self.taken, self.given, self.free, self.fresh) = (0, 0, 0, CacheSlot(self.len()));
        for slot in CacheSlot::first(self.len()) {
            if !self.used(slot) {
                self.give(slot);
            }
        }
    }

    #[inline]
    pub(super) fn used(&self, slot: CacheSlot) -> bool {
        self.words[slot.idx()] & USED != 0
    }

    #[inline]
    pub(super) fn fill(&mut self, slot: CacheSlot, next: u8, prev: u8, valid: u8, flags: u8) {
        debug_assert!(!self.used(slot), "slot {slot} holds a block");
        self.words[slot.idx()] = USED | u32::from_le_bytes([next, prev, valid, flags]);
    }

    /// Removes a block from its slot and returns its word.
    #[inline]
    pub(super) fn clear(&mut self, slot: CacheSlot) -> u32 {
        std::mem::take(&mut self.words[slot.idx()])
    }

    /// Moves the word of a block to another slot.
    #[inline]
    pub(super) fn shift(&mut self, from: CacheSlot, to: CacheSlot) {
        debug_assert!(self.used(from) && !self.used(to), "block from slot {from} to {to}");
        self.words[to.idx()] = self.clear(from);
    }

    #[inline]
    fn byte(&self, slot: CacheSlot, n: usize) -> u8 {
        self.words[slot.idx()].to_le_bytes()[n]
    }

    #[inline]
    fn set_byte(&mut self, slot: CacheSlot, n: usize, value: u8) {
        let word = &mut self.words[slot.idx()];
        let mut bytes = word.to_le_bytes();
        bytes[n] = value;
        *word = u32::from_le_bytes(bytes);
    }

    #[inline]
    pub(super) fn next(&self, slot: CacheSlot) -> u8 {
        self.byte(slot, 0)
    }

    #[inline]
    pub(super) fn set_next(&mut self, slot: CacheSlot, next: u8) {
        self.set_byte(slot, 0, next);
    }

    #[inline]
    pub(super) fn set_prev(&mut self, slot: CacheSlot, prev: u8) {
        self.set_byte(slot, 1, prev);
    }

    #[inline]
    pub(super) fn valid(&self, slot: CacheSlot) -> u8 {
        self.byte(slot, 2)
    }

    #[inline]
    pub(super) fn set_valid(&mut self, slot: CacheSlot, valid: u8) {
        self.set_byte(slot, 2, valid);
    }

    #[inline]
    pub(super) fn flags(&self, slot: CacheSlot) -> u8 {
        self.byte(slot, 3) & 0x7f
    }

    #[inline]
    pub(super) fn set_flags(&mut self, slot: CacheSlot, flags: u8) {
        self.set_byte(slot, 3, flags & 0x7f | 0x80);
    }
}

/// Returns the list whose turn it is, and advances the turn.
#[inline]
fn next_turn(of: &mut u8) -> usize {
    let list = usize::from(*of) % LISTS;
    *of = low_u8(to_u64((list + 1) % LISTS));
    list
}
