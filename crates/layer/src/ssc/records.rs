//! Pages of metadata: the log of map changes, and checkpoints of the map.
//!
//! Each is one program unit, whose spare areas have a number of [`MetaKind`] instead of a block. All
//! copies of a page have one sequence number.
//!
//! ```text
//! log page                                   part of a checkpoint
//!  0  magic "fritSCL1" (8)                    0  magic "fritSCC1" (8)
//!  8  number of the log page (8)              8  number of the checkpoint (8)
//! 16  highest sequence number up to here (8) 16  highest sequence number covered (8)
//! 24  newest checkpoint (8)                  24  number of the next log page (8)
//! 32  number of records (4), zero (4)        32  entries here (4), index of the part (4)
//! 40  sequence number up to which all        40  number of parts (4), flags (4): 1 at a halt, 2 if
//!     programs were synced (8)                   all that it covers was synced before
//! 48  records                                48  entries
//! ```
//! A record is 16 bytes: two words (4 each), then sequence number × 8 + kind × 2 + dirty (8). An entry is
//! 12 bytes: block (4), page (4), tag (2), dirty (2). Numbers are little endian.

use super::map::Entry;
use frit_core::Ppn;

/// First number that is no block of a disk.
pub(crate) const BLOCKS_MAX: u32 = u32::MAX - 4;

/// Kind of a page of metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MetaKind {
    /// A log page.
    Log,
    /// A part of a checkpoint.
    Checkpoint,
}

impl MetaKind {
    /// Page number in the spare areas of a copy, 0 or 1.
    pub(super) fn lpn(self, copy: u32) -> u32 {
        match self {
            MetaKind::Log => u32::MAX - 1 - copy,
            MetaKind::Checkpoint => u32::MAX - 3 - copy,
        }
    }

    /// Kind and copy of a page with this number in its spare area, if it is one of metadata.
    pub(super) fn of(lpn: u32) -> Option<(MetaKind, u32)> {
        let kinds = [MetaKind::Log, MetaKind::Checkpoint].into_iter();
        kinds
            .flat_map(|kind| (0..2).map(move |copy| (kind, copy)))
            .find(|(kind, copy)| kind.lpn(*copy) == lpn)
    }
}

const LOG_MAGIC: &[u8; 8] = b"fritSCL1";
const CHECKPOINT_MAGIC: &[u8; 8] = b"fritSCC1";
const LOG_HEADER: usize = 48;
const CHECKPOINT_HEADER: usize = 48;
const RECORD_BYTES: usize = 16;
const ENTRY_BYTES: usize = 12;
/// Flags of a checkpoint.
const HALTED: u32 = 1;
const SYNCED: u32 = 2;

/// A change of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// A block was written to a page.
    Written { block: u32, ppn: Ppn, dirty: bool },
    /// A block was evicted.
    Evicted { block: u32 },
    /// A block became clean.
    Cleaned { block: u32 },
    /// All blocks that are left in an erase block were evicted.
    Emptied { erase_block: u32 },
}

/// A change with its sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) seq: u64,
    pub(super) change: Change,
}

impl Record {
    fn encode(self) -> [u8; RECORD_BYTES] {
        let (a, b, kind, dirty) = match self.change {
            Change::Written { block, ppn, dirty } => (block, ppn.0, 0, dirty),
            Change::Evicted { block } => (block, 0, 1, false),
            Change::Cleaned { block } => (block, 0, 2, false),
            Change::Emptied { erase_block } => (erase_block, 0, 3, false),
        };
        let mut out = [0; RECORD_BYTES];
        out[..4].copy_from_slice(&a.to_le_bytes());
        out[4..8].copy_from_slice(&b.to_le_bytes());
        out[8..].copy_from_slice(&(self.seq << 3 | kind << 1 | u64::from(dirty)).to_le_bytes());
        out
    }

    fn decode(b: &[u8]) -> Record {
        let (first, second, last) = (word(b, 0), word(b, 4), long(b, 8));
        let change = match last >> 1 & 3 {
            0 => Change::Written { block: first, ppn: Ppn(second), dirty: last & 1 == 1 },
            1 => Change::Evicted { block: first },
            2 => Change::Cleaned { block: first },
            _ => Change::Emptied { erase_block: first },
        };
        Record { seq: last >> 3, change }
    }
}

fn word(b: &[u8], at: usize) -> u32 {
    let mut w = [0; 4];
    w.copy_from_slice(&b[at..at + 4]);
    u32::from_le_bytes(w)
}

fn long(b: &[u8], at: usize) -> u64 {
    let mut w = [0; 8];
    w.copy_from_slice(&b[at..at + 8]);
    u64::from_le_bytes(w)
}

