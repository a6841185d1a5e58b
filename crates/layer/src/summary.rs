//! Summary of all valid records, written at a clean shutdown.
//!
//! A record that is damaged in both copies cannot be detected, because no other structure names its
//! block. The summary contains the number of records and their parity. An opening after a clean
//! shutdown detects missing records with it, and restores a single one from the others.
//!
//! ```text
//!  0  magic (8)      8  records (4)     12  zero (4)
//! 16  highest sequence number (8)
//! 24  parity of the records (32): slot (4), LBN (4), valid fragments (1), ended (1), zeros (6), sequence number (8),
//!     digest (8), each the XOR over all records
//! 56  zero (4)      60  CRC32C of the 60 bytes before
//! ```

use crate::numbers::RecordSlot;
use crate::record::{Record, RecordAddr};
use frit_core::convert::{low_u8, low_u32};
use frit_core::{Cause, Result, Sink, Tok, WriteData};
use frit_media::checksum::crc32c;
use frit_wear::Leveled;

/// Address of the summary, after the state word of the header.
const SUMMARY_AT: u64 = 128;
const SUMMARY_BYTES: usize = 64;
const MAGIC: &[u8; 8] = b"fritSUM1";
/// Number of damaged records that a message names.
const NAMED: usize = 8;

/// Count and parity of records. Two summaries are equal if they cover the same records.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct RecordSummary {
    /// Number of records.
    pub(crate) records: u32,
    /// The highest sequence number given before the shutdown.
    pub(crate) seq: u64,
    parity: [u64; 4],
}

/// A record in the form that the parity covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SummaryEntry {
    /// The slot or page location of the record.
    pub(crate) slot: RecordSlot,
    /// The record.
    pub(crate) record: Record,
    /// `true` if the record states that its block was discarded.
    pub(crate) ended: bool,
}

impl SummaryEntry {
    fn words(&self) -> [u64; 4] {
        let r = &self.record;
        [
            u64::from(self.slot) | u64::from(r.lbn) << 32,
            u64::from(r.valid) | u64::from(self.ended) << 8,
            r.seq,
            r.digest,
        ]
    }

    /// Returns the record with these words, if they are plausible.
    fn of(words: [u64; 4]) -> Option<SummaryEntry> {
        let [place, kind, seq, digest] = words;
        let record = Record { lbn: low_u32(place >> 32), valid: low_u8(kind), seq, digest };
        let counted = SummaryEntry { slot: RecordSlot(low_u32(place)), record, ended: kind >> 8 == 1 };
        (kind >> 8 <= 1 && record.valid != 0).then_some(counted)
    }
}

impl RecordSummary {
    /// Returns the summary of no record, for a layer that gave sequence numbers up to `seq`.
    pub(crate) fn up_to(seq: u64) -> RecordSummary {
        RecordSummary { seq, ..RecordSummary::default() }
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, counted: &SummaryEntry) {
        self.records += 1;
        for (sum, word) in self.parity.iter_mut().zip(counted.words()) {
            *sum ^= word;
        }
    }

    /// Returns `true` if both cover the same records.
    pub(crate) fn same_records(&self, other: &RecordSummary) -> bool {
        (self.records, self.parity) == (other.records, other.parity)
    }

    /// Returns the record that `found` lacks, if it lacks exactly one.
    pub(crate) fn missing_one(&self, found: &RecordSummary) -> Option<SummaryEntry> {
        if found.records.checked_add(1) != Some(self.records) {
            return None;
        }
        // The parity of all records and that of the found ones differ by the missing record.
        let mut words = self.parity;
        for (word, other) in words.iter_mut().zip(found.parity) {
            *word ^= other;
        }
        SummaryEntry::of(words).filter(|c| c.record.seq > 0 && c.record.seq <= self.seq)
    }

    /// Returns the smallest possible number of records that `found` lacks.
    pub(crate) fn missing_at_least(&self, found: &RecordSummary) -> u32 {
        self.records.saturating_sub(found.records).max(1)
    }

