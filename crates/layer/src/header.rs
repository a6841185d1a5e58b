//! Header of the data that a layer keeps in PCM: identity of the layer, and its usage state.
//!
//! ```text
//!  0  magic (8), version and words that describe the layout (4 each), zeros, CRC32C (4)
//! 64  state (8)
//! ```

use crate::Token;
use frit_core::{Cause, Error, MediumKind, Result, Sink, Source};
use frit_media::Store;
use frit_media::checksum::crc32c;
use frit_wear::Leveled;

/// Size of a header in bytes, without the state.
pub(crate) const HEAD_BYTES: usize = 64;
/// Address of the state word.
pub(crate) const STATE_AT: u64 = 64;

/// Address of the second copies of marks, on the page of the header. The words lie on separate
/// lines and are used in turn.
const MARK_COPIES_AT: u64 = 1024;
/// Number of the second copies.
const MARK_COPIES: u64 = 48;

/// Returns the address of the second copy of the mark with index `i`.
pub(crate) fn mark_copy_at(i: u64) -> u64 {
    MARK_COPIES_AT + i % MARK_COPIES * 64
}

/// Usage state of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum UsageState {
    /// The layer was shut down cleanly, without a summary of its records.
    Halted = 1,
    /// The layer is in use, or it crashed.
    InUse = 2,
    /// The layer was shut down cleanly, with a [summary](crate::summary) of its records. The word
    /// differs from the others in many bits, so that a single flipped bit does not turn one into
    /// another.
    HaltedWithSummary = u64::from_le_bytes(*b"haltsum1"),
}

/// A header, as its bytes lie in PCM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header([u8; HEAD_BYTES]);

impl Header {
    /// Creates a header from at most 12 words that describe the layout.
    pub(crate) fn new(magic: &[u8; 8], words: &[u32]) -> Header {
        let mut h = [0; HEAD_BYTES];
        h[..8].copy_from_slice(magic);
        for (to, word) in h[8..HEAD_BYTES - 4].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c(&h[..HEAD_BYTES - 4]);
        h[HEAD_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        Header(h)
    }

    /// Reads the header from PCM.
    pub(crate) fn read<T: Token, P: Store>(pcm: &Leveled<T, P>) -> Result<Header> {
        let mut head = [0; HEAD_BYTES];
        pcm.peek(0, &mut head)?;
        Ok(Header(head))
    }

    /// Returns `true` if no header was ever written.
    pub(crate) fn is_blank(&self) -> bool {
        self.0 == [0; HEAD_BYTES]
    }

    /// Returns `true` if the header is valid and has this magic.
    pub(crate) fn is_of(&self, magic: &[u8; 8]) -> bool {
        self.0[HEAD_BYTES - 4..] == crc32c(&self.0[..HEAD_BYTES - 4]).to_le_bytes() && self.0[..8] == *magic
    }

    /// Returns one of its words.
    pub(crate) fn word(&self, i: usize) -> u32 {
        let at = 8 + 4 * i;
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Formats the PCM and writes the header. The caller must fence it.
    pub(crate) fn put<S: Sink<Tok = T>, T: Token, P: Store>(
        &self,
        pcm: &mut Leveled<T, P>,
        sink: &mut S,
    ) -> Result<T> {
        let after = pcm.format(sink)?;
        let source = if P::HOLDS { Source::Bytes(&self.0) } else { Source::Len(HEAD_BYTES as u32) };
        pcm.write(sink, 0, source, Cause::Meta, after)
    }
}

/// Writes the state. The caller must fence it.
pub(crate) fn put_state<S: Sink<Tok = T>, T: Token, P: Store>(
    pcm: &mut Leveled<T, P>,
    sink: &mut S,
    state: UsageState,
    after: T,
) -> Result<T> {
    let word = (state as u64).to_le_bytes();
    let source = if P::HOLDS { Source::Bytes(&word) } else { Source::Len(8) };
    pcm.write(sink, STATE_AT, source, Cause::Meta, after)
}

/// Reads the state.
pub(crate) fn state<T: Token, P: Store>(pcm: &Leveled<T, P>) -> Result<UsageState> {
    let mut state = [0; 8];
    pcm.peek(STATE_AT, &mut state)?;
    let state = u64::from_le_bytes(state);
    match [UsageState::Halted, UsageState::InUse, UsageState::HaltedWithSummary]
        .into_iter()
        .find(|&u| u as u64 == state)
    {
        Some(found) => Ok(found),
        None => damaged(format!("its state {state:#x} is invalid")),
    }
}

/// Returns the error for a header that cannot be used.
pub(crate) fn damaged<V>(what: String) -> Result<V> {
    Err(Error::Corrupt { medium: MediumKind::Pcm, at: 0, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_layouts_apart_and_damage_from_both() {
        let head = Header::new(b"fritTEST", &[1, 77]);
        assert!(head.is_of(b"fritTEST") && !head.is_of(b"fritCACH") && !head.is_blank());
        assert_eq!((head.word(0), head.word(1), head.word(2)), (1, 77, 0));
        assert_ne!(head, Header::new(b"fritTEST", &[1, 78]));
        for bit in 0..HEAD_BYTES * 8 {
            let mut flipped = head;
            flipped.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!flipped.is_of(b"fritTEST"), "bit {bit}");
        }
        assert!(Header([0; HEAD_BYTES]).is_blank());
    }
}
