//! The map of the owner: logical pages to physical addresses, 8 bytes a page in DRAM and in virtual
//! blocks.

use frit_core::convert::{count_u32, to_u64, to_usize};
use frit_core::{Lpn, PhysicalAddress};
use std::collections::BTreeMap;

/// Word of a page whose contents are lost. No address has version 0.
const LOST: u64 = 1;
/// Bytes of an entry.
const ENTRY_BYTES: u32 = 8;

/// A set of numbers, a bit each.
#[derive(Clone, Debug, Default)]
struct NumberSet(Vec<u64>);

impl NumberSet {
    fn new(numbers: u32) -> NumberSet {
        NumberSet(vec![0; to_usize(numbers.div_ceil(u64::BITS))])
    }

    fn has(&self, n: u32) -> bool {
        self.0[to_usize(n / u64::BITS)] >> (n % u64::BITS) & 1 == 1
    }

    fn insert(&mut self, n: u32) {
        self.0[to_usize(n / u64::BITS)] |= 1 << (n % u64::BITS);
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.0).flat_map(|(i, &word)| {
            (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i * u64::BITS + bit)
        })
    }
}

/// The map of a volume.
#[derive(Debug)]
pub(super) struct OwnerMap {
    table: Vec<u64>,
    /// Entries of a virtual block.
    per_block: u32,
    /// Pages whose entries were written since the map was saved: the saved map does not refer to their
    /// blocks.
    unsaved: NumberSet,
    /// Virtual blocks with such entries.
    outdated: NumberSet,
    /// Pages whose contents are lost, with the reason.
    lost: BTreeMap<u32, String>,
}

impl OwnerMap {
    /// Creates a map of `pages` pages, which is saved in blocks of `block_bytes` bytes if `saved`.
    pub(super) fn new(pages: u32, block_bytes: u32, saved: bool) -> OwnerMap {
        let per_block = block_bytes / ENTRY_BYTES;
        let (unsaved, blocks) = if saved { (pages, pages.div_ceil(per_block)) } else { (0, 0) };
        OwnerMap {
            table: frit_media::memory::table64(to_usize(pages)),
            per_block,
            unsaved: NumberSet::new(unsaved),
            outdated: NumberSet::new(blocks),
            lost: BTreeMap::new(),
        }
    }

    /// Forgets all pages.
    pub(super) fn reset(&mut self) {
        self.table.fill(0);
        self.lost.clear();
        self.mark_saved();
    }

    /// Address of a page.
    #[inline]
    pub(super) fn get(&self, lpn: Lpn) -> Option<PhysicalAddress> {
        Some(self.table[lpn.idx()]).filter(|&w| w > LOST).map(PhysicalAddress::from_word)
    }

    /// Address of a page; `None` also past the end.
    pub(super) fn find(&self, lpn: u64) -> Option<PhysicalAddress> {
        let word = *self.table.get(usize::try_from(lpn).ok()?)?;
        Some(word).filter(|&w| w > LOST).map(PhysicalAddress::from_word)
    }

    /// Changes the address of a page that the device has moved. The saved map still refers to it.
    pub(super) fn set_moved(&mut self, lpn: Lpn, at: PhysicalAddress) {
        self.table[lpn.idx()] = at.to_word();
    }

    /// Changes the address of a page that was written or discarded, and ends its loss.
    pub(super) fn set(&mut self, lpn: Lpn, at: Option<PhysicalAddress>) {
        self.table[lpn.idx()] = at.map_or(0, PhysicalAddress::to_word);
        if !self.lost.is_empty() {
            self.lost.remove(&lpn.0);
        }
        self.note_unsaved(lpn);
    }

    /// Notes that the saved map does not have the entry of a page.
    pub(super) fn note_unsaved(&mut self, lpn: Lpn) {
        if !self.outdated.0.is_empty() {
            self.unsaved.insert(lpn.0);
            self.outdated.insert(lpn.0 / self.per_block);
        }
    }

    /// Returns `true` if the entry of a page was written since the map was saved.
    pub(super) fn is_unsaved(&self, lpn: Lpn) -> bool {
        self.unsaved.has(lpn.0)
    }

    /// Notes that the contents of a page are lost. The saved map states it as well.
    pub(super) fn note_lost(&mut self, lpn: Lpn, why: String) {
        self.set(lpn, None);
        self.table[lpn.idx()] = LOST;
        self.lost.insert(lpn.0, why);
    }

    /// Pages whose contents are lost.
    pub(super) fn lost(&self) -> &BTreeMap<u32, String> {
        &self.lost
    }

    /// Virtual blocks that have to be saved.
    pub(super) fn outdated(&self) -> Vec<u32> {
        self.outdated.iter().collect()
    }

    /// Notes that the whole map is saved.
    pub(super) fn mark_saved(&mut self) {
        self.unsaved.0.fill(0);
        self.outdated.0.fill(0);
    }

    /// Pages of a virtual block.
    pub(super) fn pages_of(&self, block: u32) -> std::ops::Range<u32> {
        let first = block * self.per_block;
        first..(first + self.per_block).min(count_u32(self.table.len()))
    }

    /// Encodes the entries of a virtual block.
    pub(super) fn encode(&self, block: u32, bytes: &mut [u8]) {
        bytes.fill(0);
        let pages = self.pages_of(block);
        let words = &self.table[to_usize(pages.start)..to_usize(pages.end)];
        for (place, word) in bytes.chunks_exact_mut(to_usize(ENTRY_BYTES)).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Decodes the entries of a virtual block. `each` gets each page that has contents, with its address;
    /// `None` for one whose contents are lost.
    pub(super) fn decode(
        &self,
        block: u32,
        bytes: &[u8],
        mut each: impl FnMut(Lpn, Option<PhysicalAddress>),
    ) {
        for (lpn, place) in self.pages_of(block).zip(bytes.chunks_exact(to_usize(ENTRY_BYTES))) {
            let mut word = [0; 8];
            word.copy_from_slice(place);
            match u64::from_le_bytes(word) {
                0 => {}
                LOST => each(Lpn(lpn), None),
                word => each(Lpn(lpn), Some(PhysicalAddress::from_word(word))),
            }
        }
    }

    /// Iterates over the pages with their addresses.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Lpn, Option<PhysicalAddress>)> + '_ {
        (0..count_u32(self.table.len())).map(Lpn).map(|lpn| (lpn, self.get(lpn)))
    }

    /// DRAM of the map, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        to_u64(self.table.len() + self.unsaved.0.len() + self.outdated.0.len()) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_block_has_the_entries_as_they_were() {
        let mut map = OwnerMap::new(100, 512, true);
        let at = PhysicalAddress { page: 0, version: 5 };
        map.set(Lpn(64), Some(at));
        map.note_lost(Lpn(99), "damage".into());
        assert_eq!((map.outdated(), map.is_unsaved(Lpn(64)), map.get(Lpn(99))), (vec![1], true, None));
        let mut bytes = [0xEE; 512];
        map.encode(1, &mut bytes);
        let mut found = Vec::new();
        map.decode(1, &bytes, |lpn, at| found.push((lpn.0, at)));
        assert_eq!(found, [(64, Some(at)), (99, None)]);
        map.mark_saved();
        map.set_moved(Lpn(64), PhysicalAddress { page: 1, version: 5 });
        assert!(map.outdated().is_empty() && !map.is_unsaved(Lpn(64)));
    }
}
