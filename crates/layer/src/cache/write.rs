//! Writes: into a slot, over a block that is cached, or past the cache.

use super::BLOCK_BYTES;
use super::config::{Mode, Overwrite};
use super::directory::PINNED;
use super::flying::{DAMAGED, LEAVES};
use super::layer::{Cache, Span, spans};
use super::policy::{Access, Victim, WriteCache};
use super::space::{FRAGMENT, runs};
use crate::Token;
use crate::record::End;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Error, MediumKind, Op, Result, Sink, SlowAccess, Source, Target};
use frit_media::Store;

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    pub(super) fn write_range<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        at: u64,
        data: Source<'_>,
    ) -> Result<()> {
        self.writable()?;
        let bypass = self.config.bypass_bytes;
        let stream = if bypass > 0 { self.streams.write(at, u64::from(data.len())) } else { 0 };
        if self.config.mode == Mode::WriteThrough {
            self.free_to(at, at + u64::from(data.len()), true)?;
        }
        let direct = self.config.around() || bypass > 0 && stream >= bypass;
        if direct {
            self.free_to(at, at + u64::from(data.len()), true)?;
        }
        // Bytes of the request that go to the disk together: from, to.
        let mut run = (0, 0);
        for span in spans(at, data.len()) {
            let part = data.part(span.from, span.bytes());
            let access = self.access(span.lbn, true);
            if direct && self.makes_way(sink, span.lbn)? {
                if run.1 != span.from {
                    self.write_direct(sink, at, data, run)?;
                    run.0 = span.from;
                }
                run.1 = span.from + span.bytes();
                self.stats.direct += 1;
                continue;
            }
            self.write_cached(sink, span, part, &access)?;
        }
        self.write_direct(sink, at, data, run)?;
        self.commit(sink)?;
        if self.config.mode == Mode::WriteThrough {
            self.write_through(sink, at, data)?;
        }
        self.keep_room(sink)
    }

    /// Whether a cached block goes when a write passes it. What is dirty, or on its way, is written where it is: the
    /// disk comes later.
    pub(super) fn may_pass(&self, slot: u32) -> bool {
        !self.dir.dirty(slot) && self.dir.flags(slot) & (PINNED | DAMAGED) == 0 && self.config.around()
    }

    /// Whether a write that goes to the disk may pass this block: it is not there, or was clean and goes.
    fn makes_way<S: Sink<Tok = T>>(&mut self, sink: &mut S, lbn: u32) -> Result<bool> {
        let Some(slot) = self.dir.get(lbn) else { return Ok(true) };
        if !self.may_pass(slot) {
            return Ok(false);
        }
        // The disk has it once it was flushed.
        let gone = self.space.end_record(sink, slot, End::Left, self.flushed)?;
        let free = self.space.settle(sink, gone);
        self.dir.remove(lbn);
        self.policy.remove(slot, lbn);
        self.give_back(slot, free, false);
        Ok(true)
    }

    /// Writes a part of a request past the cache. Records of these blocks are gone for certain before, so
    /// that none comes back over what the disk has now.
    fn write_direct<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        at: u64,
        data: Source<'_>,
        (from, to): (u32, u32),
    ) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let start = sink.start();
        let after = self.space.settle(sink, start);
        if self.left.on() {
            let part = SlowAccess::Write { at: at + u64::from(from), from: from as usize..to as usize };
            self.disk.note(
                sink,
                Op::DiskWrite,
                at + u64::from(from),
                u64::from(to - from),
                Cause::Host,
                after,
            )?;
            self.left.now.push(part);
            return Ok(());
        }
        let part = data.part(from, to - from);
        let done = self.disk.write(sink, at + u64::from(from), part, Cause::Host, after);
        let done = self.of_disk(done)?;
        self.not_flushed(sink, done);
        sink.ack(done);
        Ok(())
    }

    /// The disk acknowledged something that a flush has to wait for.
    pub(super) fn not_flushed<S: Sink<Tok = T>>(&mut self, sink: &mut S, tok: T) {
        self.unflushed = Some(match self.unflushed {
            Some(u) => sink.join(u, tok),
            None => tok,
        });
    }

    /// Writes a request to the disk as well, once it is certain in the cache.
    fn write_through<S: Sink<Tok = T>>(&mut self, sink: &mut S, at: u64, data: Source<'_>) -> Result<()> {
        let after = self.space.fenced();
        if self.left.on() {
            return self.leave_through(sink, at, data, after);
        }
        let done = match self.disk.write(sink, at, data, Cause::Host, after) {
            Ok(done) => done,
            Err(e) => {
                // The cache has it, dirty: the request is as good as done, and the disk is tried again.
                drop(self.of_disk::<T>(Err(e)));
                self.was_disk();
                return Ok(());
            }
        };
        sink.ack(done);
        self.flies_until(sink, done);
        for v in self.written_through(at, data.len()) {
            self.take_off(v, false);
        }
        if self.many_fly() { self.land(sink).map(|_| ()) } else { Ok(()) }
    }

    /// Blocks of a request of which the disk has all, once it has the request.
    fn written_through(&self, at: u64, len: u32) -> Vec<Victim> {
        let whole = |span: Span| {
            let slot = self.dir.get(span.lbn)?;
            let all = self.dir.flags(slot) & PINNED == 0 && self.dir.valid(slot) & !span.mask() == 0;
            all.then_some(Victim { lbn: span.lbn, slot })
        };
        spans(at, len).filter_map(whole).collect()
    }

    /// As [`Cache::write_through`], with the write left to others: the request is done when the disk has it.
    fn leave_through<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        at: u64,
        data: Source<'_>,
        after: T,
    ) -> Result<()> {
        let len = data.len();
        self.disk.note(sink, Op::DiskWrite, at, u64::from(len), Cause::Host, after)?;
        let blocks = self.written_through(at, len);
        blocks.iter().for_each(|v| self.pin(v.slot, false));
        self.left.now.push(SlowAccess::Write { at, from: 0..len as usize });
        self.left.through = Some(blocks);
        Ok(())
    }

    /// Writes a part of a block into the cache.
    pub(super) fn write_cached<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        access: &Access,
    ) -> Result<()> {
        if self.config.overwrite == Overwrite::InPlace
            && let Some(slot) = self.dir.get(span.lbn)
            && self.dir.flags(slot) & PINNED == 0
        {
            return self.write_in_place(sink, span, data, access, slot);
        }
        let (to, after) = self.take_slot(sink)?;
        // Making room may have let the block go: it is looked for only now.
        let put = match self.dir.get(span.lbn) {
            Some(from) => self.put_over(sink, span, data, access, (from, to), after),
            None => self.put_new(sink, span, data, access, to, after),
        };
        if put.is_err() && self.dir.get(span.lbn) != Some(to) {
            self.give_back(to, after, false);
        }
        put?;
        self.dir.touch(span.lbn, self.clock);
        Ok(())
    }

    fn put_new<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        access: &Access,
        slot: u32,
        after: T,
    ) -> Result<()> {
        self.policy.miss(access);
        self.put(sink, slot, (span.lbn, span.mask()), (span, data), after)?;
        self.dir.insert(span.lbn, slot, span.mask(), true);
        self.policy.insert(slot, access);
        self.stats.write_misses += 1;
        Ok(())
    }

    /// Writes a block that is cached to another slot, with what it has of it already.
    fn put_over<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        access: &Access,
        (from, to): (u32, u32),
        mut after: T,
    ) -> Result<()> {
        let old = self.dir.valid(from);
        let kept = old & !span.mask();
        if kept != 0 {
            let read = self.fetch(sink, span.lbn, from, kept, Cause::Merge)?;
            after = sink.join(after, read);
        }
        let valid = old | span.mask();
        self.put(sink, to, (span.lbn, valid), (span, data), after)?;
        let flags = self.dir.flags(from);
        self.dir.relocate(span.lbn, from, to);
        self.dir.set_flags(to, 0);
        self.dir.set_valid(to, valid);
        self.dir.set_dirty(span.lbn, to, true);
        self.flying.leaving -= u32::from(flags & LEAVES != 0);
        if flags & (LEAVES | DAMAGED) != 0 {
            // The policy had let it go.
            self.policy.insert(to, access);
        } else {
            self.policy.moved(from, to);
            self.policy.hit(to, access);
        }
        if flags & DAMAGED != 0 || flags & PINNED == 0 {
            self.replaced.push(from);
        }
        self.stats.write_hits += 1;
        Ok(())
    }

    /// Writes a block to a slot: `data` in its place, the rest from the block buffer.
    fn put<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        slot: u32,
        record: (u32, u8),
        (span, data): (Span, Source<'_>),
        after: T,
    ) -> Result<()> {
        if span.mask() == 0xFF {
            return self.space.write_block(sink, slot, record, data, Cause::Host, after);
        }
        let Some(bytes) = data.bytes() else {
            let block = Source::Len(BLOCK_BYTES as u32);
            return self.space.write_block(sink, slot, record, block, Cause::Host, after);
        };
        let from = (span.first * FRAGMENT) as usize;
        self.block[from..from + bytes.len()].copy_from_slice(bytes);
        self.space.write_block(sink, slot, record, Source::Bytes(&self.block), Cause::Host, after)
    }

    /// The paper's way: a block is written where it lies.
    fn write_in_place<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        access: &Access,
        slot: u32,
    ) -> Result<()> {
        let old = self.dir.valid(slot);
        let valid = old | span.mask();
        let after = sink.start();
        if P::HOLDS && old & !span.mask() != 0 {
            self.load(span.lbn, slot)?;
        }
        self.space.write_over(sink, slot, (span.lbn, old), (span, data), &mut self.block, after)?;
        self.dir.set_valid(slot, valid);
        self.dir.set_dirty(span.lbn, slot, true);
        self.policy.hit(slot, access);
        self.dir.touch(span.lbn, self.clock);
        self.stats.write_hits += 1;
        Ok(())
    }

    /// Reads the `wanted` fragments of a cached block into the block buffer, checked, and says when that is
    /// done.
    pub(super) fn fetch<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lbn: u32,
        slot: u32,
        wanted: u8,
        cause: Cause,
    ) -> Result<T> {
        let start = sink.start();
        let mut done = start;
        for (first, n) in runs(wanted) {
            let tok = self.space.read(sink, slot, first, Target::Len(n * FRAGMENT), cause, start)?;
            done = sink.join(done, tok);
        }
        if P::HOLDS {
            self.load(lbn, slot)?;
        }
        Ok(done)
    }

    /// The valid fragments of a cached block, in the block buffer.
    ///
    /// # Errors
    /// `Corrupt` when they are not what was written.
    pub(super) fn load(&mut self, lbn: u32, slot: u32) -> Result<()> {
        let valid = self.dir.valid(slot);
        match self.space.record(slot)? {
            Some(r) if r.lbn == lbn && r.valid == valid => {
                if self.space.load(slot, &r, &mut self.block)? {
                    return Ok(());
                }
                Err(self.corrupt(lbn, slot, "the data is not what was written"))
            }
            Some(r) => {
                let what = format!("its record is of block {} with fragments {:08b}", r.lbn, r.valid);
                Err(self.corrupt(lbn, slot, &what))
            }
            None => Err(self.corrupt(lbn, slot, "its record is damaged")),
        }
    }

    pub(super) fn corrupt(&self, lbn: u32, slot: u32, what: &str) -> Error {
        Error::Corrupt {
            medium: MediumKind::Pcm,
            at: self.space.layout.data(slot),
            what: format!("block {lbn} of the disk, cached in slot {slot}: {what}"),
        }
    }

    /// Makes what was written certain: a fence, then the records of earlier versions go.
    pub(super) fn commit<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let Some(done) = self.space.fence(sink) else { return Ok(()) };
        sink.ack(done);
        let mut replaced = std::mem::take(&mut self.replaced);
        for (i, &slot) in replaced.iter().enumerate() {
            let after = if is(Bug::OldRecordFirst) { sink.start() } else { done };
            if self.space.keeps(slot) {
                continue;
            }
            if !is(Bug::OldRecordStays) {
                self.space.end_record(sink, slot, End::Moved, after)?;
            }
            self.give_back(slot, done, i > 0);
        }
        replaced.clear();
        self.replaced = replaced;
        if self.space.mark_due() {
            self.space.set_mark(sink)?;
        }
        Ok(())
    }
}

const _: () = assert!(FRAGMENT as u64 == frit_core::SECTOR_BYTES);
