//! The record of a block in PCM, beside its data. A record is self-contained: recovery needs no
//! other structure to interpret it.
//!
//! ```text
//!  0  LBN (4)         4  valid fragments (1)   5  zero (3)
//!  8  sequence number (8)
//! 16  digest of the valid fragments (8)
//! 24  state (4)      28  CRC32C of the 28 bytes before, of the slot and of the copy
//! ```
//!
//! The state is 0 while the slot holds the block. When it no longer does, the last word states the
//! reason and the other words remain: "move" if the block was rewritten in another slot, "left" if
//! it was written back or discarded. In the latter case this version and all earlier ones are
//! invalid.
//!
//! A power loss can tear a record between words of 8 bytes. Its CRC is wrong then, and the record
//! is invalid. A volume keeps two copies of each record in separate areas, so that a damaged copy
//! can be distinguished from a torn record.

use crate::numbers::{Lbn, RecordSlot};
use frit_core::convert::{low_u32, size_in_memory, to_usize};
use frit_core::{Lpn, Result};
use frit_media::checksum::crc32c;

/// Size of a record, in bytes.
pub(crate) const RECORD_BYTES: u64 = 32;
/// Size of a record as the length of a slice.
pub(crate) const RECORD_LEN: usize = size_in_memory(RECORD_BYTES);
/// Bytes of a record.
pub(crate) type RecordBytes = [u8; RECORD_LEN];
/// Largest number of copies of a record.
pub(crate) const COPIES_MAX: u32 = 2;

/// Offset of the word that holds state and CRC.
pub(crate) const STATE_WORD_AT: u64 = 24;
const MOVED: u32 = u32::from_le_bytes(*b"move");
const EVICTED: u32 = u32::from_le_bytes(*b"left");

/// Contents of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// The LBN of a cache, or the LPN of NTL.
    pub(crate) lbn: u32,
    /// Valid fragments of 512 bytes as a bitmap; bit 0 is the first.
    pub(crate) valid: u8,
    /// Sequence number. Later records of a block have higher numbers.
    pub(crate) seq: u64,
    /// Digest of the valid fragments in ascending order.
    pub(crate) digest: u64,
}

/// Address of a record: its slot, and the number of the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordAddr {
    pub(crate) slot: RecordSlot,
    pub(crate) copy: u32,
}

impl RecordAddr {
    /// Iterates over the copies of the record of a slot.
    #[inline]
    pub(crate) fn copies(slot: impl Into<RecordSlot>, copies: u32) -> impl Iterator<Item = RecordAddr> {
        let slot = slot.into();
        (0..copies).map(move |copy| RecordAddr { slot, copy })
    }
}

/// Copies of the records that a scan reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copies {
    /// All copies.
    All,
    /// Only this copy. The other copies count as damaged.
    One(u32),
}

/// Reason for which a slot no longer holds its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordEnd {
    /// The block was rewritten in another slot.
    Moved,
    /// The block was written back or discarded.
    Evicted,
}

impl RecordEnd {
    fn word(self) -> u32 {
        match self {
            RecordEnd::Moved => MOVED,
            RecordEnd::Evicted => EVICTED,
        }
    }
}

/// Contents of one copy of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CopyState {
    /// The slot holds the block.
    Block(Record),
    /// The slot no longer holds the block.
    Ended(Record, RecordEnd),
    /// The copy is invalid: never written, torn, or damaged.
    Bad,
}

fn word(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3], b[at + 4], b[at + 5], b[at + 6], b[at + 7]])
}

/// Returns the checksum of a record for its place. A record at the wrong place is invalid.
fn crc(bytes: &[u8], place: RecordAddr) -> u32 {
    let mut all = [0; 36];
    all[..bytes.len()].copy_from_slice(bytes);
    all[28..32].copy_from_slice(&place.slot.0.to_le_bytes());
    all[32..].copy_from_slice(&place.copy.to_le_bytes());
    crc32c(&all)
}

impl Record {
    /// Returns the page of NTL that it describes.
    #[inline]
    pub(crate) fn lpn(&self) -> Lpn {
        Lpn(self.lbn)
    }

    /// Returns the block of a cache that it describes.
    #[inline]
    pub(crate) fn lbn(&self) -> Lbn {
        Lbn(self.lbn)
    }

    pub(crate) fn bytes(&self, place: RecordAddr) -> RecordBytes {
        self.sealed(0, place)
    }

