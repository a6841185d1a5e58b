//! A cache in the DRAM of a drive, as the one of MQSim (`Data_Cache_Manager_Flash_Advanced.cpp`).
//!
//! A write is acknowledged once its data are in the DRAM. A page that was not written within the last
//! interval of `hot_ms` is written to the device at the same time, and leaves the cache once it is there.
//! Other pages stay until they are evicted, least recently used first, or flushed. The data on their way
//! to the device are limited: further writes wait until a page of them is programmed.
//!
//! The cache loses what was not flushed in a power loss.

mod config;
mod pages;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use config::{CachingMode, DramCacheConfig};

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use frit_core::visible::Metric;
use frit_core::{
    BlockDevice, Cause, CrashKind, DurabilityPoint, Error, Nanos, ReadTarget, Recovery, Result, SECTOR_BYTES,
    Sink, Tok, WriteData, WriteGuarantee,
};
use pages::{CachedPage, CachedPages, Sectors, sectors};
use std::collections::HashSet;
use std::ops::Range;

/// Largest page: one bit for each sector.
const PAGE_BYTES_MAX: u64 = Sectors::BITS as u64 * SECTOR_BYTES;
/// Most pages that the set of recently written pages holds, in case that time does not advance.
const RECENT_MAX: usize = 1 << 22;

/// Data on their way to the device.
#[derive(Clone, Copy, Debug)]
struct WriteBack {
    page: u64,
    version: u64,
    bytes: u64,
    done: Tok,
}

/// Data of writes that wait for space, and are found by reads only when they have entered the cache.
#[derive(Clone, Copy, Debug)]
struct Entry {
    page: u64,
    sectors: Sectors,
    entered: Tok,
}

/// Data of a read on their way into the cache.
#[derive(Debug)]
struct Fill {
    page: u64,
    contents: CachedPage,
    read: Tok,
}

/// Number of requests and pages by their way through the cache.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    read_hits: u64,
    read_misses: u64,
    write_hits: u64,
    written_back: u64,
    evicted: u64,
}

/// Resources of the sink.
#[derive(Clone, Copy, Debug)]
struct Resources {
    /// Server of the DRAM.
    dram: u16,
    /// Pool of the data on their way to the device.
    write_back: u16,
}

/// A part of a request in one page: the page, and the range of its bytes.
#[derive(Clone, Debug)]
struct PagePart {
    page: u64,
    range: Range<u64>,
    /// First byte in the request.
    from: u32,
}

impl PagePart {
    fn sectors(&self) -> Sectors {
        sectors(&self.range)
    }

    fn len(&self) -> u32 {
        (self.range.end - self.range.start) as u32
    }
}

/// A cache in DRAM before a device.
pub struct DramCache {
    base: Base<DramCacheConfig>,
    page_bytes: u64,
    cached: CachedPages,
    /// Pages that were written in the current interval of `hot_ms`.
    recent: HashSet<u64>,
    /// End of this interval.
    recent_until: Nanos,
    writes: Vec<WriteBack>,
    entries: Vec<Entry>,
    fills: Vec<Fill>,
    /// Number of the last write.
    version: u64,
    resources: Option<Resources>,
    counts: Counts,
}

