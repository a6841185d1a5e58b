//! Segments of the drive's cache.

use super::spec::CacheSpec;

/// Consecutive blocks in the cache: `start..end`; empty if both are equal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Segment {
    pub start: u64,
    pub end: u64,
    /// The segment was filled by a write.
    pub written: bool,
    /// Time of the last use, counted in uses.
    used: u64,
}

impl Segment {
    /// Returns `true` if the segment contains any of these blocks.
    pub(super) fn overlaps(&self, block: u64, end: u64) -> bool {
        self.start < end && block < self.end
    }
}

/// All segments, replaced in LRU order.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    size: u64,
    /// Segment 0 is reserved for writes.
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

    /// Sectors per segment.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn get(&self, i: usize) -> &Segment {
        &self.all[i]
    }

    /// Returns the segment that contains `block`, and `true` if it contains all blocks up to `end`.
    /// `growing` is the segment of the active read-ahead: if `almost` is set, it also matches if
    /// `block` is the next block that it reads.
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

    /// Marks a segment as the most recently used.
    pub(super) fn touch(&mut self, i: usize) {
        self.uses += 1;
        self.all[i].used = self.uses;
    }

    /// Returns `true` if a segment is the most recently used one.
    pub(super) fn is_latest(&self, i: usize) -> bool {
        self.uses > 0 && self.all[i].used == self.uses
    }

    /// Returns the segment that is replaced by blocks that no segment contains: for writes
    /// preferably one that overlaps them, then an empty one, then the least recently used.
    /// `growing` is replaced last.
    pub(super) fn victim(&mut self, write: bool, block: u64, end: u64, growing: Option<usize>) -> usize {
        let range = match (self.write_segment, write) {
            (true, true) => 0..1,
            (true, false) => 1..self.all.len(),
            _ => 0..self.all.len(),
        };
        // One number per segment to compare: there are up to some hundred segments, and each miss
        // examines all.
        let key = |i: usize| {
            let s = &self.all[i];
            let overlaps = write && s.overlaps(block, end);
            // The lowest rank is replaced first: overlapping, empty, in use, active read-ahead.
            let rank = if overlaps { 0 } else { 2 - u64::from(s.start == s.end) };
            let rank = if growing == Some(i) { 3 } else { rank };
            rank << 62 | s.used
        };
        range.min_by_key(|&i| key(i)).unwrap_or(0)
    }

    /// Replaces the contents of a segment.
    pub(super) fn fill(&mut self, i: usize, start: u64, end: u64, written: bool) {
        let start = start.max(end.saturating_sub(self.size));
        self.all[i] = Segment { start, end, written, used: self.all[i].used };
    }

    /// Extends a segment to `end`; blocks beyond its size are dropped at the front.
    #[inline]
    pub(super) fn grow(&mut self, i: usize, end: u64) {
        let s = &mut self.all[i];
        s.end = s.end.max(end);
        s.start = s.start.max(s.end.saturating_sub(self.size));
    }

    /// Drops the blocks before `block`.
    pub(super) fn forget(&mut self, i: usize, block: u64) {
        let s = &mut self.all[i];
        s.start = s.start.max(block.min(s.end));
    }

    /// Empties all segments except `keep` that overlap these blocks, which a write made stale.
    pub(super) fn drop_overlapping(&mut self, keep: usize, block: u64, end: u64) {
        for (i, s) in self.all.iter_mut().enumerate() {
            if i != keep && s.overlaps(block, end) {
                s.end = s.start;
            }
        }
    }
}
