//! Header of HFSL's PCM: identity, state of use, and limit of the sequence numbers in use. The
//! layout is drawn in `docs/reference/format.md`.

use super::Hfsl;
use super::entry::MapEntry;
use super::layout::{CHUNK, DESC_BYTES, HEADER_BYTES};
use super::pcm::PcmSpace;
use super::redo::RedoArea;
use crate::header::{HEAD_BYTES, LayerHeader, STATE_AT};
use crate::planted::HfslBug;
use crate::words::{seal, unseal};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, MediumKind, ReadTarget, Result, Sink, Tok, WriteData};
use frit_wear::Leveled;

const SEQ_AT: u64 = 72;
/// Offset of the sequence number up to which a crash may have left pages that no entry names.
const RECOVERED_AT: u64 = 80;
/// Offset of the redo record of version 1.
pub(crate) const FIXED_REDO_AT: u64 = 128;
const MAGIC: &[u8; 8] = b"fritHFSL";
/// Version of a layer with the redo record in the header, or without redo records.
const VERSION_FIXED: u32 = 1;
/// Version of a layer with a ring of redo records.
const VERSION_RING: u32 = 2;
/// Index of the header word that holds the version.
const VERSION_WORD: usize = 0;
/// Index of the header word that holds the number of logical pages.
const PAGES_WORD: usize = 3;
/// Index of the header word that holds the number of lines of the ring of redo records.
const RING_WORD: usize = 8;

/// The layer is in use, or a crash or a power loss ended its use.
pub(crate) const IN_USE: u32 = 1;
/// Free blocks may hold the result of an interrupted erase.
pub(crate) const SUSPECTS: u32 = 2;
/// The map as of the last flush is being copied over the current map.
pub(crate) const RESTORING: u32 = 4;

/// Number of sequence numbers reserved at a time. The margin is the largest number that one request
/// may use before the next reservation: more than 32 MiB in pages of 512 bytes, with all garbage
/// collection that they cause.
const SEQ_STEP: u64 = 1 << 24;
const SEQ_MARGIN: u64 = 1 << 20;

/// State of use, as recorded in the header in PCM.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RecordedUse {
    pub(crate) formatted: bool,
    /// `true` if the map was initialised at format time, so that zeros in it are damage.
    pub(crate) map_initialised: bool,
    pub(crate) in_use: bool,
    /// Sequence numbers below this limit may be in use.
    pub(crate) seq_limit: u64,
    /// Pages with sequence numbers up to this one may have been left without an entry by a crash.
    pub(crate) recovered: u64,
}

/// Contents of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeaderState {
    pub(crate) flags: u32,
    /// `true` if the map was initialised at format time, so that zeros in it are damage.
    pub(crate) map_initialised: bool,
    pub(crate) seq_limit: u64,
    pub(crate) recovered: u64,
}

/// Sizes that the header in a PCM states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FormattedSizes {
    /// Number of logical pages.
    pub(crate) pages: u32,
    /// Number of lines of the ring of redo records; 0 for the record in the header.
    pub(crate) redo_lines: u32,
}

/// Reads sizes from the header in a PCM, if it holds an HFSL. The wear leveler has not been
/// recovered yet: the number of pages determines the size of the tables that a recovery fills.
///
/// # Errors
/// The store fails.
pub(crate) fn formatted_sizes(medium: &mut Leveled) -> Result<Option<FormattedSizes>> {
    if !medium.stores_bytes() || medium.bytes() < HEADER_BYTES {
        return Ok(None);
    }
    let mut bytes = [0; HEAD_BYTES];
    // The recovery reports registers that cannot be used.
    if !medium.peek_unrecovered(0, &mut bytes)? {
        return Ok(None);
    }
    let head = LayerHeader::from_bytes(bytes);
    let sizes = FormattedSizes { pages: head.word(PAGES_WORD), redo_lines: head.word(RING_WORD) };
    Ok(Some(sizes).filter(|s| head.is_of(MAGIC) && s.pages > 0))
}

fn flags_word(flags: u32) -> u64 {
    u64::from(flags) | u64::from(frit_media::checksum::crc32c(&flags.to_le_bytes())) << 32
}

