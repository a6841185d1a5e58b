//! Reads: cached fragments come from PCM, all others from the disk.

use super::block_span::{BlockSpan, spans};
use super::disk_failures::disk_failure;
use super::fragments::{BlockFragments, FRAGMENT, digest_of, runs};
use super::in_flight::{DAMAGED, EVICT};
use super::layer::Cache;
use super::policy::EvictionPolicy;
use super::{BLOCK_BYTES, BLOCK_LEN};
use crate::numbers::{CacheSlot, Lbn};
use frit_core::convert::{bounded_u32, size_in_memory, to_usize};
use frit_core::{BlockDevice, BlockingAccess, Cause, Op, ReadTarget, Result, Sink, WriteData};
use std::ops::Range;

/// Largest number of cached bytes between two missing ranges that the disk reads along. A disk
/// passes them in about the time that a second command would cost (64 KiB at 100 MB/s: 0.6 ms).
const READ_THROUGH: u64 = 64 << 10;

impl<D: BlockDevice + ?Sized> Cache<D> {
    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let mut missing: Option<(u64, u64)> = None;
        let mut cached = false;
        self.deferred_io.fills = cause != Cause::Isp;
        for span in spans(at, into.len()) {
            let has = self.lookup(span, cause);
            cached |= has != 0;
            let lacks = span.mask() & !has;
            if lacks == 0 {
                continue;
            }
            // A block that is not cached may be one whose record is missing.
            if self.dir.get(span.lbn).is_none() {
                self.check_not_missing(span.lbn)?;
            }
            if self.deferred_io.on() {
                for run in runs(lacks) {
                    let from = run.disk_at(span.lbn);
                    self.defer_read(sink, at, from..from + u64::from(run.bytes()), cause)?;
                }
                continue;
            }
            let base = u64::from(span.lbn) * BLOCK_BYTES;
            let from = base + u64::from(lacks.trailing_zeros() * FRAGMENT);
            let to = base + u64::from((8 - lacks.leading_zeros()) * FRAGMENT);
            missing = Some(match missing {
                Some((first, end)) if from - end <= READ_THROUGH => (first, to),
                other => {
                    self.read_disk(sink, at, &mut into, other, cause)?;
                    (from, to)
                }
            });
        }
        self.read_disk(sink, at, &mut into, missing, cause)?;
        // Cached fragments are newer than those on the disk, so they overwrite them in the buffer.
        if cached {
            for span in spans(at, into.len()) {
                let Some(slot) = self.dir.get(span.lbn) else { continue };
                self.read_cached(sink, (span, slot), into.part(span.from, span.bytes()), cause)?;
            }
        }
        if self.config.read_caching && cause != Cause::Isp && missing.is_some() {
            let data = match &into {
                ReadTarget::Bytes(b) => WriteData::Bytes(b),
                ReadTarget::Len(n) => WriteData::Len(*n),
            };
            self.cache_read(sink, at, data);
        }
        Ok(())
    }

    /// Defers a read of the disk to the caller.
    fn defer_read(&mut self, sink: &mut Sink, at: u64, disk: Range<u64>, cause: Cause) -> Result<()> {
        let Range { start: from, end: to } = disk;
        self.check_no_conflict(from, to, false)?;
        let part = size_in_memory(from - at)..size_in_memory(to - at);
        if let Some(BlockingAccess::Read { into, .. }) = self.deferred_io.now.last_mut()
            && into.end == part.start
        {
            into.end = part.end;
        } else {
            self.deferred_io.now.push(BlockingAccess::Read { at: from, into: part });
        }
        let start = sink.start();
        self.disk.emit_deferred(sink, Op::DiskRead, from, to - from, cause, start)?;
        Ok(())
    }

    /// Caches these ranges of the disk, which were read for a request that starts at `at`.
    pub(super) fn cache_ranges(&mut self, sink: &mut Sink, at: u64, read: &[u8], ranges: &[(u64, u64)]) {
        for &(from, to) in ranges {
            self.cache_read(
                sink,
                from,
                WriteData::Bytes(&read[size_in_memory(from - at)..size_in_memory(to - at)]),
            );
        }
    }

    /// Looks up a part of a block, updates the policy and the counters, and returns the cached
    /// fragments. A query of the processing engine reads each byte once, and changes neither.
    fn lookup(&mut self, span: BlockSpan, cause: Cause) -> u8 {
        if cause == Cause::Isp {
            return self.dir.get(span.lbn).map_or(0, |slot| self.dir.valid(slot) & span.mask());
        }
        let access = self.access(span.lbn, false);
        let Some(slot) = self.dir.get(span.lbn) else {
            self.stats.read_misses += 1;
            return 0;
        };
        self.dir.touch(span.lbn, self.clock);
        if self.dir.flags(slot) & (EVICT | DAMAGED) == 0 {
            self.policy.hit(slot, &access);
        }
        let has = self.dir.valid(slot) & span.mask();
        let all = has == span.mask();
        *(if all { &mut self.stats.read_hits } else { &mut self.stats.read_partial }) += 1;
        has
    }

    fn read_disk(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: &mut ReadTarget<'_>,
        stretch: Option<(u64, u64)>,
        cause: Cause,
    ) -> Result<()> {
        let Some((from, to)) = stretch else { return Ok(()) };
        self.check_no_conflict(from, to, false)?;
        let part = into.part(bounded_u32(from - at), bounded_u32(to - from));
        let after = sink.start();
        let done = self.disk.read(sink, from, part, cause, after).map_err(|e| disk_failure(&e))?;
        sink.ack(done);
        Ok(())
    }

    /// Reads the cached fragments of a part of a block.
    fn read_cached(
        &mut self,
        sink: &mut Sink,
        (span, slot): (BlockSpan, CacheSlot),
        mut into: ReadTarget<'_>,
        cause: Cause,
    ) -> Result<()> {
        let has = self.dir.valid(slot) & span.mask();
        let start = sink.start();
        for run in runs(has) {
            let part = ReadTarget::Len(run.bytes());
            let tok = self.space.read(sink, slot, run.first, part, cause, start)?;
            sink.ack(tok);
        }
        let Some(into) = into.bytes().filter(|_| self.stores_bytes()) else { return Ok(()) };
        if span.mask() == 0xFF && self.dir.valid(slot) == 0xFF {
            let read = self.read_whole(span.lbn, slot, into)?;
            if read {
                return Ok(());
            }
        }
        // The digest covers all valid fragments, so all of them are read and verified.
        self.load(span.lbn, slot)?;
        for run in runs(has) {
            let Range { start, end } = run.range();
            let skip = to_usize(span.first * FRAGMENT);
            into[start - skip..end - skip].copy_from_slice(&self.block[start..end]);
        }
        Ok(())
    }

    /// Reads a whole block without a copy through the block buffer. Returns `false` if the data
    /// does not match its record.
    fn read_whole(&self, lbn: Lbn, slot: CacheSlot, into: &mut [u8]) -> Result<bool> {
        self.space.pcm.peek(self.space.layout.data(slot), into)?;
        let record = self.space.record(slot)?;
        Ok(record.is_some_and(|r| r.lbn() == lbn && r.valid == 0xFF && r.digest == digest_of(into, 0xFF)))
    }

    /// Caches blocks that were read from the disk, as far as slots are free. The read itself is
    /// complete, so a failure of PCM is not returned; the layer refuses writes from then on.
    fn cache_read(&mut self, sink: &mut Sink, at: u64, read: WriteData<'_>) {
        if self.health.refusal().is_none()
            && let Err(e) = self.copy_read(sink, at, read)
        {
            drop(self.refuse_after(e));
        }
    }

    fn copy_read(&mut self, sink: &mut Sink, at: u64, read: WriteData<'_>) -> Result<()> {
        self.begin_use(sink)?;
        for span in spans(at, read.len()) {
            if self.dir.get(span.lbn).is_some() {
                continue;
            }
            let free = self.dir.free_len();
            let Some(slot) = self.dir.alloc() else { break };
            let after = self.space.usable(sink, slot, free);
            let access = self.access(span.lbn, false);
            self.policy.miss(&access);
            let part = read.part(span.from, span.bytes());
            let fragments = BlockFragments { lbn: span.lbn, valid: span.mask() };
            match part {
                WriteData::Bytes(b) if self.stores_bytes() => {
                    let from = to_usize(span.first * FRAGMENT);
                    self.block[from..from + b.len()].copy_from_slice(b);
                    self.space.write_block(
                        sink,
                        slot,
                        fragments,
                        WriteData::Bytes(&self.block),
                        Cause::Migrate,
                        after,
                    )?;
                }
                _ => {
                    let block = WriteData::Len(BLOCK_LEN);
                    self.space.write_block(sink, slot, fragments, block, Cause::Migrate, after)?;
                }
            }
            self.dir.insert(span.lbn, slot, span.mask(), false);
            self.dir.touch(span.lbn, self.clock);
            self.policy.insert(slot, &access);
        }
        // The read does not wait for the copy to be durable, so the fence is not acknowledged.
        self.space.fence(sink);
        self.evict_to_threshold(sink)
    }
}
