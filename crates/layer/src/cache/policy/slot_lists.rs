//! Linked lists in one array, with one node for each slot.

use crate::numbers::{CacheSlot, Lbn};
use frit_core::convert::{to_u64, to_usize};
use frit_core::number_types;
use frit_media::memory::prefetch;
use frit_media::memory::table_of;

#[derive(Clone, Copy, Debug)]
struct SlotNode {
    newer: CacheSlot,
    older: CacheSlot,
    lbn: Lbn,
}

/// Doubly linked rings. The last nodes of the array are the anchors of the lists, so that a node
/// can be unlinked without knowing its list, and the ends are not special cases. 12 bytes for each
/// slot.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotLists {
    nodes: Vec<SlotNode>,
    slots: u32,
}

/// Number of a list of [`SlotLists`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ListId(pub(super) u32);

number_types!(ListId);

impl SlotLists {
    pub(super) fn new(slots: u32, lists: u32) -> SlotLists {
        let mut nodes = table_of(
            to_usize(slots + lists),
            SlotNode { newer: CacheSlot(0), older: CacheSlot(0), lbn: Lbn(0) },
        );
        for anchor in CacheSlot::range(CacheSlot(slots), CacheSlot(slots + lists)) {
            nodes[anchor.idx()] = SlotNode { newer: anchor, older: anchor, lbn: Lbn(0) };
        }
        SlotLists { nodes, slots }
    }

    #[inline]
    pub(super) fn lbn(&self, slot: CacheSlot) -> Lbn {
        self.nodes[slot.idx()].lbn
    }

    #[inline]
    pub(super) fn set_lbn(&mut self, slot: CacheSlot, lbn: Lbn) {
        self.nodes[slot.idx()].lbn = lbn;
    }

    /// Returns the node that closes the ring of a list.
    #[inline]
    fn anchor(&self, list: ListId) -> CacheSlot {
        CacheSlot(self.slots + list.0)
    }

    /// Inserts a slot that is in no list at the newest end of a list.
    #[inline]
    pub(super) fn link(&mut self, list: ListId, slot: CacheSlot) {
        let anchor = self.anchor(list);
        let newest = std::mem::replace(&mut self.nodes[anchor.idx()].older, slot);
        let node = &mut self.nodes[slot.idx()];
        (node.newer, node.older) = (anchor, newest);
        self.nodes[newest.idx()].newer = slot;
    }

    /// Unlinks a slot from its list.
    #[inline]
    pub(super) fn unlink(&mut self, slot: CacheSlot) {
        let SlotNode { newer, older, .. } = self.nodes[slot.idx()];
        self.nodes[newer.idx()].older = older;
        self.nodes[older.idx()].newer = newer;
    }

    /// Makes a slot the newest of `list`.
    #[inline]
    pub(super) fn renew(&mut self, list: ListId, slot: CacheSlot) {
        if self.nodes[slot.idx()].newer != self.anchor(list) {
            self.unlink(slot);
            self.link(list, slot);
        }
    }

    /// Replaces a slot by another one at the same position.
    #[inline]
    pub(super) fn replace(&mut self, from: CacheSlot, to: CacheSlot) {
        let node = self.nodes[from.idx()];
        self.nodes[to.idx()] = node;
        self.nodes[node.newer.idx()].older = to;
        self.nodes[node.older.idx()].newer = to;
    }

    /// Returns the oldest slot of a list.
    #[inline]
    pub(super) fn oldest(&self, list: ListId) -> Option<CacheSlot> {
        // The ring closes at the anchor, so the node newer than the anchor is the oldest of the
        // list.
        Some(self.nodes[self.anchor(list).idx()].newer).filter(|s| s.0 < self.slots)
    }

    /// Returns the next newer slot of the list that contains `slot`.
    #[inline]
    pub(super) fn newer(&self, slot: CacheSlot) -> Option<CacheSlot> {
        Some(self.nodes[slot.idx()].newer).filter(|s| s.0 < self.slots)
    }

    #[inline]
    pub(super) fn prefetch(&self, slot: CacheSlot) {
        prefetch(self.nodes.get(slot.idx()));
    }

    pub(super) fn bytes(&self) -> u64 {
        to_u64(size_of_val(self.nodes.as_slice()))
    }
}
