//! Reading the extents of a file.

use super::extent::Extent;
use super::places::{self, INLINE, LINE_WORDS, PER_BLOCK, Where, line_at};
use super::{Map, Placed};
use crate::error::{Error, Result};
use crate::format::{Geometry, read_words};
use crate::inode::Inode;
use crate::medium::Medium;
use crate::types::Ino;

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
        let at = line_at(block, line);
        let damaged = Error::Damaged { what: "a line of extents", at };
        if !self.geometry.holds(block, 1) {
            return Err(damaged);
        }
        let words: [u64; LINE_WORDS] = read_words(self.medium, at);
        if words[0] == places::check(self.salt, self.ino, at, &words) { Ok(words) } else { Err(damaged) }
    }
}

/// Reads all extents of a file.
///
/// # Errors
/// A line does not match its check, or extents overlap or lie outside of the data space.
pub(crate) fn load<M: Medium>(reader: &LineReader<'_, M>, inode: &Inode) -> Result<Map> {
    let mut map = Map::default();
    let damaged =
        || Error::Damaged { what: "extents of an inode", at: reader.geometry.inode_at(reader.ino.0) };
    let mut next = inode.extents;
    while next != 0 {
        if map.blocks.len() as u64 >= reader.geometry.data_blocks {
            return Err(damaged());
        }
        let first = reader.line(next, 0)?;
        map.blocks.push(next);
        next = first[1];
    }
    let places = INLINE + map.blocks.len() as u32 * PER_BLOCK;
    let mut line = [0; LINE_WORDS];
    let mut loaded = None;
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
            Some(extent) if reader.geometry.holds(extent.start, extent.len) => {
                if map.extents.insert(extent.at, Placed { extent, place }).is_some() {
                    return Err(damaged());
                }
            }
            Some(_) => return Err(damaged()),
            None => map.free.push(place),
        }
    }
    map.free.reverse();
    let overlap = map.iter().zip(map.iter().skip(1)).any(|(a, b)| a.end() > b.at);
    if overlap { Err(damaged()) } else { Ok(map) }
}
