//! Discards, and flushes.

use super::BLOCK_BYTES;
use super::directory::{BUCKET_BLOCKS, BucketBlocks, PINNED};
use super::flying::{DAMAGED, LEAVES};
use super::layer::{Cache, spans};
use super::policy::WriteCache;
use crate::Token;
use crate::record::End;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Error, Op, Result, SECTOR_BYTES, Sink, SlowAccess, Source};
use frit_media::Store;

/// Zeros, for parts of blocks.
static ZEROS: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    /// Makes a range read as zeros: whole blocks leave the cache once the disk has zeros for certain, parts
    /// of blocks are written.
    pub(super) fn discard_range<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        at: u64,
        bytes: u64,
    ) -> Result<()> {
        self.writable()?;
        self.free_to(at, at + bytes, true)?;
        if self.left.on() {
            return self.leave_zeros(sink, at, bytes);
        }
        let end = at + bytes;
        let (first, last) = (at.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
        if first >= last {
            // Inside one block, or across the border of two.
            let border = (first * BLOCK_BYTES).clamp(at, end);
            self.write_zeros(sink, at, border - at)?;
            return self.write_zeros(sink, border, end - border);
        }
        self.write_zeros(sink, at, first * BLOCK_BYTES - at)?;
        self.write_zeros(sink, last * BLOCK_BYTES, end - last * BLOCK_BYTES)?;
        self.drop_blocks(sink, first as u32, last as u32)
    }

    fn write_zeros<S: Sink<Tok = T>>(&mut self, sink: &mut S, at: u64, bytes: u64) -> Result<()> {
        debug_assert!(bytes < BLOCK_BYTES && bytes.is_multiple_of(SECTOR_BYTES));
        if bytes == 0 {
            return Ok(());
        }
        let zeros =
            if P::HOLDS { Source::Bytes(&ZEROS[..bytes as usize]) } else { Source::Len(bytes as u32) };
        self.write_range(sink, at, zeros)
    }

    /// Zeros the blocks from `first` to before `last` on the disk and takes them out of the cache.
    fn drop_blocks<S: Sink<Tok = T>>(&mut self, sink: &mut S, first: u32, last: u32) -> Result<()> {
        let start = sink.start();
        let settled = self.space.settle(sink, start);
        let (at, len) = (u64::from(first) * BLOCK_BYTES, u64::from(last - first) * BLOCK_BYTES);
        let zeroed = self.disk.zero(sink, at, len, Cause::Host, settled);
        let zeroed = self.of_disk(zeroed)?;
        let done = match self.unflushed {
            Some(u) => sink.join(u, zeroed),
            None => zeroed,
        };
        let done = self.flush_disk(sink, Cause::Host, done)?;
        self.forget_blocks(sink, first, last, done)
    }

    /// Leaves the zeros to others, but for parts of blocks that are cached: these are written.
    fn leave_zeros<S: Sink<Tok = T>>(&mut self, sink: &mut S, at: u64, bytes: u64) -> Result<()> {
        if self.left.syncs() {
            return Err(Error::Later);
        }
        let start = sink.start();
        let (mut from, mut to) = (at, at + bytes);
        let (first, last) = (from.div_ceil(BLOCK_BYTES), to / BLOCK_BYTES);
        let cached = |c: &Self, byte: u64| c.dir.get((byte / BLOCK_BYTES) as u32).is_some();
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
            self.disk.note(sink, Op::DiskWrite, from, to - from, Cause::Host, start)?;
            self.begin_flush();
            self.left.now = vec![SlowAccess::Zero { at: from, len: to - from }, SlowAccess::Sync];
            self.left.zeroed = Some((first as u32, last.max(first) as u32));
        }
        Ok(())
    }

    /// Writes zeros over a part of a block that is cached, whatever the mode: the disk has them later.
    fn zero_cached<S: Sink<Tok = T>>(&mut self, sink: &mut S, at: u64, bytes: u64) -> Result<()> {
        for span in spans(at, bytes as u32) {
            let access = self.access(span.lbn, true);
            let zeros = Source::Bytes(&ZEROS[..span.bytes() as usize]);
            self.write_cached(sink, span, zeros, &access)?;
        }
        self.commit(sink)
    }

    /// Takes the blocks from `first` to before `last` out of the cache: the disk has zeros for certain after
    /// `done`.
    pub(super) fn forget_blocks<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        first: u32,
        last: u32,
        done: T,
    ) -> Result<()> {
        if first >= last {
            return Ok(());
        }
        let mut blocks = BucketBlocks::default();
        let mut from = self.dir.bucket_of(first);
        let mut gone = Vec::new();
        while let Some(bucket) = self.dir.next_active(from).filter(|&b| b >= from && b * BUCKET_BLOCKS < last)
        {
            self.dir.blocks_of(bucket, &mut blocks);
            gone.extend(blocks.iter().filter(|(lbn, _)| (first..last).contains(lbn)));
            from = bucket + 1;
            if from >= self.dir.buckets() {
                break;
            }
        }
        let mut freed = Vec::with_capacity(gone.len());
        for (lbn, slot) in gone {
            let flags = self.dir.flags(slot);
            if flags & (LEAVES | DAMAGED) == 0 {
                self.policy.remove(slot, lbn);
            }
            self.flying.leaving -= u32::from(flags & LEAVES != 0);
            self.dir.remove(lbn);
            self.space.end_record(sink, slot, End::Left, done)?;
            // What flies gives its slot back when it lands.
            if flags & PINNED == 0 || flags & DAMAGED != 0 {
                freed.push(slot);
            }
        }
        let done = self.space.settle(sink, done);
        for (i, slot) in freed.into_iter().enumerate() {
            self.give_back(slot, done, i > 0);
        }
        if !is(Bug::TrimNotAcked) {
            sink.ack(done);
        }
        Ok(())
    }

    /// Makes all that was acknowledged outlive the machine.
    pub(super) fn flush_all<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if is(Bug::FlushIgnored) {
            return Ok(());
        }
        // Of what was refused, or may be lost, no flush says that it is there.
        self.writable()?;
        // Whether the one under way succeeds is not known yet, and only its own request is told by the medium.
        if self.left.syncs() {
            return Err(Error::Later);
        }
        if self.left.on() && self.unflushed.is_some() {
            return self.leave_flush(sink);
        }
        if let Some(after) = self.unflushed {
            self.flush_disk(sink, Cause::Host, after)?;
        }
        // A flush that was given for another reason covers what went past the cache as well.
        sink.ack(self.flushed);
        self.outlive(sink)
    }

    /// PCM outlives the machine. What was written before is known to be whole, so that damage to it is told from
    /// a torn write.
    pub(super) fn outlive<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.commit(sink)?;
        if self.space.seq > self.space.mark {
            self.space.set_mark(sink)?;
        }
        if self.space.volatile() && !is(Bug::FlushOneMedium) {
            self.sync_slots(sink)?;
        }
        Ok(())
    }
}
