//! Destaging: sorted writes of dirty blocks to the disk, with adjacent blocks in one write.

use super::directory::{BucketBlocks, PINNED};
use super::fragments::runs;
use super::in_flight::DAMAGED;
use super::layer::Cache;
use super::policy::{EvictionPolicy, Victim};
use crate::numbers::{BucketId, CacheSlot};
use crate::payload::buffered;
use crate::planted::CacheBug;
use frit_core::convert::to_u64;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, BlockingAccess, Cause, Error, Op, Result, Sink, Tok};
use frit_media::disk::HAZARD_BYTES;

/// Adjacent blocks that one write carries to the disk.
#[derive(Clone, Copy, Debug)]
struct WriteRun {
    /// First byte on the disk. The next field is the length in bytes.
    at: u64,
    len: u32,
    /// Completion of the reads from PCM.
    read: Tok,
}

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Writes the dirty ones of these blocks to the disk in the given order. All blocks are in
    /// flight afterwards. With `leave`, the policy has already removed them. Damaged blocks are set
    /// aside.
    pub(super) fn write_out(&mut self, sink: &mut Sink, blocks: &[Victim], leave: bool) -> Result<()> {
        // A write that needs a slot may have written some of these blocks itself. They must be
        // durable first.
        if !is_planted(CacheBug::DestagedEarly) {
            self.commit(sink)?;
        }
        if self.deferred_io.on() {
            return self.defer_writeback(sink, blocks, leave);
        }
        let mut run: Option<WriteRun> = None;
        for i in 0..blocks.len() {
            let v = blocks[i];
            if !self.may_write_back(v.lbn) {
                self.stay(v, leave);
                continue;
            }
            if self.dir.flags(v.slot) & PINNED != 0 {
                // The block is in flight already, to stay as a clean copy. It now leaves the cache
                // as well.
                self.evict_when_done(v.slot);
                continue;
            }
            if !self.dir.dirty(v.slot) {
                self.stats.dropped += u64::from(leave);
                self.begin_writeback(v, leave);
                continue;
            }
            let valid = self.dir.valid(v.slot);
            let Some(read) = self.fetch_out(sink, v, leave)? else { continue };
            for part in runs(valid) {
                let (at, len) = (part.disk_at(v.lbn), part.bytes());
                run = match run {
                    // No command crosses a multiple of `HAZARD_BYTES`, so a run ends there.
                    Some(r) if r.at + u64::from(r.len) == at && !at.is_multiple_of(HAZARD_BYTES) => {
                        Some(WriteRun { len: r.len + len, read: sink.join(r.read, read), ..r })
                    }
                    other => {
                        self.write_run(sink, other, &blocks[i..], leave)?;
                        Some(WriteRun { at, len, read })
                    }
                };
                if self.stores_bytes() {
                    self.run.extend_from_slice(&self.block[part.range()]);
                }
            }
            self.begin_writeback(v, leave);
            *(if leave { &mut self.stats.destaged } else { &mut self.stats.cleaned }) += 1;
        }
        self.write_run(sink, run, &[], leave)
    }

    /// Reads a block for the disk into the block buffer. Returns `None` if it is damaged, and sets
    /// it aside.
    fn fetch_out(&mut self, sink: &mut Sink, v: Victim, leave: bool) -> Result<Option<Tok>> {
        // A power loss leaves an arbitrary subset of the written sectors on the disk, so PCM must
        // hold the whole block durably before.
        if self.space.may_be_lost(v.slot)? && !is_planted(CacheBug::DestagedEarly) {
            self.sync_slots(sink)?;
        }
        let valid = self.dir.valid(v.slot);
        match self.fetch(sink, v.lbn, v.slot, valid, Cause::Destage) {
            Ok(read) => Ok(Some(read)),
            Err(Error::Corrupt { .. }) => {
                self.stats.set_aside += 1;
                if !leave {
                    self.policy.remove(v.slot, v.lbn);
                }
                self.set_aside(v.slot);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Returns a victim that cannot be evicted now to its policy.
    fn stay(&mut self, v: Victim, left: bool) {
        if left {
            let access = self.access(v.lbn, true);
            self.policy.insert(v.slot, &access);
        }
    }

    /// Variant of [`Cache::write_out`] that defers the writes to the caller.
    fn defer_writeback(&mut self, sink: &mut Sink, blocks: &[Victim], leave: bool) -> Result<()> {
        let mut puts: Vec<BlockingAccess> = Vec::new();
        let mut written = Vec::new();
        let start = sink.start();
        for &v in blocks {
            if !self.may_write_back(v.lbn) {
                self.stay(v, leave);
                continue;
            }
            if self.dir.flags(v.slot) & PINNED != 0 {
                self.evict_when_done(v.slot);
                continue;
            }
            if !self.dir.dirty(v.slot) {
                self.stats.dropped += u64::from(leave);
                self.begin_writeback(v, leave);
                continue;
            }
            if self.fetch_out(sink, v, leave)?.is_none() {
                continue;
            }
            for part in runs(self.dir.valid(v.slot)) {
                let at = part.disk_at(v.lbn);
                let bytes = &self.block[part.range()];
                match puts.last_mut() {
                    Some(BlockingAccess::Put { at: begin, data }) if *begin + to_u64(data.len()) == at => {
                        data.extend_from_slice(bytes);
                    }
                    _ => puts.push(BlockingAccess::Put { at, data: bytes.to_vec() }),
                }
            }
            self.pin(v.slot, leave);
            written.push(v);
            *(if leave { &mut self.stats.destaged } else { &mut self.stats.cleaned }) += 1;
        }
        for put in &puts {
            let BlockingAccess::Put { at, data } = put else { continue };
            self.stats.destage_writes += 1;
            self.disk.emit_deferred(sink, Op::DiskWrite, *at, to_u64(data.len()), Cause::Destage, start)?;
        }
        if !written.is_empty() {
            self.defer_writes(puts, written);
        }
        Ok(())
    }

    /// Writes a run to the disk. If the disk fails, the blocks `rest` are not in flight; they return
    /// to the policy like those in flight.
    fn write_run(
        &mut self,
        sink: &mut Sink,
        run: Option<WriteRun>,
        rest: &[Victim],
        leave: bool,
    ) -> Result<()> {
        let Some(run) = run else { return Ok(()) };
        let data = buffered(&self.run, run.len);
        debug_assert_eq!(data.len(), run.len);
        // The write waits until the blocks are durable in the cache. Otherwise a power loss could
        // leave parts of a request on the disk that was never acknowledged.
        let after = if is_planted(CacheBug::DestagedEarly) {
            run.read
        } else {
            sink.join(run.read, self.space.fenced())
        };
        let done = self.disk.write(sink, run.at, data, Cause::Destage, after);
        self.run.clear();
        self.stats.destage_writes += 1;
        match self.check_disk(done) {
            Ok(done) => {
                self.wait_for_write(sink, done);
                Ok(())
            }
            Err(e) => {
                for v in rest {
                    self.stay(*v, leave);
                }
                Err(e)
            }
        }
    }

    /// Writes back the dirty blocks of the next bucket and keeps them. Returns `false` if there are
    /// none.
    pub(super) fn clean(&mut self, sink: &mut Sink) -> Result<bool> {
        let mut blocks = BucketBlocks::default();
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        for _ in 0..self.dir.active() {
            let Some(bucket) = self.dir.next_active(self.clean_hand) else { break };
            self.clean_hand = BucketId((bucket.0 + 1) % self.dir.buckets());
            if self.dir.bucket(bucket).dirty == 0 {
                continue;
            }
            self.dir.blocks_of(bucket, &mut blocks);
            let free =
                |slot: CacheSlot| self.dir.dirty(slot) && self.dir.flags(slot) & (PINNED | DAMAGED) == 0;
            chosen.extend(
                blocks.iter().filter(|(_, slot)| free(*slot)).map(|(lbn, slot)| Victim { lbn, slot }),
            );
            if !chosen.is_empty() {
                break;
            }
        }
        let any = !chosen.is_empty();
        let out = self.write_out(sink, &chosen, false);
        self.chosen = chosen;
        out?;
        if self.too_many_in_flight() && !self.deferred_io.busy() {
            self.complete_or_defer(sink)?;
        }
        Ok(any)
    }
}
