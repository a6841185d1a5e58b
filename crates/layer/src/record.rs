//! The record of a block in PCM, beside its data: complete in itself, so that nothing has to be followed or trusted.
//!
//! ```text
//!  0  LBN (4)         4  valid fragments (1)   5  zero (3)
//!  8  sequence number (8)
//! 16  digest of the valid fragments (8)
//! 24  state (4)      28  CRC32C of the 28 bytes before, of the slot and of the copy
//! ```
//!
//! The state is 0 while the slot holds the block. When it does no longer, the last word says why, and the rest
//! stays: "move" when the block lies in another slot by now, "left" when the disk has it or it was discarded. Then
//! this version and all before it are gone.
//!
//! A stop can tear a record between words of 8 bytes: then its CRC is wrong, and it is none. A volume keeps
//! two copies of each record, in areas of their own: one that is damaged is told from a torn one by the
//! other.

use frit_media::checksum::crc32c;

/// Bytes of a record.
pub(crate) const RECORD_BYTES: u64 = 32;
/// Most copies of it.
pub(crate) const COPIES_MAX: u32 = 2;

/// Where the word lies that says whether the block is there.
pub(crate) const STATE_WORD_AT: u64 = 24;
const MOVED: u32 = u32::from_le_bytes(*b"move");
const LEFT: u32 = u32::from_le_bytes(*b"left");

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) lbn: u32,
    /// Fragments of 512 bytes, bit 0 the first.
    pub(crate) valid: u8,
    /// Later records of a block have higher numbers.
    pub(crate) seq: u64,
    /// Of the valid fragments, one behind the other.
    pub(crate) digest: u64,
}

/// Which record: the slot, and which copy of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) copy: u32,
}

/// Why a slot does not hold its block any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It lies in another slot.
    Moved,
    /// The disk has it, or it was discarded.
    Left,
}

impl End {
    fn word(self) -> u32 {
        match self {
            End::Moved => MOVED,
            End::Left => LEFT,
        }
    }
}

/// What a place holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// A block.
    Block(Record),
    /// A block that is no longer there.
    Ended(Record, End),
    /// Nothing that checks out: never written, torn, or damaged.
    Bad,
}

fn word(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3], b[at + 4], b[at + 5], b[at + 6], b[at + 7]])
}

/// The checksum of the bytes of a record, for its place: one in the wrong place does not check out.
fn crc(bytes: &[u8], place: Place) -> u32 {
    let mut all = [0; 36];
    all[..bytes.len()].copy_from_slice(bytes);
    all[28..32].copy_from_slice(&place.slot.to_le_bytes());
    all[32..].copy_from_slice(&place.copy.to_le_bytes());
    crc32c(&all)
}

impl Record {
    pub(crate) fn bytes(&self, place: Place) -> [u8; RECORD_BYTES as usize] {
        self.sealed(0, place)
    }

    /// All of it, of a block that is no longer there.
    pub(crate) fn ended_bytes(&self, end: End, place: Place) -> [u8; RECORD_BYTES as usize] {
        self.sealed(end.word(), place)
    }

    /// The last word once the block is no longer there.
    pub(crate) fn ended(&self, end: End, place: Place) -> [u8; 8] {
        word(&self.ended_bytes(end, place), STATE_WORD_AT as usize).to_le_bytes()
    }

    fn sealed(&self, state: u32, place: Place) -> [u8; RECORD_BYTES as usize] {
        let mut b = [0; RECORD_BYTES as usize];
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

impl State {
    pub(crate) fn read(b: &[u8; RECORD_BYTES as usize], place: Place) -> State {
        let last = word(b, STATE_WORD_AT as usize);
        if b[4] == 0 || (last >> 32) as u32 != crc(&b[..28], place) {
            return State::Bad;
        }
        let r = Record { lbn: word(b, 0) as u32, valid: b[4], seq: word(b, 8), digest: word(b, 16) };
        match last as u32 {
            0 => State::Block(r),
            MOVED => State::Ended(r, End::Moved),
            LEFT => State::Ended(r, End::Left),
            _ => State::Bad,
        }
    }
}

/// What the copies of a record say together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    /// The block that the slot holds: the highest number, when no copy says that it has left.
    pub(crate) block: Option<Record>,
    /// A block that the slot held.
    pub(crate) ended: Option<(Record, End)>,
    /// All copies say the same.
    pub(crate) agreed: bool,
}

impl Verdict {
    pub(crate) fn of(copies: &[State]) -> Verdict {
        let mut v = Verdict { block: None, ended: None, agreed: true };
        for &state in copies {
            v.agreed &= state == copies[0];
            match state {
                State::Block(r) if v.block.is_none_or(|b| b.seq < r.seq) => v.block = Some(r),
                State::Ended(r, end) if v.ended.is_none_or(|(e, _)| e.seq < r.seq) => {
                    v.ended = Some((r, end));
                }
                _ => {}
            }
        }
        v.block = v.block.filter(|r| v.ended.is_none_or(|(e, _)| r.seq > e.seq));
        v
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { slot: 7, copy: 1 };

    fn record(seq: u64) -> Record {
        Record { lbn: 0xDEAD_BEEF, valid: 0x81, seq, digest: 77 }
    }

    #[test]
    fn a_record_comes_back_and_no_part_of_it_does() {
        let r = record(1 << 40);
        let whole = r.bytes(PLACE);
        assert_eq!(State::read(&whole, PLACE), State::Block(r));
        assert_eq!(State::read(&whole, Place { slot: 8, ..PLACE }), State::Bad);
        assert_eq!(State::read(&whole, Place { copy: 0, ..PLACE }), State::Bad);
        let other = Record { lbn: 5, valid: 0xFF, seq: (1 << 40) + 1, digest: 78 }.bytes(PLACE);
        for words in 1..15_u8 {
            let mut torn = whole;
            for w in (0..4).filter(|w| words >> w & 1 == 1) {
                torn[8 * w..8 * w + 8].copy_from_slice(&other[8 * w..8 * w + 8]);
            }
            assert_eq!(State::read(&torn, PLACE), State::Bad, "{words:04b}");
        }
        let mut left = whole;
        for end in [End::Moved, End::Left] {
            left[24..].copy_from_slice(&r.ended(end, PLACE));
            assert_eq!(State::read(&left, PLACE), State::Ended(r, end));
        }
        left[24..].fill(0);
        assert_eq!(State::read(&left, PLACE), State::Bad);
        assert_eq!(State::read(&[0; 32], PLACE), State::Bad);
    }

    #[test]
    fn one_copy_stands_in_for_the_other_and_the_later_word_counts() {
        let block = |seq| State::Block(record(seq));
        let gone = |seq| State::Ended(record(seq), End::Left);
        let of = |a, b| Verdict::of(&[a, b]);
        let five = Some(record(5));
        assert_eq!(of(block(5), block(5)), Verdict { block: five, ended: None, agreed: true });
        assert_eq!(of(State::Bad, block(5)), Verdict { block: five, ended: None, agreed: false });
        assert_eq!(of(block(5), block(9)).block, Some(record(9)));
        assert_eq!(of(gone(9), block(9)).block, None, "it has left, as one copy knows");
        assert_eq!(of(gone(8), block(9)).block, Some(record(9)), "another block before it had");
        assert_eq!(
            of(gone(5), State::Bad),
            Verdict { block: None, ended: Some((record(5), End::Left)), agreed: false }
        );
        assert_eq!(Verdict::of(&[State::Bad]).block, None);
    }
}
