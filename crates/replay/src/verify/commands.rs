//! Verification of the commands of solid-state caches and zoned devices.
//!
//! The guarantees are those of `docs/reference/ssc.md`: a dirty block has its last contents, a clean
//! one has them or is absent, and a removed one is absent. An absent block is a miss for a command,
//! and zeros for a read.

use super::{POISON, SECTOR, Verifier, VerifyPhase};
use crate::verify::shadow::Expected;
use frit_core::{SECTOR_BYTES, Sector};

impl Verifier {
    /// Fills a buffer, so that bytes that a layer does not write are detected.
    pub(crate) fn poison(buffer: &mut [u8]) {
        buffer.fill(POISON);
    }

    /// Generates the contents of a write of whole sectors at `at`.
    pub(crate) fn generate(&mut self, at: Sector, data: &mut [u8]) {
        self.next_version();
        for (sector, data) in (at.0..).zip(data.chunks_exact_mut(SECTOR)) {
            self.content.write(sector, self.version, data);
        }
    }

    /// Records that the contents that were generated last were written at `at`. With `clean`, the
    /// layer may drop them.
    pub(crate) fn written(&mut self, at: Sector, bytes: usize, clean: bool) {
        let sectors = bytes as u64 / SECTOR_BYTES;
        self.shadow.write(at.0, sectors, self.version);
        self.mixed.replace(at.0, sectors);
        self.set_droppable(at, sectors, clean);
    }

    /// Records that the layer may drop sectors.
    pub(crate) fn cleaned(&mut self, at: Sector, sectors: u64) {
        self.set_droppable(at, sectors, true);
    }

    /// Records that sectors were removed.
    pub(crate) fn removed(&mut self, at: Sector, sectors: u64) {
        self.shadow.discard(at.0, sectors);
        self.mixed.replace(at.0, sectors);
        self.set_droppable(at, sectors, false);
    }

    /// Records whether the layer may drop sectors.
    pub(super) fn set_droppable(&mut self, at: Sector, sectors: u64, droppable: bool) {
        if droppable {
            self.droppable.extend(at.0..at.0 + sectors);
        } else if !self.droppable.is_empty() {
            (at.0..at.0 + sectors).for_each(|s| {
                self.droppable.remove(&s);
            });
        }
    }

    /// Checks the result of a read of one block.
    pub(crate) fn read_or_miss(&mut self, at: Sector, hit: bool, data: &[u8]) {
        debug_assert!(self.stage == VerifyPhase::Run);
        self.outcome.reads_checked += 1;
        self.outcome.sectors_checked += (data.len() / SECTOR) as u64;
        for (sector, data) in (at.0..).zip(data.chunks_exact(SECTOR)) {
            if hit {
                self.check(sector, data);
            } else if matches!(self.shadow.get(sector), Expected::Version(_))
                && !self.droppable.contains(&sector)
            {
                self.mismatch_of(sector, self.shadow.get(sector), "a miss (lost)".into());
            }
        }
    }
}
