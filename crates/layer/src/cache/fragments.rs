//! Fragments of a block: the unit in which a block is valid, and runs of them.

use super::BLOCK_BYTES;
use crate::numbers::Lbn;
use frit_core::SECTOR_BYTES;
use frit_core::convert::to_usize;
use frit_media::checksum::digest;
use std::ops::Range;

/// Size of a fragment, in bytes.
pub(super) const FRAGMENT: u32 = 512;

/// A block, and its valid fragments as a bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockFragments {
    pub(super) lbn: Lbn,
    pub(super) valid: u8,
}

/// Adjacent fragments of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FragmentRun {
    /// First fragment.
    pub(super) first: u32,
    /// Number of fragments.
    pub(super) fragments: u32,
}

impl FragmentRun {
    /// Returns the offset of the first byte in the block.
    #[inline]
    pub(super) fn offset(self) -> u32 {
        self.first * FRAGMENT
    }

    /// Returns the length in bytes.
    #[inline]
    pub(super) fn bytes(self) -> u32 {
        self.fragments * FRAGMENT
    }

    /// Returns the bytes of the block that the run covers.
    #[inline]
    pub(super) fn range(self) -> Range<usize> {
        to_usize(self.offset())..to_usize(self.offset() + self.bytes())
    }

    /// Returns the address of the run of a block on the disk.
    #[inline]
    pub(super) fn disk_at(self, lbn: Lbn) -> u64 {
        lbn.byte() + u64::from(self.offset())
    }
}

/// Iterates over the runs of set bits.
pub(super) fn runs(valid: u8) -> impl Iterator<Item = FragmentRun> {
    let mut left = u32::from(valid);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = left.trailing_zeros();
        let fragments = (left >> first).trailing_ones();
        left &= !(((1 << fragments) - 1) << first);
        Some(FragmentRun { first, fragments })
    })
}

/// Returns the digest of the valid fragments of a block.
pub(super) fn digest_of(block: &[u8], valid: u8) -> u64 {
    let mut all = runs(valid).map(|run| digest(&block[run.range()]));
    let first = all.next().unwrap_or(0);
    all.fold(first, |h, d| digest(&[h.to_le_bytes(), d.to_le_bytes()].concat()))
}

const _: () = assert!(BLOCK_BYTES == 8 * FRAGMENT as u64);
const _: () = assert!(FRAGMENT as u64 == SECTOR_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_set_bits() {
        let all = |v| runs(v).map(|run| (run.first, run.fragments)).collect::<Vec<_>>();
        assert_eq!(all(0), []);
        assert_eq!(all(0xFF), [(0, 8)]);
        assert_eq!(all(0b1011_0001), [(0, 1), (4, 2), (7, 1)]);
        let run = FragmentRun { first: 4, fragments: 2 };
        assert_eq!((run.offset(), run.bytes(), run.range()), (2048, 1024, 2048..3072));
        assert_eq!(run.disk_at(Lbn(3)), 3 * 4096 + 2048);
    }

    #[test]
    fn a_digest_is_of_the_valid_fragments_and_of_no_other() {
        let mut block = vec![7; 4096];
        let (whole, part) = (digest_of(&block, 0xFF), digest_of(&block, 0b101));
        block[600] ^= 1;
        assert_ne!(digest_of(&block, 0xFF), whole);
        assert_eq!(digest_of(&block, 0b101), part);
        block[1030] ^= 1;
        assert_ne!(digest_of(&block, 0b101), part);
    }
}
