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

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 8 * SECTOR;

    /// A verifier that knows two dirty versions of block 0, and the contents of both.
    fn two_versions() -> (Verifier, Vec<u8>, Vec<u8>) {
        let mut v = Verifier::new(1, 64, true);
        let mut write = |data: &mut Vec<u8>| {
            v.generate(Sector(0), data);
            v.written(Sector(0), BLOCK, false);
        };
        let (mut old, mut new) = (vec![0; BLOCK], vec![0; BLOCK]);
        write(&mut old);
        write(&mut new);
        (v, old, new)
    }

    fn mismatches(v: &mut Verifier, hit: bool, data: &[u8]) -> u64 {
        let before = v.outcome.mismatches;
        v.read_or_miss(Sector(0), hit, data);
        v.outcome.mismatches - before
    }

    #[test]
    fn a_dirty_block_is_present_and_new() {
        let (mut v, old, new) = two_versions();
        assert_eq!(mismatches(&mut v, true, &new), 0);
        assert_eq!(mismatches(&mut v, true, &old), 8);
        assert_eq!(mismatches(&mut v, false, &new), 8);
        assert_eq!(mismatches(&mut v, true, &[0; BLOCK]), 8);
        assert!(v.outcome.first.iter().any(|m| m.found == "a miss (lost)"), "{:?}", v.outcome.first);
    }

    #[test]
    fn a_clean_block_is_new_or_absent() {
        let (mut v, old, new) = two_versions();
        v.cleaned(Sector(0), 8);
        assert_eq!(mismatches(&mut v, true, &new), 0);
        assert_eq!(mismatches(&mut v, false, &new), 0);
        assert_eq!(mismatches(&mut v, true, &old), 8);
        // A write makes it dirty again.
        let mut data = vec![0; BLOCK];
        v.generate(Sector(0), &mut data);
        v.written(Sector(0), BLOCK, false);
        assert_eq!(mismatches(&mut v, false, &data), 8);
    }

    #[test]
    fn a_removed_block_has_no_contents() {
        let (mut v, _, new) = two_versions();
        v.removed(Sector(0), 8);
        assert_eq!(mismatches(&mut v, false, &new), 0);
        assert_eq!(mismatches(&mut v, true, &new), 8);
    }
}
