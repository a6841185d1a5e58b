//! Header of the registers: the configuration that they belong to.

use super::area::{HEADER_BYTES, RegisterArea, RegisterRing};
use super::{Leveled, Leveler};
use crate::numbers::RegionId;
use frit_core::convert::{count_u32, size_in_memory};
use frit_core::{Cause, Error, MediumKind, Result, Sink, Tok, WriteData};
use frit_media::Store;

const MAGIC: &[u8; 8] = b"fritWEAR";
const VERSION: u32 = 1;

/// The registers as of the last flush are being restored.
pub(super) const RESTORING: u32 = 1;

pub(super) fn state_word(flags: u32) -> u64 {
    u64::from(flags) | u64::from(frit_media::checksum::crc32c(&flags.to_le_bytes())) << 32
}

impl Leveled {
    /// Encodes the header: magic (8 bytes), version, leveler, stripe bytes, ranks, banks, stripes
    /// of a bank, cubes, turn, physical stripes of a region, regions, logical stripes, over files
    /// (4 each, the last as bit 0 of its word); CRC32C of the seed and all preceding bytes (4).
    pub(super) fn head(&self) -> [u8; size_in_memory(HEADER_BYTES)] {
        let mut h = [0; size_in_memory(HEADER_BYTES)];
        h[..8].copy_from_slice(MAGIC);
        let words = [
            VERSION,
            self.config.leveler as u32,
            self.shape.stripe_bytes,
            self.shape.ranks,
            self.shape.banks,
            self.shape.bank_stripes,
            self.config.cubes,
            u32::from(self.config.turn),
            self.leveler.region_stripes(),
            self.leveler.regions(),
            self.leveler.logical(),
            u32::from(self.config.over_files),
        ];
        for (to, word) in h[8..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        // The header has no space for the seed of 8 bytes, so only the checksum covers it.
        let seed = frit_media::checksum::crc32c(&self.config.seed.to_le_bytes());
        let crc = frit_media::checksum::crc32c_append(seed, &h[..60]);
        h[60..].copy_from_slice(&crc.to_le_bytes());
        h
    }

    /// Initialises the registers to the state before any move, whatever the device holds. Complete
    /// with the returned token. The header is written last, since it makes the rest valid.
    ///
    /// # Errors
    /// The store fails.
    pub fn format(&mut self, sink: &mut Sink) -> Result<Tok> {
        let start = sink.start();
        if self.passthrough {
            return Ok(start);
        }
        let zeros = [0; size_in_memory(HEADER_BYTES)];
        let header_at = self.area.header_at();
        // An old header is cleared first: an interrupted format must not leave it with new
        // registers.
        let gone = self.registers(sink, header_at, &zeros, start)?;
        let gone = self.pcm.fence(sink, gone);
        let mut done = gone;
        for &ring in self.rings() {
            for region in RegionId::first(self.leveler.regions()) {
                for line in 0..self.area.lines {
                    let at = self.area.line_at(ring, region, line);
                    let one = self.word(sink, at, RegisterArea::never(ring, region, line), gone)?;
                    done = sink.join(done, one);
                }
            }
        }
        let state_at = self.area.state_at();
        let state = self.word(sink, state_at, state_word(0).to_le_bytes(), gone)?;
        let done = sink.join(done, state);
        let safe = self.pcm.fence(sink, done);
        // Behind a page cache the header must not be written back before the rest.
        self.pcm.store_mut().sync()?;
        let head = self.head();
        let noted = self.registers(sink, header_at, &head, safe)?;
        let done = self.pcm.fence(sink, noted);
        self.pcm.store_mut().sync()?;
        self.reset_state();
        for region in &mut self.regions {
            region.move_barrier = done;
        }
        Ok(done)
    }

    /// Initialises the registers as [`Leveled::format`], but without commands or wear, for
    /// preconditioning.
    ///
    /// # Errors
    /// The store fails.
    pub fn preset_format(&mut self) -> Result<()> {
        if self.passthrough {
            return Ok(());
        }
        self.reset_state();
        if !self.stores_bytes() {
            return Ok(());
        }
        for &ring in self.rings() {
            for region in RegionId::first(self.leveler.regions()) {
                for line in 0..self.area.lines {
                    let never = RegisterArea::never(ring, region, line);
                    self.pcm.preset(self.area.line_at(ring, region, line), &never)?;
                }
            }
        }
        self.pcm.preset(self.area.state_at(), &state_word(0).to_le_bytes())?;
        self.pcm.preset(self.area.header_at(), &self.head())
    }

    /// Kinds of rings that the device has.
    fn rings(&self) -> &'static [RegisterRing] {
        const BOTH: [RegisterRing; 2] = [RegisterRing::Current, RegisterRing::Synced];
        if self.config.over_files { &BOTH } else { &BOTH[..1] }
    }

    /// Resets the state in memory: no moves, and nothing in flight.
    pub(super) fn reset_state(&mut self) {
        for region in RegionId::first(self.leveler.regions()) {
            self.leveler.set_number(region, 0);
        }
        for r in &mut self.regions {
            r.bytes_since_move = 0;
            r.move_barrier = Tok::default();
            r.synced = 0;
        }
        self.last_writes.fill(Tok::DONE);
        self.ready.fill(Tok::DONE);
        self.moved.clear();
        self.refuse_reason = None;
    }

    pub(super) fn registers(&mut self, sink: &mut Sink, at: u64, bytes: &[u8], after: Tok) -> Result<Tok> {
        let data = if self.stores_bytes() {
            WriteData::Bytes(bytes)
        } else {
            WriteData::Len(count_u32(bytes.len()))
        };
        self.pcm.write(sink, at, data, Cause::WearLevel, after)
    }

    pub(super) fn damaged<V>(&self, at: u64, what: impl Into<String>) -> Result<V> {
        Err(Error::Corrupt { medium: MediumKind::Pcm, at, what: what.into() })
    }

    /// Rejects registers of another configuration.
    pub(super) fn check_header(&self, found: &[u8; size_in_memory(HEADER_BYTES)]) -> Result<()> {
        if *found == self.head() {
            return Ok(());
        }
        let what = match &found[..8] {
            m if m == MAGIC => {
                "the header of the wear-leveling registers is damaged, or they were made for another leveler, \
                 seed, stripe size, division or PCM"
            }
            [0, 0, 0, 0, 0, 0, 0, 0] => "no wear leveling was formatted here, or formatting was interrupted",
            _ => "this is not the header of wear-leveling registers",
        };
        self.damaged(self.area.header_at(), what)
    }
}
