//! Writes of metadata, commits of epochs, and flushes of the devices.

use super::layer::Flashcache;
use super::layout::HEADERS;
use super::sector::{Entry, EntryState, Header, SECTOR, UsageState, encode, header};
use super::sets::flag;
use crate::payload::buffered;
use crate::planted::FlashcacheBug;
use crate::tokens::join_into;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Result, Sink, Tok, WriteData};

/// Largest write of adjacent metadata blocks, in bytes.
const WRITE_BYTES_MAX: u32 = 1 << 20;

impl<C: BlockDevice + ?Sized, D: BlockDevice + ?Sized> Flashcache<C, D> {
    /// Returns the entry of a slot, as its metadata states it.
    pub(super) fn entry(&self, slot: u32) -> Entry {
        let Some(block) = self.sets.block(slot) else { return Entry::INVALID };
        if !self.sets.is(slot, flag::DIRTY) {
            return Entry { block, state: EntryState::Clean, epoch: 0 };
        }
        let epoch = if self.sets.is(slot, flag::FRESH) { self.epoch + 1 } else { 0 };
        Entry { block, state: EntryState::Dirty, epoch }
    }

    /// Notes that the entry of a slot belongs to the current epoch.
    pub(super) fn note_fresh(&mut self, slot: u32) {
        self.fresh.push(slot);
        if self.fresh.len() > 2 * to_usize(self.layout.slots()) {
            self.fresh.sort_unstable();
            self.fresh.dedup();
        }
    }

    /// Writes the metadata blocks that have changed. They stay changed if that fails.
    pub(super) fn write_changed(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let mut blocks = std::mem::take(&mut self.changed);
        let written = self.write_blocks(sink, &mut blocks, after);
        if written.is_ok() {
            blocks.clear();
        }
        // Its allocation is used again.
        self.changed = blocks;
        written
    }

    /// Writes metadata blocks.
    pub(super) fn write_metadata(
        &mut self,
        sink: &mut Sink,
        mut blocks: Vec<u32>,
        after: Tok,
    ) -> Result<Tok> {
        self.write_blocks(sink, &mut blocks, after)
    }

