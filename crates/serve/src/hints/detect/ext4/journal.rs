//! Places of the internal journal: the block map of its inode, a tree of extents (ext4) or of
//! indirect blocks (ext3).

use super::Ext4Layout;
use crate::hints::detect::bytes::{le16, le32, slice_at};
use std::collections::VecDeque;
use std::ops::Range;

const EXTENTS_MAGIC: u16 = 0xf30a;
/// Maximum number of nodes of a map that are read: 256 suffice for a journal of 1 GiB in either
/// format, and bound the work for a hostile map.
const NODES_MAX: usize = 256;
/// Maximum number of extents that are kept.
const EXTENTS_MAX: usize = 1 << 12;
/// Length of an extent from which it is allocated but not written.
const UNWRITTEN: u64 = 32_768;
/// Maximum depth of a tree of extents.
const DEPTH_MAX: u16 = 5;

/// A node of the map whose contents are not known yet.
#[derive(Clone, Copy, Debug)]
struct PendingNode {
    block: u64,
    kind: NodeKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeKind {
    /// A node of a tree of extents, at a depth above its leaves.
    Extents(u16),
    /// Pointers to blocks, or to blocks of pointers of the next lower level.
    Pointers(u8),
}

/// Places of a journal.
#[derive(Default, Debug)]
pub(super) struct JournalMap {
    extents: Vec<(u64, u64)>,
    pending: Vec<PendingNode>,
    /// Number of nodes found so far.
    nodes: usize,
}

impl JournalMap {
    pub(super) fn extents(&self) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        self.extents.iter().copied()
    }

    /// Returns the number of known blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.extents.iter().map(|e| e.1).sum()
    }

    /// Returns `true` if nothing of the map is known.
    pub(super) fn is_unknown(&self) -> bool {
        self.extents.is_empty() && self.pending.is_empty()
    }

    /// Takes the block map of the journal's inode (`i_block`). Returns `true` if it names blocks.
    pub(super) fn read_inode_map(&mut self, map: &[u8], layout: &Ext4Layout) -> bool {
        if le16(map, 0) == EXTENTS_MAGIC {
            self.read_extents(map, le16(map, 6), layout);
        } else {
            (0..12).for_each(|i| self.add(le32(map, 4 * i).into(), 1, layout));
            (0..3)
                .for_each(|i| self.expect(le32(map, 48 + 4 * i).into(), NodeKind::Pointers(i as u8), layout));
        }
        !self.is_unknown()
    }

    /// Asks for the nodes that are not known yet.
    pub(super) fn ask(&self, block_bytes: u64, reads: &mut VecDeque<Range<u64>>) {
        reads.extend(self.pending.iter().map(|n| n.block * block_bytes..(n.block + 1) * block_bytes));
    }

    /// Takes nodes that a write or a read contains. Returns `true` if there were any.
    pub(super) fn learn(
        &mut self,
        at: u64,
        data: &[u8],
        layout: &Ext4Layout,
        reads: &mut VecDeque<Range<u64>>,
    ) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let block = layout.block;
        let mut changed = false;
        for node in std::mem::take(&mut self.pending) {
            let before = self.pending.len();
            match slice_at(data, at, node.block * block, block as usize) {
                Some(bytes) if self.read_node(node.kind, bytes, layout) => changed = true,
                _ => {
                    self.pending.push(node);
                    continue;
                }
            }
            let new = &self.pending[before..];
            reads.extend(new.iter().map(|n| n.block * block..(n.block + 1) * block));
        }
        changed
    }

    /// Takes the bytes of a node. Returns `false` if they are no such node, for example because it
    /// was not written yet.
    fn read_node(&mut self, kind: NodeKind, b: &[u8], layout: &Ext4Layout) -> bool {
        match kind {
            NodeKind::Extents(depth) => {
                let valid = le16(b, 0) == EXTENTS_MAGIC && le16(b, 6) == depth;
                if valid {
                    self.read_extents(b, depth, layout);
                }
                valid
            }
            NodeKind::Pointers(level) => {
                let pointers = b.chunks_exact(4).map(|p| u64::from(le32(p, 0))).filter(|p| *p != 0);
                let mut any = false;
                for p in pointers {
                    any = true;
                    match level.checked_sub(1) {
                        None => self.add(p, 1, layout),
                        Some(below) => self.expect(p, NodeKind::Pointers(below), layout),
                    }
                }
                any
            }
        }
    }

    fn read_extents(&mut self, b: &[u8], depth: u16, layout: &Ext4Layout) {
        let entries = usize::from(le16(b, 2)).min(b.len() / 12 - 1);
        for e in b[12..].chunks_exact(12).take(entries) {
            if depth == 0 {
                let len = u64::from(le16(e, 4));
                let len = if len > UNWRITTEN { len - UNWRITTEN } else { len };
                self.add(u64::from(le16(e, 6)) << 32 | u64::from(le32(e, 8)), len, layout);
            } else if depth <= DEPTH_MAX {
                let node = u64::from(le16(e, 8)) << 32 | u64::from(le32(e, 4));
                self.expect(node, NodeKind::Extents(depth - 1), layout);
            }
        }
    }

    fn add(&mut self, first: u64, count: u64, layout: &Ext4Layout) {
        if count == 0 || !layout.contains(first, count) {
            return;
        }
        if let Some((at, n)) = self.extents.last_mut()
            && *at + *n == first
        {
            *n += count;
        } else if self.extents.len() < EXTENTS_MAX {
            self.extents.push((first, count));
        }
    }

    fn expect(&mut self, block: u64, kind: NodeKind, layout: &Ext4Layout) {
        if self.nodes < NODES_MAX && layout.contains(block, 1) {
            self.nodes += 1;
            self.pending.push(PendingNode { block, kind });
            // The blocks of the map itself are metadata as well.
            self.add(block, 1, layout);
        }
    }
}
