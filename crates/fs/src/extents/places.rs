//! The places of extents on the medium: 0 to 7 in the inode, the others in blocks of 16 lines. A line has 256 bytes: a
//! check, in the first line of a block the number of the next block, and 15 extents.

use crate::format::{BLOCK, crc_words};
use crate::types::Ino;

/// Places in the inode.
pub(crate) const INLINE: u32 = 8;
/// Words of a line.
pub(crate) const LINE_WORDS: usize = 32;
/// Lines of a block.
pub(crate) const LINES: u32 = (BLOCK / (LINE_WORDS as u64 * 8)) as u32;
/// Extents of a line.
const PER_LINE: u32 = 15;
/// Extents of a block.
pub(crate) const PER_BLOCK: u32 = LINES * PER_LINE;
/// Most blocks of places that one file can have: places are numbered by 32 bits.
pub(crate) const HOLDERS_MAX: usize = ((u32::MAX - INLINE) / PER_BLOCK) as usize;

/// Where a place is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Where {
    /// In the inode, from this word of its area on.
    Inode(usize),
    /// In a block, counted from the first of the file: the line, and the word in it.
    Block(usize, u32, usize),
}

pub(super) fn find(place: u32) -> Where {
    let Some(place) = place.checked_sub(INLINE) else { return Where::Inode(place as usize * 2) };
    let in_block = place % PER_BLOCK;
    Where::Block((place / PER_BLOCK) as usize, in_block / PER_LINE, 2 + (in_block % PER_LINE) as usize * 2)
}

/// The places of the `n`-th block, the last first.
pub(super) fn of_block(n: usize) -> impl Iterator<Item = u32> {
    let first = INLINE + n as u32 * PER_BLOCK;
    (first..first + PER_BLOCK).rev()
}

/// The position of a line in bytes.
pub(super) fn line_at(block: u64, line: u32) -> u64 {
    block * BLOCK + u64::from(line) * LINE_WORDS as u64 * 8
}

/// The check of a line, its first word.
pub(crate) fn check(salt: u32, ino: Ino, at: u64, line: &[u64; LINE_WORDS]) -> u64 {
    u64::from(crc_words(crc_words(salt, &[ino.0, at]), &line[1..]))
}
