//! Sizes and positions of the regions on the medium.

use super::{BLOCK, INODE, LINE, LINE_BLOCKS};
use crate::error::{Error, Result};
use crate::nameless::{PLACED, is_placed};

/// Default number of data bytes per inode, as in ext4.
pub(crate) const BYTES_PER_INODE: u64 = 16 << 10;
/// Minimum size of a medium in bytes.
const SMALLEST: u64 = 256 << 10;
/// Maximum size of a medium in bytes. The 48-bit word positions of journal records would permit far
/// more, but larger media are not tested.
const LARGEST: u64 = 1 << 50;

/// Regions of a medium; positions are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Size of the medium in bytes.
    pub bytes: u64,
    /// Position of the ledger: counters that every transaction may update.
    pub ledger_at: u64,
    /// Position of the orphan list: unlinked inodes that are still open, and files being truncated.
    pub orphans_at: u64,
    /// Capacity of the orphan list.
    pub orphans: u64,
    /// Position of the journal.
    pub journal_at: u64,
    /// Number of journal slots, one transaction each.
    pub slots: u64,
    /// Size of a journal slot in bytes.
    pub slot_bytes: u64,
    /// Position of the inode table.
    pub inodes_at: u64,
    /// Number of inodes in the table.
    pub inodes: u64,
    /// Position of the block bitmap.
    pub bitmap_at: u64,
    /// Number of lines of the bitmap.
    pub lines: u64,
    /// Position of the checksums of contents, a word per block of the data space; 0 if there are
    /// none.
    pub sums_at: u64,
    /// First block of the data space, counted from the start of the medium.
    pub data_first: u64,
    /// Number of blocks of the data space.
    pub data_blocks: u64,
    /// Number of pages of the nameless-write device that has the contents of regular files; 0 if there is
    /// none.
    pub device_pages: u64,
}

impl Geometry {
    /// Position of the superblock.
    pub const SUPERBLOCK_AT: u64 = 0;
    /// Position of the registers of in-storage processing: one block, reserved for the processing
    /// engine.
    pub const REGISTERS_AT: u64 = BLOCK;

    /// Divides a medium into regions.
    ///
    /// # Errors
    /// The medium is too small or too large, or the inodes do not fit.
    pub fn divide(bytes: u64, inodes: Option<u64>) -> Result<Self> {
        Self::divide_for(bytes, inodes, false)
    }

    /// Divides a medium into regions, including checksums of contents if `sums`.
    ///
    /// # Errors
    /// As for [`Geometry::divide`].
    pub fn divide_for(bytes: u64, inodes: Option<u64>, sums: bool) -> Result<Self> {
        let bytes = bytes / BLOCK * BLOCK;
        if !(SMALLEST..=LARGEST).contains(&bytes) {
            return Err(Error::Image(format!(
                "a file system of {bytes} bytes: the limits are {SMALLEST} to {LARGEST}; choose another --size"
            )));
        }
        let (slots, slot_bytes, orphans) = match bytes {
            b if b >= 256 << 20 => (64, 64 << 10, 4096),
            b if b >= 16 << 20 => (16, 32 << 10, 1024),
            b if b >= 2 << 20 => (8, 8 << 10, 512),
            _ => (4, 4 << 10, 512),
        };
        let per_block = BLOCK / INODE;
        let inodes = inodes.unwrap_or(bytes / BYTES_PER_INODE).max(32).div_ceil(per_block) * per_block;
        let ledger_at = 2 * BLOCK;
        let orphans_at = ledger_at + BLOCK;
        let journal_at = orphans_at + orphans * 8;
        let inodes_at = journal_at + slots * slot_bytes;
        let bitmap_at = inodes.checked_mul(INODE).and_then(|b| b.checked_add(inodes_at));
        let left = bitmap_at.and_then(|at| bytes.checked_sub(at + BLOCK)).filter(|left| *left >= 4 * BLOCK);
        let (Some(bitmap_at), Some(left)) = (bitmap_at, left) else {
            return Err(Error::Image(format!(
                "{inodes} inodes of {INODE} bytes leave no space for data in {bytes} bytes; choose fewer --inodes"
            )));
        };
        // The number of lines is computed for all remaining blocks, including those of the bitmap
        // itself. The few surplus lines stay unused.
        let lines = (left / BLOCK).div_ceil(LINE_BLOCKS);
        let bitmap_end = bitmap_at + lines * LINE;
        // Likewise, checksum words are provided for all remaining blocks.
        let (sums_at, sums_bytes) = if sums { (bitmap_end, left / BLOCK * 8) } else { (0, 0) };
        let data_first = (bitmap_end + sums_bytes).div_ceil(BLOCK);
        let data_blocks = bytes / BLOCK - 1 - data_first;
        let lines = data_blocks.div_ceil(LINE_BLOCKS);
        Ok(Self {
            bytes,
            ledger_at,
            orphans_at,
            orphans,
            journal_at,
            slots,
            slot_bytes,
            inodes_at,
            inodes,
            bitmap_at,
            lines,
            sums_at,
            data_first,
            data_blocks,
            device_pages: 0,
        })
    }

