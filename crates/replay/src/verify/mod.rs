//! Whether a stack gives back what it was given: every byte of every read, and of all that was written
//! at the end, before and after a stop.
//!
//! What a read should give is known from a shadow of versions (`shadow`); what was written says itself which sector and
//! version it is (`content`), so that a mismatch tells what happened: lost, stale, misplaced, torn.

mod content;
mod readback;
mod shadow;

pub(crate) use readback::ReadBack;

use content::{Content, Found, SECTOR, is_zero};
use frit_core::{Hints, Result, SECTOR_BYTES, Sector, Sink, Source, Target, Top};
use serde::Serialize;
use shadow::{Expected, Shadow, VERSION_MAX};

/// Mismatches that are kept to be shown; all are counted.
pub const SHOWN: usize = 10;

/// What fills a buffer before a read: bytes that a layer forgets to write are then seen.
const POISON: u8 = 0xa5;

/// When a byte was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// By a read of the workload.
    Run,
    /// By reading everything back when the workload had ended.
    ReadBack,
    /// By reading everything back after the layer was halted and booted.
    AfterBoot,
}

/// A sector that did not hold what it should.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mismatch {
    /// When it was found.
    pub stage: Stage,
    /// The sector (512 bytes).
    pub sector: u64,
    /// What it should hold, in words.
    pub expected: String,
    /// What it held, in words.
    pub found: String,
}

/// What was checked, and what was wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verification {
    /// Reads of the workload that were checked, those of the warm-up included.
    pub reads_checked: u64,
    /// Sectors (512 bytes) that these reads held.
    pub sectors_checked: u64,
    /// Sectors that were read back at the end: all that were ever written, and their neighbours.
    pub sectors_read_back: u64,
    /// Sectors that were read back after the layer had been halted and booted.
    pub sectors_after_boot: u64,
    /// Whether the layer keeps its map in durable memory. Without, boot scans the spare areas of NAND and
    /// forgets discards: a discarded sector may then hold zeros or any earlier version of itself.
    pub map_is_durable: bool,
    /// Sectors that did not hold what they should.
    pub mismatches: u64,
    /// The first ten of them.
    pub first: Vec<Mismatch>,
}

impl Verification {
    /// Whether everything was as it should be.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.mismatches == 0
    }
}

/// Stamps what is written and checks what is read.
#[derive(Debug)]
pub(crate) struct Verifier {
    content: Content,
    shadow: Shadow,
    version: u32,
    stage: Stage,
    buffer: Vec<u8>,
    outcome: Verification,
}

impl Verifier {
    /// For a volume of so many sectors that holds zeros.
    pub(crate) fn new(seed: u64, sectors: u64, map_is_durable: bool) -> Verifier {
        Verifier {
            content: Content::new(seed),
            shadow: Shadow::new(sectors),
            version: 0,
            stage: Stage::Run,
            buffer: Vec::new(),
            outcome: Verification {
                reads_checked: 0,
                sectors_checked: 0,
                sectors_read_back: 0,
                sectors_after_boot: 0,
                map_is_durable,
                mismatches: 0,
                first: Vec::new(),
            },
        }
    }

    /// Writes stamped sectors.
    pub(crate) fn write<S: Sink>(
        &mut self,
        layer: &mut dyn Top<S>,
        sink: &mut S,
        at: Sector,
        bytes: u32,
        hints: Hints,
    ) -> Result<()> {
        // After 2^31 writes versions begin again; a stale sector of exactly that age would not be seen.
        self.version = if self.version == VERSION_MAX { 1 } else { self.version + 1 };
        self.buffer.resize(bytes as usize, 0);
        for (i, sector) in self.buffer.chunks_exact_mut(SECTOR).enumerate() {
            self.content.write(at.0 + i as u64, self.version, sector);
        }
        layer.write(sink, at, Source::Bytes(&self.buffer), hints)?;
        self.shadow.write(at.0, u64::from(bytes) / SECTOR_BYTES, self.version);
        Ok(())
    }

    /// Discards sectors: they hold zeros from now on.
    pub(crate) fn discard<S: Sink>(
        &mut self,
        layer: &mut dyn Top<S>,
        sink: &mut S,
        at: Sector,
        sectors: u64,
    ) -> Result<()> {
        layer.discard(sink, at, sectors)?;
        self.shadow.discard(at.0, sectors);
        Ok(())
    }

    /// Reads sectors and checks them all.
    pub(crate) fn read<S: Sink>(
        &mut self,
        layer: &mut dyn Top<S>,
        sink: &mut S,
        at: Sector,
        bytes: u32,
        hints: Hints,
    ) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(bytes as usize, POISON);
        let read = layer.read(sink, at, Target::Bytes(&mut buffer), hints);
        if read.is_ok() {
            let n = u64::from(bytes) / SECTOR_BYTES;
            match self.stage {
                Stage::Run => {
                    self.outcome.reads_checked += 1;
                    self.outcome.sectors_checked += n;
                }
                Stage::ReadBack => self.outcome.sectors_read_back += n,
                Stage::AfterBoot => self.outcome.sectors_after_boot += n,
            }
            for (i, data) in buffer.chunks_exact(SECTOR).enumerate() {
                self.check(at.0 + i as u64, data);
            }
        }
        self.buffer = buffer;
        read
    }

    #[inline]
    fn check(&mut self, sector: u64, data: &[u8]) {
        let expected = self.shadow.get(sector);
        let good = match expected {
            Expected::Version(v) => self.content.holds(sector, v, data),
            Expected::Fresh => is_zero(data),
            Expected::Discarded(v) => is_zero(data) || self.forgotten_discard(sector, v, data),
        };
        if !good {
            self.mismatch(sector, expected, data);
        }
    }

    /// After a boot without a durable map a discarded sector may come back as any version up to its last.
    fn forgotten_discard(&self, sector: u64, last: u32, data: &[u8]) -> bool {
        self.stage == Stage::AfterBoot
            && !self.outcome.map_is_durable
            && matches!(self.content.find(data), Found::Valid { sector: s, version } if s == sector && version <= last)
    }

    #[cold]
    fn mismatch(&mut self, sector: u64, expected: Expected, data: &[u8]) {
        self.outcome.mismatches += 1;
        if self.outcome.first.len() < SHOWN {
            let found = words(sector, expected, self.content.find(data));
            let expected = match expected {
                Expected::Fresh => "zeros (never written)".into(),
                Expected::Discarded(v) => format!("zeros (discarded after version {v})"),
                Expected::Version(v) => format!("version {v}"),
            };
            self.outcome.first.push(Mismatch { stage: self.stage, sector, expected, found });
        }
    }

    /// What was checked so far.
    pub(crate) fn outcome(&self) -> &Verification {
        &self.outcome
    }
}

/// What was found, and what that means beside what was expected.
fn words(sector: u64, expected: Expected, found: Found) -> String {
    let newest = match expected {
        Expected::Fresh => 0,
        Expected::Discarded(v) | Expected::Version(v) => v,
    };
    match found {
        Found::Zeros => "zeros (lost)".into(),
        Found::Valid { sector: s, version } if s != sector => {
            format!("version {version} of sector {s} (misplaced)")
        }
        Found::Valid { version, .. } if version < newest => format!("version {version} (stale)"),
        Found::Valid { version, .. } => format!("version {version}"),
        Found::Torn { sector: s, version, byte } => {
            format!("version {version} of sector {s} up to byte {byte}, then other bytes (torn)")
        }
        Found::Foreign => "bytes that this run did not write".into(),
    }
}
