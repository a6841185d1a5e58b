//! btrfs: superblocks, and tree blocks by their headers.

use super::bytes::{blocks, byte, le32, le64, uuid};
use std::ops::Range;

/// Place of the first superblock.
pub(super) const SUPERBLOCK: Range<u64> = 65_536..65_536 + 4096;

/// Places of the copies of the superblock.
const COPIES: [u64; 2] = [64 << 20, 256 << 30];
const MAGIC: &[u8; 8] = b"_BHRfS_M";
/// Magic of a file system that mkfs has not completed.
const PARTIAL_MAGIC: &[u8; 8] = b"!BHRfS_M";
/// Feature: headers of tree blocks have a UUID of their own.
const METADATA_UUID: u64 = 1 << 10;
/// Size of the header of a tree block.
const HEADER: u64 = 101;
/// Size of the smallest item of a tree block: a pointer of an item in a leaf.
const ITEM: u64 = 25;
/// Maximum level of a tree block.
const LEVEL_MAX: u8 = 7;

/// A btrfs file system.
#[derive(Debug)]
pub(super) struct Btrfs {
    /// UUID in the headers of tree blocks.
    fsid: [u8; 16],
    sector: u64,
    node: u64,
    /// End of a tree block that the write before began and did not complete, and the end of that
    /// write.
    unfinished: Option<(u64, u64)>,
}

impl Btrfs {
    /// Parses a superblock.
    pub(super) fn parse(b: &[u8], bytes: u64) -> Option<Btrfs> {
        let magic = b.get(0x40..0x48)?;
        let (sector, node) = (u64::from(le32(b, 0x90)), u64::from(le32(b, 0x94)));
        let valid = (magic == MAGIC || magic == PARTIAL_MAGIC)
            && le64(b, 0x30) == SUPERBLOCK.start
            && sector.is_power_of_two()
            && node.is_power_of_two()
            && (512..=65_536).contains(&sector)
            && (sector..=65_536).contains(&node)
            && bytes >= SUPERBLOCK.end;
        let own = le64(b, 0xbc) & METADATA_UUID != 0;
        let fsid = uuid(b, if own { 0x23b } else { 0x20 });
        (valid && fsid != [0; 16]).then_some(Btrfs { fsid, sector, node, unfinished: None })
    }

    pub(super) fn same_layout(&self, other: &Btrfs) -> bool {
        (self.fsid, self.sector, self.node) == (other.fsid, other.sector, other.node)
    }

    pub(super) fn describe(&self) -> String {
        format!("btrfs with tree blocks of {} bytes", self.node)
    }

    /// Returns the places of superblocks. All other metadata is found by its headers, since it can
    /// lie anywhere.
    pub(super) fn spans(&self) -> Vec<Range<u64>> {
        [SUPERBLOCK.start].into_iter().chain(COPIES).map(|at| at..at + 4096).collect()
    }

    /// Finds tree blocks. A block is claimed if its header has the UUID of the file system and
    /// valid fields.
    pub(super) fn content(&mut self, at: u64, data: &[u8], found: &mut dyn FnMut(Range<u64>)) {
        let end = at + data.len() as u64;
        let mut skip_to = 0;
        if let Some((rest, next)) = self.unfinished.take()
            && next == at
        {
            skip_to = rest;
            found(at..rest);
        }
        for (place, block) in blocks(data, at, self.sector) {
            if place >= skip_to && self.is_tree_block(block) {
                skip_to = place + self.node;
                found(place..skip_to);
            }
        }
        self.unfinished = (skip_to > end).then_some((skip_to, end));
    }

    fn is_tree_block(&self, b: &[u8]) -> bool {
        let logical = le64(b, 0x30);
        b.get(0x20..0x30) == Some(&self.fsid)
            && logical != 0
            && logical.is_multiple_of(self.sector)
            && le64(b, 0x50) != 0
            && u64::from(le32(b, 0x60)) <= (self.node - HEADER) / ITEM
            && byte(b, 0x64) <= LEVEL_MAX
    }
}
