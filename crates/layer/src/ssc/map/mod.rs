//! The map from blocks of the disk to pages of NAND.
//!
//! The address space is that of the disk, and sparse. A map is one file beside this one that implements
//! [`BlockMap`].

mod linear;
mod sparse;

pub(super) use linear::LinearMap;
pub(super) use sparse::SparseMap;

use super::config::SscMap;
use enum_dispatch::enum_dispatch;
use frit_core::{PAGE_NONE, Ppn};

/// The version in NAND is dirty.
const DIRTY: u16 = 1;
/// A newer version waits in the write buffer.
const BUFFERED: u16 = 1 << 1;
/// The version in the write buffer is dirty.
const BUFFERED_DIRTY: u16 = 1 << 2;

/// Entry of a block: its version in NAND, and the state of a newer one in the write buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    ppn: u32,
    /// Low bits of the stamp of the version in NAND.
    tag: u16,
    flags: u16,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry { ppn: PAGE_NONE, tag: 0, flags: 0 }
    }
}

impl Entry {
    /// Entry of a version in NAND. Bit 0 of its stamp is set if it is dirty.
    pub(super) fn in_nand(ppn: Ppn, stamp: u64) -> Entry {
        Entry { ppn: ppn.0, tag: stamp as u16, flags: if stamp & 1 == 1 { DIRTY } else { 0 } }
    }

    /// Entry of a version in NAND whose stamp is known in part.
    pub(super) fn from_parts(ppn: Ppn, tag: u16, dirty: bool) -> Entry {
        Entry { ppn: ppn.0, tag, flags: if dirty { DIRTY } else { 0 } }
    }

    /// Page of the version in NAND, if there is one.
    #[inline]
    pub(super) fn ppn(self) -> Option<Ppn> {
        (self.ppn != PAGE_NONE).then_some(Ppn(self.ppn))
    }

    /// Low bits of the stamp of the version in NAND.
    #[inline]
    pub(super) fn tag(self) -> u16 {
        self.tag
    }

    /// Returns `true` if the write buffer has the newest version.
    #[inline]
    pub(super) fn is_buffered(self) -> bool {
        self.flags & BUFFERED != 0
    }

    /// Returns `true` if the version in NAND is dirty.
    #[inline]
    pub(super) fn is_dirty_in_nand(self) -> bool {
        self.ppn != PAGE_NONE && self.flags & DIRTY != 0
    }

    /// Returns `true` if the newest version is dirty.
    #[inline]
    pub(super) fn is_dirty(self) -> bool {
        if self.is_buffered() { self.flags & BUFFERED_DIRTY != 0 } else { self.is_dirty_in_nand() }
    }

    /// Entry with a newest version in the write buffer.
    pub(super) fn buffered(self, dirty: bool) -> Entry {
        let kept = self.flags & DIRTY;
        Entry { flags: kept | BUFFERED | if dirty { BUFFERED_DIRTY } else { 0 }, ..self }
    }

    /// Entry without a version in the write buffer.
    pub(super) fn unbuffered(self) -> Entry {
        Entry { flags: self.flags & DIRTY, ..self }
    }

    /// Entry without a version in NAND.
    pub(super) fn dropped(self) -> Entry {
        Entry { ppn: PAGE_NONE, tag: 0, flags: self.flags & !DIRTY }
    }

    /// Entry whose version in NAND is clean.
    pub(super) fn cleaned(self) -> Entry {
        Entry { flags: self.flags & !DIRTY, ..self }
    }

    /// Returns `true` if the block has no version.
    pub(super) fn is_empty(self) -> bool {
        self.ppn().is_none() && !self.is_buffered()
    }
}

/// The maps that a configuration can choose.
#[enum_dispatch(BlockMap)]
#[derive(Clone, Debug)]
pub(super) enum AnyMap {
    Linear(LinearMap),
    Sparse(SparseMap),
}

impl AnyMap {
    /// Creates a map for `blocks` blocks.
    pub(super) fn new(kind: SscMap, blocks: u32) -> AnyMap {
        match kind {
            SscMap::Linear => LinearMap::new(blocks).into(),
            SscMap::Sparse => SparseMap::new(blocks).into(),
        }
    }
}

/// A map of the blocks that are present. The number of its rows is set when it is created.
#[enum_dispatch]
pub(super) trait BlockMap {
    /// Returns the entry of a block; an empty one if the block is not present.
    fn get(&self, block: u32) -> Entry;

    /// Sets the entry of a block, and returns the one before. An empty entry removes the block. The
    /// number of blocks that are present must not exceed the size of the map.
    fn replace(&mut self, block: u32, entry: Entry) -> Entry;

    /// Prefetches the row in which the search for a block begins.
    fn prefetch(&self, block: u32);

    /// Prefetches what the row of [`BlockMap::prefetch`] refers to.
    fn prefetch_entry(&self, _block: u32) {}

    /// Returns the number of blocks that are present.
    fn len(&self) -> u32;

    /// Returns the number of table rows, each of which costs one step of a walk.
    fn rows(&self) -> u32;

    /// Calls `each` with all blocks that are present, in no order.
    fn each(&self, each: &mut dyn FnMut(u32, Entry));

    /// Removes all blocks.
    fn clear(&mut self);

    /// Returns the DRAM of the map, in bytes.
    fn dram_bytes(&self) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::split_mix;
    use std::collections::BTreeMap;

    #[test]
    fn maps_agree_with_a_tree_under_insertions_and_deletions() {
        for kind in [SscMap::Linear, SscMap::Sparse] {
            agrees_with_a_tree(AnyMap::new(kind, 300));
        }
    }

    fn agrees_with_a_tree(mut map: AnyMap) {
        let (mut model, mut state) = (BTreeMap::new(), 7);
        for n in 0..200_000u32 {
            let r = split_mix::next(&mut state);
            // Neighbours and multiples of a power of two, which a weak hash would pile up.
            let block = (r % 200) as u32 * [1, 1 << 20][(r >> 32) as usize & 1];
            if model.len() < 300 && r >> 62 != 0 {
                let entry = Entry::in_nand(Ppn(n), u64::from(n));
                let before = model.insert(block, entry).unwrap_or_default();
                assert_eq!(map.replace(block, entry), before);
            } else {
                let before = model.remove(&block).unwrap_or_default();
                assert_eq!(map.replace(block, Entry::default()), before);
            }
            assert_eq!(map.len() as usize, model.len());
            let probe = (r >> 20) as u32 % 200;
            assert_eq!(map.get(probe), model.get(&probe).copied().unwrap_or_default());
        }
        let mut all = BTreeMap::new();
        map.each(&mut |block, entry| assert_eq!(all.insert(block, entry), None));
        assert_eq!(all, model);
    }
}
