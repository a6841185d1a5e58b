//! Header of the data that a layer keeps in PCM: identity of the layer, and its usage state.
//!
//! ```text
//!  0  magic (8), version and words that describe the layout (4 each), zeros, CRC32C (4)
//! 64  state (8)
//! ```

use crate::fences::Fences;
use frit_core::{Cause, Error, MediumKind, Result, Sink, Tok, WriteData};
use frit_media::checksum::crc32c;
use frit_wear::Leveled;

/// Size of a header in bytes, without the state.
pub(crate) const HEAD_BYTES: usize = 64;
/// Address of the state word.
pub(crate) const STATE_AT: u64 = 64;

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

/// Usage state that the header of a layer in PCM contains, as far as the layer has noted it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HeaderNote {
    /// `true` if the header states that the layer is in use.
    pub(crate) noted: bool,
    /// `true` from a halt to the next use: the header vouches for the media as they are.
    pub(crate) halted: bool,
}

impl HeaderNote {
    /// The layer is in use.
    pub(crate) const IN_USE: HeaderNote = HeaderNote { noted: true, halted: false };
    /// The layer was shut down, and not used since.
    pub(crate) const HALTED: HeaderNote = HeaderNote { noted: false, halted: true };
}

/// A header, as its bytes lie in PCM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LayerHeader([u8; HEAD_BYTES]);

impl LayerHeader {
    /// Creates a header from at most 13 words that describe the layout.
    pub(crate) fn new(magic: &[u8; 8], words: &[u32]) -> LayerHeader {
        let mut h = [0; HEAD_BYTES];
        h[..8].copy_from_slice(magic);
        for (to, word) in h[8..HEAD_BYTES - 4].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c(&h[..HEAD_BYTES - 4]);
        h[HEAD_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        LayerHeader(h)
    }

    /// Creates a header from its bytes, which may be damaged.
    pub(crate) fn from_bytes(bytes: [u8; HEAD_BYTES]) -> LayerHeader {
        LayerHeader(bytes)
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8; HEAD_BYTES] {
        &self.0
    }

    /// Reads the header from PCM.
    pub(crate) fn read(pcm: &Leveled) -> Result<LayerHeader> {
        let mut head = [0; HEAD_BYTES];
        pcm.peek(0, &mut head)?;
        Ok(LayerHeader(head))
    }

    /// Returns `true` if no header was ever written.
    pub(crate) fn is_blank(&self) -> bool {
        self.0 == [0; HEAD_BYTES]
    }

    /// Returns `true` if the header is valid and has this magic.
    pub(crate) fn is_of(&self, magic: &[u8; 8]) -> bool {
        self.is_valid() && self.0[..8] == *magic
    }

    fn is_valid(&self) -> bool {
        self.0[HEAD_BYTES - 4..] == crc32c(&self.0[..HEAD_BYTES - 4]).to_le_bytes()
    }

    /// Returns one of its words.
    pub(crate) fn word(&self, i: usize) -> u32 {
        let at = 8 + 4 * i;
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Formats the PCM and writes the header. Returns the completion after which it is durable, for
    /// which the current request waits.
    pub(crate) fn write(&self, pcm: &mut Leveled, fences: &mut Fences, sink: &mut Sink) -> Result<Tok> {
        let after = pcm.format(sink)?;
        let tok = pcm.write(sink, 0, WriteData::Bytes(&self.0), Cause::Meta, after)?;
        let done = fences.after(pcm, sink, tok);
        sink.ack(done);
        Ok(done)
    }

    /// Sets the header and its state without commands if no header was ever written: a simulation
    /// with data starts without a format, but can be halted and booted too. Returns `true` if it
    /// was set. Without bytes there is no header.
    pub(crate) fn preset_if_blank(&self, pcm: &mut Leveled) -> Result<bool> {
        if !pcm.stores_bytes() || !LayerHeader::read(pcm)?.is_blank() {
            return Ok(false);
        }
        pcm.preset_format()?;
        pcm.preset(0, &self.0)?;
        pcm.preset(STATE_AT, &(UsageState::InUse as u64).to_le_bytes())?;
        Ok(true)
    }

    /// Reads the usage state of the layer that has this header.
    ///
    /// # Errors
    /// `Corrupt` if the PCM has another header. `other` describes a header of the same kind of
    /// layer; `none` is the description if there is no such header.
    pub(crate) fn usage_state(
        &self,
        pcm: &Leveled,
        other: impl FnOnce(&LayerHeader) -> String,
        none: &str,
    ) -> Result<UsageState> {
        let found = LayerHeader::read(pcm)?;
        if found == *self {
            return state(pcm);
        }
        let same_kind = found.is_valid() && found.0[..8] == self.0[..8];
        damaged(if same_kind { other(&found) } else { none.into() })
    }
}

/// Writes the state after `after`. Returns the completion after which it is durable, for which the
/// current request waits.
pub(crate) fn write_state(
    pcm: &mut Leveled,
    fences: &mut Fences,
    sink: &mut Sink,
    state: UsageState,
    after: Tok,
) -> Result<Tok> {
    let word = (state as u64).to_le_bytes();
    let tok = pcm.write(sink, STATE_AT, WriteData::Bytes(&word), Cause::Meta, after)?;
    let done = fences.after(pcm, sink, tok);
    sink.ack(done);
    Ok(done)
}

/// Reads the state.
fn state(pcm: &Leveled) -> Result<UsageState> {
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
fn damaged<V>(what: String) -> Result<V> {
    Err(Error::Corrupt { medium: MediumKind::Pcm, at: 0, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_layouts_apart_and_damage_from_both() {
        let head = LayerHeader::new(b"fritTEST", &[1, 77]);
        assert!(head.is_of(b"fritTEST") && !head.is_of(b"fritCACH") && !head.is_blank());
        assert_eq!((head.word(0), head.word(1), head.word(2)), (1, 77, 0));
        assert_ne!(head, LayerHeader::new(b"fritTEST", &[1, 78]));
        for bit in 0..HEAD_BYTES * 8 {
            let mut flipped = head;
            flipped.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!flipped.is_of(b"fritTEST"), "bit {bit}");
        }
        assert!(LayerHeader([0; HEAD_BYTES]).is_blank());
    }
}