fn put(b: &mut [u8], at: usize, value: u64) {
    b[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn put_word(b: &mut [u8], at: usize, value: u32) {
    b[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// A log page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LogPage {
    pub(super) number: u64,
    /// Sequence number of its last record.
    pub(super) through: u64,
    /// Newest checkpoint that was durable before.
    pub(super) checkpoint: u64,
    /// Sequence number up to which all programs were synced before, with media in files.
    pub(super) synced: u64,
    pub(super) records: Vec<Record>,
}

impl LogPage {
    /// Number of records that a program unit holds.
    pub(super) fn capacity(unit_bytes: u32) -> usize {
        (unit_bytes as usize - LOG_HEADER) / RECORD_BYTES
    }

    /// Encodes the page into a program unit of zeros.
    pub(super) fn encode(&self, unit: &mut [u8]) {
        unit[..8].copy_from_slice(LOG_MAGIC);
        put(unit, 8, self.number);
        put(unit, 16, self.through);
        put(unit, 24, self.checkpoint);
        put_word(unit, 32, self.records.len() as u32);
        put(unit, 40, self.synced);
        for (place, record) in unit[LOG_HEADER..].chunks_exact_mut(RECORD_BYTES).zip(&self.records) {
            place.copy_from_slice(&record.encode());
        }
    }

    pub(super) fn decode(unit: &[u8]) -> Option<LogPage> {
        let records = word(unit, 32) as usize;
        if unit[..8] != *LOG_MAGIC || records > (unit.len() - LOG_HEADER) / RECORD_BYTES {
            return None;
        }
        Some(LogPage {
            number: long(unit, 8),
            through: long(unit, 16),
            checkpoint: long(unit, 24),
            synced: long(unit, 40),
            records: unit[LOG_HEADER..]
                .chunks_exact(RECORD_BYTES)
                .take(records)
                .map(Record::decode)
                .collect(),
        })
    }
}

/// A part of a checkpoint: a program unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CheckpointPart {
    pub(super) number: u64,
    /// Highest sequence number of a change that it contains.
    pub(super) through: u64,
    /// Number of the next log page.
    pub(super) next_log: u64,
    pub(super) index: u32,
    pub(super) parts: u32,
    pub(super) halted: bool,
    /// All that it covers was synced before, with media in files.
    pub(super) synced: bool,
    /// Blocks with their entries.
    pub(super) entries: Vec<(u32, Entry)>,
}

impl CheckpointPart {
    /// Number of entries that a program unit holds.
    pub(super) fn capacity(unit_bytes: u32) -> usize {
        (unit_bytes as usize - CHECKPOINT_HEADER) / ENTRY_BYTES
    }

    /// Encodes the part into a program unit of zeros.
    pub(super) fn encode(&self, unit: &mut [u8]) {
        unit[..8].copy_from_slice(CHECKPOINT_MAGIC);
        put(unit, 8, self.number);
        put(unit, 16, self.through);
        put(unit, 24, self.next_log);
        put_word(unit, 32, self.entries.len() as u32);
        put_word(unit, 36, self.index);
        put_word(unit, 40, self.parts);
        put_word(unit, 44, (u32::from(self.halted) * HALTED) | (u32::from(self.synced) * SYNCED));
        for (place, (block, entry)) in
            unit[CHECKPOINT_HEADER..].chunks_exact_mut(ENTRY_BYTES).zip(&self.entries)
        {
            put_word(place, 0, *block);
            put_word(place, 4, entry.ppn().map_or(u32::MAX, |p| p.0));
            place[8..10].copy_from_slice(&entry.tag().to_le_bytes());
            place[10] = u8::from(entry.is_dirty_in_nand());
        }
    }

    pub(super) fn decode(unit: &[u8]) -> Option<CheckpointPart> {
        let entries = word(unit, 32) as usize;
        if unit[..8] != *CHECKPOINT_MAGIC || entries > (unit.len() - CHECKPOINT_HEADER) / ENTRY_BYTES {
            return None;
        }
        let entry = |b: &[u8]| {
            let tag = u16::from_le_bytes([b[8], b[9]]);
            (word(b, 0), Entry::from_parts(Ppn(word(b, 4)), tag, b[10] != 0))
        };
        Some(CheckpointPart {
            number: long(unit, 8),
            through: long(unit, 16),
            next_log: long(unit, 24),
            index: word(unit, 36),
            parts: word(unit, 40),
            halted: word(unit, 44) & HALTED != 0,
            synced: word(unit, 44) & SYNCED != 0,
            entries: unit[CHECKPOINT_HEADER..].chunks_exact(ENTRY_BYTES).take(entries).map(entry).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_metadata_come_back_as_they_were() {
        let changes = [
            Change::Written { block: 7, ppn: Ppn(9), dirty: true },
            Change::Written { block: u32::MAX - 3, ppn: Ppn(0), dirty: false },
            Change::Evicted { block: 1 },
            Change::Cleaned { block: 2 },
            Change::Emptied { erase_block: 3 },
        ];
        let records = changes.iter().zip(10..).map(|(&change, seq)| Record { seq, change }).collect();
        let page = LogPage { number: 4, through: 14, checkpoint: 2, synced: 9, records };
        let mut unit = vec![0; 512];
        page.encode(&mut unit);
        assert_eq!(LogPage::decode(&unit), Some(page));
        assert_eq!(CheckpointPart::decode(&unit), None);
        let part = CheckpointPart {
            number: 1,
            through: 2,
            next_log: 3,
            index: 4,
            parts: 5,
            halted: true,
            synced: false,
            entries: vec![(8, Entry::in_nand(Ppn(3), 77)), (9, Entry::in_nand(Ppn(4), 78))],
        };
        let mut unit = vec![0; 512];
        part.encode(&mut unit);
        assert_eq!(CheckpointPart::decode(&unit), Some(part));
        // The number of records of damaged bytes is no limit of a buffer.
        unit[32..36].fill(0xFF);
        assert_eq!(CheckpointPart::decode(&unit), None);
    }
}
