//! Statistics of the requests of a run that findings rest on: sizes of writes, and reads of pages
//! that the workload itself had written.

use frit_core::{SECTOR_BYTES, Sector};
use frit_trace::Request;
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of sectors up to which each size of a write is counted by itself: 64 KiB.
const EXACT_SECTORS: usize = 128;
/// Number of sectors of a granule of [`WrittenMap`] on volumes of up to 32 GiB: 4 KiB.
const GRANULE_SECTORS_MIN: u64 = 8;
/// Maximum number of granules: the bits take 1 MiB, so they stay in the processor's cache.
const GRANULES_MAX: u64 = 1 << 23;

/// Number of writes of a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WriteSize {
    /// Size in bytes: exact up to 64 KiB and for writes of bytes, above it the upper end of a range
    /// between powers of two.
    pub to_bytes: u64,
    /// Number of writes.
    pub count: u64,
}

/// Counts writes by size.
#[derive(Debug)]
pub(crate) struct WriteSizes {
    exact: [u64; EXACT_SECTORS + 1],
    /// Counts above the exact sizes, by binary logarithm rounded up.
    large: [u64; 33],
    /// Counts of writes that begin or end inside a sector, by bytes.
    cut: BTreeMap<u64, u64>,
}

impl WriteSizes {
    pub(crate) fn new() -> WriteSizes {
        WriteSizes { exact: [0; EXACT_SECTORS + 1], large: [0; 33], cut: BTreeMap::new() }
    }

    #[inline]
    pub(crate) fn count(&mut self, r: &Request) {
        let sectors = r.sectors;
        match self.exact.get_mut(sectors as usize) {
            _ if !r.is_whole() => *self.cut.entry(r.bytes()).or_default() += 1,
            Some(n) => *n += 1,
            None => self.large[u64::from(sectors).next_power_of_two().trailing_zeros() as usize] += 1,
        }
    }

    /// Returns the sizes that occurred, in ascending order.
    pub(crate) fn sizes(&self) -> Vec<WriteSize> {
        let exact = self.exact.iter().enumerate().map(|(sectors, n)| (sectors as u64, *n));
        let large = self.large.iter().enumerate().map(|(log, n)| (1 << log, *n));
        let size = |(sectors, count)| WriteSize { to_bytes: sectors * SECTOR_BYTES, count };
        let mut all: Vec<WriteSize> = exact.chain(large).filter(|(_, n)| *n > 0).map(size).collect();
        for (&to_bytes, &count) in &self.cut {
            match all.binary_search_by_key(&to_bytes, |s| s.to_bytes) {
                Ok(at) => all[at].count += count,
                Err(at) => all.insert(at, WriteSize { to_bytes, count }),
            }
        }
        all
    }
}

/// Records the places that a workload wrote, warm-up included. A place is a granule of at least
/// 4 KiB: a read of a granule that was written in part counts as a read of written data, so the
/// share of reads of unwritten data is never too high.
#[derive(Debug)]
pub(crate) struct WrittenMap {
    granule: u64,
    bits: Vec<u64>,
}

impl WrittenMap {
    pub(crate) fn new(sectors: u64) -> WrittenMap {
        let granule = sectors.div_ceil(GRANULES_MAX).next_power_of_two().max(GRANULE_SECTORS_MIN);
        WrittenMap { granule, bits: vec![0; sectors.div_ceil(granule).div_ceil(64) as usize] }
    }

    #[inline]
    fn granules(&self, at: Sector, sectors: u32) -> std::ops::Range<u64> {
        let shift = self.granule.trailing_zeros();
        at.0 >> shift..(at.0 + u64::from(sectors)).div_ceil(self.granule)
    }

    /// Records a write.
    #[inline]
    pub(crate) fn mark(&mut self, r: &Request) {
        for g in self.granules(r.sector, r.sectors) {
            if let Some(word) = self.bits.get_mut((g / 64) as usize) {
                *word |= 1 << (g % 64);
            }
        }
    }

    /// Returns the number of bytes of a read that had been written.
    #[inline]
    pub(crate) fn written_bytes(&self, r: &Request) -> u64 {
        let end = r.sector.0 + u64::from(r.sectors);
        let part = |g: u64| (end.min((g + 1) * self.granule)) - (g * self.granule).max(r.sector.0);
        let written = |g: &u64| self.bits.get((g / 64) as usize).is_some_and(|w| w & (1 << (g % 64)) != 0);
        self.granules(r.sector, r.sectors)
            .filter(written)
            .map(part)
            .sum::<u64>()
            .saturating_mul(SECTOR_BYTES)
            .min(r.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Hints, Nanos};
    use frit_trace::{ReqOp, SectorCut};

    fn request(sector: u64, sectors: u32) -> Request {
        Request {
            at: Nanos(0),
            sector: Sector(sector),
            sectors,
            device: 0,
            op: ReqOp::Write,
            hints: Hints::NONE,
            cut: SectorCut::NONE,
        }
    }

    #[test]
    fn sizes_are_exact_up_to_64_kib() {
        let mut s = WriteSizes::new();
        for sectors in [1, 8, 8, 128, 129, 256, 257, u32::MAX] {
            s.count(&request(0, sectors));
        }
        for (offset, bytes) in [(3, 64), (512, 100), (0, 4097)] {
            s.count(&request(0, 1).with_bytes(offset, bytes));
        }
        let got: Vec<_> = s.sizes().iter().map(|s| (s.to_bytes, s.count)).collect();
        assert_eq!(
            got,
            [
                (64, 1),
                (100, 1),
                (512, 1),
                (4096, 2),
                (4097, 1),
                (65_536, 1),
                (131_072, 2),
                (262_144, 1),
                (512 << 32, 1)
            ],
            "sizes are in order, and none is lost"
        );
    }

    #[test]
    fn reads_of_written_granules_are_counted_in_bytes() {
        let mut m = WrittenMap::new(1000);
        m.mark(&request(10, 2));
        // Granule 1 holds the sectors 8 to 15.
        assert_eq!(m.written_bytes(&request(0, 8)), 0);
        assert_eq!(m.written_bytes(&request(4, 8)), 4 * 512);
        assert_eq!(m.written_bytes(&request(0, 1000)), 8 * 512);
        m.mark(&request(990, 10));
        assert_eq!(m.written_bytes(&request(992, 8)), 8 * 512);
        assert_eq!(m.written_bytes(&request(0, 0)), 0);
    }

    #[test]
    fn the_map_of_a_large_volume_stays_small() {
        let m = WrittenMap::new(16 << 30);
        assert!(m.bits.len() <= (GRANULES_MAX / 64) as usize);
        assert!(m.granule.is_power_of_two());
    }
}
