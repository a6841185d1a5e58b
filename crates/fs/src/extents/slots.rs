//! Extent slots on the medium: 0 to 7 are in the inode, the others in extent blocks of 16 lines. A
//! line has 256 bytes: a checksum; in the first line of a block, the number of the next block; 15
//! extents.

use crate::format::{BLOCK, crc_words};
use crate::types::Ino;

/// Number of slots in the inode.
pub(crate) const INLINE: u32 = 8;
/// Number of words in a line.
pub(crate) const LINE_WORDS: usize = 32;
/// Number of lines in a block.
pub(crate) const LINES: u32 = (BLOCK / (LINE_WORDS as u64 * 8)) as u32;
/// Number of extents in a line.
const PER_LINE: u32 = 15;
/// Number of extents in a block.
pub(crate) const PER_BLOCK: u32 = LINES * PER_LINE;
/// Maximum number of extent blocks of a file: slot numbers have 32 bits.
pub(crate) const EXTENT_BLOCKS_MAX: usize = ((u32::MAX - INLINE) / PER_BLOCK) as usize;

/// Position of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotPosition {
    /// In the inode, at this word of its inline area.
    Inode(usize),
    /// In an extent block, given by its index in the chain, the line, and the word within the line.
    Block(usize, u32, usize),
}

pub(super) fn find(slot: u32) -> SlotPosition {
    let Some(slot) = slot.checked_sub(INLINE) else { return SlotPosition::Inode(slot as usize * 2) };
    let in_block = slot % PER_BLOCK;
    SlotPosition::Block(
        (slot / PER_BLOCK) as usize,
        in_block / PER_LINE,
        2 + (in_block % PER_LINE) as usize * 2,
    )
}

/// Returns the slots of the `n`-th extent block, in descending order.
pub(super) fn of_block(n: usize) -> impl Iterator<Item = u32> {
    let first = INLINE + n as u32 * PER_BLOCK;
    (first..first + PER_BLOCK).rev()
}

/// Returns the byte position of a line.
pub(super) fn line_at(block: u64, line: u32) -> u64 {
    block * BLOCK + u64::from(line) * LINE_WORDS as u64 * 8
}

/// Computes the checksum of a line, which is its first word.
pub(crate) fn check(salt: u32, ino: Ino, at: u64, line: &[u64; LINE_WORDS]) -> u64 {
    u64::from(crc_words(crc_words(salt, &[ino.0, at]), &line[1..]))
}
