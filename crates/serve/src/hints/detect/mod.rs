//! [`Detector`]: recognizes metadata of ext4, XFS and btrfs in the writes to a volume.
//!
//! The detector reads what clients write, and knows two kinds of places: those that follow from a
//! superblock (bitmaps, inode tables, headers of allocation groups, journals), and blocks with a
//! signature of their own (nodes of trees, directories). It keeps no data and does no I/O. When it
//! needs bytes that no write contained, it asks for them ([`Detector::wanted`]); its owner reads
//! them after the write and passes them to [`Detector::supply`].
//!
//! All input is hostile: sizes are checked against the volume, and work and memory are bounded. A
//! wrong result changes the placement of data and never the data.
//!
//! Formats: *ext4 Data Structures and Algorithms* (Linux kernel documentation, filesystems/ext4),
//! *XFS Algorithms & Data Structures* (third edition), and the btrfs on-disk format (btrfs
//! documentation, dev/On-disk-format). Partition tables are those of PC BIOS (MBR, primary
//! partitions) and UEFI (GPT).

mod area;
mod btrfs;
mod bytes;
mod ext4;
pub mod fuzz;
mod partitions;
mod xfs;

use area::DetectionArea;
use std::ops::Range;

/// Largest read that the detector asks for, in bytes.
const READ_BYTES_MAX: u64 = 64 << 10;

/// Recognizes metadata of file systems.
#[derive(Debug)]
pub struct Detector {
    bytes: u64,
    /// File system on the whole volume.
    whole: DetectionArea,
    /// File systems in partitions; none if the whole volume has a file system.
    partitions: Vec<DetectionArea>,
    /// The partition table has to be read.
    table_wanted: bool,
}

impl Detector {
    /// Creates a detector for a volume, which first asks for the places of superblocks.
    #[must_use]
    pub fn new(bytes: u64) -> Detector {
        Detector { bytes, whole: DetectionArea::new(0, bytes), partitions: Vec::new(), table_wanted: true }
    }

    /// Passes the ranges of a write that are metadata to `each`. Ranges lie inside the write; they
    /// can overlap and have no order.
    pub fn observe(&mut self, at: u64, data: &[u8], each: &mut dyn FnMut(Range<u64>)) {
        self.whole.observe(at, data, each);
        if self.whole.has_file_system() {
            self.partitions.clear();
            return;
        }
        self.table_wanted |= at < partitions::TABLE_BYTES && !data.is_empty();
        for area in &mut self.partitions {
            area.observe(at, data, each);
        }
    }

    /// Notes that a range reads as zeros from now on.
    pub fn zeroed(&mut self, at: u64, len: u64) {
        self.table_wanted |= at < partitions::TABLE_BYTES && !self.whole.has_file_system();
        self.whole.zeroed(at, len);
        self.partitions.iter_mut().for_each(|area| area.zeroed(at, len));
    }

    /// Returns the next range that has to be read and passed to [`Detector::supply`]. The range is
    /// inside the volume, and its ends are multiples of 512.
    pub fn wanted(&mut self) -> Option<Range<u64>> {
        if let Some(range) = self.whole.wanted() {
            return Some(range);
        }
        if std::mem::take(&mut self.table_wanted) && !self.whole.has_file_system() {
            let end = partitions::TABLE_BYTES.min(self.bytes) & !511;
            return (end > 0).then_some(0..end);
        }
        self.partitions.iter_mut().find_map(DetectionArea::wanted)
    }

    /// Takes the bytes of a range that was wanted.
    pub fn supply(&mut self, at: u64, data: &[u8]) {
        self.whole.supply(at, data);
        if self.whole.has_file_system() {
            return;
        }
        if at == 0
            && let Some(found) = partitions::parse(data, self.bytes)
            && !found.iter().cloned().eq(self.partitions.iter().map(DetectionArea::range))
        {
            self.partitions =
                found.into_iter().map(|r| DetectionArea::new(r.start, r.end - r.start)).collect();
        }
        self.partitions.iter_mut().for_each(|area| area.supply(at, data));
    }

    /// Describes the file systems found, such as `ext4 with blocks of 4096 bytes`.
    #[must_use]
    pub fn file_systems(&self) -> Vec<String> {
        let partition =
            |area: &DetectionArea| Some(format!("{} at byte {}", area.describe()?, area.range().start));
        self.whole.describe().into_iter().chain(self.partitions.iter().filter_map(partition)).collect()
    }
}

#[cfg(test)]
mod tests;
