//! Writes: into a free slot, over a cached block, or directly to the disk.

use super::BLOCK_LEN;
use super::block_span::{BlockSpan, SpanData, spans};
use super::config::{CacheMode, Overwrite};
use super::directory::PINNED;
use super::fragments::{BlockFragments, FRAGMENT, runs};
use super::in_flight::{DAMAGED, EVICT};
use super::layer::Cache;
use super::policy::{CacheAccess, EvictionPolicy, Victim};
use crate::numbers::{CacheSlot, Lbn};
use crate::planted::CacheBug;
use crate::record::RecordEnd;
use crate::tokens::join_into;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, BlockingAccess, Cause, Error, MediumKind, Op, ReadTarget, Result, Sink, Tok, WriteData,
};
use std::ops::Range;

impl<D: BlockDevice + ?Sized> Cache<D> {
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        self.health.writable()?;
        let bypass = self.config.bypass_bytes;
        let stream = if bypass > 0 { self.streams.write(at, u64::from(data.len())) } else { 0 };
        // A conflict is detected before anything changes, so that the caller can repeat the
        // request.
        if self.config.mode == CacheMode::WriteThrough {
            self.check_no_conflict(at, at + u64::from(data.len()), true)?;
        }
        let direct = self.config.around() || bypass > 0 && stream >= bypass;
        if direct {
            self.check_no_conflict(at, at + u64::from(data.len()), true)?;
        }
        // Bytes of the request that the next direct write to the disk carries.
        let mut run: Range<u32> = 0..0;
        for span in spans(at, data.len()) {
            let part = data.part(span.from, span.bytes());
            let access = self.access(span.lbn, true);
            if direct && self.drop_for_direct(sink, span.lbn)? {
                if run.end != span.from {
                    self.write_direct(sink, at, data, &run)?;
                    run.start = span.from;
                }
                run.end = span.from + span.bytes();
                self.stats.direct += 1;
                continue;
            }
            self.write_cached(sink, span, part, &access)?;
        }
        self.write_direct(sink, at, data, &run)?;
        self.commit(sink)?;
        if self.config.mode == CacheMode::WriteThrough {
            self.write_through(sink, at, data)?;
        }
        self.evict_to_threshold(sink)
    }

    /// Returns `true` if a write that bypasses the cache may drop this cached block. A block that
    /// is dirty or in flight is written in the cache instead, because its writeback would otherwise
    /// overwrite the newer data on the disk.
    pub(super) fn may_bypass(&self, slot: CacheSlot) -> bool {
        !self.dir.dirty(slot) && self.dir.flags(slot) & (PINNED | DAMAGED) == 0 && self.config.around()
    }

    /// Returns `true` if a direct write may bypass the cache for this block: it is not cached, or
    /// was clean and is dropped.
    fn drop_for_direct(&mut self, sink: &mut Sink, lbn: Lbn) -> Result<bool> {
        let Some(slot) = self.dir.get(lbn) else { return Ok(true) };
        if !self.may_bypass(slot) {
            return Ok(false);
        }
        // The record may only go after the flush that made the block durable on the disk.
        let gone = self.space.end_record(sink, slot, RecordEnd::Evicted, self.flushed)?;
        let free = self.space.settle(sink, gone);
        self.dir.remove(lbn);
        self.policy.remove(slot, lbn);
        self.give_back(slot, free, false);
        Ok(true)
    }

    /// Writes a part of a request directly to the disk. The removal of the records of these blocks
    /// is made durable before, so that a recovery cannot restore an old version over the new data
    /// on the disk.
    fn write_direct(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        run: &Range<u32>,
    ) -> Result<()> {
        if run.is_empty() {
            return Ok(());
        }
        let (from, to) = (run.start, run.end);
        let start = sink.start();
        let after = self.space.settle(sink, start);
        if self.deferred_io.on() {
            let part = BlockingAccess::Write { at: at + u64::from(from), from: to_usize(from)..to_usize(to) };
            self.disk.emit_deferred(
                sink,
                Op::DiskWrite,
                at + u64::from(from),
                u64::from(to - from),
                Cause::Host,
                after,
            )?;
            self.deferred_io.now.push(part);
            return Ok(());
        }
        let part = data.part(from, to - from);
        let done = self.disk.write(sink, at + u64::from(from), part, Cause::Host, after);
        let done = self.check_disk(done)?;
        self.note_unflushed(sink, done);
        sink.ack(done);
        Ok(())
    }

    /// Notes a write that the disk has acknowledged and that the next flush must cover.
    pub(super) fn note_unflushed(&mut self, sink: &mut Sink, tok: Tok) {
        join_into(sink, &mut self.unflushed, tok);
    }

    /// Writes a request to the disk as well, after it is durable in the cache.
    fn write_through(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        let after = self.space.fenced();
        if self.deferred_io.on() {
            return self.defer_write_through(sink, at, data, after);
        }
        let done = match self.disk.write(sink, at, data, Cause::Host, after) {
            Ok(done) => done,
            Err(e) => {
                // The cache holds the data, dirty and durable: the request succeeds, and the write
                // to the disk is repeated later.
                drop(self.check_disk::<Tok>(Err(e)));
                self.take_disk_error();
                return Ok(());
            }
        };
        sink.ack(done);
        self.wait_for_write(sink, done);
        for v in self.written_through(at, data.len()) {
            self.begin_writeback(v, false);
        }
        if self.too_many_in_flight() { self.complete_writebacks(sink).map(|_| ()) } else { Ok(()) }
    }

    /// Returns the blocks of a request that are clean once the disk has the request, because all of
    /// their valid fragments are part of it.
    fn written_through(&self, at: u64, len: u32) -> Vec<Victim> {
        let whole = |span: BlockSpan| {
            let slot = self.dir.get(span.lbn)?;
            let all = self.dir.flags(slot) & PINNED == 0 && self.dir.valid(slot) & !span.mask() == 0;
            all.then_some(Victim { lbn: span.lbn, slot })
        };
        spans(at, len).filter_map(whole).collect()
    }

    /// Variant of [`Cache::write_through`] that defers the write. The request is complete when the
    /// caller has written to the disk.
    fn defer_write_through(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<()> {
        let len = data.len();
        self.disk.emit_deferred(sink, Op::DiskWrite, at, u64::from(len), Cause::Host, after)?;
        let blocks = self.written_through(at, len);
        blocks.iter().for_each(|v| self.pin(v.slot, false));
        self.deferred_io.now.push(BlockingAccess::Write { at, from: 0..to_usize(len) });
        self.deferred_io.through = Some(blocks);
        Ok(())
    }

    /// Writes a part of a block into the cache.
    pub(super) fn write_cached(
        &mut self,
        sink: &mut Sink,
        span: BlockSpan,
        data: WriteData<'_>,
        access: &CacheAccess,
    ) -> Result<()> {
        if self.config.overwrite == Overwrite::InPlace
            && let Some(slot) = self.dir.get(span.lbn)
            && self.dir.flags(slot) & PINNED == 0
        {
            return self.write_in_place(sink, span, data, access, slot);
        }
        let (to, after) = self.alloc_slot(sink)?;
        // `alloc_slot` may have evicted the block, so the directory is searched only now.
        let put = match self.dir.get(span.lbn) {
            Some(from) => self.put_over(sink, SpanData { span, data }, access, from, to, after),
            None => self.put_new(sink, span, data, access, to, after),
        };
        // The directory does not use the new slot, so it is free again.
        if put.is_err() && self.dir.get(span.lbn) != Some(to) {
            self.give_back(to, after, false);
        }
        put?;
        self.dir.touch(span.lbn, self.clock);
        Ok(())
    }

    fn put_new(
        &mut self,
        sink: &mut Sink,
        span: BlockSpan,
        data: WriteData<'_>,
        access: &CacheAccess,
        slot: CacheSlot,
        after: Tok,
    ) -> Result<()> {
        self.policy.miss(access);
        let fragments = BlockFragments { lbn: span.lbn, valid: span.mask() };
        self.put(sink, slot, fragments, SpanData { span, data }, after)?;
        self.dir.insert(span.lbn, slot, span.mask(), true);
        self.policy.insert(slot, access);
        self.stats.write_misses += 1;
        Ok(())
    }

    /// Writes a cached block to another slot, merged with its fragments that the request does not
    /// overwrite.
    fn put_over(
        &mut self,
        sink: &mut Sink,
        new: SpanData<'_>,
        access: &CacheAccess,
        from: CacheSlot,
        to: CacheSlot,
        mut after: Tok,
    ) -> Result<()> {
        let span = new.span;
        let old = self.dir.valid(from);
        let kept = old & !span.mask();
        if kept != 0 {
            let read = self.fetch(sink, span.lbn, from, kept, Cause::Merge)?;
            after = sink.join(after, read);
        }
        let valid = old | span.mask();
        self.put(sink, to, BlockFragments { lbn: span.lbn, valid }, new, after)?;
        let flags = self.dir.flags(from);
        self.dir.relocate(span.lbn, from, to);
        self.dir.set_flags(to, 0);
        self.dir.set_valid(to, valid);
        self.dir.set_dirty(span.lbn, to, true);
        self.in_flight.evicting -= u32::from(flags & EVICT != 0);
        if flags & (EVICT | DAMAGED) != 0 {
            // The policy does not know the block any more.
            self.policy.insert(to, access);
        } else {
            self.policy.moved(from, to);
            self.policy.hit(to, access);
        }
        // The slot of a block in flight is freed when its writeback completes.
        if flags & DAMAGED != 0 || flags & PINNED == 0 {
            self.replaced.push(from);
        }
        self.stats.write_hits += 1;
        Ok(())
    }

    /// Writes a block to a slot: the new data at its position, all other fragments from the block
    /// buffer.
    fn put(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        fragments: BlockFragments,
        new: SpanData<'_>,
        after: Tok,
    ) -> Result<()> {
        let SpanData { span, data } = new;
        if span.mask() == 0xFF {
            return self.space.write_block(sink, slot, fragments, data, Cause::Host, after);
        }
        let Some(bytes) = data.bytes() else {
            let block = WriteData::Len(BLOCK_LEN);
            return self.space.write_block(sink, slot, fragments, block, Cause::Host, after);
        };
        let from = to_usize(span.first * FRAGMENT);
        self.block[from..from + bytes.len()].copy_from_slice(bytes);
        self.space.write_block(sink, slot, fragments, WriteData::Bytes(&self.block), Cause::Host, after)
    }

    /// Overwrites a block in place, as the paper does.
    fn write_in_place(
        &mut self,
        sink: &mut Sink,
        span: BlockSpan,
        data: WriteData<'_>,
        access: &CacheAccess,
        slot: CacheSlot,
    ) -> Result<()> {
        let old = self.dir.valid(slot);
        let valid = old | span.mask();
        let after = sink.start();
        // The digest of the new record also covers the fragments that are not overwritten.
        if self.stores_bytes() && old & !span.mask() != 0 {
            self.load(span.lbn, slot)?;
        }
        let fragments = BlockFragments { lbn: span.lbn, valid: old };
        self.space.write_over(sink, slot, fragments, SpanData { span, data }, &mut self.block, after)?;
        self.dir.set_valid(slot, valid);
        self.dir.set_dirty(span.lbn, slot, true);
        self.policy.hit(slot, access);
        self.dir.touch(span.lbn, self.clock);
        self.stats.write_hits += 1;
        Ok(())
    }

    /// Reads the `wanted` fragments of a cached block into the block buffer, verifies them, and
    /// returns the completion of the read.
    pub(super) fn fetch(
        &mut self,
        sink: &mut Sink,
        lbn: Lbn,
        slot: CacheSlot,
        wanted: u8,
        cause: Cause,
    ) -> Result<Tok> {
        let start = sink.start();
        let mut done = start;
        for run in runs(wanted) {
            let tok = self.space.read(sink, slot, run.first, ReadTarget::Len(run.bytes()), cause, start)?;
            done = sink.join(done, tok);
        }
        if self.stores_bytes() {
            self.load(lbn, slot)?;
        }
        Ok(done)
    }

    /// Loads the valid fragments of a cached block into the block buffer.
    ///
    /// # Errors
    /// Returns `Corrupt` if the data does not match its record.
    pub(super) fn load(&mut self, lbn: Lbn, slot: CacheSlot) -> Result<()> {
        let valid = self.dir.valid(slot);
        match self.space.record(slot)? {
            Some(r) if r.lbn() == lbn && r.valid == valid => {
                if self.space.load(slot, &r, &mut self.block)? {
                    return Ok(());
                }
                Err(self.corrupt(lbn, slot, "the data does not match its checksum"))
            }
            Some(r) => {
                let what = format!("its record is of block {} with fragments {:08b}", r.lbn, r.valid);
                Err(self.corrupt(lbn, slot, &what))
            }
            None => Err(self.corrupt(lbn, slot, "its record is damaged")),
        }
    }

    pub(super) fn corrupt(&self, lbn: Lbn, slot: CacheSlot, what: &str) -> Error {
        Error::Corrupt {
            medium: MediumKind::Pcm,
            at: self.space.layout.data(slot),
            what: format!("block {lbn} of the disk, cached in slot {slot}: {what}"),
        }
    }

    /// Makes the data of the request durable with a fence, and then ends the records of earlier
    /// versions.
    pub(super) fn commit(&mut self, sink: &mut Sink) -> Result<()> {
        let Some(done) = self.space.fence(sink) else { return Ok(()) };
        sink.ack(done);
        let mut replaced = std::mem::take(&mut self.replaced);
        let free = self.space.replaced_after(sink, done, &replaced);
        for (i, &slot) in replaced.iter().enumerate() {
            let after = if is_planted(CacheBug::OldRecordFirst) { sink.start() } else { done };
            // Over files the new version is not synced yet, so the record of the old one must stay.
            if self.space.keeps(slot) {
                continue;
            }
            if !is_planted(CacheBug::OldRecordStays) {
                self.space.end_record(sink, slot, RecordEnd::Moved, after)?;
            }
            self.give_back(slot, free, i > 0);
        }
        replaced.clear();
        self.replaced = replaced;
        if self.space.mark_due() {
            self.space.set_mark(sink)?;
        }
        Ok(())
    }
}