    /// Writes metadata blocks, adjacent ones with one write.
    fn write_blocks(&mut self, sink: &mut Sink, blocks: &mut Vec<u32>, after: Tok) -> Result<Tok> {
        blocks.sort_unstable();
        blocks.dedup();
        let most = to_usize((WRITE_BYTES_MAX / self.layout.metadata_block).max(1));
        let ready = sink.join(self.ready, self.metadata_after);
        let after = sink.join(ready, after);
        let mut done = after;
        for run in blocks.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(most)) {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.encode_blocks(run, &mut buffer);
            let data = buffered(&buffer, count_u32(run.len()) * self.layout.metadata_block);
            let written = self.ssd.write(sink, self.layout.metadata_at(run[0]), data, Cause::Meta, after);
            self.buffer = buffer;
            done = sink.join(done, written?);
            self.stats.metadata_writes += 1;
        }
        join_into(sink, &mut self.ssd_pending, done);
        Ok(done)
    }

    /// Fills a buffer with metadata blocks; it stays empty if the devices hold no bytes.
    fn encode_blocks(&self, blocks: &[u32], buffer: &mut Vec<u8>) {
        buffer.clear();
        if !self.holds_bytes {
            return;
        }
        buffer.resize(blocks.len() * to_usize(self.layout.metadata_block), 0);
        let per_block = self.layout.sectors_per_block();
        let sectors = blocks.iter().flat_map(|&block| (0..per_block).map(move |sector| (block, sector)));
        for ((block, sector), into) in sectors.zip(buffer.chunks_exact_mut(SECTOR)) {
            let entries = self.layout.slots_of(block, sector).map(|slot| self.entry(slot));
            encode(block * per_block + sector, entries, into);
        }
    }

    /// Writes both copies of the header with the next epoch, and flushes the SSD. Returns the completion.
    pub(super) fn write_header(&mut self, sink: &mut Sink, state: UsageState, after: Tok) -> Result<Tok> {
        let next = Header { state, epoch: self.epoch + 1 };
        let written = self.put_header(sink, next, after);
        // The SSD may have a header whose write failed, so its epoch is not that of later entries.
        self.epoch = next.epoch;
        match &written {
            Ok(_) => self.state = state,
            // Nor may the cache change under a header that vouches for all entries.
            Err(e) if state == UsageState::Halted => {
                self.health.refuse(format!("the header of a shutdown was not written: {e}"));
            }
            Err(_) => {}
        }
        written
    }

    fn put_header(&mut self, sink: &mut Sink, next: Header, after: Tok) -> Result<Tok> {
        let bytes = header(&self.layout, self.disk_blocks, next);
        let data =
            if self.holds_bytes { WriteData::Bytes(&bytes) } else { WriteData::Len(count_u32(SECTOR)) };
        let mut written = after;
        for copy in 0..HEADERS {
            let tok = self.ssd.write(sink, self.layout.header_at(copy), data, Cause::Meta, after)?;
            written = sink.join(written, tok);
        }
        join_into(sink, &mut self.ssd_pending, written);
        self.flush_ssd(sink, written)
    }

    /// Begins an access that may change a device: the header states that the cache is in use.
    pub(super) fn begin_use(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        if self.state == UsageState::Halted && !is_planted(FlashcacheBug::UseNotNoted) {
            let start = sink.start();
            self.ready = self.write_header(sink, UsageState::InUse, start)?;
        }
        Ok(())
    }

    /// Makes the data and the metadata durable that the SSD has acknowledged. Returns the completion.
    pub(super) fn commit(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let pending = self.ssd_pending.is_some();
        let flushed = if pending { self.flush_ssd(sink, after)? } else { self.ssd_flushed };
        if self.fresh.is_empty() {
            return Ok(flushed);
        }
        // From now on the entries state that their data is durable.
        self.metadata_after = sink.join(self.metadata_after, flushed);
        self.stats.commits += 1;
        let after = if is_planted(FlashcacheBug::CommittedEarly) { sink.start() } else { flushed };
        let fresh = self.take_fresh();
        self.write_header(sink, self.state, after).inspect_err(|_| self.keep_fresh(fresh))
    }

    /// Makes the entries of the current epoch state that their data is durable. Returns their slots.
    pub(super) fn take_fresh(&mut self) -> Vec<u32> {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.retain(|&slot| self.sets.is(slot, flag::FRESH));
        fresh.iter().for_each(|&slot| self.sets.change(slot, 0, flag::FRESH));
        fresh
    }

    /// Notes after a failed commit that these slots still have to be committed.
    pub(super) fn keep_fresh(&mut self, fresh: Vec<u32>) {
        fresh.iter().for_each(|&slot| self.sets.change(slot, flag::FRESH, 0));
        self.fresh = fresh;
    }

    /// Flushes the SSD, after all its writes.
    pub(super) fn flush_ssd(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let pending = self.ssd_pending.unwrap_or(after);
        let before = sink.join(pending, self.ssd_flushed);
        let after = sink.join(before, after);
        self.stats.ssd_flushes += 1;
        // Without such slots, only metadata can be lost, which the map in DRAM has.
        let flushed = self.ssd.flush(sink, Cause::Meta, after);
        let done = flushed.inspect_err(|_| self.ssd_failed |= self.slots_unflushed)?;
        (self.ssd_pending, self.ssd_flushed, self.slots_unflushed) = (None, done, false);
        Ok(done)
    }

    /// Flushes the disk, after all its writes.
    pub(super) fn flush_disk(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let pending = self.disk_pending.unwrap_or(after);
        let before = sink.join(pending, self.disk_flushed);
        let after = sink.join(before, after);
        self.stats.disk_flushes += 1;
        match self.disk.flush(sink, Cause::Destage, after) {
            Ok(done) => {
                (self.disk_pending, self.disk_flushed, self.direct_pending) = (None, done, false);
                Ok(done)
            }
            Err(e) => {
                if self.direct_pending {
                    // They may be lost.
                    self.health.refuse(format!("a flush of the disk failed: {e}"));
                } else {
                    self.disk.forgive_failed_sync();
                }
                // Blocks that were written back are written again.
                for slot in std::mem::take(&mut self.written) {
                    self.sets.change(slot, 0, flag::WRITTEN);
                }
                self.stats.disk_failures += 1;
                self.intact = true;
                Err(e)
            }
        }
    }

    /// Makes all acknowledged writes durable.
    pub(super) fn flush_all(&mut self, sink: &mut Sink) -> Result<()> {
        if is_planted(FlashcacheBug::FlushIgnored) {
            return Ok(());
        }
        self.health.writable()?;
        let start = sink.start();
        if self.disk_pending.is_some() && !is_planted(FlashcacheBug::DiskNotFlushed) {
            self.flush_disk(sink, start)?;
        }
        // Another client may have requested the flush that covers earlier writes.
        sink.ack(self.disk_flushed);
        if !self.changed.is_empty() {
            self.write_changed(sink, start)?;
        }
        let committed = self.commit(sink, start)?;
        sink.ack(committed);
        Ok(())
    }
}