impl DramCache {
    /// Puts a cache before a device, the only one of `devices`.
    ///
    /// # Errors
    /// A size of the page that is no number of sectors.
    pub fn new(config: DramCacheConfig, devices: Devices) -> Result<DramCache> {
        let page_bytes = match config.page {
            0 => u64::from(devices.only().page_bytes()).clamp(SECTOR_BYTES, PAGE_BYTES_MAX),
            bytes => bytes,
        };
        if !page_bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(Error::param("page", page_bytes, "has to be a multiple of 512"));
        }
        Ok(DramCache {
            cached: CachedPages::new(config.capacity / page_bytes),
            base: Base::new(config, devices),
            page_bytes,
            recent: HashSet::new(),
            recent_until: Nanos::ZERO,
            writes: Vec::new(),
            entries: Vec::new(),
            fills: Vec::new(),
            version: 0,
            resources: None,
            counts: Counts::default(),
        })
    }

    fn resources(&mut self, sink: &mut Sink) -> Resources {
        let limit = self.base.config.write_back;
        *self
            .resources
            .get_or_insert_with(|| Resources { dram: sink.add_server(), write_back: sink.add_pool(limit) })
    }

    /// Accesses the DRAM after `after`. The accesses follow each other.
    fn access(&mut self, sink: &mut Sink, bytes: u64, after: Tok) -> Tok {
        let time = self.base.config.access(bytes);
        let dram = self.resources(sink).dram;
        sink.serve(dram, after, time)
    }

    /// Divides a range of bytes into parts of pages.
    fn parts(&self, at: u64, len: u64) -> Vec<PagePart> {
        let (mut all, mut now) = (Vec::new(), at);
        while now < at + len {
            let (page, offset) = (now / self.page_bytes, now % self.page_bytes);
            let end = (offset + at + len - now).min(self.page_bytes);
            all.push(PagePart { page, range: offset..end, from: (now - at) as u32 });
            now += end - offset;
        }
        all
    }

    fn device(&mut self) -> &mut crate::slot::Slot {
        self.base.devices.get_mut(0)
    }

    fn forget(&mut self) {
        self.cached.clear();
        self.recent.clear();
        self.writes.clear();
        self.entries.clear();
        self.fills.clear();
    }
}

impl Composer for DramCache {
    const NAME: &'static str = "dram-cache";
    const PASSES_HINTS: bool = true;
    type Config = DramCacheConfig;

    fn base(&self) -> &Base<DramCacheConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<DramCacheConfig> {
        &mut self.base
    }

    fn dram_bytes(&self) -> u64 {
        self.base.config.capacity
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        if self.base.config.mode == CachingMode::Off {
            return self.device().read(sink, at, into, Cause::Host, after);
        }
        self.read_cached(sink, at, into, after)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        if self.base.config.mode.keeps_writes() {
            return self.write_cached(sink, at, data, after);
        }
        self.complete(sink);
        let done = self.device().write(sink, at, data, Cause::Host, after);
        self.update(at, data, done.is_err());
        done
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        let mut before = after;
        let pages = at / self.page_bytes..(at + len).div_ceil(self.page_bytes);
        self.fills.retain(|fill| !pages.contains(&fill.page));
        let cached = self.cached.within(&pages);
        for &page in &cached {
            let whole = at <= page * self.page_bytes && (page + 1) * self.page_bytes <= at + len;
            if !whole && self.cached.get(page).is_some_and(|cached| cached.dirty != 0) {
                let written = self.write_back(sink, page, after)?;
                before = sink.join(before, written);
            }
        }
        let done = self.device().zero(sink, at, len, Cause::Host, before);
        for page in cached {
            // Data that only the cache has stay if the device refuses.
            if done.is_ok() || self.cached.get(page).is_some_and(|cached| cached.dirty == 0) {
                self.cached.remove(page);
            }
        }
        done
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        if self.base.config.power_loss_protection {
            return Ok(after);
        }
        self.flush_all(sink, after)
    }

    fn save(&mut self, sink: &mut Sink) -> Result<()> {
        let start = sink.start();
        let done = self.flush_all(sink, start)?;
        sink.ack(done);
        Ok(())
    }

    fn load(&mut self, _: &mut Sink, _: CrashKind) -> Result<Recovery> {
        self.forget();
        Ok(Recovery { clean: true, ..Recovery::default() })
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        let below = self.base.devices.weakest_guarantee();
        if !self.base.config.mode.keeps_writes() {
            return below;
        }
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: below.atomic_bytes.min(self.page_bytes as _),
            atomic_flush: false,
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        let metric = Metric::count;
        let c = &self.counts;
        vec![
            metric("dram_dirty_bytes", self.cached.dirty_bytes(), "bytes", "data that only the DRAM has"),
            metric("dram_read_hits", c.read_hits, "pages", "pages of reads of which the DRAM had all"),
            metric(
                "dram_read_misses",
                c.read_misses,
                "pages",
                "pages of reads that the device was asked for",
            ),
            metric("dram_write_hits", c.write_hits, "pages", "pages of writes that were in the DRAM"),
            metric("dram_written_back", c.written_back, "pages", "pages written to the device at once"),
            metric("dram_evicted", c.evicted, "pages", "dirty pages written to the device later"),
        ]
    }
}
