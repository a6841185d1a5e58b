//! Hints that a run gives to the writes of its workload by ranges, as a server of a volume does.

use frit_core::{HintKind, HintMap, HintRange, Hints, SECTOR_BYTES, Sector};
use frit_trace::Request;
use serde::Serialize;

/// Ranges with hints, and the writes that they marked.
#[derive(Debug)]
pub(crate) struct HintedRanges {
    ranges: Vec<HintRange>,
    map: HintMap,
    marked: Vec<MarkedWrites>,
}

/// Ranges with hints of a run, and the writes that they marked in the measured part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HintReport {
    /// The ranges, as given to `--hint`.
    pub ranges: Vec<String>,
    /// Marked writes, by hint.
    pub marked: Vec<MarkedWrites>,
}

/// Writes that ranges marked with one hint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MarkedWrites {
    /// `metadata`, `hot` or `cold`.
    pub hint: &'static str,
    /// Number of writes with at least one marked page.
    pub writes: u64,
    /// Number of bytes in marked pages.
    pub bytes: u64,
}

/// Part of a write with the hints of its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HintedPart {
    pub(crate) at: Sector,
    pub(crate) bytes: u32,
    pub(crate) hints: Hints,
}

const KINDS: [HintKind; 3] = [HintKind::Metadata, HintKind::Hot, HintKind::Cold];

impl HintedRanges {
    /// Creates the map of ranges for a volume; `None` without ranges.
    pub(crate) fn new(ranges: &[HintRange], page_bytes: u32) -> Option<HintedRanges> {
        let marked = KINDS.map(|kind| MarkedWrites { hint: kind.into(), writes: 0, bytes: 0 }).to_vec();
        let map = HintMap::new(ranges, HintMap::unit(page_bytes));
        (!ranges.is_empty()).then(|| HintedRanges { ranges: ranges.to_vec(), map, marked })
    }

    /// Forgets the writes counted so far.
    pub(crate) fn reset(&mut self) {
        self.marked.iter_mut().for_each(|m| (m.writes, m.bytes) = (0, 0));
    }

    /// Splits a write of `bytes` bytes into parts of equal hints, and counts it.
    pub(crate) fn split(&mut self, at: Sector, bytes: u32, own: Hints) -> Vec<HintedPart> {
        let mut seen = [false; KINDS.len()];
        let mut parts = Vec::new();
        for span in self.map.parts(at.bytes(), bytes.into()) {
            let len = span.end - span.at;
            for ((kind, seen), marked) in KINDS.iter().zip(&mut seen).zip(&mut self.marked) {
                if span.hints.has(kind.hints()) {
                    marked.bytes += len;
                    marked.writes += u64::from(!std::mem::replace(seen, true));
                }
            }
            let at = Sector(span.at / SECTOR_BYTES);
            // A part is no longer than the write, whose length has 32 bits.
            parts.push(HintedPart { at, bytes: len as u32, hints: own.with(span.hints) });
        }
        parts
    }

    /// Returns all hints of a write that begins or ends inside a sector, and counts it. Such a write
    /// is not split.
    pub(crate) fn of_all(&mut self, r: &Request) -> Hints {
        let bytes = (u64::from(r.sectors) * SECTOR_BYTES).min(u64::from(u32::MAX)) as u32;
        self.split(r.sector, bytes, r.hints).iter().fold(r.hints, |all, part| all.with(part.hints))
    }

    /// Returns the ranges and the counted writes.
    pub(crate) fn report(&self) -> HintReport {
        HintReport {
            ranges: self.ranges.iter().map(ToString::to_string).collect(),
            marked: self.marked.iter().filter(|m| m.writes > 0).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_split_and_counted_as_by_a_server() {
        assert!(HintedRanges::new(&[], 4096).is_none());
        let ranges = ["4K+1=metadata", "8K+8K=hot"].map(|r| r.parse().unwrap());
        let mut hinted = HintedRanges::new(&ranges, 512).unwrap();
        let parts = hinted.split(Sector(0), 20 << 10, Hints::FUA);
        let part = |kib: u64, bytes, hints: Hints| HintedPart { at: Sector(kib * 2), bytes, hints };
        assert_eq!(
            parts,
            [
                part(0, 4096, Hints::FUA),
                part(4, 4096, Hints::FUA.with(Hints::METADATA)),
                part(8, 8192, Hints::FUA.with(Hints::HOT)),
                part(16, 4096, Hints::FUA)
            ]
        );
        assert_eq!(
            hinted.split(Sector(1), 512, Hints::NONE),
            [HintedPart { at: Sector(1), bytes: 512, hints: Hints::NONE }]
        );
        let bytes = Request {
            at: frit_core::Nanos(0),
            sector: Sector(0),
            sectors: 0,
            device: 0,
            op: frit_trace::ReqOp::Write,
            cut: frit_trace::SectorCut::NONE,
            hints: Hints::SYNC,
        };
        let mut other = HintedRanges::new(&ranges, 512).unwrap();
        assert_eq!(other.of_all(&bytes.with_bytes(4000, 200)), Hints::SYNC.with(Hints::METADATA));
        assert_eq!(other.of_all(&bytes.with_bytes(4000, 90)), Hints::SYNC);
        let marked = hinted.report().marked;
        assert_eq!((marked[0].hint, marked[0].writes, marked[0].bytes), ("metadata", 1, 4096));
        assert_eq!((marked[1].hint, marked[1].writes, marked[1].bytes), ("hot", 1, 8192));
        hinted.reset();
        assert_eq!(hinted.report().marked, []);
        assert_eq!(hinted.report().ranges, ["4K+1=metadata", "8K+8K=hot"]);
    }
}
