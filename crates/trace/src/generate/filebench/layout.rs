//! Places on the disk of the file system model, in blocks of 4 KiB.
//!
//! ```text
//! superblock | journal | inodes | directories | bitmaps | data
//! ```

use super::extents::BlockRun;

/// Size of a block in bytes, that of a page of the page cache.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Inodes in a block: inodes of 256 bytes, the default of ext4.
const INODES_IN_BLOCK: u32 = 16;
/// Largest number of directory entries in a block: entries of 32 bytes.
const ENTRIES_IN_BLOCK: u32 = 128;
/// Blocks whose use a block of a bitmap describes, the block group of ext4.
const GROUP_BLOCKS: u32 = 32_768;
/// Largest journal in blocks: 128 MiB, the default of ext4.
const JOURNAL_BLOCKS_MAX: u32 = 32_768;

/// Regions of the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) journal: BlockRun,
    inodes: BlockRun,
    directories: BlockRun,
    bitmaps: BlockRun,
    pub(super) data: BlockRun,
    files_in_directory_block: u32,
}

impl Layout {
    /// Divides a disk; `None` if it is too small for the metadata.
    pub(super) fn new(blocks: u32, files: u32, dir_width: u32) -> Option<Layout> {
        let files_in_directory_block = dir_width.clamp(1, ENTRIES_IN_BLOCK);
        let mut next = 1;
        let mut region = |blocks: u32| {
            let run = BlockRun { first: next, blocks };
            next = u32::checked_add(next, blocks)?;
            Some(run)
        };
        let journal = region((blocks / 64).clamp(64, JOURNAL_BLOCKS_MAX))?;
        let inodes = region(files.div_ceil(INODES_IN_BLOCK))?;
        let directories = region(files.div_ceil(files_in_directory_block))?;
        let bitmaps = region(blocks.div_ceil(GROUP_BLOCKS))?;
        let data = BlockRun { first: next, blocks: blocks.checked_sub(next).filter(|&n| n > 0)? };
        Some(Layout { journal, inodes, directories, bitmaps, data, files_in_directory_block })
    }

    /// Returns the block of a file's inode.
    pub(super) fn inode(&self, file: u32) -> u32 {
        self.inodes.first + file / INODES_IN_BLOCK
    }

    /// Returns the block of a file's directory entry.
    pub(super) fn entry(&self, file: u32) -> u32 {
        self.directories.first + file / self.files_in_directory_block
    }

    /// Returns the block of the bitmap that describes a block.
    pub(super) fn bitmap(&self, block: u32) -> u32 {
        self.bitmaps.first + block / GROUP_BLOCKS
    }

    /// Number of block groups.
    pub(super) fn groups(&self) -> u32 {
        self.bitmaps.blocks
    }

    /// Block group of a file: that of its directory. Directories are spread over the groups.
    pub(super) fn group(&self, file: u32) -> u32 {
        file / self.files_in_directory_block % self.groups()
    }

    /// First data block of a block group.
    pub(super) fn group_start(&self, group: u32) -> u32 {
        (group * GROUP_BLOCKS).max(self.data.first)
    }

    /// Returns the region that a block outside the journal belongs to: data, or metadata.
    pub(super) fn region(&self, block: u32) -> BlockRun {
        if block >= self.data.first {
            return self.data;
        }
        BlockRun { first: self.inodes.first, blocks: self.data.first - self.inodes.first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_follow_each_other() {
        let l = Layout::new(1 << 18, 10_001, 20).unwrap();
        assert_eq!((l.journal.first, l.journal.blocks, l.inodes.first), (1, 4096, 4097));
        assert_eq!(
            (l.inode(16) - l.inode(15), l.entry(20) - l.entry(19), l.entry(39) - l.entry(20)),
            (1, 1, 0)
        );
        assert!(
            l.inode(10_000) < l.entry(0)
                && l.entry(10_000) < l.bitmap(0)
                && l.bitmap(1 << 18) <= l.data.first
        );
        assert_eq!(l.data.first + l.data.blocks, 1 << 18);
        assert_eq!((l.groups(), l.group(20), l.group(39), l.group(40), l.group(160)), (8, 1, 1, 2, 0));
        assert_eq!((l.group_start(0), l.group_start(3)), (l.data.first, 3 * 32_768));
        assert_eq!(l.region(l.data.first), l.data);
        assert!(Layout::new(64, 10_000, 20).is_none());
    }
}