    /// Returns `true` if the blocks of an extent of a regular file lie on the nameless-write device.
    #[must_use]
    pub(crate) fn places(&self, start: u64, len: u64) -> bool {
        self.device_pages > 0
            && is_placed(start)
            && (start & (PLACED - 1)).checked_add(len).is_some_and(|end| end <= self.device_pages)
    }

    /// Returns the position of the second superblock, in the last block.
    #[must_use]
    pub fn copy_at(&self) -> u64 {
        self.bytes - BLOCK
    }

    /// Returns `true` if the blocks lie in the data space.
    #[must_use]
    pub fn holds(&self, start: u64, len: u64) -> bool {
        start >= self.data_first
            && start.checked_add(len).is_some_and(|end| end <= self.data_first + self.data_blocks)
    }

    /// Returns the position of an inode, which must be in the table.
    #[must_use]
    pub fn inode_at(&self, ino: u64) -> u64 {
        debug_assert!(ino >= 1 && ino <= self.inodes);
        self.inodes_at + (ino - 1) * INODE
    }

    /// Returns the position of the region after the bitmap.
    pub(super) fn bitmap_end(&self) -> u64 {
        if self.has_sums() { self.sums_at } else { self.data_first * BLOCK }
    }

    /// Returns `true` if contents have checksums.
    #[must_use]
    pub fn has_sums(&self) -> bool {
        self.sums_at > 0
    }

    /// Returns the position of the checksum of a block in the data space. Contents must have
    /// checksums.
    #[must_use]
    pub fn sum_at(&self, block: u64) -> u64 {
        debug_assert!(self.has_sums() && self.holds(block, 1));
        self.sums_at + (block - self.data_first) * 8
    }

    /// Returns `true` if the regions are in order and within the medium, as in every valid
    /// superblock.
    #[must_use]
    pub fn sound(&self) -> bool {
        let region = |at: u64, len: Option<u64>, next: u64| {
            at.is_multiple_of(8) && len.and_then(|len| at.checked_add(len)).is_some_and(|end| end <= next)
        };
        self.bytes <= LARGEST
            && self.bytes.is_multiple_of(BLOCK)
            && self.slot_bytes.is_multiple_of(8)
            && self.slots >= 3
            && self.slot_bytes >= BLOCK
            && self.slot_bytes <= 1 << 20
            && self.inodes >= 1
            && self.ledger_at >= 2 * BLOCK
            && region(self.ledger_at, Some(64), self.orphans_at)
            && region(self.orphans_at, self.orphans.checked_mul(8), self.journal_at)
            && region(self.journal_at, self.slots.checked_mul(self.slot_bytes), self.inodes_at)
            && region(self.inodes_at, self.inodes.checked_mul(INODE), self.bitmap_at)
            && self.data_first <= LARGEST / BLOCK
            && region(self.bitmap_at, self.lines.checked_mul(LINE), self.bitmap_end())
            && (!self.has_sums()
                || region(self.sums_at, self.data_blocks.checked_mul(8), self.data_first * BLOCK))
            && self.data_blocks >= 1
            && self.device_pages <= PLACED
            && (self.device_pages == 0 || self.bytes / BLOCK <= PLACED)
            && self.data_blocks <= LARGEST / BLOCK
            && self.lines == self.data_blocks.div_ceil(LINE_BLOCKS)
            && (self.data_first + self.data_blocks + 1) * BLOCK <= self.bytes
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn regions_fit_at_every_size() {
        for bytes in [256 << 10, 1 << 20, 3 << 20, 17 << 20, 300 << 20, 1 << 34, 16 << 40, LARGEST] {
            for sums in [false, true] {
                let g = Geometry::divide_for(bytes, None, sums).unwrap();
                assert!(g.sound() && g.has_sums() == sums, "{g:?}");
                assert!(g.data_blocks * BLOCK > bytes / 2, "{g:?}");
            }
        }
        assert!(Geometry::divide(1 << 20, Some(1 << 20)).is_err());
        assert!(Geometry::divide(1 << 10, None).is_err());
    }
}
