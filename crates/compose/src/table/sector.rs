//! Contents of the sectors of a table, and of its superblocks.

use super::layout::{TableKind, TableLayout, VolumeShape};
use frit_core::SECTOR_BYTES;
use frit_media::checksum::crc32c;

/// Bytes of a sector.
pub(crate) const SECTOR_LEN: usize = SECTOR_BYTES as usize;
/// Bytes of entries in a sector.
pub(crate) const PAYLOAD_BYTES: usize = 480;

const SECTOR_MAGIC: &[u8; 4] = b"FTab";
const PAYLOAD_AT: usize = 24;
const CRC_AT: usize = SECTOR_LEN - 4;
const VERSION: u32 = 1;

fn word(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn long(b: &[u8], at: usize) -> u64 {
    u64::from(word(b, at)) | u64::from(word(b, at + 4)) << 32
}

fn seal(b: &mut [u8]) {
    let crc = crc32c(&b[..CRC_AT]);
    b[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

fn sealed(b: &[u8]) -> bool {
    crc32c(&b[..CRC_AT]) == word(b, CRC_AT)
}

/// Writes a sector of a table. `fill` writes its entries over zeros.
pub(crate) fn encode(kind: &TableKind, index: u32, seq: u64, into: &mut [u8], fill: impl FnOnce(&mut [u8])) {
    into.fill(0);
    into[..4].copy_from_slice(SECTOR_MAGIC);
    into[4..8].copy_from_slice(&kind.number.to_le_bytes());
    into[8..12].copy_from_slice(&index.to_le_bytes());
    into[16..24].copy_from_slice(&seq.to_le_bytes());
    fill(&mut into[PAYLOAD_AT..PAYLOAD_AT + PAYLOAD_BYTES]);
    seal(into);
}

/// Returns the sequence number of a sector; `None` if it is damaged or another one. A CRC is
/// ignored if `unchecked`.
pub(crate) fn seq_of(kind: &TableKind, index: u32, b: &[u8], unchecked: bool) -> Option<u64> {
    let known = &b[..4] == SECTOR_MAGIC && word(b, 4) == kind.number && word(b, 8) == index;
    (known && (unchecked || sealed(b))).then(|| long(b, 16))
}

/// Returns the entries of a sector.
pub(crate) fn payload(b: &[u8]) -> &[u8] {
    &b[PAYLOAD_AT..PAYLOAD_AT + PAYLOAD_BYTES]
}

/// Returns a superblock.
pub(crate) fn superblock(
    kind: &TableKind,
    shape: &VolumeShape,
    layout: TableLayout,
    copy: u32,
) -> [u8; SECTOR_LEN] {
    let mut b = [0; SECTOR_LEN];
    b[..8].copy_from_slice(&kind.magic);
    b[8..12].copy_from_slice(&VERSION.to_le_bytes());
    b[12..16].copy_from_slice(&copy.to_le_bytes());
    for (at, value) in [(16, shape.size), (24, shape.chunk), (32, shape.device_bytes), (40, shape.data_at)] {
        b[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    b[48..52].copy_from_slice(&(kind.entry_bytes as u32).to_le_bytes());
    b[52..56].copy_from_slice(&layout.sectors.to_le_bytes());
    // The number of tables. Snapshots would have tables of their own.
    b[56..60].copy_from_slice(&1u32.to_le_bytes());
    seal(&mut b);
    b
}

/// A superblock as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FoundSuperblock {
    /// A superblock of this kind, with these sizes.
    Valid(VolumeShape),
    /// Zeros.
    Blank,
    /// A damaged superblock, or other data.
    Other,
}

/// Reads a superblock.
pub(crate) fn read_superblock(kind: &TableKind, copy: u32, b: &[u8]) -> FoundSuperblock {
    if b.iter().all(|&x| x == 0) {
        return FoundSuperblock::Blank;
    }
    let known = b[..8] == kind.magic && word(b, 8) == VERSION && word(b, 12) == copy;
    if !known || !sealed(b) || word(b, 48) as usize != kind.entry_bytes {
        return FoundSuperblock::Other;
    }
    FoundSuperblock::Valid(VolumeShape {
        size: long(b, 16),
        chunk: long(b, 24),
        device_bytes: long(b, 32),
        data_at: long(b, 40),
    })
}
