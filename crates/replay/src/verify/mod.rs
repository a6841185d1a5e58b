//! Verification that a stack returns the data that was written: every byte of every read, and all
//! written data at the end, before and after a shutdown.
//!
//! The expected contents are known from a shadow table of versions (`shadow`). The written data
//! contains its sector and version (`content`), so that a mismatch shows the kind of error: lost,
//! stale, misplaced or torn data.

mod commands;
mod content;
mod mixed;
mod readback;
mod shadow;

pub(crate) use readback::ReadBack;

use content::{FoundContent, SECTOR, VerifyPattern, is_zero};
use frit_core::{ByteAccess, Hints, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, StackDevice, WriteData};
use mixed::MixedSectors;
use serde::Serialize;
use shadow::{Expected, Shadow, VERSION_MAX};
use std::collections::HashSet;

/// Maximum number of mismatches that are kept to be shown; all are counted.
pub const MISMATCHES_SHOWN_MAX: usize = 10;

/// Byte that fills a buffer before a read, so that bytes that a layer does not write are detected.
const POISON: u8 = 0xa5;

/// Phase in which a byte was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyPhase {
    /// Checked in a read of the workload.
    Run,
    /// Checked when everything was read back after the end of the workload.
    ReadBack,
    /// Checked when everything was read back after the layer was halted and booted.
    AfterBoot,
}

/// A sector with wrong contents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mismatch {
    /// Phase in which it was found.
    pub stage: VerifyPhase,
    /// Number of the sector (512 bytes).
    pub sector: u64,
    /// Description of the expected contents.
    pub expected: String,
    /// Description of the contents that were found.
    pub found: String,
}

/// Results of verification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verification {
    /// Number of reads of the workload that were checked, warm-up included.
    pub reads_checked: u64,
    /// Number of sectors (512 bytes) in these reads.
    pub sectors_checked: u64,
    /// Number of sectors that were read back at the end: all that were ever written, and their
    /// neighbours.
    pub sectors_read_back: u64,
    /// Number of sectors that were read back after the layer had been halted and booted.
    pub sectors_after_boot: u64,
    /// A boot keeps discards. Without a map in durable memory, a boot scans the spare areas of NAND
    /// and loses discards: a discarded sector may then contain zeros or any earlier version of
    /// itself.
    pub keeps_discards: bool,
    /// Number of sectors with wrong contents.
    pub mismatches: u64,
    /// The first ten mismatches.
    pub first: Vec<Mismatch>,
}

impl Verification {
    /// Returns `true` if there was no mismatch.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.mismatches == 0
    }
}

/// Generates the contents of writes and checks those of reads.
#[derive(Debug)]
pub(crate) struct Verifier {
    content: VerifyPattern,
    shadow: Shadow,
    version: u32,
    stage: VerifyPhase,
    buffer: Vec<u8>,
    mixed: MixedSectors,
    /// Written sectors that the layer may drop: those of clean blocks of a cache.
    droppable: HashSet<u64>,
    outcome: Verification,
}

impl Verifier {
    /// Creates a verifier for a volume of `sectors` sectors that contains zeros.
    pub(crate) fn new(seed: u64, sectors: u64, keeps_discards: bool) -> Verifier {
        Verifier {
            content: VerifyPattern::new(seed),
            shadow: Shadow::new(sectors),
            version: 0,
            stage: VerifyPhase::Run,
            buffer: Vec::new(),
            mixed: MixedSectors::default(),
            droppable: HashSet::new(),
            outcome: Verification {
                reads_checked: 0,
                sectors_checked: 0,
                sectors_read_back: 0,
                sectors_after_boot: 0,
                keeps_discards,
                mismatches: 0,
                first: Vec::new(),
            },
        }
    }

