//! Parts of blocks that a request covers.

use super::fragments::FRAGMENT;
use super::{BLOCK_BYTES, BLOCK_LEN};
use crate::numbers::Lbn;
use crate::spans::parts;
use frit_core::WriteData;
use frit_core::convert::low_u8;

/// A part of one block that a request covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockSpan {
    pub(super) lbn: Lbn,
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
        low_u8(((1 << self.fragments) - 1) << self.first)
    }

    pub(super) fn bytes(self) -> u32 {
        self.fragments * FRAGMENT
    }
}

/// New data of a part of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanData<'a> {
    pub(super) span: BlockSpan,
    pub(super) data: WriteData<'a>,
}

/// Divides whole sectors, `len` bytes from byte `at` on, into parts of blocks.
#[inline]
pub(super) fn spans(at: u64, len: u32) -> impl Iterator<Item = BlockSpan> {
    let split = |byte: u64| (byte / BLOCK_BYTES, byte % BLOCK_BYTES);
    parts(at, len, BLOCK_LEN, split).map(|part| BlockSpan {
        lbn: Lbn(part.index),
        first: part.offset / FRAGMENT,
        fragments: part.len / FRAGMENT,
        from: part.from,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_at_blocks() {
        let cut: Vec<_> =
            spans(4096 * 3 + 3584, 6144).map(|s| (s.lbn.0, s.first, s.fragments, s.from)).collect();
        assert_eq!(cut, [(3, 7, 1, 0), (4, 0, 8, 512), (5, 0, 3, 4608)]);
        assert_eq!(spans(0, 0).count(), 0);
        let s = spans(1024, 1024).next().unwrap();
        assert_eq!((s.mask(), s.bytes()), (0b1100, 1024));
    }
}
