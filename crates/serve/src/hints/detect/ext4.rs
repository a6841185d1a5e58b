//! ext2, ext3 and ext4: bitmaps, inode tables and the journal by superblock and group descriptors,
//! directories and trees of extents by content.

mod content;
mod journal;

use super::READ_BYTES_MAX;
use super::bytes::{byte, le16, le32, slice_at};
use journal::JournalMap;
use std::collections::VecDeque;
use std::ops::Range;

/// Place of the superblock.
pub(super) const SUPERBLOCK: Range<u64> = 1024..2048;

const MAGIC: u16 = 0xef53;
/// Maximum number of groups: 32 TiB with blocks of 4 KiB. The places of a larger file system are
/// not computed, which bounds the memory that a superblock can demand.
const GROUPS_MAX: u64 = 1 << 18;

/// Features of a superblock (`s_feature_compat`, `s_feature_incompat`, `s_feature_ro_compat`).
mod feature {
    pub(super) const HAS_JOURNAL: u32 = 0x4;
    pub(super) const SPARSE_SUPER2: u32 = 0x200;
    pub(super) const JOURNAL_DEV: u32 = 0x8;
    pub(super) const META_BG: u32 = 0x10;
    pub(super) const BIT64: u32 = 0x80;
    pub(super) const MMP: u32 = 0x100;
    pub(super) const SPARSE_SUPER: u32 = 0x1;
    pub(super) const BIGALLOC: u32 = 0x200;
}

/// Fields of a superblock that determine places.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Ext4Layout {
    uuid: [u8; 16],
    block: u64,
    blocks: u64,
    first_block: u64,
    group_blocks: u64,
    groups: u64,
    inodes: u32,
    group_inodes: u64,
    inode: u64,
    descriptor: u64,
    reserved_descriptor_blocks: u64,
    first_meta_group: u64,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
    backup_groups: [u32; 2],
    mmp_block: u64,
    journal_inode: u32,
    /// Copy of the block map of the journal's inode, if the superblock has one.
    journal_map: Option<[u8; 60]>,
}

/// Places that the descriptor of a group names, in blocks; 0 if unknown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct GroupPlaces {
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
}

/// An ext4 file system.
#[derive(Debug)]
pub(super) struct Ext4 {
    layout: Ext4Layout,
    /// Blocks of group descriptors, in order: one for each `block / descriptor` groups.
    descriptor_blocks: Vec<u64>,
    groups: Vec<GroupPlaces>,
    journal: JournalMap,
}

impl Ext4Layout {
    fn parse(b: &[u8], bytes: u64) -> Option<Ext4Layout> {
        let log = le32(b, 0x18);
        if le16(b, 0x38) != MAGIC || log > 6 {
            return None;
        }
        let (compat, incompat, ro_compat) = (le32(b, 0x5c), le32(b, 0x60), le32(b, 0x64));
        let wide = incompat & feature::BIT64 != 0;
        let high = |place| if wide { u64::from(le32(b, place)) << 32 } else { 0 };
        let block = 1024u64 << log;
        let blocks = u64::from(le32(b, 0x4)) | high(0x150);
        let first_block = u64::from(le32(b, 0x14));
        let group_blocks = u64::from(le32(b, 0x20));
        // A bit of a bitmap stands for a block, or for a cluster of up to 2^16 blocks.
        let clusters = if ro_compat & feature::BIGALLOC != 0 { 1 << 16 } else { 1 };
        let inode = if le32(b, 0x4c) == 0 { 128 } else { u64::from(le16(b, 0x58)) };
        let group_inodes = u64::from(le32(b, 0x28));
        let journal_device = incompat & feature::JOURNAL_DEV != 0;
        let descriptor = if wide { u64::from(le16(b, 0xfe)) } else { 32 };
        let sized = blocks > first_block
            && first_block <= 1
            && blocks.checked_mul(block).is_some_and(|size| size <= bytes);
        let grouped = (1..=8 * block * clusters).contains(&group_blocks)
            && (1..=8 * block).contains(&group_inodes)
            && inode.is_power_of_two()
            && (128..=block).contains(&inode)
            && matches!(descriptor, 32 | 64)
            && (blocks - first_block.min(blocks)).div_ceil(group_blocks) <= GROUPS_MAX;
        if !sized || !(grouped || journal_device) {
            return None;
        }
        // A journal device has no groups, and its other fields of groups were not checked.
        let [group_blocks, group_inodes, descriptor] =
            if journal_device { [1, 1, 32] } else { [group_blocks, group_inodes, descriptor] };
        let mut journal_map = [0; 60];
        journal_map.copy_from_slice(b.get(0x10c..0x148)?);
        Some(Ext4Layout {
            uuid: super::bytes::uuid(b, 0x68),
            block,
            blocks,
            first_block,
            group_blocks,
            groups: if journal_device { 0 } else { (blocks - first_block).div_ceil(group_blocks) },
            inodes: le32(b, 0),
            group_inodes,
            inode,
            descriptor,
            reserved_descriptor_blocks: u64::from(le16(b, 0xce)).min(block / 4),
            first_meta_group: u64::from(le32(b, 0x104)),
            compat,
            incompat,
            ro_compat,
            backup_groups: [le32(b, 0x24c), le32(b, 0x250)],
            mmp_block: super::bytes::le64(b, 0x168),
            journal_inode: le32(b, 0xe0),
            journal_map: (byte(b, 0xfd) == 1).then_some(journal_map),
        })
    }

