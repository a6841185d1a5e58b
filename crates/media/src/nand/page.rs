//! The record in the spare area of a page.

use crate::checksum::{self, crc32c};
use frit_core::{Error, MediumKind, Ppn, Result};

/// Metadata that a layer writes with a page, into its spare area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// Logical page number (for pages of metadata, a number that the layer assigns).
    pub lpn: u32,
    /// Sequence number in the order of the layer's writes. The version with the highest number is
    /// the current one.
    pub seq: u64,
}

/// Identity that a page must have when it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpectedPage {
    /// Logical page number.
    pub lpn: u32,
    /// Low 16 bits of the sequence number.
    pub tag: u16,
}

impl ExpectedPage {
    /// Returns `true` if a spare area belongs to this page.
    #[inline]
    #[must_use]
    pub fn is(self, spare: Spare) -> bool {
        spare.lpn == self.lpn && spare.seq as u16 == self.tag
    }
}

/// State of a page, as its record in the spare area tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageState {
    /// Nothing was programmed since the last erase.
    Erased,
    /// The page is programmed. Its data may be damaged.
    Programmed(Spare),
    /// Its program failed, or it was programmed with padding that marks it as invalid.
    Failed,
    /// The record is damaged.
    Damaged,
}

/// Size of the record in a spare area, in bytes.
pub const SPARE_RECORD_BYTES: usize = 24;

/// First word of the record of a programmed page ("frit nand page", version 1).
const PROGRAMMED: u32 = u32::from_le_bytes(*b"fnp1");
/// First word of the record of a page whose program failed.
const FAILED: u32 = u32::from_le_bytes(*b"fnpX");

/// The record in the spare area, little endian: mark (4), LPN (4), sequence number (8), CRC32C over
/// the data's digest, LPN and sequence number (4), CRC32C over the 20 bytes before (4). All zeros:
/// erased.
pub(super) type SpareRecord = [u8; SPARE_RECORD_BYTES];

/// A decoded record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageRecord {
    /// Nothing was programmed since the last erase.
    Erased,
    /// A programmed page, with the checksum of its data.
    Page(Spare, u32),
    /// The program failed.
    Failed,
    /// The record is neither of the above.
    Damaged,
}

/// Returns the stored checksum of a page's data, given the digest of the data. It includes the
/// identity of the page: the data of another page, or of an older version, does not match the
/// record.
pub(super) fn data_crc(digest: u64, spare: Spare) -> u32 {
    let mut owner = [0; 12];
    owner[..4].copy_from_slice(&spare.lpn.to_le_bytes());
    owner[4..].copy_from_slice(&spare.seq.to_le_bytes());
    checksum::seal(digest, &owner)
}

/// Place of a copy of a record, where records have two. The checksum of the copy covers it, so that a
/// copy at another place counts as damaged.
pub(super) type CopyPlace = Option<(Ppn, u32)>;

fn own_crc(r: &[u8], place: CopyPlace) -> u32 {
    match place {
        None => crc32c(&r[..20]),
        Some((ppn, copy)) => {
            let mut all = [0; 28];
            all[..20].copy_from_slice(&r[..20]);
            all[20..24].copy_from_slice(&ppn.0.to_le_bytes());
            all[24..].copy_from_slice(&copy.to_le_bytes());
            crc32c(&all)
        }
    }
}

fn encode_record(mark: u32, spare: Spare, crc: u32) -> SpareRecord {
    let mut r = [0; SPARE_RECORD_BYTES];
    r[..4].copy_from_slice(&mark.to_le_bytes());
    r[4..8].copy_from_slice(&spare.lpn.to_le_bytes());
    r[8..16].copy_from_slice(&spare.seq.to_le_bytes());
    r[16..20].copy_from_slice(&crc.to_le_bytes());
    r
}

/// Adds the checksum of the record at its place.
pub(super) fn sealed(mut r: SpareRecord, place: CopyPlace) -> SpareRecord {
    let own = own_crc(&r, place);
    r[20..].copy_from_slice(&own.to_le_bytes());
    r
}

/// Returns the record of a page without its own checksum, given the digest of the data.
pub(super) fn record(digest: u64, spare: Spare) -> SpareRecord {
    encode_record(PROGRAMMED, spare, data_crc(digest, spare))
}