impl PcmSpace {
    /// Returns the identity part of the header: version, page size, sub-page size, pages, sub-page
    /// slots, bytes of a descriptor, has a second map as of the last flush, the map was
    /// initialised, lines of the ring of redo records, bytes of a line.
    fn header(&self, map_initialised: bool) -> LayerHeader {
        let (version, lines, line_bytes) = match self.layout.redo {
            RedoArea::Fixed => (VERSION_FIXED, 0, 0),
            RedoArea::Ring(ring) => (VERSION_RING, ring.lines, ring.line_bytes),
        };
        let words = [
            version,
            self.layout.sub_bytes * self.layout.subs,
            self.layout.sub_bytes,
            (self.layout.map_bytes / 8) as u32,
            self.layout.slots,
            DESC_BYTES as u32,
            u32::from(self.layout.flush_map_at.is_some()),
            u32::from(map_initialised),
            lines,
            line_bytes,
        ];
        LayerHeader::new(MAGIC, &words)
    }

    pub(crate) fn meta(&mut self, sink: &mut Sink, at: u64, bytes: &[u8], after: Tok) -> Result<Tok> {
        self.medium.write(sink, at, WriteData::Bytes(bytes), Cause::Meta, after)
    }

    /// Writes the whole header with the state "in use". The flags are written last, since they make
    /// the rest valid.
    pub(crate) fn write_header(
        &mut self,
        sink: &mut Sink,
        seq_limit: u64,
        map_initialised: bool,
    ) -> Result<Tok> {
        let mut head = [0; HEADER_BYTES as usize];
        head[..HEAD_BYTES].copy_from_slice(self.header(map_initialised).bytes());
        head[SEQ_AT as usize..][..8].copy_from_slice(&seal(seq_limit, None).to_le_bytes());
        head[RECOVERED_AT as usize..][..8].copy_from_slice(&seal(0, None).to_le_bytes());
        let after = if map_initialised {
            let formatted = self.medium.format(sink)?;
            let cleared = match self.layout.redo {
                // The header is written as a whole.
                RedoArea::Fixed => formatted,
                RedoArea::Ring(_) => self.clear_redo(sink, formatted)?,
            };
            self.fill_maps(sink, cleared)?
        } else {
            // A simulation begins without a format, and the registers are not part of its results.
            self.medium.preset_format()?;
            sink.start()
        };
        let at = self.layout.header_at;
        let written = self.meta(sink, at, &head, after)?;
        let fenced = self.medium.fence(sink, written);
        self.write_flags(sink, IN_USE, fenced)
    }

    /// Initialises both maps with entries of pages that were never written, so that zeros are
    /// always damage.
    fn fill_maps(&mut self, sink: &mut Sink, start: Tok) -> Result<Tok> {
        let mut done = start;
        let mut bytes = Vec::with_capacity(CHUNK * 8);
        let pages = (self.layout.map_bytes / 8) as u32;
        for first in (0..pages).step_by(CHUNK) {
            bytes.clear();
            for lpn in first..pages.min(first + CHUNK as u32) {
                bytes.extend_from_slice(&MapEntry::default().sealed(lpn).to_le_bytes());
            }
            for map in [Some(self.layout.map_at), self.layout.flush_map_at].into_iter().flatten() {
                let one = self.meta(sink, map + u64::from(first) * 8, &bytes, start)?;
                done = sink.join(done, one);
            }
        }
        Ok(self.medium.fence(sink, done))
    }

    /// Writes the flags. They are durable when the returned token completes.
    pub(crate) fn write_flags(&mut self, sink: &mut Sink, flags: u32, after: Tok) -> Result<Tok> {
        let at = self.layout.header_at + STATE_AT;
        let written = self.meta(sink, at, &flags_word(flags).to_le_bytes(), after)?;
        Ok(self.medium.fence(sink, written))
    }

    /// Writes the limit of the sequence numbers in use. It is durable when the returned token
    /// completes.
    pub(crate) fn write_seq_limit(&mut self, sink: &mut Sink, limit: u64) -> Result<Tok> {
        let (at, start) = (self.layout.header_at + SEQ_AT, sink.start());
        let written = self.meta(sink, at, &seal(limit, None).to_le_bytes(), start)?;
        Ok(self.medium.fence(sink, written))
    }

    /// Records that pages with sequence numbers up to `seq` may have been left without an entry by
    /// a crash.
    pub(crate) fn write_recovered(&mut self, sink: &mut Sink, seq: u64, after: Tok) -> Result<Tok> {
        let at = self.layout.header_at + RECOVERED_AT;
        let written = self.meta(sink, at, &seal(seq, None).to_le_bytes(), after)?;
        Ok(self.medium.fence(sink, written))
    }

    fn read_part<const B: usize>(&mut self, sink: &mut Sink, at: u64) -> Result<[u8; B]> {
        let mut bytes = [0; B];
        let (at, start) = (self.layout.header_at + at, sink.start());
        let done = self.medium.read(sink, at, ReadTarget::Bytes(&mut bytes), Cause::Meta, start)?;
        sink.ack(done);
        Ok(bytes)
    }

