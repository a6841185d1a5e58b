//! Reading the extents of a file.

use super::extent::Extent;
use super::places::{self, HOLDERS_MAX, INLINE, LINE_WORDS, PER_BLOCK, Where, line_at};
use super::{Map, Placed};
use crate::error::{Error, Result};
use crate::format::{Geometry, read_words};
use crate::inode::Inode;
use crate::medium::Medium;
use crate::types::Ino;
use frit_core::planted::{Bug, is};

/// Reads lines of one file and checks them.
pub(crate) struct LineReader<'a, M> {
    pub(crate) medium: &'a M,
    pub(crate) geometry: &'a Geometry,
    pub(crate) salt: u32,
    pub(crate) ino: Ino,
}

impl<M: Medium> LineReader<'_, M> {
    /// One line.
    pub(crate) fn line(&self, block: u64, line: u32) -> Result<[u64; LINE_WORDS]> {
        if !self.geometry.holds(block, 1) {
            let at = self.geometry.inode_at(self.ino.0);
            return Err(Error::Damaged { what: "blocks of extents of an inode", at });
        }
        let at = line_at(block, line);
        let damaged = Error::Damaged { what: "a line of extents", at };
        let words: [u64; LINE_WORDS] = read_words(self.medium, at);
        if words[0] == places::check(self.salt, self.ino, at, &words) { Ok(words) } else { Err(damaged) }
    }
}

/// Reads all extents of an inode; one that cannot have any has none.
///
/// # Errors
/// A line does not match its check, extents overlap or lie outside of the data space, or the inode has another number of
/// blocks than it says: an older version of a line, in its place, has nothing else that tells.
pub(crate) fn load<M: Medium>(reader: &LineReader<'_, M>, inode: &Inode) -> Result<Map> {
    let map = load_uncounted(reader, inode)?;
    let blocks =
        map.iter().map(|extent| extent.len).sum::<u64>() + map.blocks.len() as u64 + inode.xattrs.len;
    if blocks != inode.blocks && !is(Bug::FsBlocksNotCompared) {
        let at = reader.geometry.inode_at(reader.ino.0);
        return Err(Error::Damaged { what: "extents that are not as many blocks as their inode has", at });
    }
    Ok(map)
}

/// As [`load`], whatever count of blocks the inode has: for a check, which says both.
pub(crate) fn load_uncounted<M: Medium>(reader: &LineReader<'_, M>, inode: &Inode) -> Result<Map> {
    if !inode.has_extents() {
        return Ok(Map::empty());
    }
    let damaged =
        || Error::Damaged { what: "extents of an inode", at: reader.geometry.inode_at(reader.ino.0) };
    let mut map = Map { blocks: holders(reader, inode)?, ..Map::default() };
    let places = INLINE + map.blocks.len() as u32 * PER_BLOCK;
    let mut line = [0; LINE_WORDS];
    let mut loaded = None;
    let mut blocks = 0;
    for place in 0..places {
        let words = match places::find(place) {
            Where::Inode(word) => [inode.area[word], inode.area[word + 1]],
            Where::Block(block, of, word) => {
                if loaded != Some((block, of)) {
                    line = reader.line(map.blocks[block], of)?;
                    loaded = Some((block, of));
                }
                [line[word], line[word + 1]]
            }
        };
        match Extent::decode(words) {
            Some(extent) if extent.fits(reader.geometry) => {
                blocks += extent.len;
                let twice = map.extents.insert(extent.at, Placed { extent, place }).is_some();
                if twice || blocks > reader.geometry.data_blocks {
                    return Err(damaged());
                }
            }
            Some(_) => return Err(damaged()),
            None => map.free.push(place),
        }
    }
    map.free.reverse();
    let mut holders = map.blocks.clone();
    holders.sort_unstable();
    let holds_own = |e: Extent| {
        holders.get(holders.partition_point(|block| *block < e.start)).is_some_and(|b| *b < e.start + e.len)
    };
    let overlap = map.iter().zip(map.iter().skip(1)).any(|(a, b)| a.end() > b.at)
        || (!holders.is_empty() && map.iter().any(holds_own));
    if overlap { Err(damaged()) } else { Ok(map) }
}

/// The chain of blocks that hold places.
fn holders<M: Medium>(reader: &LineReader<'_, M>, inode: &Inode) -> Result<Vec<u64>> {
    let mut blocks = Vec::new();
    // A chain that leads back into itself comes to a block that was marked, wherever its loop begins.
    let mut mark = 0;
    let mut next = inode.extents;
    while next != 0 {
        if next == mark || blocks.len() >= HOLDERS_MAX {
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
