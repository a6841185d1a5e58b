//! A set of sectors that is filled one by one and emptied at once.

/// Numbers of sectors: a bit for each sector, and the list of those in the set.
#[derive(Clone, Debug)]
pub(super) struct SectorSet {
    bits: Vec<u64>,
    list: Vec<u32>,
}

impl SectorSet {
    /// Creates an empty set of sectors below `limit`.
    pub(super) fn new(limit: u32) -> SectorSet {
        SectorSet { bits: vec![0; (limit as usize).div_ceil(64)], list: Vec::new() }
    }

    /// Returns `true` if a sector is in the set.
    pub(super) fn has(&self, sector: u32) -> bool {
        self.bits[sector as usize / 64] >> (sector % 64) & 1 == 1
    }

    /// Adds a sector.
    #[inline]
    pub(super) fn add(&mut self, sector: u32) {
        if !self.has(sector) {
            self.bits[sector as usize / 64] |= 1 << (sector % 64);
            self.list.push(sector);
        }
    }

    /// Returns `true` if the set is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Removes all sectors.
    pub(super) fn clear(&mut self) {
        for sector in self.list.drain(..) {
            self.bits[sector as usize / 64] = 0;
        }
    }

    /// Returns runs of consecutive sectors, each at most `longest` long: first sector and length.
    pub(super) fn runs(&mut self, longest: u32) -> Vec<(u32, u32)> {
        self.list.sort_unstable();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &sector in &self.list {
            match runs.last_mut() {
                Some((first, n)) if *first + *n == sector && *n < longest => *n += 1,
                _ => runs.push((sector, 1)),
            }
        }
        runs
    }
}
