//! Writeback of dirty blocks in the order of their addresses, and their change to clean.
//!
//! A block that was written to the disk stays dirty until the disk is flushed. The flush follows a
//! batch of blocks, and their metadata is written with the next batch, so that no request waits for
//! the disk.

use super::layer::Flashcache;
use super::sets::flag;
use crate::payload::buffered;
use crate::planted::FlashcacheBug;
use crate::tokens::join_into;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Error, ReadTarget, Result, Sink};
use frit_media::disk::HAZARD_BYTES;

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Cleans the sets of a range of the disk that are above their threshold.
    pub(super) fn clean_above_threshold(&mut self, sink: &mut Sink, at: u64, len: u32) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let limit = (f64::from(self.layout.set_blocks) * self.config.dirty_threshold) as u32;
        let (first, last) = (self.block_of(at), self.block_of(at + u64::from(len) - 1));
        let mut block = first;
        while block <= last {
            let set = self.sets.set_of(block);
            if self.sets.to_clean(set) > limit {
                self.clean_set(sink, set, limit)?;
            }
            block = (block / self.layout.set_blocks + 1) * self.layout.set_blocks;
        }
        if count_u32(self.written.len()) >= self.config.clean_batch {
            let settled = self.settle(sink);
            self.ignore_disk_failure(settled)?;
        }
        Ok(())
    }

    /// Writes dirty blocks of a set to the disk until `limit` are left, with at most
    /// `clean_writes` writes. The request that causes it does not wait.
    fn clean_set(&mut self, sink: &mut Sink, set: u32, limit: u32) -> Result<()> {
        let excess = self.sets.to_clean(set).saturating_sub(limit);
        let slots = self.sets.oldest_to_clean(set, excess);
        let mut blocks: Vec<u32> = slots.into_iter().filter_map(|slot| self.sets.block(slot)).collect();
        blocks.sort_unstable();
        let mut writes = 0;
        let mut next = 0;
        for block in blocks {
            if block < next {
                // The write before has taken it along.
                continue;
            }
            if writes == self.config.clean_writes {
                break;
            }
            let cleaned = self.clean_run(sink, block);
            next = match self.ignore_disk_failure(cleaned)? {
                Some(end) => end,
                None => return Ok(()),
            };
            writes += 1;
        }
        Ok(())
    }

    /// Slot of a block, if it has to be written to the disk.
    fn to_clean(&self, block: u32) -> Option<u32> {
        self.sets.find(block).filter(|&slot| self.sets.needs_cleaning(slot))
    }

    /// Writes a dirty block and the dirty blocks beside it to the disk, with one write. Returns the
    /// block after them.
    fn clean_run(&mut self, sink: &mut Sink, block: u32) -> Result<u32> {
        let per_hazard = count_u32((HAZARD_BYTES as usize / to_usize(self.layout.block_bytes)).max(1));
        let (mut first, mut end) = (block, block + 1);
        while !first.is_multiple_of(per_hazard) && self.to_clean(first - 1).is_some() {
            first -= 1;
        }
        while !end.is_multiple_of(per_hazard) && end < self.disk_blocks && self.to_clean(end).is_some() {
            end += 1;
        }
        let block_bytes = self.layout.block_bytes;
        let mut bytes = self.new_buffer((end - first) * block_bytes);
        let mut after = self.ready;
        let mut slots = Vec::with_capacity(to_usize(end - first));
        for (i, block) in (first..end).enumerate() {
            let Some(slot) = self.to_clean(block) else { break };
            let from = i * to_usize(block_bytes);
            let target = match bytes.get_mut(from..from + to_usize(block_bytes)) {
                Some(part) => ReadTarget::Bytes(part),
                None => ReadTarget::Len(block_bytes),
            };
            let (at, start) = (self.layout.slot_at(slot), sink.start());
            match self.ssd.read(sink, at, target, Cause::Destage, start) {
                Ok(read) => after = sink.join(after, read),
                Err(Error::Corrupt { .. }) => {
                    self.sets.change(slot, flag::DAMAGED, 0);
                    self.stats.damaged_dirty += 1;
                    break;
                }
                Err(e) => return Err(e),
            }
            slots.push(slot);
        }
        let count = count_u32(slots.len());
        if count == 0 {
            return Ok(first + 1);
        }
        bytes.truncate(slots.len() * to_usize(block_bytes));
        let data = buffered(&bytes, count * block_bytes);
        let done = self.disk.write(sink, self.byte_of(first), data, Cause::Destage, after);
        let done = self.of_disk(done)?;
        join_into(sink, &mut self.disk_pending, done);
        for &slot in &slots {
            self.sets.change(slot, flag::WRITTEN, 0);
        }
        self.written.extend(slots);
        self.stats.cleaned += u64::from(count);
        self.stats.clean_writes += 1;
        Ok(first + count)
    }

    /// Makes the blocks clean that were on the disk before its last flush, and flushes the disk for
    /// those that were written to it since.
    pub(super) fn settle(&mut self, sink: &mut Sink) -> Result<()> {
        self.change_flushed(sink)?;
        if self.written.is_empty() {
            return Ok(());
        }
        let start = sink.start();
        self.flushed_at =
            if is_planted(FlashcacheBug::CleanNotFlushed) { start } else { self.flush_disk(sink, start)? };
        self.flushed = std::mem::take(&mut self.written);
        // A block that was written again in between has no such flag.
        self.flushed.retain(|&slot| self.sets.is(slot, flag::WRITTEN));
        for &slot in &self.flushed {
            self.sets.change(slot, flag::FLUSHED, flag::WRITTEN);
        }
        Ok(())
    }

    /// Makes blocks clean that the disk durably has, and their metadata durable. If that fails, they stay
    /// dirty: the SSD may state so, and a newer version on the disk would be lost at a recovery.
    fn change_flushed(&mut self, sink: &mut Sink) -> Result<()> {
        let slots = std::mem::take(&mut self.flushed);
        let slots: Vec<u32> = slots.into_iter().filter(|&slot| self.sets.is(slot, flag::FLUSHED)).collect();
        if slots.is_empty() {
            return Ok(());
        }
        let fresh: Vec<bool> = slots.iter().map(|&slot| self.sets.is(slot, flag::FRESH)).collect();
        for &slot in &slots {
            self.sets.change(slot, 0, flag::DIRTY | flag::FRESH | flag::FLUSHED);
        }
        let noted = self.note_clean(sink, &slots);
        if noted.is_err() {
            for (&slot, fresh) in slots.iter().zip(fresh) {
                let fresh = if fresh { flag::FRESH } else { 0 };
                self.sets.change(slot, flag::DIRTY | flag::FLUSHED | fresh, 0);
            }
            self.changed.extend(slots.iter().map(|&slot| self.layout.metadata_of(slot)));
            self.flushed = slots;
        }
        noted
    }

    /// Makes the metadata of blocks that became clean durable.
    fn note_clean(&mut self, sink: &mut Sink, slots: &[u32]) -> Result<()> {
        let blocks = slots.iter().map(|&slot| self.layout.metadata_of(slot)).collect();
        self.metadata_after = sink.join(self.metadata_after, self.flushed_at);
        let start = sink.start();
        let noted = self.write_metadata(sink, blocks, start)?;
        if !is_planted(FlashcacheBug::ReusedEarly) {
            self.reuse_after = self.flush_ssd(sink, noted)?;
        }
        Ok(())
    }

    /// Slot of a set for a block that becomes dirty. If all are dirty, some are cleaned first.
    pub(super) fn free_slot(&mut self, sink: &mut Sink, set: u32) -> Result<Option<u32>> {
        if let Some(slot) = self.sets.victim(set) {
            return Ok(Some(slot));
        }
        self.stats.waits += 1;
        self.clean_set(sink, set, self.layout.set_blocks - 1)?;
        // What was written is clean after two turns. While the disk fails, the write goes there, and
        // reports the failure.
        let settled = self.settle(sink).and_then(|()| self.settle(sink));
        self.ignore_disk_failure(settled)?;
        Ok(self.sets.victim(set))
    }

    /// Continues after a failure of the disk: the request is complete, and blocks stay dirty.
    fn ignore_disk_failure<V>(&mut self, answer: Result<V>) -> Result<Option<V>> {
        match answer {
            Ok(v) => Ok(Some(v)),
            Err(_) if std::mem::take(&mut self.intact) => Ok(None),
            Err(e) => Err(e),
        }
    }
}
