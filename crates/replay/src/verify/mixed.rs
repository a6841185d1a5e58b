//! Expected contents of sectors that were written in part: bytes of several versions.

use super::content::SECTOR;
use std::collections::BTreeMap;

/// Sectors with bytes of several versions. The table is empty in a run without byte requests.
#[derive(Debug, Default)]
pub(crate) struct MixedSectors {
    sectors: BTreeMap<u64, Box<[u8; SECTOR]>>,
}

impl MixedSectors {
    /// Returns the contents of a sector if it has bytes of several versions.
    #[inline]
    pub(crate) fn get(&self, sector: u64) -> Option<&[u8; SECTOR]> {
        if self.sectors.is_empty() {
            return None;
        }
        self.sectors.get(&sector).map(AsRef::as_ref)
    }

    /// Records the contents of a sector after a write of a part of it.
    pub(crate) fn write(&mut self, sector: u64, contents: [u8; SECTOR]) {
        self.sectors.insert(sector, Box::new(contents));
    }

    /// Removes sectors, which now have contents of one version.
    #[inline]
    pub(crate) fn replace(&mut self, first: u64, sectors: u64) {
        if self.sectors.is_empty() {
            return;
        }
        let gone: Vec<u64> = self.sectors.range(first..first + sectors).map(|(s, _)| *s).collect();
        for sector in gone {
            self.sectors.remove(&sector);
        }
    }
}
