//! XFS: headers of allocation groups and the log by the superblock, all other metadata by content.

use super::bytes::{be16, be32, be64, blocks, byte, uuid};
use std::ops::Range;

/// Place of the superblock.
pub(super) const SUPERBLOCK: Range<u64> = 0..512;

/// Maximum number of allocation groups. mkfs.xfs makes groups of up to 1 TiB.
const GROUPS_MAX: u64 = 1 << 16;
/// Feature: the UUID of metadata differs from that of the file system.
const META_UUID: u32 = 1 << 2;
/// Version of the format whose blocks describe themselves.
const SELF_DESCRIBING: u16 = 5;

/// An XFS file system.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Xfs {
    block: u64,
    sector: u64,
    blocks: u64,
    group_blocks: u64,
    groups: u64,
    /// First block and number of blocks of the internal log.
    log: Option<(u64, u64)>,
    directory_block: u64,
    /// UUID in blocks that describe themselves (version 5).
    uuid: Option<[u8; 16]>,
}

/// Format of a block that describes itself: places of its own address (in sectors of 512 bytes) and
/// of the UUID.
struct SelfDescription {
    address: usize,
    uuid: usize,
}

const SHORT_BTREE: SelfDescription = SelfDescription { address: 16, uuid: 32 };
const LONG_BTREE: SelfDescription = SelfDescription { address: 24, uuid: 40 };
const DIRECTORY_DATA: SelfDescription = SelfDescription { address: 8, uuid: 24 };
const DIRECTORY_NODE: SelfDescription = SelfDescription { address: 16, uuid: 32 };
const REMOTE: SelfDescription = SelfDescription { address: 40, uuid: 16 };

impl Xfs {
    /// Parses a superblock.
    pub(super) fn parse(b: &[u8], bytes: u64) -> Option<Xfs> {
        if !b.starts_with(b"XFSB") {
            return None;
        }
        let (block, sector) = (u64::from(be32(b, 4)), u64::from(be16(b, 102)));
        let (blocks, group_blocks, groups) = (be64(b, 8), u64::from(be32(b, 84)), u64::from(be32(b, 88)));
        let valid = block.is_power_of_two()
            && sector.is_power_of_two()
            && (512..=65_536).contains(&block)
            && (512..=32_768).contains(&sector)
            && (1..=GROUPS_MAX).contains(&groups)
            && group_blocks > 0
            && blocks > (groups - 1) * group_blocks
            && blocks <= groups * group_blocks
            && blocks.checked_mul(block).is_some_and(|size| size <= bytes);
        let directory_block =
            block.checked_shl(byte(b, 192).into()).filter(|d| (block..=65_536).contains(d))?;
        if !valid {
            return None;
        }
        let own = be32(b, 216) & META_UUID != 0;
        let describes = be16(b, 100) & 0xf == SELF_DESCRIBING;
        let fs = Xfs {
            block,
            sector,
            blocks,
            group_blocks,
            groups,
            log: None,
            directory_block,
            uuid: describes.then(|| uuid(b, if own { 248 } else { 32 })),
        };
        // The address of the log has the group above `sb_agblklog` bits.
        let (start, group_bits) = (be64(b, 48), u32::from(byte(b, 124)));
        let (group, in_group) =
            (start.checked_shr(group_bits)?, start & 1u64.checked_shl(group_bits)?.wrapping_sub(1));
        let first = group.checked_mul(group_blocks)?.checked_add(in_group)?;
        let count = u64::from(be32(b, 96));
        let inside = start != 0 && count > 0 && first.checked_add(count).is_some_and(|end| end <= blocks);
        Some(Xfs { log: inside.then_some((first, count)), ..fs })
    }

    pub(super) fn describe(&self) -> String {
        format!("XFS with blocks of {} bytes and {} allocation groups", self.block, self.groups)
    }

    /// Returns the headers of the groups (superblock, AGF, AGI and AGFL, a sector each) and the
    /// log.
    pub(super) fn spans(&self) -> Vec<Range<u64>> {
        let header = |group| {
            let at = group * self.group_blocks * self.block;
            at..at + 4 * self.sector
        };
        let log = self.log.map(|(first, count)| first * self.block..(first + count) * self.block);
        (0..self.groups).map(header).chain(log).collect()
    }

    /// Finds metadata by its signature: nodes of trees, blocks of directories, of attributes and of
    /// symbolic links, inodes.
    pub(super) fn content(&mut self, at: u64, data: &[u8], found: &mut dyn FnMut(Range<u64>)) {
        let end = self.blocks * self.block;
        for (place, b) in blocks(data, at, self.block).take_while(|(place, _)| *place < end) {
            let len = self.signature(place, b);
            if len > 0 {
                found(place..place + len);
            }
        }
    }

    /// Returns the length of the structure that begins at a block; 0 if there is none.
    fn signature(&self, at: u64, b: &[u8]) -> u64 {
        let own = |is: &SelfDescription| {
            self.uuid.is_some_and(|fs| be64(b, is.address) == at / 512 && uuid(b, is.uuid) == fs)
        };
        let old = self.uuid.is_none();
        let is = match b.get(..4) {
            Some(b"AB3B" | b"AB3C" | b"IAB3" | b"FIB3" | b"RMB3" | b"R3FC") => own(&SHORT_BTREE),
            Some(b"BMA3") => own(&LONG_BTREE),
            Some(b"XSLM" | b"XARM") => own(&REMOTE),
            Some(b"XDB3" | b"XDD3" | b"XDF3") => {
                return if own(&DIRECTORY_DATA) { self.directory_block } else { 0 };
            }
            Some(b"XD2B" | b"XD2D" | b"XD2F") => return if old { self.directory_block } else { 0 },
            // Version 4: a level and a number of records must be plausible.
            Some(b"ABTB" | b"ABTC" | b"IABT" | b"BMAP") => {
                old && be16(b, 4) <= 8 && u64::from(be16(b, 6)) <= self.block / 8
            }
            Some([b'I', b'N', ..]) => self.is_inode(b),
            _ => match be16(b, 8) {
                // Nodes and leaves of directories and attributes.
                0x3ebe | 0x3df1 | 0x3dff => {
                    return if own(&DIRECTORY_NODE) { self.directory_block } else { 0 };
                }
                0x3bee => own(&DIRECTORY_NODE),
                0xfebe | 0xd2f1 | 0xd2ff | 0xfbee => old && be16(b, 10) == 0,
                _ => false,
            },
        };
        if is { self.block } else { 0 }
    }

    /// Returns `true` if a block begins with an inode.
    fn is_inode(&self, b: &[u8]) -> bool {
        let (version, format) = (byte(b, 4), byte(b, 5));
        match self.uuid {
            Some(fs) => version == 3 && format <= 5 && uuid(b, 160) == fs,
            None => (1..=2).contains(&version) && format <= 5,
        }
    }
}