    /// Writes sectors with generated contents.
    pub(crate) fn write(
        &mut self,
        layer: &mut dyn StackDevice,
        sink: &mut Sink,
        at: Sector,
        bytes: u32,
        hints: Hints,
    ) -> Result<()> {
        // After 2^31 writes the versions start again; a stale sector of exactly that age would not
        // be detected.
        self.next_version();
        self.buffer.resize(bytes as usize, 0);
        for (i, sector) in self.buffer.chunks_exact_mut(SECTOR).enumerate() {
            self.content.write(at.0 + i as u64, self.version, sector);
        }
        layer.write(sink, at, WriteData::Bytes(&self.buffer), hints)?;
        self.shadow.write(at.0, u64::from(bytes) / SECTOR_BYTES, self.version);
        self.mixed.replace(at.0, u64::from(bytes) / SECTOR_BYTES);
        self.set_droppable(at, u64::from(bytes) / SECTOR_BYTES, false);
        Ok(())
    }

    fn next_version(&mut self) {
        self.version = if self.version == VERSION_MAX { 1 } else { self.version + 1 };
    }

    /// Writes bytes, which are the corresponding parts of generated sectors.
    pub(crate) fn write_bytes(
        &mut self,
        access: &mut dyn ByteAccess,
        sink: &mut Sink,
        at: u64,
        len: u32,
        hints: Hints,
    ) -> Result<()> {
        self.next_version();
        let (first, end) = (at / SECTOR_BYTES, (at + u64::from(len)).div_ceil(SECTOR_BYTES));
        self.buffer.resize((end - first) as usize * SECTOR, 0);
        for (sector, data) in (first..).zip(self.buffer.chunks_exact_mut(SECTOR)) {
            self.content.write(sector, self.version, data);
        }
        let from = (at - first * SECTOR_BYTES) as usize;
        let written = &self.buffer[from..from + len as usize];
        access.write_bytes(sink, at, WriteData::Bytes(written), hints)?;
        for sector in first..end {
            let (start, stop) = (sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES);
            let range = at.max(start)..(at + u64::from(len)).min(stop);
            if range.end - range.start == SECTOR_BYTES {
                self.mixed.replace(sector, 1);
            } else {
                let mut whole = self.expected_bytes(sector);
                let from = (range.start - first * SECTOR_BYTES) as usize;
                let new = &self.buffer[from..from + (range.end - range.start) as usize];
                whole[(range.start - start) as usize..][..new.len()].copy_from_slice(new);
                self.mixed.write(sector, whole);
            }
            self.shadow.write(sector, 1, self.version);
        }
        Ok(())
    }

    /// Reads bytes and checks all of them.
    pub(crate) fn read_bytes(
        &mut self,
        access: &mut dyn ByteAccess,
        sink: &mut Sink,
        at: u64,
        len: u32,
    ) -> Result<()> {
        let (first, end) = (at / SECTOR_BYTES, (at + u64::from(len)).div_ceil(SECTOR_BYTES));
        let mut got = vec![POISON; len as usize];
        access.read_bytes(sink, at, ReadTarget::Bytes(&mut got))?;
        self.outcome.reads_checked += 1;
        self.outcome.sectors_checked += end - first;
        for sector in first..end {
            let start = sector * SECTOR_BYTES;
            let range = at.max(start)..(at + u64::from(len)).min(start + SECTOR_BYTES);
            // The rest of the sector is taken from its expected contents, so that the comparison is
            // that of a whole sector.
            let mut whole = self.expected_bytes(sector);
            let part = &got[(range.start - at) as usize..(range.end - at) as usize];
            whole[(range.start - start) as usize..][..part.len()].copy_from_slice(part);
            self.check(sector, &whole);
        }
        Ok(())
    }

    /// Returns the expected contents of a sector.
    fn expected_bytes(&self, sector: u64) -> [u8; SECTOR] {
        if let Some(mixed) = self.mixed.get(sector) {
            return *mixed;
        }
        let mut whole = [0; SECTOR];
        if let Expected::Version(v) = self.shadow.get(sector) {
            self.content.write(sector, v, &mut whole);
        }
        whole
    }

