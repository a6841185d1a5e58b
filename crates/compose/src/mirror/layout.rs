//! Places of data and metadata on a side.
//!
//! All sides have the same layout: the data from the first byte on, and then the metadata. A side
//! can therefore be read without frit, as a device that is somewhat larger than the data.

use frit_core::SECTOR_BYTES;
use std::ops::Range;

/// Number of regions that a sector of the bitmap describes.
pub(super) const REGIONS_PER_SECTOR: usize = 472 * 8;

/// Alignment of the data and of the metadata area.
const ALIGN: u64 = 4096;

/// Sizes of a mirror and places of its metadata, which are equal on all sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Size of the data, in bytes.
    pub(super) data: u64,
    /// Size of the metadata area after the data, in bytes.
    pub(super) metadata: u64,
    /// Logarithm of the size of a region.
    shift: u32,
}

impl Layout {
    /// Lays out sides of which the smallest has `bytes`. Returns `None` if no data fits. `region`
    /// is a power of two.
    pub(super) fn new(bytes: u64, region: u64) -> Option<Layout> {
        let sectors = bytes.div_ceil(region).div_ceil(REGIONS_PER_SECTOR as u64);
        // A superblock before the bitmap, and another one at the end of the area.
        let metadata = ((2 + sectors) * SECTOR_BYTES).next_multiple_of(ALIGN);
        let data = bytes.checked_sub(metadata)? / ALIGN * ALIGN;
        (data > 0).then_some(Layout { data, metadata, shift: region.trailing_zeros() })
    }

    /// Returns the size of a region.
    pub(super) fn region_bytes(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the number of regions.
    pub(super) fn regions(&self) -> usize {
        (self.data.div_ceil(self.region_bytes())) as usize
    }

    /// Returns the number of sectors of the bitmap.
    pub(super) fn bitmap_sectors(&self) -> usize {
        self.regions().div_ceil(REGIONS_PER_SECTOR)
    }

    /// Returns the region of a byte.
    #[inline]
    pub(super) fn region_of(&self, at: u64) -> usize {
        (at >> self.shift) as usize
    }

    /// Returns the regions that a range of bytes touches.
    #[inline]
    pub(super) fn regions_of(&self, range: &Range<u64>) -> Range<usize> {
        self.region_of(range.start)..self.region_of(range.end - 1) + 1
    }

    /// Returns the bytes of a region.
    pub(super) fn bytes_of(&self, region: usize) -> Range<u64> {
        let at = (region as u64) << self.shift;
        at..(at + self.region_bytes()).min(self.data)
    }

    /// Returns the addresses of the two copies of the superblock.
    pub(super) fn superblocks(&self) -> [u64; 2] {
        [self.data, self.data + self.metadata - SECTOR_BYTES]
    }

    /// Returns the address of a sector of the bitmap.
    pub(super) fn bitmap_at(&self, sector: usize) -> u64 {
        self.data + (1 + sector as u64) * SECTOR_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_metadata_fill_a_side() {
        for (bytes, region) in [(1 << 20, 4096), (1280 << 10, 64 << 10), (1 << 40, 4 << 20)] {
            let l = Layout::new(bytes, region).unwrap();
            let [first, last] = l.superblocks();
            assert_eq!(first, l.data);
            assert!(l.bitmap_at(l.bitmap_sectors() - 1) < last);
            assert!(last + SECTOR_BYTES <= bytes && bytes - l.data - l.metadata < ALIGN);
            assert_eq!(l.bytes_of(l.regions() - 1).end, l.data);
            assert_eq!(l.regions_of(&(region - 1..region + 1)), 0..2);
        }
        assert_eq!(Layout::new(4096, 4096), None);
    }
}
