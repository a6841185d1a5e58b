//! The segments of the cache on the drive.

use super::spec::CacheSpec;

/// Consecutive blocks in the cache: `start..end`, empty when they are equal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Segment {
    pub start: u64,
    pub end: u64,
    /// A write filled it.
    pub written: bool,
    /// When it was used last, in uses.
    used: u64,
}

impl Segment {
    /// Whether it holds some of these blocks.
    pub(super) fn overlaps(&self, block: u64, end: u64) -> bool {
        self.start < end && block < self.end
    }
}

/// The segments, least recently used first to go.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    size: u64,
    /// Segment 0 is for writes alone.
    write_segment: bool,
    hits_on_writes: bool,
    enabled: bool,
    uses: u64,
}

impl Segments {
    pub(super) fn new(c: &CacheSpec) -> Segments {
        let n = c.segments.max(1 + u32::from(c.write_segment)) as usize;
        Segments {
            all: vec![Segment::default(); n],
            size: u64::from(c.segment_sectors),
            write_segment: c.write_segment,
            hits_on_writes: c.hits_on_writes,
            enabled: c.enabled,
            uses: 0,
        }
    }

    /// Sectors of a segment.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn get(&self, i: usize) -> &Segment {
        &self.all[i]
    }

    /// The segment that holds `block`, and whether it holds all up to `end`. `growing` is one that is
    /// being read into, which also counts when `block` comes next and `almost` is set.
    pub(super) fn find(
        &self,
        block: u64,
        end: u64,
        growing: Option<usize>,
        almost: bool,
    ) -> Option<(usize, bool)> {
        if !self.enabled {
            return None;
        }
        let first = usize::from(self.write_segment);
        let mut best = None;
        for (i, s) in self.all.iter().enumerate().skip(first) {
            let comes = almost && growing == Some(i) && block == s.end && s.start < s.end;
            if (block >= s.start && block < s.end || comes) && (self.hits_on_writes || !s.written) {
                let whole = s.end >= end;
                if whole {
                    return Some((i, true));
                }
                best = best.or(Some((i, false)));
            }
        }
        best
    }

    /// Marks a segment as used now.
    pub(super) fn touch(&mut self, i: usize) {
        self.uses += 1;
        self.all[i].used = self.uses;
    }

    /// Whether a segment was the last one used.
    pub(super) fn is_latest(&self, i: usize) -> bool {
        self.uses > 0 && self.all[i].used == self.uses
    }

    /// A segment for blocks that no segment has: for reads an empty one or the least recently used, for
    /// writes one that they overlap, then the same. `growing` goes last.
    pub(super) fn victim(&mut self, write: bool, block: u64, end: u64, growing: Option<usize>) -> usize {
        let range = match (self.write_segment, write) {
            (true, true) => 0..1,
            (true, false) => 1..self.all.len(),
            _ => 0..self.all.len(),
        };
        // One number to compare: there are up to some hundred segments, and each miss looks at all.
        let key = |i: usize| {
            let s = &self.all[i];
            let overlaps = write && s.overlaps(block, end);
            let rank = if overlaps { 0 } else { 2 - u64::from(s.start == s.end) };
            let rank = if growing == Some(i) { 3 } else { rank };
            rank << 62 | s.used
        };
        range.min_by_key(|&i| key(i)).unwrap_or(0)
    }

    /// Fills a segment anew.
    pub(super) fn fill(&mut self, i: usize, start: u64, end: u64, written: bool) {
        let start = start.max(end.saturating_sub(self.size));
        self.all[i] = Segment { start, end, written, used: self.all[i].used };
    }

    /// Lets a segment grow to `end`; what it has no room for leaves at the front.
    #[inline]
    pub(super) fn grow(&mut self, i: usize, end: u64) {
        let s = &mut self.all[i];
        s.end = s.end.max(end);
        s.start = s.start.max(s.end.saturating_sub(self.size));
    }

    /// Lets the blocks before `block` go.
    pub(super) fn forget(&mut self, i: usize, block: u64) {
        let s = &mut self.all[i];
        s.start = s.start.max(block.min(s.end));
    }

    /// Empties all segments but `keep` that hold some of these blocks: a write made them stale.
    pub(super) fn drop_overlapping(&mut self, keep: usize, block: u64, end: u64) {
        for (i, s) in self.all.iter_mut().enumerate() {
            if i != keep && s.overlaps(block, end) {
                s.end = s.start;
            }
        }
    }
}