    /// Discards sectors, which must contain zeros afterwards.
    pub(crate) fn discard(
        &mut self,
        layer: &mut dyn StackDevice,
        sink: &mut Sink,
        at: Sector,
        sectors: u64,
    ) -> Result<()> {
        layer.discard(sink, at, sectors)?;
        self.shadow.discard(at.0, sectors);
        self.mixed.replace(at.0, sectors);
        self.set_droppable(at, sectors, false);
        Ok(())
    }

    /// Reads sectors and checks all of them.
    pub(crate) fn read(
        &mut self,
        layer: &mut dyn StackDevice,
        sink: &mut Sink,
        at: Sector,
        bytes: u32,
        hints: Hints,
    ) -> Result<()> {
        // The buffer is taken out of `self` because `check` needs `self` mutably.
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(bytes as usize, POISON);
        let read = layer.read(sink, at, ReadTarget::Bytes(&mut buffer), hints);
        if read.is_ok() {
            let n = u64::from(bytes) / SECTOR_BYTES;
            match self.stage {
                VerifyPhase::Run => {
                    self.outcome.reads_checked += 1;
                    self.outcome.sectors_checked += n;
                }
                VerifyPhase::ReadBack => self.outcome.sectors_read_back += n,
                VerifyPhase::AfterBoot => self.outcome.sectors_after_boot += n,
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
            Expected::Version(_) if self.mixed.get(sector).is_some() => {
                self.mixed.get(sector).is_some_and(|mixed| mixed[..] == *data)
            }
            Expected::Version(v) => self.content.holds(sector, v, data),
            Expected::Unwritten => is_zero(data),
            Expected::Discarded(v) => is_zero(data) || self.is_lost_discard(sector, v, data),
        };
        let good = good || self.droppable.contains(&sector) && is_zero(data);
        if !good {
            self.mismatch(sector, expected, data);
        }
    }

    /// Returns `true` if the data is an earlier version of a discarded sector and the layer may
    /// have lost the discard: after a boot without a durable map, any version up to the last one is
    /// accepted.
    fn is_lost_discard(&self, sector: u64, last: u32, data: &[u8]) -> bool {
        self.stage == VerifyPhase::AfterBoot
            && !self.outcome.keeps_discards
            && matches!(self.content.find(data), FoundContent::Valid { sector: s, version } if s == sector && version <= last)
    }

    #[cold]
    fn mismatch(&mut self, sector: u64, expected: Expected, data: &[u8]) {
        let found = describe_found(sector, expected, self.content.find(data));
        self.mismatch_of(sector, expected, found);
    }

    #[cold]
    fn mismatch_of(&mut self, sector: u64, expected: Expected, found: String) {
        self.outcome.mismatches += 1;
        if self.outcome.first.len() < MISMATCHES_SHOWN_MAX {
            let expected = match expected {
                Expected::Unwritten => "zeros (never written)".into(),
                Expected::Discarded(v) => format!("zeros (discarded after version {v})"),
                Expected::Version(v) if self.mixed.get(sector).is_some() => {
                    format!("bytes of several versions, the last of them {v}")
                }
                Expected::Version(v) => format!("version {v}"),
            };
            self.outcome.first.push(Mismatch { stage: self.stage, sector, expected, found });
        }
    }

    /// Returns the results so far.
    pub(crate) fn outcome(&self) -> &Verification {
        &self.outcome
    }
}

/// Describes the contents that were found, in relation to the expected ones.
fn describe_found(sector: u64, expected: Expected, found: FoundContent) -> String {
    let newest = match expected {
        Expected::Unwritten => 0,
        Expected::Discarded(v) | Expected::Version(v) => v,
    };
    match found {
        FoundContent::Zeros => "zeros (lost)".into(),
        FoundContent::Valid { sector: s, version } if s != sector => {
            format!("version {version} of sector {s} (misplaced)")
        }
        FoundContent::Valid { version, .. } if version < newest => format!("version {version} (stale)"),
        FoundContent::Valid { version, .. } => format!("version {version}"),
        FoundContent::Torn { sector: s, version, byte } => {
            format!("version {version} of sector {s} up to byte {byte}, then other bytes (torn)")
        }
        FoundContent::Foreign => "bytes that this run did not write".into(),
    }
}
