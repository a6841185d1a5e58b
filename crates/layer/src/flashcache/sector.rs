//! Contents of a metadata sector, and of the header.
//!
//! ```text
//! metadata sector: magic (4), number (4), 31 entries (16 each), zeros (4), CRC32C (4)
//! entry:           block of the disk (4), state (1), zeros (3), epoch (8)
//! header:          magic (8), version and sizes (4 each, 7), disk blocks (4), state (8), epoch (8), zeros, CRC32C (4)
//! ```
//!
//! A sector is atomic on every device. Its number finds a misplaced write.

use super::layout::Layout;
use frit_core::SECTOR_BYTES;
use frit_media::checksum::crc32c;

/// Bytes of a sector.
pub(super) const SECTOR: usize = SECTOR_BYTES as usize;
/// Entries of a metadata sector.
pub(super) const ENTRIES: u32 = 31;

const ENTRY: usize = 16;
const ENTRIES_AT: usize = 8;
const CRC_AT: usize = SECTOR - 4;
const METADATA_MAGIC: [u8; 4] = *b"FCmd";
const HEADER_MAGIC: [u8; 8] = *b"fritFCHE";
const VERSION: u32 = 1;
const STATE_AT: usize = 40;
const EPOCH_AT: usize = 48;

/// State of a slot on the SSD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum EntryState {
    /// No block.
    Invalid = 0,
    /// A block that the disk has as well.
    Clean = 1,
    /// A block that only the SSD has.
    Dirty = 2,
}

/// Entry of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) block: u32,
    pub(super) state: EntryState,
    /// Epoch in which the slot got the block, or 0 if its epoch is committed.
    pub(super) epoch: u64,
}

impl Entry {
    pub(super) const INVALID: Entry = Entry { block: 0, state: EntryState::Invalid, epoch: 0 };
}

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

fn is_sealed(b: &[u8]) -> bool {
    crc32c(&b[..CRC_AT]) == word(b, CRC_AT)
}

/// Writes a metadata sector with at most [`ENTRIES`] entries.
pub(super) fn encode(number: u32, entries: impl Iterator<Item = Entry>, into: &mut [u8]) {
    into.fill(0);
    into[..4].copy_from_slice(&METADATA_MAGIC);
    into[4..8].copy_from_slice(&number.to_le_bytes());
    for (b, entry) in into[ENTRIES_AT..CRC_AT].chunks_exact_mut(ENTRY).zip(entries) {
        b[..4].copy_from_slice(&entry.block.to_le_bytes());
        b[4] = entry.state as u8;
        b[8..].copy_from_slice(&entry.epoch.to_le_bytes());
    }
    seal(into);
}

/// Reads the entries of a metadata sector; `None` if it is damaged or another one.
pub(super) fn decode(number: u32, b: &[u8]) -> Option<impl Iterator<Item = Entry>> {
    let known = b[..4] == METADATA_MAGIC && word(b, 4) == number && is_sealed(b);
    known.then(|| {
        b[ENTRIES_AT..CRC_AT].chunks_exact(ENTRY).map(|e| {
            let state = match e[4] {
                1 => EntryState::Clean,
                2 => EntryState::Dirty,
                _ => EntryState::Invalid,
            };
            Entry { block: word(e, 0), state, epoch: long(e, 8) }
        })
    })
}

/// Usage state of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(super) enum UsageState {
    /// All metadata is as of a clean shutdown. The word differs from the other one in many bits.
    Halted = u64::from_le_bytes(*b"fc-halt."),
    /// The cache is in use, or it crashed.
    InUse = u64::from_le_bytes(*b"fc~inUse"),
}

/// State and epoch of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) state: UsageState,
    /// Last committed epoch.
    pub(super) epoch: u64,
}

/// A header as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FoundHeader {
    Valid(Header),
    /// The header of a cache with other sizes.
    Other,
    Blank,
    Damaged,
}

/// Returns the header of a cache of these sizes.
pub(super) fn header(layout: &Layout, disk_blocks: u32, header: Header) -> [u8; SECTOR] {
    let mut b = [0; SECTOR];
    b[..8].copy_from_slice(&HEADER_MAGIC);
    let sizes = [
        VERSION,
        layout.block_bytes,
        layout.set_blocks,
        layout.sets,
        layout.metadata_block,
        layout.blocks_per_set,
        disk_blocks,
    ];
    for (into, size) in b[8..STATE_AT].chunks_exact_mut(4).zip(sizes) {
        into.copy_from_slice(&size.to_le_bytes());
    }
    b[STATE_AT..EPOCH_AT].copy_from_slice(&(header.state as u64).to_le_bytes());
    b[EPOCH_AT..EPOCH_AT + 8].copy_from_slice(&header.epoch.to_le_bytes());
    seal(&mut b);
    b
}

/// Reads a header.
pub(super) fn read_header(layout: &Layout, disk_blocks: u32, b: &[u8]) -> FoundHeader {
    if b.iter().all(|&x| x == 0) {
        return FoundHeader::Blank;
    }
    let state = [UsageState::Halted, UsageState::InUse].into_iter().find(|&s| s as u64 == long(b, STATE_AT));
    let (true, true, Some(state)) = (b[..8] == HEADER_MAGIC, is_sealed(b), state) else {
        return FoundHeader::Damaged;
    };
    let found = Header { state, epoch: long(b, EPOCH_AT) };
    if header(layout, disk_blocks, found) == b { FoundHeader::Valid(found) } else { FoundHeader::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flashcache::FlashcacheConfig;

    #[test]
    fn sectors_return_their_entries_and_every_flipped_bit_is_found() {
        let entry = |i: u32| Entry { block: i * 7, state: EntryState::Dirty, epoch: u64::from(i) << 33 };
        let mut b = [0xAA; SECTOR];
        encode(5, (0..ENTRIES).map(entry), &mut b);
        assert!(decode(5, &b).unwrap().eq((0..ENTRIES).map(entry)));
        assert!(decode(6, &b).is_none());
        for bit in 0..SECTOR * 8 {
            b[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(5, &b).is_none(), "bit {bit}");
            b[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn headers_tell_sizes_apart_and_damage() {
        let layout = Layout::new(&FlashcacheConfig::default(), 1 << 30).unwrap();
        let state = Header { state: UsageState::Halted, epoch: 9 };
        let mut b = header(&layout, 77, state);
        assert_eq!(read_header(&layout, 77, &b), FoundHeader::Valid(state));
        assert_eq!(read_header(&layout, 78, &b), FoundHeader::Other);
        assert_eq!(read_header(&layout, 77, &[0; SECTOR]), FoundHeader::Blank);
        for bit in 0..SECTOR * 8 {
            b[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_header(&layout, 77, &b), FoundHeader::Damaged, "bit {bit}");
            b[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