    /// Returns the bytes of a record that has ended.
    pub(crate) fn ended_bytes(&self, end: RecordEnd, place: RecordAddr) -> RecordBytes {
        self.sealed(end.word(), place)
    }

    /// Returns the last word of a record that has ended.
    pub(crate) fn ended(&self, end: RecordEnd, place: RecordAddr) -> [u8; 8] {
        word(&self.ended_bytes(end, place), size_in_memory(STATE_WORD_AT)).to_le_bytes()
    }

    fn sealed(&self, state: u32, place: RecordAddr) -> RecordBytes {
        let mut b = [0; RECORD_LEN];
        b[..4].copy_from_slice(&self.lbn.to_le_bytes());
        b[4] = self.valid;
        b[8..16].copy_from_slice(&self.seq.to_le_bytes());
        b[16..24].copy_from_slice(&self.digest.to_le_bytes());
        b[24..28].copy_from_slice(&state.to_le_bytes());
        let crc = crc(&b[..28], place);
        b[28..].copy_from_slice(&crc.to_le_bytes());
        b
    }
}

impl CopyState {
    pub(crate) fn read(b: &RecordBytes, place: RecordAddr) -> CopyState {
        let last = word(b, size_in_memory(STATE_WORD_AT));
        // A record without valid fragments is blank or cleared.
        if b[4] == 0 || low_u32(last >> 32) != crc(&b[..28], place) {
            return CopyState::Bad;
        }
        let r = Record { lbn: low_u32(word(b, 0)), valid: b[4], seq: word(b, 8), digest: word(b, 16) };
        match low_u32(last) {
            0 => CopyState::Block(r),
            MOVED => CopyState::Ended(r, RecordEnd::Moved),
            EVICTED => CopyState::Ended(r, RecordEnd::Evicted),
            _ => CopyState::Bad,
        }
    }

    /// Returns the bytes of a copy in this state; zeros for an invalid one.
    pub(crate) fn bytes(&self, place: RecordAddr) -> RecordBytes {
        match self {
            CopyState::Block(record) => record.bytes(place),
            CopyState::Ended(record, end) => record.ended_bytes(*end, place),
            CopyState::Bad => [0; RECORD_LEN],
        }
    }
}

/// Combined state of the copies of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CombinedState {
    /// The block that the slot holds: the valid record with the highest sequence number, unless a
    /// copy states that it has ended.
    pub(crate) block: Option<Record>,
    /// A block that the slot held before.
    pub(crate) ended: Option<(Record, RecordEnd)>,
    /// `true` if all copies agree.
    pub(crate) agreed: bool,
}

impl CombinedState {
    pub(crate) fn of(copies: &[CopyState]) -> CombinedState {
        let mut v = CombinedState { block: None, ended: None, agreed: true };
        for &state in copies {
            v.agreed &= state == copies[0];
            match state {
                CopyState::Block(r) if v.block.is_none_or(|b| b.seq < r.seq) => v.block = Some(r),
                CopyState::Ended(r, end) if v.ended.is_none_or(|(e, _)| e.seq < r.seq) => {
                    v.ended = Some((r, end));
                }
                _ => {}
            }
        }
        // An end is written to one copy after the other, so one copy that states it is sufficient.
        v.block = v.block.filter(|r| v.ended.is_none_or(|(e, _)| r.seq > e.seq));
        v
    }

    /// Combines the copies of the record of a slot. `read` returns the state of a copy.
    ///
    /// # Errors
    /// Returns the errors of `read`.
    #[inline]
    pub(crate) fn of_slot(
        slot: impl Into<RecordSlot>,
        copies: u32,
        read: impl Fn(RecordAddr) -> Result<CopyState>,
    ) -> Result<CombinedState> {
        let mut states = [CopyState::Bad; to_usize(COPIES_MAX)];
        for (state, place) in states.iter_mut().zip(RecordAddr::copies(slot, copies)) {
            *state = read(place)?;
        }
        Ok(CombinedState::of(&states[..to_usize(copies)]))
    }

