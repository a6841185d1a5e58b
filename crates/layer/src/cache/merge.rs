//! Merge of two versions of a block that a crash left: the rest of the earlier version is added to
//! the slot of the last one.
//!
//! The fragments that the last version lacks are free in its slot, and its digest does not cover
//! them. So the merge needs neither a free slot nor the disk, and the last version stays valid until
//! its record is replaced. A recovery that is interrupted repeats the merge.

use super::fragments::{digest_of, runs};
use super::layer::Cache;
use crate::numbers::{CacheSlot, Lbn};
use crate::planted::CacheBug;
use crate::record::{Record, RecordAddr};
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Result, Sink, WriteData};
use std::collections::BTreeMap;

/// Slots of the versions of each block that are merged, from the last version to the earliest.
pub(super) type MergedVersions = BTreeMap<Lbn, Vec<CacheSlot>>;

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Adds the fragments of earlier versions to the slots of the last ones. Returns the records of
    /// the merged blocks, which may be written once the data is durable.
    pub(super) fn write_merged_data(
        &mut self,
        sink: &mut Sink,
        merged: &MergedVersions,
    ) -> Result<Vec<(CacheSlot, Record)>> {
        let mut records = Vec::with_capacity(merged.len());
        for (&lbn, versions) in merged {
            let Some((&slot, _)) = versions.split_first() else { continue };
            let record = self.assemble(lbn, versions)?;
            let Some(last) = self.space.record(slot)? else { continue };
            for run in runs(record.valid & !last.valid) {
                let at = self.space.layout.data(slot) + u64::from(run.offset());
                let part = WriteData::Bytes(&self.block).part(run.offset(), run.bytes());
                let tok = self.space.pcm.write(sink, at, part, Cause::Merge, self.space.noted)?;
                self.space.fences.wait(sink, tok);
            }
            records.push((slot, record));
        }
        Ok(records)
    }

    /// Assembles a merged block in the block buffer and returns its record. The digest is that of
    /// the verified versions, and not of the data that is read back from the slot.
    fn assemble(&mut self, lbn: Lbn, versions: &[CacheSlot]) -> Result<Record> {
        let mut merged = Record { lbn: lbn.0, valid: 0, seq: 0, digest: 0 };
        let mut whole = true;
        for &slot in versions.iter().rev() {
            let Some(version) = self.space.record(slot)? else {
                return Err(self.corrupt(lbn, slot, "its record is damaged"));
            };
            // A mismatch is read a second time, because a bit may have flipped during the transfer.
            whole &= self.space.load(slot, &version, &mut self.block)?
                || self.space.load(slot, &version, &mut self.block)?;
            merged.valid |= version.valid;
            merged.seq = version.seq;
        }
        merged.digest = digest_of(&self.block, merged.valid);
        if whole {
            self.space.seq += 1;
            merged.seq = self.space.seq;
        } else {
            // The last version is damaged, so the block stays known as damaged. With a new number,
            // which is above the mark, it would count as torn if this recovery is interrupted too.
            merged.digest = !merged.digest;
        }
        Ok(merged)
    }

    /// Replaces the records of the last versions by those of the merged blocks. One copy after the
    /// other is replaced, because a power loss may tear the copy that is being written. (A single
    /// copy is for simulations, where no power loss interrupts a recovery.)
    pub(super) fn replace_records(&mut self, sink: &mut Sink, records: &[(CacheSlot, Record)]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        for copy in 0..self.space.layout.copies {
            let after = self.space.fenced();
            for &(slot, record) in records {
                let place = RecordAddr { slot: slot.into(), copy };
                let (at, bytes) = (self.space.layout.record(place), record.bytes(place));
                let tok = self.space.pcm.write(sink, at, WriteData::Bytes(&bytes), Cause::Meta, after)?;
                self.space.fences.wait(sink, tok);
            }
            if copy + 1 == self.space.layout.copies || !is_planted(CacheBug::MergedAtOnce) {
                self.make_durable(sink)?;
            }
        }
        Ok(())
    }
}
