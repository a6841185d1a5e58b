//! One extent, and its two words.

use crate::format::Geometry;
use crate::journal::Run;

/// Most blocks of one extent: 23 bits.
pub(crate) const LEN_MAX: u64 = (1 << 23) - 1;
/// Where the length begins in the first word.
const LEN_SHIFT: u32 = 40;
/// The bit of the first word that says that the blocks were written.
const WRITTEN: u64 = 1 << 63;

/// Blocks of a file that follow each other on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// The first block in the file.
    pub(crate) at: u64,
    /// How many.
    pub(crate) len: u64,
    /// The first block on the medium.
    pub(crate) start: u64,
    /// Whether they were written; allocated blocks that were not read as zeros.
    pub(crate) written: bool,
}

impl Extent {
    /// The block of the file behind it.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.at + self.len
    }

    /// Whether it lies in the data space, and inside the largest file.
    pub(crate) fn fits(&self, geometry: &Geometry) -> bool {
        geometry.holds(self.start, self.len) && self.end() <= 1 << LEN_SHIFT
    }

    /// Where it lies.
    pub(crate) fn run(&self) -> Run {
        Run { start: self.start, len: self.len }
    }

    /// The part inside blocks `from..to` of the file, which must not be empty.
    pub(crate) fn part(&self, from: u64, to: u64) -> Self {
        let at = self.at.max(from);
        Self { at, len: self.end().min(to) - at, start: self.start + (at - self.at), written: self.written }
    }

    /// Whether `next` goes on where this one ends, so that both can be one.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        self.end() == next.at
            && self.start + self.len == next.start
            && self.written == next.written
            && self.len + next.len <= LEN_MAX
    }

    pub(crate) fn encode(&self) -> [u64; 2] {
        [self.at | self.len << LEN_SHIFT | if self.written { WRITTEN } else { 0 }, self.start]
    }

    /// From two words; nothing from those of a free place.
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
