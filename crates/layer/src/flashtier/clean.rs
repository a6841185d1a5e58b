//! Writeback of dirty blocks, and flushes.

use super::layer::Flashtier;
use crate::planted::FlashtierBug;
use frit_core::convert::{to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, CacheDevice, CacheRead, Cause, DurabilityPoint, Error, Progress, ReadTarget, Result, Sink,
    Tok, WriteData,
};
use frit_media::disk::HAZARD_BYTES;
use std::ops::Range;

/// Adjacent blocks that one write carries to the disk.
struct CleanRun {
    blocks: Range<u32>,
    bytes: Vec<u8>,
    /// Completion of the reads from the device.
    read: Tok,
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    /// Number of dirty blocks from which writes clean some.
    pub(super) fn dirty_max(&self) -> u64 {
        let cache = self.ssc.dirty_limit().min(self.ssc.blocks());
        (cache as f64 * self.config.dirty_threshold) as u64
    }

    /// Number of dirty blocks that can be written to the disk.
    fn cleanable(&self) -> u64 {
        self.dirty.len() - to_u64(self.set_aside.len())
    }

    /// Cleans a batch if more blocks are dirty than the threshold allows.
    pub(super) fn clean_above_threshold(&mut self, sink: &mut Sink) -> Result<()> {
        let cleanable = self.cleanable();
        if cleanable <= self.dirty_max() {
            return Ok(());
        }
        match self.clean_batch(sink) {
            Ok(_) => Ok(()),
            // The write is complete. While the disk fails, dirty blocks stay in the cache.
            Err(Error::Medium { .. } | Error::Io { .. } | Error::ReadOnly { .. }) => {
                self.stats.disk_failures += 1;
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Writes the next dirty blocks to the disk, flushes it, and makes them clean. Returns the token of
    /// the flush, or `None` if no dirty block can be written.
    pub(super) fn clean_batch(&mut self, sink: &mut Sink) -> Result<Option<Tok>> {
        let (count, set_aside) = (self.config.clean_batch, &self.set_aside);
        let batch = self.dirty.next_batch(count, |block| set_aside.contains(&block));
        self.ssc.prefetch(&batch);
        let mut runs: Vec<CleanRun> = Vec::new();
        let per_hazard = (HAZARD_BYTES / u64::from(self.page)).max(1) as u32;
        for block in batch {
            let Some((bytes, read)) = self.read_dirty(sink, block)? else { continue };
            match runs.last_mut() {
                Some(run) if run.blocks.end == block && !block.is_multiple_of(per_hazard) => {
                    run.blocks.end = block + 1;
                    run.bytes.extend_from_slice(&bytes);
                    run.read = sink.join(run.read, read);
                }
                _ => runs.push(CleanRun { blocks: block..block + 1, bytes, read }),
            }
        }
        if runs.is_empty() {
            return Ok(None);
        }
        self.begin_use(sink)?;
        let mut required = self.ready;
        if self.ssc.durable_at() == DurabilityPoint::OnAck && !is_planted(FlashtierBug::CleanedEarly) {
            // A power loss can tear the write to the disk, and an older clean block must not survive it.
            required = self.ssc.flush(sink, required)?;
        }
        let mut written = required;
        for run in &runs {
            let (count, after) = (run.blocks.end - run.blocks.start, sink.join(run.read, required));
            let data = if run.bytes.is_empty() {
                WriteData::Len(count * self.page)
            } else {
                WriteData::Bytes(&run.bytes)
            };
            let done = self.disk.write(sink, self.byte_of(run.blocks.start), data, Cause::Destage, after)?;
            written = sink.join(written, done);
            self.stats.clean_writes += 1;
        }
        let flushed =
            if is_planted(FlashtierBug::CleanNotFlushed) { written } else { self.flush_disk(sink, written)? };
        for run in &runs {
            self.stats.cleaned += u64::from(run.blocks.end - run.blocks.start);
            self.ssc.clean(sink, run.blocks.clone(), flushed)?;
            for block in run.blocks.clone() {
                self.dirty.remove(block);
            }
        }
        Ok(Some(flushed))
    }

    /// Reads a dirty block for the disk. A damaged one is set aside.
    fn read_dirty(&mut self, sink: &mut Sink, block: u32) -> Result<Option<(Vec<u8>, Tok)>> {
        let mut bytes = vec![0; if self.ssc.holds_bytes() { to_usize(self.page) } else { 0 }];
        let target =
            if bytes.is_empty() { ReadTarget::Len(self.page) } else { ReadTarget::Bytes(&mut bytes) };
        let start = sink.start();
        match self.ssc.read(sink, block, 0, target, Cause::Destage, start) {
            Ok(CacheRead::Hit(read)) => Ok(Some((bytes, read))),
            Ok(CacheRead::Miss) => {
                // The device has lost it: the disk has what is left of it.
                self.dirty.remove(block);
                Ok(None)
            }
            Err(Error::Corrupt { .. }) => {
                self.stats.set_aside += 1;
                self.set_aside.insert(block);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Flushes the disk, after `after` and after all writes that it has not flushed.
    pub(super) fn flush_disk(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        let after = match self.unflushed {
            Some(before) => sink.join(before, after),
            None => after,
        };
        let before = if is_planted(FlashtierBug::FlushesNotOrdered) { after } else { self.flushed };
        let after = sink.join(before, after);
        self.stats.disk_flushes += 1;
        match self.disk.flush(sink, Cause::Destage, after) {
            Ok(done) => {
                self.unflushed = None;
                self.flushed = done;
                Ok(done)
            }
            Err(e) => {
                if self.unflushed.is_some() {
                    // What bypassed the cache may be lost.
                    self.health.refuse(format!("a flush of the disk failed: {e}"));
                } else {
                    // All else that was written is dirty until a flush succeeds.
                    self.disk.forgive_failed_sync();
                }
                Err(e)
            }
        }
    }

    /// Makes all acknowledged writes durable.
    pub(super) fn flush_all(&mut self, sink: &mut Sink) -> Result<()> {
        if is_planted(FlashtierBug::FlushIgnored) {
            return Ok(());
        }
        self.health.writable()?;
        let start = sink.start();
        if self.unflushed.is_some() && !is_planted(FlashtierBug::DiskNotFlushed) {
            self.flush_disk(sink, start)?;
        }
        // Another client may have requested the flush that covers earlier writes.
        sink.ack(self.flushed);
        let flushed = self.ssc.flush(sink, start)?;
        sink.ack(flushed);
        Ok(())
    }

    /// Cleans above the threshold, and does the background work of the device.
    pub(super) fn background(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        if self.cleanable() > self.dirty_max() {
            match self.clean_batch(sink) {
                Ok(Some(done)) => return Ok(Progress::Busy(done)),
                Ok(None) => {}
                Err(Error::Medium { .. } | Error::Io { .. } | Error::ReadOnly { .. }) => {
                    self.stats.disk_failures += 1;
                }
                Err(e) => return Err(e),
            }
        }
        self.ssc.step(sink, budget)
    }
}
