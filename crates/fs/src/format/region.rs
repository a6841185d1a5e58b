//! Classification of positions by region, for counters and diagrams of accesses to a medium.

use super::{BLOCK, Geometry};
use strum::{EnumCount, EnumIter, IntoStaticStr};

/// Region of the medium, in the order of their positions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EnumCount, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Region {
    /// The superblock or its copy.
    Superblock,
    /// The registers of in-storage processing.
    Registers,
    /// The ledger.
    Ledger,
    /// The list of orphans.
    Orphans,
    /// The journal.
    Journal,
    /// The inode table.
    Inodes,
    /// The block bitmap, up to the next region.
    Bitmap,
    /// The checksums of contents, if there are any.
    Sums,
    /// The data space: contents, names, extents and extended attributes.
    Data,
}

impl Geometry {
    /// Returns the region of a byte position. Positions after the last whole block count as the
    /// copy of the superblock.
    #[must_use]
    pub fn region_of(&self, at: u64) -> Region {
        self.region_at(at).0
    }

    /// Returns the first byte position after the region that contains `at`; `u64::MAX` for the copy
    /// of the superblock.
    #[must_use]
    pub fn region_end(&self, at: u64) -> u64 {
        self.region_at(at).1
    }

    fn region_at(&self, at: u64) -> (Region, u64) {
        let starts = [
            (Self::REGISTERS_AT, Region::Superblock),
            (self.ledger_at, Region::Registers),
            (self.orphans_at, Region::Ledger),
            (self.journal_at, Region::Orphans),
            (self.inodes_at, Region::Journal),
            (self.bitmap_at, Region::Inodes),
            (self.bitmap_end(), Region::Bitmap),
            (self.data_first * BLOCK, Region::Sums),
            (self.copy_at(), Region::Data),
        ];
        let found = starts.iter().find(|(end, _)| at < *end);
        found.map_or((Region::Superblock, u64::MAX), |(end, region)| (*region, *end))
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;
    use strum::IntoEnumIterator;

    #[test]
    fn regions_follow_each_other_without_gaps() {
        let g = Geometry::divide_for(64 << 20, None, true).unwrap();
        let firsts = [
            0,
            Geometry::REGISTERS_AT,
            g.ledger_at,
            g.orphans_at,
            g.journal_at,
            g.inodes_at,
            g.bitmap_at,
            g.sums_at,
            g.data_first * BLOCK,
        ];
        for (region, at) in Region::iter().zip(firsts) {
            assert_eq!(g.region_of(at), region);
            assert!(at == 0 || g.region_of(at - 1) != region, "{region:?}");
            assert!(at == 0 || g.region_end(at - 1) == at, "{region:?}");
        }
        assert_eq!(g.region_of(g.copy_at() - 1), Region::Data);
        assert_eq!(g.region_of(g.copy_at()), Region::Superblock);
        assert_eq!(firsts.len(), Region::COUNT);
        let without = Geometry::divide(64 << 20, None).unwrap();
        assert_eq!(without.region_of(without.data_first * BLOCK - 1), Region::Bitmap);
    }
}