    fn has_journal(&self) -> bool {
        self.compat & feature::HAS_JOURNAL != 0 && self.journal_inode != 0
    }

    fn is_journal_device(&self) -> bool {
        self.incompat & feature::JOURNAL_DEV != 0
    }

    fn first_block_of(&self, group: u64) -> u64 {
        self.first_block + group * self.group_blocks
    }

    /// Number of groups that one block of descriptors describes.
    fn groups_per_descriptor_block(&self) -> u64 {
        self.block / self.descriptor
    }

    /// Returns `true` if a group begins with a copy of the superblock.
    fn has_superblock(&self, group: u64) -> bool {
        if group == 0 {
            return true;
        }
        if self.compat & feature::SPARSE_SUPER2 != 0 {
            return self.backup_groups.iter().any(|&g| u64::from(g) == group);
        }
        let power_of = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        self.ro_compat & feature::SPARSE_SUPER == 0 || group == 1 || [3, 5, 7].into_iter().any(power_of)
    }

    /// Number of descriptor blocks behind each copy of the superblock. Others lie in their own
    /// group of groups (`meta_bg`).
    fn old_descriptor_blocks(&self) -> u64 {
        let all = self.groups.div_ceil(self.groups_per_descriptor_block());
        if self.incompat & feature::META_BG != 0 { self.first_meta_group.min(all) } else { all }
    }

    /// Returns the blocks of descriptors that are in use; copies are not included.
    fn descriptor_blocks(&self) -> Vec<u64> {
        let old = self.old_descriptor_blocks();
        let all = self.groups.div_ceil(self.groups_per_descriptor_block());
        let meta = |i: u64| {
            let group = i * self.groups_per_descriptor_block();
            self.first_block_of(group) + u64::from(self.has_superblock(group))
        };
        // The superblock is in block 0 if blocks are larger than 1 KiB, in block 1 otherwise.
        let superblock = SUPERBLOCK.start / self.block;
        (0..all).map(|i| if i < old { superblock + 1 + i } else { meta(i) }).collect()
    }

    fn contains(&self, first: u64, count: u64) -> bool {
        first >= self.first_block.max(1) && first.checked_add(count).is_some_and(|end| end <= self.blocks)
    }

    fn inode_table_blocks(&self) -> u64 {
        (self.group_inodes * self.inode).div_ceil(self.block)
    }
}

impl Ext4 {
    /// Parses a superblock.
    pub(super) fn parse(superblock: &[u8], bytes: u64) -> Option<Ext4> {
        let layout = Ext4Layout::parse(superblock, bytes)?;
        let mut journal = JournalMap::default();
        if layout.has_journal()
            && let Some(map) = &layout.journal_map
        {
            journal.read_inode_map(map, &layout);
        }
        let groups = vec![GroupPlaces::default(); layout.groups as usize];
        Some(Ext4 { descriptor_blocks: layout.descriptor_blocks(), groups, journal, layout })
    }

    pub(super) fn same_layout(&self, other: &Ext4) -> bool {
        self.layout == other.layout
    }

    pub(super) fn describe(&self) -> String {
        let block = self.layout.block;
        if self.layout.is_journal_device() {
            return format!("a journal device of ext4 with blocks of {block} bytes");
        }
        let journal = match self.journal.blocks() {
            0 => String::new(),
            n => format!(" and a journal of {}", frit_core::size::format(n * block)),
        };
        format!("ext4 with blocks of {block} bytes, {} groups{journal}", self.layout.groups)
    }

    /// Asks for the descriptors and for what is missing of the journal.
    pub(super) fn begin(&mut self, reads: &mut VecDeque<Range<u64>>) {
        let block = self.layout.block;
        let most = (READ_BYTES_MAX / block).max(1);
        let mut run: Option<(u64, u64)> = None;
        for &at in &self.descriptor_blocks {
            match &mut run {
                Some((first, n)) if *first + *n == at && *n < most => *n += 1,
                _ => {
                    reads.extend(run.map(|(first, n)| first * block..(first + n) * block));
                    run = Some((at, 1));
                }
            }
        }
        reads.extend(run.map(|(first, n)| first * block..(first + n) * block));
        self.journal.ask(block, reads);
    }

