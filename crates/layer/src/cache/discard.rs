//! Discards and flushes.

use super::BLOCK_BYTES;
use super::block_span::spans;
use super::directory::{BucketBlocks, PINNED};
use super::in_flight::{DAMAGED, EVICT};
use super::layer::Cache;
use super::policy::{EvictionPolicy, Victim};
use crate::numbers::Lbn;
use crate::payload::zeros_on;
use crate::planted::CacheBug;
use crate::record::RecordEnd;
use frit_core::convert::bounded_u32;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, BlockingAccess, Cause, Error, Op, Result, SECTOR_BYTES, Sink, Tok};
use std::ops::Range;

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Makes a range read as zeros. Whole blocks leave the cache once the zeros are durable on the
    /// disk; parts of blocks are overwritten.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        self.health.writable()?;
        self.check_no_conflict(at, at + bytes, true)?;
        if self.deferred_io.on() {
            return self.defer_zeros(sink, at, bytes);
        }
        let end = at + bytes;
        let (first, last) = (at.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
        if first >= last {
            // The range lies inside one block, or crosses the boundary of two.
            let border = (first * BLOCK_BYTES).clamp(at, end);
            self.write_zeros(sink, at, border - at)?;
            return self.write_zeros(sink, border, end - border);
        }
        self.write_zeros(sink, at, first * BLOCK_BYTES - at)?;
        self.write_zeros(sink, last * BLOCK_BYTES, end - last * BLOCK_BYTES)?;
        self.drop_blocks(sink, Lbn::of_u64(first)..Lbn::of_u64(last))
    }

    fn write_zeros(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        debug_assert!(bytes < BLOCK_BYTES && bytes.is_multiple_of(SECTOR_BYTES));
        if bytes == 0 {
            return Ok(());
        }
        self.write_range(sink, at, zeros_on(self.stores_bytes(), bounded_u32(bytes)))
    }

    /// Zeros blocks on the disk and removes them from the cache.
    fn drop_blocks(&mut self, sink: &mut Sink, blocks: Range<Lbn>) -> Result<()> {
        let start = sink.start();
        let settled = self.space.settle(sink, start);
        let (at, end) = (blocks.start.byte(), blocks.end.byte());
        let zeroed = self.disk.zero(sink, at, end - at, Cause::Host, settled);
        let zeroed = self.check_disk(zeroed)?;
        let done = match self.unflushed {
            Some(u) => sink.join(u, zeroed),
            None => zeroed,
        };
        let done = self.flush_disk(sink, Cause::Host, done)?;
        self.forget_blocks(sink, &blocks, done)
    }

    /// Defers the zeroing of the disk to the caller. Parts of blocks that are cached are
    /// overwritten in the cache instead.
    fn defer_zeros(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        if self.deferred_io.flush_in_flight() {
            return Err(Error::WouldBlock);
        }
        let start = sink.start();
        let (mut from, mut to) = (at, at + bytes);
        let (first, last) = (from.div_ceil(BLOCK_BYTES), to / BLOCK_BYTES);
        let cached = |c: &Self, byte: u64| c.dir.get(Lbn::at_byte(byte)).is_some();
        if !from.is_multiple_of(BLOCK_BYTES) && cached(self, from) {
            let end = to.min(first * BLOCK_BYTES);
            self.zero_cached(sink, from, end - from)?;
            from = end;
        }
        if from < to && !to.is_multiple_of(BLOCK_BYTES) && cached(self, to) {
            let begin = from.max(last * BLOCK_BYTES);
            self.zero_cached(sink, begin, to - begin)?;
            to = begin;
        }
        if from < to {
            self.space.settle(sink, start);
            self.disk.emit_deferred(sink, Op::DiskWrite, from, to - from, Cause::Host, start)?;
            self.begin_flush();
            self.deferred_io.now =
                vec![BlockingAccess::Zero { at: from, len: to - from }, BlockingAccess::Sync];
            self.deferred_io.zeroed = Some(Lbn::of_u64(first)..Lbn::of_u64(last.max(first)));
        }
        Ok(())
    }

    /// Overwrites a part of a cached block with zeros in any mode. The disk gets them with a later
    /// writeback.
    fn zero_cached(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        for span in spans(at, bounded_u32(bytes)) {
            let access = self.access(span.lbn, true);
            self.write_cached(sink, span, zeros_on(self.stores_bytes(), span.bytes()), &access)?;
        }
        self.commit(sink)
    }

    /// Removes blocks from the cache. `done` is the completion after which the zeros are durable on
    /// the disk.
    pub(super) fn forget_blocks(&mut self, sink: &mut Sink, range: &Range<Lbn>, done: Tok) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let done = self.end_earlier_versions(sink, range, done)?;
        let mut blocks = BucketBlocks::default();
        let mut from = range.start.bucket();
        let mut gone = Vec::new();
        while let Some(bucket) = self.dir.next_active(from).filter(|&b| b >= from && b.block(0) < range.end) {
            self.dir.blocks_of(bucket, &mut blocks);
            gone.extend(blocks.iter().filter(|(lbn, _)| range.contains(lbn)));
            from = bucket.plus(1);
            if from.0 >= self.dir.buckets() {
                break;
            }
        }
        let mut freed = Vec::with_capacity(gone.len());
        for (lbn, slot) in gone {
            let flags = self.dir.flags(slot);
            if flags & (EVICT | DAMAGED) == 0 {
                self.policy.remove(slot, lbn);
            }
            self.in_flight.evicting -= u32::from(flags & EVICT != 0);
            self.dir.remove(lbn);
            self.space.end_record(sink, slot, RecordEnd::Evicted, done)?;
            // The slot of a block in flight is freed when its writeback completes.
            if flags & PINNED == 0 || flags & DAMAGED != 0 {
                freed.push(slot);
            }
        }
        let done = self.space.settle(sink, done);
        for (i, slot) in freed.into_iter().enumerate() {
            self.give_back(slot, done, i > 0);
        }
        if !is_planted(CacheBug::TrimNotAcked) {
            sink.ack(done);
        }
        Ok(())
    }

    /// Ends the records of earlier versions of these blocks, which were being written back when the
    /// blocks were written again. Otherwise a recovery could take one of them for current, once the
    /// slot of the last version is in use for another block. Returns the completion after which the
    /// records of the last versions may end.
    fn end_earlier_versions(&mut self, sink: &mut Sink, range: &Range<Lbn>, done: Tok) -> Result<Tok> {
        let earlier = |v: &&Victim| range.contains(&v.lbn) && self.dir.get(v.lbn) != Some(v.slot);
        let in_flight = self.in_flight.blocks.iter().chain(self.deferred_io.blocks());
        let slots: Vec<_> = in_flight.filter(earlier).map(|v| v.slot).collect();
        if slots.is_empty() {
            return Ok(done);
        }
        for slot in slots {
            self.space.end_record(sink, slot, RecordEnd::Moved, done)?;
        }
        Ok(self.space.settle(sink, done))
    }

    /// Makes all acknowledged writes survive a power loss.
    pub(super) fn flush_all(&mut self, sink: &mut Sink) -> Result<()> {
        if is_planted(CacheBug::FlushIgnored) {
            return Ok(());
        }
        // If writes were refused or may be lost, a flush must not report success.
        self.health.writable()?;
        // The result of a flush in flight is not known yet, and the medium reports a failure only
        // to the request that it belongs to. So the caller must repeat this flush after that one.
        if self.deferred_io.flush_in_flight() {
            return Err(Error::WouldBlock);
        }
        if self.deferred_io.on() && self.unflushed.is_some() {
            return self.defer_flush(sink);
        }
        if let Some(after) = self.unflushed {
            self.flush_disk(sink, Cause::Host, after)?;
        }
        // A flush that was issued for another reason covers direct writes too.
        sink.ack(self.flushed);
        self.sync_pcm(sink)
    }

    /// Syncs PCM and advances the mark. Records below the mark are known to be complete, so that
    /// later damage to them is distinguished from a torn write.
    pub(super) fn sync_pcm(&mut self, sink: &mut Sink) -> Result<()> {
        self.commit(sink)?;
        if self.space.seq > self.space.mark {
            self.space.set_mark(sink)?;
        }
        if self.space.volatile() && !is_planted(CacheBug::FlushOneMedium) {
            self.sync_slots(sink)?;
        }
        Ok(())
    }
}