    /// Reads and verifies the header.
    ///
    /// # Errors
    /// `Corrupt` if PCM was never formatted or was formatted for another layer, or if the header is
    /// damaged.
    pub(crate) fn read_header(&mut self, sink: &mut Sink) -> Result<HeaderState> {
        let found = LayerHeader::from_bytes(self.read_part(sink, 0)?);
        let at = self.layout.header_at;
        let damaged = |what: &str| Error::Corrupt { medium: MediumKind::Pcm, at, what: what.into() };
        let map_initialised = found == self.header(true);
        if !map_initialised && found != self.header(false) {
            return Err(damaged(match &found.bytes()[..8] {
                m if m == MAGIC && found.is_of(MAGIC) && found.word(VERSION_WORD) > VERSION_RING => {
                    "the HFSL was formatted by a newer version of frit"
                }
                m if m == MAGIC => {
                    "the header of HFSL is damaged, or was formatted with another page size, capacity, number of \
                     redo lines or PCM"
                }
                [0, 0, 0, 0, 0, 0, 0, 0] => "no HFSL was formatted here, or formatting was interrupted",
                _ => "this is not the header of an HFSL",
            }));
        }
        let words = self.read_part::<24>(sink, STATE_AT)?;
        let word = |i: usize| {
            words.get(8 * i..8 * i + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        // Unreadable flags are treated like those after a crash: recovery does more work than
        // necessary, but none too little.
        let flags = word(0) as u32;
        let flags = if word(0) == flags_word(flags) { flags } else { IN_USE | SUSPECTS };
        let number = |i| unseal(word(i), None).ok_or_else(|| damaged("a sequence number is damaged"));
        Ok(HeaderState { flags, map_initialised, seq_limit: number(1)?, recovered: number(2)? })
    }
}

impl Hfsl {
    /// Prepares for a change: marks the layer as in use in PCM, and reserves sequence numbers.
    #[inline]
    pub(crate) fn ensure_in_use(&mut self, sink: &mut Sink) -> Result<()> {
        if self.usage.in_use && self.flash.last_seq() + SEQ_MARGIN <= self.usage.seq_limit {
            return Ok(());
        }
        self.write_usage(sink, false)
    }

    /// Writes the state of use. With `fill` the map is new, and is initialised with entries of
    /// pages that were never written.
    #[cold]
    pub(super) fn write_usage(&mut self, sink: &mut Sink, fill: bool) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else {
            self.usage = RecordedUse { in_use: true, seq_limit: u64::MAX, ..self.usage };
            return Ok(());
        };
        let limit = self.flash.last_seq() + SEQ_STEP;
        let noted = if self.usage.formatted {
            let done = pcm.write_seq_limit(sink, limit)?;
            if self.usage.in_use { done } else { pcm.write_flags(sink, IN_USE, done)? }
        } else {
            pcm.write_header(sink, limit, fill)?
        };
        self.map.redo_barrier = sink.join(self.map.redo_barrier, noted);
        let first = if is_planted(HfslBug::UsedBeforeNoted) { Tok::default() } else { noted };
        (self.flash.in_use, pcm.in_use) = (first, first);
        // Media behind a page cache are synced as well, before the first data is written.
        pcm.medium.flush(sink)?;
        let map_initialised = if self.usage.formatted { self.usage.map_initialised } else { fill };
        self.usage =
            RecordedUse { formatted: true, map_initialised, in_use: true, seq_limit: limit, ..self.usage };
        Ok(())
    }

    /// Marks the layer as in use, with sequence numbers that no page has.
    pub(super) fn resume(&mut self, sink: &mut Sink, head: HeaderState, clean: bool) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let limit = head.seq_limit + SEQ_STEP;
        let mut done = pcm.write_seq_limit(sink, limit)?;
        let recovered = if clean { head.recovered } else { head.seq_limit };
        if recovered != head.recovered {
            done = pcm.write_recovered(sink, recovered, done)?;
        }
        done = pcm.write_flags(sink, IN_USE, done)?;
        sink.ack(done);
        (self.flash.in_use, pcm.in_use) = (done, done);
        pcm.medium.flush(sink)?;
        self.usage = RecordedUse {
            formatted: true,
            map_initialised: head.map_initialised,
            in_use: true,
            seq_limit: limit,
            recovered,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_check_themselves() {
        for bit in 0..64 {
            assert_ne!(flags_word(1) ^ 1 << bit, flags_word((flags_word(1) ^ 1 << bit) as u32));
        }
    }
}
