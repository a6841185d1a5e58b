//! Parts of blocks that a request covers, and fragments of blocks.

use super::BLOCK_BYTES;
use crate::spans::parts;
use frit_core::{SECTOR_BYTES, Source};

/// A part of one block that a request covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockSpan {
    pub(super) lbn: u32,
    /// First fragment, relative to the block. The next field is the number of fragments.
    pub(super) first: u32,
    pub(super) fragments: u32,
    /// Offset in bytes from the start of the request.
    pub(super) from: u32,
}

impl BlockSpan {
    /// Returns the fragments as a bitmap.
    #[inline]
    pub(super) fn mask(self) -> u8 {
        (((1u32 << self.fragments) - 1) << self.first) as u8
    }

    pub(super) fn bytes(self) -> u32 {
        self.fragments * SECTOR_BYTES as u32
    }
}

/// New data of a part of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanData<'a> {
    pub(super) span: BlockSpan,
    pub(super) data: Source<'a>,
}

/// A block, and its valid fragments as a bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockFragments {
    pub(super) lbn: u32,
    pub(super) valid: u8,
}

/// Divides whole sectors, `len` bytes from byte `at` on, into parts of blocks.
#[inline]
pub(super) fn spans(at: u64, len: u32) -> impl Iterator<Item = BlockSpan> {
    let split = |byte: u64| (byte / BLOCK_BYTES, byte % BLOCK_BYTES);
    parts(at, len, BLOCK_BYTES as u32, split).map(|part| BlockSpan {
        lbn: part.index,
        first: part.offset / SECTOR_BYTES as u32,
        fragments: part.len / SECTOR_BYTES as u32,
        from: part.from,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_at_blocks() {
        let cut: Vec<_> =
            spans(4096 * 3 + 3584, 6144).map(|s| (s.lbn, s.first, s.fragments, s.from)).collect();
        assert_eq!(cut, [(3, 7, 1, 0), (4, 0, 8, 512), (5, 0, 3, 4608)]);
        assert_eq!(spans(0, 0).count(), 0);
        let s = spans(1024, 1024).next().unwrap();
        assert_eq!((s.mask(), s.bytes()), (0b1100, 1024));
    }
}