    fn bytes(&self) -> [u8; SUMMARY_BYTES] {
        let mut b = [0; SUMMARY_BYTES];
        b[..8].copy_from_slice(MAGIC);
        b[8..12].copy_from_slice(&self.records.to_le_bytes());
        b[16..24].copy_from_slice(&self.seq.to_le_bytes());
        for (to, word) in b[24..56].chunks_exact_mut(8).zip(self.parity) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c(&b[..60]);
        b[60..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// Reads the summary. Returns `None` if it is damaged or was never written.
    pub(crate) fn read(pcm: &Leveled) -> Result<Option<RecordSummary>> {
        let mut b = [0; SUMMARY_BYTES];
        pcm.peek(SUMMARY_AT, &mut b)?;
        let number = |at: usize| b[at..at + 8].iter().rev().fold(0_u64, |n, &byte| n << 8 | u64::from(byte));
        let parity = [number(24), number(32), number(40), number(48)];
        let summary = RecordSummary { records: low_u32(number(8)), seq: number(16), parity };
        // The comparison with the encoded form checks magic, zeros and CRC at once.
        Ok((summary.bytes() == b).then_some(summary))
    }

    /// Writes the summary. The caller must fence it.
    pub(crate) fn put(&self, pcm: &mut Leveled, sink: &mut Sink, after: Tok) -> Result<Tok> {
        pcm.write(sink, SUMMARY_AT, WriteData::Bytes(&self.bytes()), Cause::Meta, after)
    }
}

/// Terms of a layer for messages about its records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordTerms {
    /// The term for a slot.
    pub(crate) slot: &'static str,
    /// The term for a block.
    pub(crate) block: &'static str,
    /// Number of blocks. A damaged record may have any number in place of that of its block.
    pub(crate) blocks: u32,
}

/// Returns the part of a message that names the first ones of the slots `all`, whose records are
/// damaged. It is empty if there are none. `address` returns the address of a record.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) fn damaged_records(
    pcm: &Leveled,
    all: &[RecordSlot],
    terms: RecordTerms,
    address: impl Fn(RecordAddr) -> u64,
) -> Result<String> {
    if all.is_empty() {
        return Ok(String::new());
    }
    let name = |slot: RecordSlot| -> Result<String> {
        let at = address(RecordAddr { slot, copy: 0 });
        let mut lbn = [0; 4];
        pcm.peek(at, &mut lbn)?;
        let lbn = u32::from_le_bytes(lbn);
        let RecordTerms { slot: term, block, blocks } = terms;
        let of = if lbn < blocks { format!(" ({block} {lbn}, as recorded)") } else { String::new() };
        Ok(format!("{term} {slot} at {at}{of}"))
    };
    let named = all.iter().take(NAMED).map(|&slot| name(slot)).collect::<Result<Vec<_>>>()?;
    let more = if all.len() > NAMED { ", and others" } else { "" };
    Ok(format!("; damaged records: {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(n: u32) -> SummaryEntry {
        let record = Record { lbn: n * 7, valid: 0x0F, seq: u64::from(n) + 1, digest: u64::from(n) << 33 };
        SummaryEntry { slot: RecordSlot(n), record, ended: n.is_multiple_of(3) }
    }

    fn of(numbers: impl IntoIterator<Item = u32>) -> RecordSummary {
        let mut sum = RecordSummary { seq: 100, ..RecordSummary::default() };
        numbers.into_iter().for_each(|n| sum.add(&counted(n)));
        sum
    }

    #[test]
    fn one_missing_record_is_restored_and_more_are_counted() {
        let all = of(0..50);
        for gone in 0..50 {
            let found = of((0..50).filter(|&n| n != gone));
            assert!(!all.same_records(&found));
            assert_eq!(all.missing_one(&found), Some(counted(gone)));
        }
        let found = of(3..50);
        assert_eq!((all.missing_one(&found), all.missing_at_least(&found)), (None, 3));
        assert!(all.same_records(&of((0..50).rev())), "their order does not matter");
        assert!(!all.same_records(&of(1..51)), "another record in place of one");
    }

    #[test]
    fn a_damaged_summary_is_none() {
        let whole = of(0..9).bytes();
        for bit in 0..whole.len() * 8 {
            let mut b = whole;
            b[bit / 8] ^= 1 << (bit % 8);
            let crc_holds = crc32c(&b[..60]).to_le_bytes() == b[60..];
            assert!(!crc_holds, "bit {bit}");
        }
    }
}
