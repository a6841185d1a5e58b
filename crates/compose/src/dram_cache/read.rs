//! Reads, and the data of reads that enter the cache.

use super::pages::{CachedPage, Sectors, bytes_of, range_of};
use super::{DramCache, Fill, PagePart};
use frit_core::{BlockDevice, Cause, ReadTarget, Result, Sink, Tok};

/// A part of a read whose data the device has to give.
struct Miss {
    part: PagePart,
    missing: Sectors,
    /// Completion of the read of the device.
    read: Tok,
}

impl DramCache {
    /// Reads what the cache has from the DRAM, and the rest from the device.
    pub(super) fn read_cached(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        after: Tok,
    ) -> Result<Tok> {
        self.complete(sink);
        let parts = self.parts(at, u64::from(into.len()));
        let mut found = Vec::new();
        let (mut hit_bytes, mut misses) = (0, Vec::new());
        for part in &parts {
            let asked = part.sectors();
            let present = self.cached.touch(part.page).map_or(0, |cached| cached.present);
            found.push(asked & present);
            // What has not entered the cache takes the time of a read of the device.
            let present = present & !self.entering(part.page);
            let missing = asked & !present;
            hit_bytes += bytes_of(asked & present);
            if missing == 0 {
                self.counts.read_hits += 1;
            } else {
                self.counts.read_misses += 1;
                misses.push(Miss { part: part.clone(), missing, read: after });
            }
        }
        let mut done = after;
        if hit_bytes > 0 {
            let read = self.access(sink, hit_bytes, after);
            done = sink.join(done, read);
        }
        self.read_misses(sink, at, &mut misses, &mut into, after)?;
        // The device has old data of some sectors that were read: of those between missing ones, and of those
        // that are entering.
        if let Some(bytes) = into.bytes() {
            for (part, &found) in parts.iter().zip(&found) {
                if let Some(cached) = self.cached.get(part.page).filter(|_| found != 0) {
                    let bytes = &mut bytes[part.from as usize..][..part.len() as usize];
                    cached.copy_out(found, part.range.start, bytes);
                }
            }
        }
        for miss in misses {
            if self.base.config.mode.keeps_reads() {
                self.note_fill(&miss, &mut into);
                self.access(sink, bytes_of(miss.missing), miss.read);
            }
            done = sink.join(done, miss.read);
        }
        Ok(done)
    }

    /// Sectors of a page that have not entered the cache.
    fn entering(&self, page: u64) -> Sectors {
        let of_page = self.entries.iter().filter(|entry| entry.page == page);
        of_page.fold(0, |all, entry| all | entry.sectors)
    }

    /// Reads missing data from the device, adjacent ones together.
    fn read_misses(
        &mut self,
        sink: &mut Sink,
        at: u64,
        misses: &mut [Miss],
        into: &mut ReadTarget<'_>,
        after: Tok,
    ) -> Result<()> {
        let address = |miss: &Miss, page_bytes: u64| {
            let range = range_of(miss.missing);
            miss.part.page * page_bytes + range.start..miss.part.page * page_bytes + range.end
        };
        let mut rest = misses;
        while let Some(first) = rest.first() {
            let mut run = address(first, self.page_bytes);
            let mut count = 1;
            while let Some(next) = rest.get(count).map(|miss| address(miss, self.page_bytes))
                && next.start == run.end
            {
                run.end = next.end;
                count += 1;
            }
            let target = into.part((run.start - at) as u32, (run.end - run.start) as u32);
            let read = self.device().read(sink, run.start, target, Cause::Host, after)?;
            let (run, after_it) = rest.split_at_mut(count);
            run.iter_mut().for_each(|miss| miss.read = read);
            rest = after_it;
        }
        Ok(())
    }

    /// Notes data that enter the cache once they are read.
    fn note_fill(&mut self, miss: &Miss, into: &mut ReadTarget<'_>) {
        self.version += 1;
        let mut contents = CachedPage::default();
        contents.version = self.version;
        let range = range_of(miss.missing);
        let from = u64::from(miss.part.from) + range.start - miss.part.range.start;
        let bytes = into.bytes().map(|all| &all[from as usize..][..(range.end - range.start) as usize]);
        contents.put(miss.missing, self.page_bytes, range.start, bytes);
        self.fills.push(Fill { page: miss.part.page, contents, read: miss.read });
    }

    /// Ends what is done by now: pages that were written to the device leave the cache, and data that were
    /// read enter it.
    pub(super) fn complete(&mut self, sink: &mut Sink) {
        self.entries.retain(|entry| !sink.is_done(entry.entered));
        let cached = &mut self.cached;
        self.writes.retain(|write| {
            if !sink.is_done(write.done) {
                return true;
            }
            if cached.touch(write.page).is_some_and(|page| page.version <= write.version && page.dirty == 0) {
                cached.remove(write.page);
            }
            false
        });
        if self.fills.iter().any(|fill| sink.is_done(fill.read)) {
            let fills = std::mem::take(&mut self.fills);
            let (done, waiting) = fills.into_iter().partition(|fill| sink.is_done(fill.read));
            self.fills = waiting;
            for fill in done {
                self.fill(sink, fill);
            }
        }
    }

    /// Adds data of a read to the cache, which may evict another page. Newer data stay. If the device refuses
    /// the evicted page, that stays in place of the new one: a read does not fail for it.
    fn fill(&mut self, sink: &mut Sink, fill: Fill) {
        let (start, page_bytes) = (sink.start(), self.page_bytes);
        if let Some(cached) = self.cached.touch(fill.page) {
            cached.complete_from(&fill.contents, page_bytes);
            return;
        }
        if self.cached.is_full() && self.evict_for_fill(sink, start).is_err() {
            return;
        }
        self.cached.insert(fill.page, fill.contents);
    }
}