/// Returns the record of a page whose program failed, without its own checksum.
pub(super) fn failed_record(spare: Spare) -> SpareRecord {
    encode_record(FAILED, spare, 0)
}

fn word(b: &[u8]) -> u32 {
    let mut w = [0; 4];
    w.copy_from_slice(&b[..4]);
    u32::from_le_bytes(w)
}

/// Decodes a record.
pub(super) fn decode_record(r: &SpareRecord, place: CopyPlace) -> PageRecord {
    if r.iter().all(|&b| b == 0) {
        return PageRecord::Erased;
    }
    if word(&r[20..]) != own_crc(r, place) {
        return PageRecord::Damaged;
    }
    let seq = u64::from(word(&r[8..])) | u64::from(word(&r[12..])) << 32;
    match word(&r[..]) {
        PROGRAMMED => PageRecord::Page(Spare { lpn: word(&r[4..]), seq }, word(&r[16..])),
        FAILED => PageRecord::Failed,
        _ => PageRecord::Damaged,
    }
}

/// Returns the error for a page whose contents cannot be returned.
pub(super) fn corrupt(ppn: Ppn, what: impl Into<String>) -> Error {
    Error::Corrupt { medium: MediumKind::Nand, at: u64::from(ppn.0), what: what.into() }
}

impl PageRecord {
    /// Returns the copy that counts: the newer page, and a valid record before a damaged or a blank
    /// one. A page counts before a failed program: a failed program is followed by an erase, which
    /// clears both copies.
    pub(super) fn or(self, other: PageRecord) -> PageRecord {
        let rank = |r: &PageRecord| match r {
            PageRecord::Page(spare, _) => (3, spare.seq),
            PageRecord::Failed => (2, 0),
            PageRecord::Damaged => (1, 0),
            PageRecord::Erased => (0, 0),
        };
        if rank(&other) > rank(&self) { other } else { self }
    }

    /// Returns the page, or an error that says why there is none.
    pub(super) fn page(self, ppn: Ppn) -> Result<(Spare, u32)> {
        match self {
            PageRecord::Page(spare, crc) => Ok((spare, crc)),
            PageRecord::Erased => Err(corrupt(ppn, "its spare area is empty: nothing was programmed here")),
            PageRecord::Failed => Err(corrupt(ppn, "its program had failed")),
            PageRecord::Damaged => Err(corrupt(ppn, "its spare area does not match its checksum")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let spare = Spare { lpn: 0x0102_0304, seq: u64::MAX - 1 };
        for place in [None, Some((Ppn(7), 0)), Some((Ppn(7), 1))] {
            let r = sealed(record(7, spare), place);
            assert_eq!(decode_record(&r, place), PageRecord::Page(spare, data_crc(7, spare)));
            let failed = sealed(failed_record(spare), place);
            assert_eq!(decode_record(&failed, place), PageRecord::Failed);
            assert_eq!(decode_record(&[0; SPARE_RECORD_BYTES], place), PageRecord::Erased);
            for other in [Some((Ppn(8), 0)), Some((Ppn(7), 2))] {
                assert_eq!(decode_record(&r, other), PageRecord::Damaged);
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_seen() {
        let r = sealed(record(7, Spare { lpn: 7, seq: 9 }), None);
        for bit in 0..SPARE_RECORD_BYTES * 8 {
            let mut bad = r;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_record(&bad, None), PageRecord::Damaged, "bit {bit}");
        }
    }

    #[test]
    fn the_newer_valid_copy_counts() {
        let page = |seq| PageRecord::Page(Spare { lpn: 1, seq }, 0);
        let order = [PageRecord::Erased, PageRecord::Damaged, PageRecord::Failed, page(3), page(4)];
        for (i, &a) in order.iter().enumerate() {
            for (j, &b) in order.iter().enumerate() {
                assert_eq!(a.or(b), order[i.max(j)]);
            }
        }
    }

    #[test]
    fn the_checksum_covers_place_and_age() {
        let s = Spare { lpn: 1, seq: 1 };
        assert_ne!(data_crc(1, s), data_crc(1, Spare { lpn: 2, ..s }));
        assert_ne!(data_crc(1, s), data_crc(1, Spare { seq: 2, ..s }));
    }
}