    /// Updates places from the descriptors, the inode and the map of the journal in a write or a
    /// read. Returns `true` if places have changed.
    pub(super) fn learn(&mut self, at: u64, data: &[u8], reads: &mut VecDeque<Range<u64>>) -> bool {
        let mut changed = self.read_descriptors(at, data);
        if self.layout.has_journal() && self.journal.is_unknown() {
            let place = self.inode_place(self.layout.journal_inode);
            if let Some(place) = place.clone().filter(|_| changed) {
                // An inode can be smaller than a sector.
                reads.push_back(place.start & !511..place.end.next_multiple_of(512));
            }
            if let Some(inode) = place.and_then(|p| slice_at(data, at, p.start, 100)) {
                changed |= self.journal.read_inode_map(&inode[40..100], &self.layout);
                self.journal.ask(self.layout.block, reads);
            }
        }
        changed |= self.journal.learn(at, data, &self.layout, reads);
        changed
    }

    /// Returns the place of an inode, if the table of its group is known.
    fn inode_place(&self, number: u32) -> Option<Range<u64>> {
        let index = u64::from(number.checked_sub(1)?);
        let group = self.groups.get((index / self.layout.group_inodes) as usize)?;
        let at = group.inode_table * self.layout.block + index % self.layout.group_inodes * self.layout.inode;
        (group.inode_table > 0).then(|| at..at + self.layout.inode)
    }

    fn read_descriptors(&mut self, at: u64, data: &[u8]) -> bool {
        let (block, size) = (self.layout.block, self.layout.descriptor);
        let end = at + data.len() as u64;
        let first = self.descriptor_blocks.partition_point(|&b| (b + 1) * block <= at);
        let mut changed = false;
        for i in first..self.descriptor_blocks.len() {
            let place = self.descriptor_blocks[i] * block;
            if place >= end {
                break;
            }
            let group = i as u64 * self.layout.groups_per_descriptor_block();
            for n in 0..self.layout.groups_per_descriptor_block().min(self.layout.groups - group) {
                let Some(b) = slice_at(data, at, place + n * size, size as usize) else { continue };
                let new = self.parse_group(b);
                let known = &mut self.groups[(group + n) as usize];
                changed |= new.is_some_and(|new| std::mem::replace(known, new) != new);
            }
        }
        changed
    }

    /// Parses a descriptor; `None` if a place is outside the file system.
    fn parse_group(&self, b: &[u8]) -> Option<GroupPlaces> {
        let high = |place| if b.len() >= 64 { u64::from(le32(b, place)) << 32 } else { 0 };
        let group = GroupPlaces {
            block_bitmap: u64::from(le32(b, 0)) | high(0x20),
            inode_bitmap: u64::from(le32(b, 4)) | high(0x24),
            inode_table: u64::from(le32(b, 8)) | high(0x28),
        };
        let l = &self.layout;
        let valid = l.contains(group.block_bitmap, 1)
            && l.contains(group.inode_bitmap, 1)
            && l.contains(group.inode_table, l.inode_table_blocks());
        valid.then_some(group)
    }

    /// Returns all places that are metadata whatever they contain.
    pub(super) fn spans(&self) -> Vec<Range<u64>> {
        let l = &self.layout;
        if l.is_journal_device() {
            return std::iter::once(0..l.blocks * l.block).collect();
        }
        let mut spans = Vec::new();
        let mut add = |first: u64, count: u64| spans.push(first * l.block..(first + count) * l.block);
        for group in 0..l.groups {
            let (first, superblock) = (l.first_block_of(group), l.has_superblock(group));
            if superblock {
                // With blocks above 1 KiB the first superblock is inside block 0.
                add(first, 1 + l.old_descriptor_blocks() + l.reserved_descriptor_blocks);
            }
            // Each group of groups has its descriptors in its first, second and last group.
            let per_block = l.groups_per_descriptor_block();
            let (meta, in_meta) = (group / per_block, group % per_block);
            if meta >= l.old_descriptor_blocks() && [0, 1, per_block - 1].contains(&in_meta) {
                add(first + u64::from(superblock), 1);
            }
        }
        for g in self.groups.iter().filter(|g| g.inode_table > 0) {
            add(g.block_bitmap, 1);
            add(g.inode_bitmap, 1);
            add(g.inode_table, l.inode_table_blocks());
        }
        if l.incompat & feature::MMP != 0 && l.contains(l.mmp_block, 1) {
            add(l.mmp_block, 1);
        }
        self.journal.extents().for_each(|(first, count)| add(first, count));
        // The first superblock is at byte 1024 for all block sizes.
        spans.push(SUPERBLOCK);
        spans
    }

    /// Finds blocks that are metadata by their content.
    pub(super) fn content(&mut self, at: u64, data: &[u8], found: &mut dyn FnMut(Range<u64>)) {
        let (block, end) = (self.layout.block, self.layout.blocks * self.layout.block);
        for (place, b) in super::bytes::blocks(data, at, block).take_while(|(place, _)| *place < end) {
            if content::is_metadata(b, self.layout.inodes) {
                found(place..place + block);
            }
        }
    }
}
