//! The table of zones: records of zones, in pages of the log.
//!
//! ```text
//! 0     mark "fzt1"                       4
//! 4     flags: 1 = clean halt             4
//! 8     zones of the volume               4
//! 12    reserved                          4
//! 16    records, 16 bytes each: epoch (8), write pointer in pages (4), mark (1), reserved (3)
//! ```
//! The spare area of the page has its number and version. All values are little endian.

use frit_core::convert::to_usize;

/// First word of a part.
const MAGIC: [u8; 4] = *b"fzt1";
const HEAD_BYTES: usize = 16;
const RECORD_BYTES: usize = 16;

/// State of a zone that does not follow from its data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub(super) enum Mark {
    /// None.
    #[default]
    None,
    /// Full, whatever its write pointer.
    Finished,
    ReadOnly,
    Offline,
}

/// State of a zone as of the last flush.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Record {
    /// Epoch of its pages. Pages of other epochs are of a time before its last reset.
    pub(super) epoch: u64,
    /// Pages that are durable.
    pub(super) written: u32,
    pub(super) mark: Mark,
}

impl Record {
    /// Returns `true` if the zone has exactly the pages that the record states.
    pub(super) fn is_final(self) -> bool {
        self.mark != Mark::None
    }
}

/// Zones in a part of the table.
pub(super) fn part_zones(page_bytes: u32) -> u32 {
    (page_bytes - HEAD_BYTES as u32) / RECORD_BYTES as u32
}

/// Encodes a part into a page.
pub(super) fn encode(records: &[Record], zones: u32, halted: bool, page: &mut [u8]) {
    page.fill(0);
    page[..4].copy_from_slice(&MAGIC);
    page[4..8].copy_from_slice(&u32::from(halted).to_le_bytes());
    page[8..12].copy_from_slice(&zones.to_le_bytes());
    for (r, bytes) in records.iter().zip(page[HEAD_BYTES..].chunks_exact_mut(RECORD_BYTES)) {
        bytes[..8].copy_from_slice(&r.epoch.to_le_bytes());
        bytes[8..12].copy_from_slice(&r.written.to_le_bytes());
        bytes[12] = r.mark as u8;
    }
}

/// Decodes a part of a volume with so many zones, with the flag of a clean halt. `None` if it is none.
pub(super) fn decode(page: &[u8], zones: u32, count: u32) -> Option<(Vec<Record>, bool)> {
    let word = |at: usize| page.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    if page.get(..4)? != MAGIC || word(8)? != zones {
        return None;
    }
    let record = |bytes: &[u8]| {
        let mark = match bytes[12] {
            0 => Mark::None,
            1 => Mark::Finished,
            2 => Mark::ReadOnly,
            3 => Mark::Offline,
            _ => return None,
        };
        let epoch = u64::from_le_bytes(bytes[..8].try_into().ok()?);
        let written = u32::from_le_bytes(bytes[8..12].try_into().ok()?);
        Some(Record { epoch, written, mark })
    };
    let records = page.get(HEAD_BYTES..)?.chunks_exact(RECORD_BYTES).take(to_usize(count)).map(record);
    Some((records.collect::<Option<Vec<Record>>>()?, word(4)? & 1 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let records = [
            Record { epoch: 7 << 40 | 3, written: 12, mark: Mark::Finished },
            Record { epoch: 1, written: 0, mark: Mark::Offline },
        ];
        let mut page = vec![1; 512];
        encode(&records, 2, true, &mut page);
        assert_eq!(decode(&page, 2, 2), Some((records.to_vec(), true)));
        assert_eq!(decode(&page, 3, 2), None, "of another volume");
        page[HEAD_BYTES + 12] = 9;
        assert_eq!(decode(&page, 2, 2), None, "an unknown mark");
        assert_eq!(decode(&[0; 512], 2, 2), None);
        assert_eq!(part_zones(512), 31);
    }
}
