//! Blocks that left, remembered by number: lists in order of leaving, and an index over them.

use super::links::{Links, List};
use crate::cache::directory::Index;

/// The bit of an index entry that says in which of two lists a block is.
const SECOND: u32 = 1 << 31;

/// At most two lists that share their room.
#[derive(Clone, Debug)]
pub(super) struct Ghosts {
    index: Index,
    /// Lists 0 and 1, and in 2 the nodes that are free.
    links: Links,
    /// Nodes from here on were never used.
    fresh: u32,
    room: u32,
    lens: [u32; 2],
}

const FREE: List = List(2);

impl Default for Ghosts {
    fn default() -> Self {
        Ghosts::new(0)
    }
}

impl Ghosts {
    /// Room for so many blocks.
    pub(super) fn new(room: u32) -> Ghosts {
        Ghosts { index: Index::new(room as usize), links: Links::new(room, 3), fresh: 0, room, lens: [0; 2] }
    }

    pub(super) fn len(&self, list: List) -> u32 {
        self.lens[list.0 as usize]
    }

    /// Forgets a block. Returns the list in which it was.
    #[inline]
    pub(super) fn take(&mut self, lbn: u32) -> Option<List> {
        let entry = self.index.remove(lbn)?;
        let list = List(entry >> 31);
        self.release(entry & !SECOND, list);
        Some(list)
    }

    /// Forgets the block of a list that left first.
    #[inline]
    pub(super) fn forget_oldest(&mut self, list: List) {
        if let Some(node) = self.links.oldest(list) {
            self.index.remove(self.links.lbn(node));
            self.release(node, list);
        }
    }

    fn release(&mut self, node: u32, list: List) {
        self.links.unlink(node);
        self.links.link(FREE, node);
        self.lens[list.0 as usize] -= 1;
    }

    /// A block leaves. Where there is no room the oldest of the second list is forgotten, or else of the first;
    /// without any room nothing is remembered. A block that is remembered already stays where it is.
    #[inline]
    pub(super) fn push(&mut self, list: List, lbn: u32) {
        if self.room == 0 || self.index.get(lbn).is_some() {
            return;
        }
        if self.lens[0] + self.lens[1] == self.room {
            self.forget_oldest(List(u32::from(self.lens[1] > 0)));
        }
        let node = match self.links.oldest(FREE) {
            Some(node) => {
                self.links.unlink(node);
                node
            }
            None => {
                self.fresh += 1;
                self.fresh - 1
            }
        };
        self.links.set_lbn(node, lbn);
        self.links.link(list, node);
        self.index.insert(lbn, node | list.0 << 31);
        self.lens[list.0 as usize] += 1;
    }

    #[inline]
    pub(super) fn prefetch(&self, lbn: u32) {
        self.index.prefetch(lbn);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.index.bytes() + self.links.bytes()
    }
}
