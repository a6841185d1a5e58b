//! Physical addresses in extents.
//!
//! An extent has one word for its first block. In a file system on a nameless-write device, the word of
//! contents that are placed is, from the low bit on: 31 bits of the page; [`PLACED`]; 32 bits of the
//! version minus the page. The device gives consecutive pages and versions to the blocks of one request
//! queue, so the address of the next block is this word plus 1, and extents are cut and merged as those
//! of other file systems.

use crate::extents::Extent;
use crate::types::Ino;
use frit_core::{OwnedBlock, PhysicalAddress};

/// Bit of the first word of a placed extent. Blocks of the medium have smaller numbers.
pub(crate) const PLACED: u64 = 1 << 31;

/// Returns `true` if an extent of a file system on a nameless-write device is placed.
#[inline]
pub(crate) fn is_placed(start: u64) -> bool {
    start & PLACED != 0
}

/// Returns the page of a word.
pub(crate) fn page_of(start: u64) -> u32 {
    (start & (PLACED - 1)) as u32
}

/// Returns the word of an address.
pub(crate) fn encode(at: PhysicalAddress) -> u64 {
    u64::from(at.version.wrapping_sub(at.page)) << 32 | PLACED | u64::from(at.page)
}

/// Returns the address of a word.
pub(crate) fn decode(start: u64) -> PhysicalAddress {
    let page = page_of(start);
    PhysicalAddress { page, version: ((start >> 32) as u32).wrapping_add(page) }
}

/// Returns a block of an inode at the address of a word.
pub(crate) fn owned(ino: Ino, start: u64) -> OwnedBlock {
    OwnedBlock { owner: ino.0 as u32, at: decode(start) }
}

/// Iterates over the blocks of a placed extent.
pub(crate) fn blocks(ino: Ino, extent: &Extent) -> impl Iterator<Item = OwnedBlock> + use<> {
    let Extent { start, len, .. } = *extent;
    (start..start + len).map(move |word| owned(ino, word))
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn the_next_block_has_the_next_word() {
        for (page, version) in [(0, 1), (7, 3), ((1 << 31) - 2, u32::MAX), (5, u32::MAX - 1)] {
            let at = PhysicalAddress { page, version };
            assert!(is_placed(encode(at)));
            assert_eq!(decode(encode(at)), at);
            let next = PhysicalAddress { page: page + 1, version: version.wrapping_add(1) };
            assert_eq!(decode(encode(at) + 1), next);
            assert_eq!(encode(next), encode(at) + 1);
        }
    }
}
