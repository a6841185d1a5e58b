//! Writes.

use super::config::FlashtierMode;
use super::layer::Flashtier;
use crate::payload::buffered;
use crate::planted::FlashtierBug;
use crate::spans::{PageSpan, page_spans, whole_page_spans};
use crate::tokens::join_into;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, BlockState, CacheDevice, Cause, Error, Result, Sink, Tok, WriteData};

/// Way of a block of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    /// To the device, dirty.
    Cached,
    /// To the disk, and then to the device.
    Through,
    /// To the disk only.
    Direct,
}

/// Consecutive spans of a write that take the same way.
#[derive(Clone, Copy, Debug)]
struct Run {
    path: Path,
    from: u32,
    to: u32,
}

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    /// Writes a range of bytes.
    pub(super) fn write_range(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        let bypass = self.config.bypass_bytes;
        let stream = if bypass > 0 { self.streams.write(at, u64::from(data.len())) } else { 0 };
        let direct = bypass > 0 && stream >= bypass;
        let mut run: Option<Run> = None;
        for span in page_spans(at, data.len(), self.page) {
            let path = self.path_of(span.lpn.0, direct);
            run = match run {
                Some(r) if r.path == path => Some(Run { to: span.from + span.len, ..r }),
                other => {
                    self.write_run(sink, at, data, other)?;
                    Some(Run { path, from: span.from, to: span.from + span.len })
                }
            };
        }
        self.write_run(sink, at, data, run)?;
        self.clean_above_threshold(sink)
    }

    /// Way of a block. A block that is dirty in the device is written there: the disk must not lose the
    /// data that only the device has.
    fn path_of(&self, block: u32, direct: bool) -> Path {
        let through = self.config.mode == FlashtierMode::WriteThrough;
        if !through && !direct {
            return Path::Cached;
        }
        let dirty = self.ssc.state(block) == Some(BlockState::Dirty);
        if dirty && !is_planted(FlashtierBug::DirtyBypassed) {
            Path::Cached
        } else if direct {
            Path::Direct
        } else {
            Path::Through
        }
    }

    fn write_run(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, run: Option<Run>) -> Result<()> {
        let Some(run) = run else { return Ok(()) };
        let (at, data) = (at + u64::from(run.from), data.part(run.from, run.to - run.from));
        match run.path {
            Path::Cached => self.write_cached(sink, at, data),
            Path::Through => self.write_through(sink, at, data),
            Path::Direct => self.write_direct(sink, at, data),
        }
    }

    /// Writes to the device. Runs of whole blocks are written together.
    pub(super) fn write_cached(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        let start = sink.start();
        for part in whole_page_spans(at, data.len(), self.page) {
            let bytes = data.part(part.from, part.len);
            self.stats.written_to_cache += u64::from(part.len.div_ceil(self.page));
            if part.offset == 0 && part.len.is_multiple_of(self.page) {
                self.put_dirty(sink, part.lpn.0, bytes, start)?;
                continue;
            }
            let read = self.load_block(sink, part)?;
            let block = self.merge(part, bytes);
            let put = self.put_dirty(sink, part.lpn.0, buffered(&block, self.page), read);
            self.block = block;
            put?;
        }
        Ok(())
    }

    /// Takes the block buffer, and copies a part of the block into it.
    fn merge(&mut self, part: PageSpan, data: WriteData<'_>) -> Vec<u8> {
        let mut block = std::mem::take(&mut self.block);
        if let Some(bytes) = data.bytes().filter(|_| !block.is_empty()) {
            let from = to_usize(part.offset);
            block[from..from + bytes.len()].copy_from_slice(bytes);
        }
        block
    }

    /// Writes dirty blocks. If the device is full of dirty blocks, some are cleaned first.
    fn put_dirty(&mut self, sink: &mut Sink, first: u32, data: WriteData<'_>, mut after: Tok) -> Result<()> {
        let page = self.page;
        let mut from = 0;
        while from < data.len() {
            // A request may be larger than the device.
            let len = page * self.run_max().min((data.len() - from) / page);
            let block = first + from / page;
            let blocks = block..block + len / page;
            loop {
                match self.ssc.write_dirty(sink, block, data.part(from, len), Cause::Host, after) {
                    Ok(done) => {
                        sink.ack(done);
                        break;
                    }
                    Err(e @ Error::NoSpace { .. }) => {
                        self.stats.waits += 1;
                        self.note_dirty(blocks.clone());
                        let Some(cleaned) = self.clean_batch(sink)? else { return Err(e) };
                        after = sink.join(after, cleaned);
                    }
                    Err(e) => {
                        self.note_dirty(blocks);
                        return Err(e);
                    }
                }
            }
            for block in blocks {
                self.set_dirty(block);
            }
            from += len;
        }
        Ok(())
    }

    /// Notes which blocks of a failed write are dirty: it may have been executed in part.
    fn note_dirty(&mut self, blocks: std::ops::Range<u32>) {
        for block in blocks {
            if self.ssc.state(block) == Some(BlockState::Dirty) {
                self.set_dirty(block);
            }
        }
    }

    fn set_dirty(&mut self, block: u32) {
        self.dirty.insert(block);
        if !self.set_aside.is_empty() {
            self.set_aside.remove(&block);
        }
    }

    /// Blocks that one write gives to the device.
    fn run_max(&self) -> u32 {
        (self.ssc.dirty_limit() / 4).clamp(1, 1 << 16) as u32
    }

    /// Writes to the disk, and then to the device: whole blocks, and blocks that are present.
    fn write_through(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        if let Some(why) = self.ssc.refuses() {
            // It would keep the older version.
            return Err(Error::ReadOnly { why });
        }
        // The old contents are read before they change.
        let mut merged = Vec::new();
        for part in whole_page_spans(at, data.len(), self.page) {
            if part.offset == 0 && part.len.is_multiple_of(self.page) {
                continue;
            }
            if self.ssc.state(part.lpn.0).is_some() {
                let read = self.load_block(sink, part)?;
                let block = self.merge(part, data.part(part.from, part.len));
                merged.push((part.lpn.0, block.clone(), read));
                self.block = block;
            }
        }
        let written = self.write_both(sink, at, data, merged);
        if written.is_err() && !is_planted(FlashtierBug::WornTrusted) {
            // The disk can have the new version.
            let (first, last) = (self.block_of(at), self.block_of(at + u64::from(data.len()) - 1));
            self.ssc.forget_clean(first..last + 1);
        }
        written
    }

    /// Writes to the disk, and then whole blocks and merged ones to the device.
    fn write_both(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        merged: Vec<(u32, Vec<u8>, Tok)>,
    ) -> Result<()> {
        let done = self.write_disk(sink, at, data, self.ready)?;
        for part in whole_page_spans(at, data.len(), self.page) {
            if part.offset != 0 || !part.len.is_multiple_of(self.page) {
                continue;
            }
            self.put_clean(sink, part.lpn.0, data.part(part.from, part.len), done)?;
        }
        for (block, bytes, read) in merged {
            let after = sink.join(done, read);
            self.put_clean(sink, block, buffered(&bytes, self.page), after)?;
        }
        Ok(())
    }

    /// Writes clean blocks. If there is no space for them, older versions of them are evicted.
    fn put_clean(&mut self, sink: &mut Sink, first: u32, data: WriteData<'_>, after: Tok) -> Result<()> {
        self.stats.written_to_cache += u64::from(data.len() / self.page);
        match self.ssc.write_clean(sink, first, data, Cause::Host, after) {
            Ok(done) => {
                sink.ack(done);
                Ok(())
            }
            Err(Error::NoSpace { .. }) => {
                let evicted = self.ssc.evict(sink, first..first + data.len() / self.page, after)?;
                sink.ack(evicted);
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Writes to the disk, past the cache. Clean blocks are evicted before, so that a recovery cannot find
    /// older versions of them.
    pub(super) fn write_direct(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>) -> Result<()> {
        let after = self.evict_range(sink, at, u64::from(data.len()))?;
        self.stats.direct_writes += 1;
        self.write_disk(sink, at, data, after).map(|_| ())
    }

    /// Evicts all blocks that a range touches, and returns the token after which the disk may change.
    pub(super) fn evict_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<Tok> {
        let (first, last) = (self.block_of(at), self.block_of(at + bytes - 1));
        let start = sink.start();
        let evicted = self.ssc.evict(sink, first..last + 1, start)?;
        for block in self.dirty.range(first..=last).collect::<Vec<_>>() {
            self.dirty.remove(block);
            self.set_aside.remove(&block);
        }
        let evicted = if is_planted(FlashtierBug::EvictNotOrdered) { start } else { evicted };
        Ok(sink.join(self.ready, evicted))
    }

    fn write_disk(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        let after = sink.join(self.ready, after);
        let done = self.disk.write(sink, at, data, Cause::Host, after)?;
        sink.ack(done);
        join_into(sink, &mut self.unflushed, done);
        Ok(done)
    }
}
