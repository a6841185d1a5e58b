//! Writes, write-backs and evictions.

use super::pages::{CachedPage, Sectors, bytes_of, range_of};
use super::{DramCache, Entry, PagePart, RECENT_MAX, WriteBack};
use frit_core::{BlockDevice, Cause, Nanos, ReadTarget, Result, Sink, Tok, WriteData};

/// Pages of a request that enter the cache together.
#[derive(Default)]
struct Batch {
    /// Parts whose data are written to the device at once.
    cold: Vec<PagePart>,
    /// Sectors of pages that the cache did not have.
    new: Vec<(u64, Sectors)>,
    /// Dirty pages that were evicted.
    evicted: Vec<(u64, CachedPage)>,
    /// Bytes that enter the DRAM.
    written: u64,
}

impl Batch {
    /// Bytes of evicted pages.
    fn evicted_bytes(&self) -> u64 {
        self.evicted.iter().map(|(_, page)| bytes_of(page.present)).sum()
    }

    /// Bytes on their way to the device.
    fn write_back(&self) -> u64 {
        self.evicted_bytes() + self.cold.iter().map(|part| u64::from(part.len())).sum::<u64>()
    }
}

impl DramCache {
    /// Writes into the DRAM, as soon as the data on their way to the device are below their limit.
    pub(super) fn write_cached(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<Tok> {
        self.complete(sink);
        self.version += 1;
        let limit = self.base.config.write_back;
        let mut under_way: u64 = self.writes.iter().map(|write| write.bytes).sum();
        let mut done = after;
        let parts = self.parts(at, u64::from(data.len()));
        let mut rest = parts.iter().peekable();
        while rest.peek().is_some() {
            // Parts that need not wait enter together. The others enter one by one.
            let instead = self.oldest(sink, under_way);
            let mut batch = Batch::default();
            while let Some(part) = rest.next() {
                self.add(part, data.part(part.from, part.len()), &mut batch);
                let full = limit > 0 && under_way + batch.write_back() >= limit;
                if full || rest.peek().is_none() {
                    break;
                }
            }
            under_way += batch.write_back();
            let entered = self.take_space(sink, batch.write_back(), after, instead);
            if !sink.is_done(entered) {
                let entry = |&(page, sectors): &(u64, Sectors)| Entry { page, sectors, entered };
                self.entries.extend(batch.new.iter().map(entry));
            }
            let written = self.execute(sink, batch, data, entered)?;
            done = sink.join(done, written);
        }
        self.note_time(sink.now());
        Ok(done)
    }

    /// Token that is done when the oldest data on their way to the device are there, so many that the others
    /// are below the limit.
    fn oldest(&self, sink: &mut Sink, mut under_way: u64) -> Tok {
        let (limit, mut done) = (self.base.config.write_back, Tok::default());
        for write in &self.writes {
            if limit == 0 || under_way < limit {
                break;
            }
            under_way -= write.bytes;
            done = sink.join(done, write.done);
        }
        done
    }

    /// Puts a part of a request into the cache.
    fn add(&mut self, part: &PagePart, data: WriteData<'_>, batch: &mut Batch) {
        let (sectors, page_bytes, version) = (part.sectors(), self.page_bytes, self.version);
        self.fills.retain(|fill| fill.page != part.page);
        let cold = self.recent.insert(part.page);
        if self.cached.touch(part.page).is_some() {
            self.counts.write_hits += 1;
        } else if self.cached.is_full()
            && let Some((page, evicted)) = self.cached.evict()
            && evicted.dirty != 0
        {
            self.counts.evicted += 1;
            batch.evicted.push((page, evicted));
        }
        let cached = self.cached.get_or_insert(part.page);
        batch.new.push((part.page, sectors & !cached.present));
        cached.put(sectors, page_bytes, part.range.start, data.bytes());
        cached.dirty |= sectors;
        cached.version = version;
        if cold && cached.dirty == sectors {
            // It is written as a part of this request.
            cached.dirty = 0;
        }
        batch.written += u64::from(part.len());
        if cold {
            batch.cold.push(part.clone());
        }
    }

    /// Makes the accesses of a batch. Returns the token of its acknowledgement.
    fn execute(&mut self, sink: &mut Sink, batch: Batch, data: WriteData<'_>, entered: Tok) -> Result<Tok> {
        let evicted_bytes = batch.evicted_bytes();
        let read = if evicted_bytes > 0 { self.access(sink, evicted_bytes, entered) } else { entered };
        let done = self.access(sink, batch.written, entered);
        let mut failed = Ok(());
        for part in &batch.cold {
            if failed.is_ok() {
                failed = self.write_cold(sink, part, data, entered);
            }
            if failed.is_err() {
                self.keep_dirty(part, data);
                self.leave(sink, u64::from(part.len()), entered);
            }
        }
        for (page, contents) in batch.evicted {
            if failed.is_ok() {
                failed = self.write_page(sink, page, &contents, read).map(|_| ());
            }
            if failed.is_err() {
                self.leave(sink, bytes_of(contents.present), entered);
                self.restore(page, contents);
            }
        }
        failed.map(|()| done)
    }

    /// Writes a part of a request to the device, and with it other data of its page that are dirty.
    fn write_cold(
        &mut self,
        sink: &mut Sink,
        part: &PagePart,
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<()> {
        let dirty = self.cached.get(part.page).map_or(0, |cached| cached.dirty);
        if dirty & !part.sectors() != 0 {
            self.write_back(sink, part.page, after)?;
            self.leave(sink, u64::from(part.len()), after);
        } else {
            let at = part.page * self.page_bytes + part.range.start;
            let data = data.part(part.from, part.len());
            let done = self.device().write(sink, at, data, Cause::Host, after)?;
            self.note_written(sink, part.page, u64::from(part.len()), done);
            self.clean(part.page);
        }
        self.counts.written_back += 1;
        Ok(())
    }

    /// Keeps data in the cache that the device did not take.
    fn keep_dirty(&mut self, part: &PagePart, data: WriteData<'_>) {
        let (page_bytes, version) = (self.page_bytes, self.version);
        let cached = self.cached.get_or_insert(part.page);
        cached.put(part.sectors(), page_bytes, part.range.start, data.part(part.from, part.len()).bytes());
        (cached.dirty, cached.version) = (cached.dirty | part.sectors(), version);
    }

    /// Puts an evicted page back that the device did not take. Newer data stay.
    fn restore(&mut self, page: u64, contents: CachedPage) {
        let page_bytes = self.page_bytes;
        let Some(cached) = self.cached.get_mut(page) else {
            self.cached.insert(page, contents);
            return;
        };
        let restored = cached.complete_from(&contents, page_bytes);
        cached.dirty |= contents.dirty & restored;
    }

    fn clean(&mut self, page: u64) {
        if let Some(cached) = self.cached.get_mut(page) {
            cached.dirty = 0;
        }
    }

    /// Writes a dirty page to the device, from which it leaves the cache. It does not wait for space.
    pub(super) fn write_back(&mut self, sink: &mut Sink, page: u64, after: Tok) -> Result<Tok> {
        let Some(contents) = self.cached.get(page).cloned() else { return Ok(after) };
        let done = self.write_now(sink, page, &contents, after)?;
        self.clean(page);
        Ok(done)
    }

    /// Writes a page to the device after an access to the DRAM. It does not wait for space.
    fn write_now(&mut self, sink: &mut Sink, page: u64, contents: &CachedPage, after: Tok) -> Result<Tok> {
        let bytes = bytes_of(contents.present);
        let read = self.access(sink, bytes, after);
        self.take_space(sink, bytes, after, after);
        let written = self.write_page(sink, page, contents, read);
        if written.is_err() {
            self.leave(sink, bytes, after);
        }
        written
    }

    /// Writes the contents of a page to the device. What is missing between them is read first.
    fn write_page(&mut self, sink: &mut Sink, page: u64, contents: &CachedPage, after: Tok) -> Result<Tok> {
        let (range, at) = (range_of(contents.present), page * self.page_bytes);
        let len = (range.end - range.start) as u32;
        let holes = bytes_of(contents.present) < u64::from(len);
        let mut bytes = contents.bytes.as_ref().map(|_| vec![0; len as usize]);
        let mut ready = after;
        if holes {
            let into = bytes.as_mut().map_or(ReadTarget::Len(len), |b| ReadTarget::Bytes(b));
            ready = self.device().read(sink, at + range.start, into, Cause::Merge, after)?;
        }
        if let Some(bytes) = &mut bytes {
            contents.copy_out(contents.present, range.start, bytes);
        }
        let data = bytes.as_deref().map_or(WriteData::Len(len), WriteData::Bytes);
        let done = self.device().write(sink, at + range.start, data, Cause::Destage, ready)?;
        self.note_written(sink, page, bytes_of(contents.present), done);
        Ok(done)
    }

    fn note_written(&mut self, sink: &mut Sink, page: u64, bytes: u64, done: Tok) {
        self.leave(sink, bytes, done);
        self.writes.push(WriteBack { page, version: self.version, bytes, done });
    }

    /// Takes space for data on their way to the device. Returns the token of it.
    fn take_space(&mut self, sink: &mut Sink, bytes: u64, after: Tok, instead: Tok) -> Tok {
        if self.base.config.write_back == 0 {
            return after;
        }
        let pool = self.resources(sink).write_back;
        sink.acquire(pool, bytes, after, instead)
    }

    /// Returns space for data on their way to the device.
    fn leave(&mut self, sink: &mut Sink, bytes: u64, after: Tok) {
        if self.base.config.write_back > 0 {
            let pool = self.resources(sink).write_back;
            sink.release(pool, bytes, after);
        }
    }

    /// Evicts a page for data of a read.
    pub(super) fn evict_for_fill(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        let Some((page, contents)) = self.cached.evict() else { return Ok(()) };
        if contents.dirty == 0 {
            return Ok(());
        }
        self.counts.evicted += 1;
        let written = self.write_now(sink, page, &contents, after);
        if written.is_err() {
            self.cached.insert(page, contents);
        }
        written.map(|_| ())
    }

    /// Writes all dirty pages to the device, and flushes it.
    pub(super) fn flush_all(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.complete(sink);
        for page in self.cached.dirty() {
            self.write_back(sink, page, after)?;
        }
        self.device().flush(sink, Cause::Host, after)
    }

    /// Takes data that were written past the cache into the pages that it has. If the write failed, the pages
    /// are not known any more.
    pub(super) fn update(&mut self, at: u64, data: WriteData<'_>, failed: bool) {
        for part in self.parts(at, u64::from(data.len())) {
            self.fills.retain(|fill| fill.page != part.page);
            if failed {
                self.cached.remove(part.page);
            }
            let page_bytes = self.page_bytes;
            if let Some(cached) = self.cached.get_mut(part.page) {
                let present: Sectors = cached.present;
                let bytes = data.part(part.from, part.len());
                cached.put(part.sectors(), page_bytes, part.range.start, bytes.bytes());
                // The sizes of hits stay those of what was read.
                cached.present = present;
            }
        }
    }

    /// Begins the next interval of `hot_ms`, if the current one is over.
    fn note_time(&mut self, now: Nanos) {
        let length = Nanos(self.base.config.hot_ms * 1_000_000);
        if now >= self.recent_until || self.recent.len() > RECENT_MAX || length == Nanos::ZERO {
            self.recent.clear();
            self.recent_until = now + length;
        }
    }
}
