//! Loading of the extents of a file.

use super::extent::Extent;
use super::slots::{self, EXTENT_BLOCKS_MAX, INLINE, LINE_WORDS, PER_BLOCK, SlotPosition, line_at};
use super::{ExtentMap, SlottedExtent};
use crate::error::{Error, Result};
use crate::format::{Geometry, read_words};
use crate::inode::Inode;
use crate::medium::Medium;
use crate::planted::DamageBug;
use crate::types::Ino;
use frit_core::planted::is_planted;

/// Reads and verifies the extent lines of one file.
pub(crate) struct LineReader<'a, M> {
    pub(crate) medium: &'a M,
    pub(crate) geometry: &'a Geometry,
    pub(crate) salt: u32,
    pub(crate) ino: Ino,
}

impl<M: Medium> LineReader<'_, M> {
    /// Reads one line.
    pub(crate) fn line(&self, block: u64, line: u32) -> Result<[u64; LINE_WORDS]> {
        if !self.geometry.holds(block, 1) {
            let at = self.geometry.inode_at(self.ino.0);
            return Err(Error::Damaged { what: "blocks of extents of an inode", at });
        }
        let at = line_at(block, line);
        let damaged = Error::Damaged { what: "a line of extents", at };
        let words: [u64; LINE_WORDS] = read_words(self.medium, at);
        if words[0] == slots::check(self.salt, self.ino, at, &words) { Ok(words) } else { Err(damaged) }
    }
}

/// Loads all extents of an inode. An inode of a type without extents has none.
///
/// # Errors
/// A line does not match its checksum, extents overlap or lie outside the data space, or the number
/// of blocks differs from that in the inode. The count is the only means to detect an older version
/// of a line.
pub(crate) fn load<M: Medium>(reader: &LineReader<'_, M>, inode: &Inode) -> Result<ExtentMap> {
    let map = load_uncounted(reader, inode)?;
    let blocks =
        map.iter().map(|extent| extent.len).sum::<u64>() + map.blocks.len() as u64 + inode.xattrs.len;
    if blocks != inode.blocks && !is_planted(DamageBug::BlocksNotCompared) {
        let at = reader.geometry.inode_at(reader.ino.0);
        return Err(Error::Damaged { what: "extents whose number of blocks differs from their inode", at });
    }
    Ok(map)
}

/// Loads extents as [`load`], but ignores the block count of the inode, for a check that reports
/// both counts.
pub(crate) fn load_uncounted<M: Medium>(reader: &LineReader<'_, M>, inode: &Inode) -> Result<ExtentMap> {
    if !inode.has_extents() {
        return Ok(ExtentMap::empty());
    }
    let damaged =
        || Error::Damaged { what: "extents of an inode", at: reader.geometry.inode_at(reader.ino.0) };
    let mut map = ExtentMap { blocks: extent_blocks(reader, inode)?, ..ExtentMap::default() };
    let slots = INLINE + map.blocks.len() as u32 * PER_BLOCK;
    let mut line = [0; LINE_WORDS];
    let mut loaded = None;
    let mut blocks = 0;
    for slot in 0..slots {
        let words = match slots::find(slot) {
            SlotPosition::Inode(word) => [inode.inline_area[word], inode.inline_area[word + 1]],
            SlotPosition::Block(block, of, word) => {
                if loaded != Some((block, of)) {
                    line = reader.line(map.blocks[block], of)?;
                    loaded = Some((block, of));
                }
                [line[word], line[word + 1]]
            }
        };
        match Extent::decode(words) {
            Some(extent) if extent.fits(reader.geometry, inode.kind) => {
                blocks += extent.len;
                let twice = map.extents.insert(extent.at, SlottedExtent { extent, slot }).is_some();
                if twice || blocks > reader.geometry.data_blocks + reader.geometry.device_pages {
                    return Err(damaged());
                }
            }
            Some(_) => return Err(damaged()),
            None => map.free.push(slot),
        }
    }
    map.free.reverse();
    let mut extent_blocks = map.blocks.clone();
    extent_blocks.sort_unstable();
    // An extent of a file cannot include one of its own extent blocks.
    let holds_own = |e: Extent| {
        extent_blocks
            .get(extent_blocks.partition_point(|block| *block < e.start))
            .is_some_and(|b| *b < e.start + e.len)
    };
    let overlap = map.iter().zip(map.iter().skip(1)).any(|(a, b)| a.end() > b.at)
        || (!extent_blocks.is_empty() && map.iter().any(holds_own));
    if overlap { Err(damaged()) } else { Ok(map) }
}

/// Returns the chain of extent blocks.
fn extent_blocks<M: Medium>(reader: &LineReader<'_, M>, inode: &Inode) -> Result<Vec<u64>> {
    let mut blocks = Vec::new();
    // Cycle detection (Brent): the mark moves to each block whose ordinal is a power of two, so a
    // chain with a loop meets it again.
    let mut mark = 0;
    let mut next = inode.extents;
    while next != 0 {
        if next == mark || blocks.len() >= EXTENT_BLOCKS_MAX {
            return Err(Error::Damaged {
                what: "blocks of extents",
                at: reader.geometry.inode_at(reader.ino.0),
            });
        }
        let first = reader.line(next, 0)?;
        blocks.push(next);
        if blocks.len().is_power_of_two() {
            mark = next;
        }
        next = first[1];
    }
    Ok(blocks)
}
