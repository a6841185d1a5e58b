//! Linked lists in one array, with one node for each slot.

use frit_media::memory::prefetch;
use frit_media::memory::table_of;

#[derive(Clone, Copy, Debug)]
struct SlotNode {
    newer: u32,
    older: u32,
    lbn: u32,
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

impl SlotLists {
    pub(super) fn new(slots: u32, lists: u32) -> SlotLists {
        let mut nodes = table_of((slots + lists) as usize, SlotNode { newer: 0, older: 0, lbn: 0 });
        for anchor in slots..slots + lists {
            nodes[anchor as usize] = SlotNode { newer: anchor, older: anchor, lbn: 0 };
        }
        SlotLists { nodes, slots }
    }

    #[inline]
    pub(super) fn lbn(&self, slot: u32) -> u32 {
        self.nodes[slot as usize].lbn
    }

    #[inline]
    pub(super) fn set_lbn(&mut self, slot: u32, lbn: u32) {
        self.nodes[slot as usize].lbn = lbn;
    }

    /// Inserts a slot that is in no list at the newest end of a list.
    #[inline]
    pub(super) fn link(&mut self, list: ListId, slot: u32) {
        let anchor = self.slots + list.0;
        let newest = std::mem::replace(&mut self.nodes[anchor as usize].older, slot);
        let node = &mut self.nodes[slot as usize];
        (node.newer, node.older) = (anchor, newest);
        self.nodes[newest as usize].newer = slot;
    }

    /// Unlinks a slot from its list.
    #[inline]
    pub(super) fn unlink(&mut self, slot: u32) {
        let SlotNode { newer, older, .. } = self.nodes[slot as usize];
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
    }

    /// Makes a slot the newest of `list`.
    #[inline]
    pub(super) fn renew(&mut self, list: ListId, slot: u32) {
        if self.nodes[slot as usize].newer != self.slots + list.0 {
            self.unlink(slot);
            self.link(list, slot);
        }
    }

    /// Replaces a slot by another one at the same position.
    #[inline]
    pub(super) fn replace(&mut self, from: u32, to: u32) {
        let node = self.nodes[from as usize];
        self.nodes[to as usize] = node;
        self.nodes[node.newer as usize].older = to;
        self.nodes[node.older as usize].newer = to;
    }

    /// Returns the oldest slot of a list.
    #[inline]
    pub(super) fn oldest(&self, list: ListId) -> Option<u32> {
        // The ring closes at the anchor, so the node newer than the anchor is the oldest of the
        // list.
        Some(self.nodes[(self.slots + list.0) as usize].newer).filter(|&s| s < self.slots)
    }

    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        prefetch(self.nodes.get(slot as usize));
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(self.nodes.as_slice()) as u64
    }
}
