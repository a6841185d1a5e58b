//! An extent and its encoding in two words.

use crate::format::Geometry;
use crate::journal::BlockRun;
use crate::types::InodeType;

/// Maximum number of blocks in one extent: 23 bits.
pub(crate) const LEN_MAX: u64 = (1 << 23) - 1;
/// Bit position of the length in the first word.
const LEN_SHIFT: u32 = 40;
/// Bit of the first word that marks written blocks.
const WRITTEN: u64 = 1 << 63;

/// Blocks of a file that are contiguous on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// First block in the file.
    pub(crate) at: u64,
    /// Number of blocks.
    pub(crate) len: u64,
    /// First block on the medium.
    pub(crate) start: u64,
    /// `true` if the blocks are written; blocks that are only allocated read as zeros.
    pub(crate) written: bool,
}

impl Extent {
    /// Returns the block of the file after the extent.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.at + self.len
    }

    /// Returns `true` if the extent is within the maximum file size, and within the data space or, for a
    /// regular file, the nameless-write device.
    pub(crate) fn fits(&self, geometry: &Geometry, kind: InodeType) -> bool {
        let placed = kind == InodeType::File && self.written && geometry.places(self.start, self.len);
        (placed || geometry.holds(self.start, self.len)) && self.end() <= 1 << LEN_SHIFT
    }

    /// Returns the blocks on the medium.
    pub(crate) fn run(&self) -> BlockRun {
        BlockRun { start: self.start, len: self.len }
    }

    /// Returns the part within blocks `from..to` of the file, which must not be empty.
    pub(crate) fn part(&self, from: u64, to: u64) -> Self {
        let at = self.at.max(from);
        Self { at, len: self.end().min(to) - at, start: self.start + (at - self.at), written: self.written }
    }

    /// Returns `true` if `next` is contiguous with this extent, so that both can be merged.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        self.end() == next.at
            && self.start + self.len == next.start
            && self.written == next.written
            && self.len + next.len <= LEN_MAX
    }

    pub(crate) fn encode(&self) -> [u64; 2] {
        [self.at | self.len << LEN_SHIFT | if self.written { WRITTEN } else { 0 }, self.start]
    }

    /// Decodes two words; returns `None` for a free slot.
    pub(crate) fn decode(words: [u64; 2]) -> Option<Self> {
        let len = (words[0] & !WRITTEN) >> LEN_SHIFT;
        (len > 0).then_some(Self {
            at: words[0] & ((1 << LEN_SHIFT) - 1),
            len,
            start: words[1],
            written: words[0] & WRITTEN != 0,
        })
    }
}