    /// Combines the copies of the record of a slot in the result of a scan. Each chunk in `chunks`
    /// has one copy of consecutive records, and `i` is the index of the record in them.
    pub(crate) fn of_chunks(
        chunks: &[Vec<u8>],
        which: Copies,
        i: usize,
        slot: impl Into<RecordSlot>,
    ) -> CombinedState {
        let mut states = [CopyState::Bad; to_usize(COPIES_MAX)];
        let copies = RecordAddr::copies(slot, COPIES_MAX);
        for ((state, place), bytes) in states.iter_mut().zip(copies).zip(chunks) {
            if which == Copies::All || which == Copies::One(place.copy) {
                let (records, _) = bytes.as_chunks::<RECORD_LEN>();
                *state = CopyState::read(&records[i], place);
            }
        }
        CombinedState::of(&states[..chunks.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: RecordAddr = RecordAddr { slot: RecordSlot(7), copy: 1 };

    fn record(seq: u64) -> Record {
        Record { lbn: 0xDEAD_BEEF, valid: 0x81, seq, digest: 77 }
    }

    #[test]
    fn a_record_comes_back_and_no_part_of_it_does() {
        let r = record(1 << 40);
        let whole = r.bytes(PLACE);
        assert_eq!(CopyState::read(&whole, PLACE), CopyState::Block(r));
        assert_eq!(CopyState::read(&whole, RecordAddr { slot: RecordSlot(8), ..PLACE }), CopyState::Bad);
        assert_eq!(CopyState::read(&whole, RecordAddr { copy: 0, ..PLACE }), CopyState::Bad);
        let other = Record { lbn: 5, valid: 0xFF, seq: (1 << 40) + 1, digest: 78 }.bytes(PLACE);
        for words in 1..15_u8 {
            let mut torn = whole;
            for w in (0..4).filter(|w| words >> w & 1 == 1) {
                torn[8 * w..8 * w + 8].copy_from_slice(&other[8 * w..8 * w + 8]);
            }
            assert_eq!(CopyState::read(&torn, PLACE), CopyState::Bad, "{words:04b}");
        }
        let mut left = whole;
        for end in [RecordEnd::Moved, RecordEnd::Evicted] {
            left[24..].copy_from_slice(&r.ended(end, PLACE));
            assert_eq!(CopyState::read(&left, PLACE), CopyState::Ended(r, end));
        }
        left[24..].fill(0);
        assert_eq!(CopyState::read(&left, PLACE), CopyState::Bad);
        assert_eq!(CopyState::read(&[0; 32], PLACE), CopyState::Bad);
    }

    #[test]
    fn one_copy_stands_in_for_the_other_and_the_later_word_counts() {
        let block = |seq| CopyState::Block(record(seq));
        let gone = |seq| CopyState::Ended(record(seq), RecordEnd::Evicted);
        let of = |a, b| CombinedState::of(&[a, b]);
        let five = Some(record(5));
        assert_eq!(of(block(5), block(5)), CombinedState { block: five, ended: None, agreed: true });
        assert_eq!(of(CopyState::Bad, block(5)), CombinedState { block: five, ended: None, agreed: false });
        assert_eq!(of(block(5), block(9)).block, Some(record(9)));
        assert_eq!(of(gone(9), block(9)).block, None, "it has left, as one copy knows");
        assert_eq!(of(gone(8), block(9)).block, Some(record(9)), "another block before it had");
        assert_eq!(
            of(gone(5), CopyState::Bad),
            CombinedState { block: None, ended: Some((record(5), RecordEnd::Evicted)), agreed: false }
        );
        assert_eq!(CombinedState::of(&[CopyState::Bad]).block, None);
    }

    #[test]
    fn a_scan_reads_the_chosen_copies() {
        let r = record(5);
        let states = [CopyState::Block(r), CopyState::Ended(r, RecordEnd::Moved)];
        let mut chunks = vec![Vec::new(), Vec::new()];
        for slot in RecordSlot::range(RecordSlot(20), RecordSlot(23)) {
            for ((place, state), chunk) in RecordAddr::copies(slot, 2).zip(states).zip(&mut chunks) {
                assert_eq!(CopyState::read(&state.bytes(place), place), state);
                chunk.extend_from_slice(&state.bytes(place));
            }
        }
        let found = |which, slot| CombinedState::of_chunks(&chunks, which, 2, RecordSlot(slot));
        let both =
            CombinedState::of_slot(RecordSlot(22), 2, |place| Ok(states[to_usize(place.copy)])).unwrap();
        assert_eq!(found(Copies::All, 22), both);
        assert_eq!((both.block, both.ended), (None, Some((r, RecordEnd::Moved))));
        assert_eq!(found(Copies::One(0), 22).block, Some(r));
        assert_eq!(found(Copies::One(1), 22).block, None);
        assert_eq!(found(Copies::All, 21), CombinedState { block: None, ended: None, agreed: true });
        assert_eq!(CopyState::Bad.bytes(PLACE), [0; RECORD_LEN]);
    }
}
