//! Mirroring: all data on each of several devices, the sides (RAID 1).
//!
//! A write goes to all sides at once, and a read to one of them. A side that fails is taken out of
//! service, and the others note in their superblocks that it is stale. Regions that are written are
//! marked in a bitmap on the sides first, so that after a crash, or when a side comes back, only
//! marked regions are copied.
//!
//! | file | subject |
//! |---|---|
//! | `layout`, `sector` | places and bytes of the metadata |
//! | `regions` | marked regions in DRAM |
//! | `write`, `marks`, `read` | requests |
//! | `failure` | sides that fail |
//! | `load`, `assemble` | the start of a mirror |
//! | `resync`, `clear` | background work |
//! | `check` | comparison of the sides |
//!
//! It is not: a protection against wrong data of a device. A device that returns wrong data without
//! an error is found by a check only.

mod assemble;
mod check;
mod clear;
mod failure;
mod layout;
mod load;
mod marks;
mod read;
mod regions;
mod resync;
mod sector;
mod side_device;
mod write;

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use crate::sizing::{DeviceSizes, Resizable, least_bytes};
use frit_core::visible::Metric;
use frit_core::{
    BlockDevice, Cause, CheckCounts, CheckScope, CrashKind, Error, Finding, MediumKind, Progress, ReadTarget,
    Recovery, Result, SECTOR_BYTES, Sector, Sink, Tok, WriteData, size,
};
use layout::Layout;
use regions::Regions;
use side_device::SideDevice;

/// Largest number of sides: a superblock has a bit for each.
pub const SIDES_MOST: usize = 32;

frit_core::parameters! {
    /// Configuration of a mirror.
    pub struct MirrorConfig {
        /// A sequential reader stays on one side for 1 MiB, longer than a seek takes.
        #[serde(deserialize_with = "size::deserialize")]
        "read_chunk" read_chunk: u64 as Size = 1 << 20, live, unit "bytes", within 512..=1 << 30,
            "size of the ranges of addresses that the sides serve in turn, a multiple of 512 bytes";
        /// A disk copies 4 MiB in about 40 ms, four times the time of the positioning that goes
        /// with it, and a bitmap for 1 TiB has 70 sectors.
        #[serde(deserialize_with = "size::deserialize")]
        "region" region: u64 as Size = 4 << 20, fixed, unit "bytes", within 4096..=1 << 30,
            "size of the regions that are marked before they are written, a power of two";
        /// A crash costs a copy of at most 256 MiB then, and the writes of a working set of this
        /// size need no marks.
        "keep_marked" keep_marked: u32 as Number = 64, live, unit "regions", within 1..=1 << 20,
            "regions that stay marked between writes; more are cleared in the background";
        "prefer" prefer: i32 as Number = -1, fixed, within -1..=31,
            "number of the device to trust if the devices contradict each other, from 0 on; -1: none";
    }
}

/// Counts since the construction of a mirror.
#[derive(Clone, Copy, Default, Debug)]
struct MirrorCounts {
    mark_writes: u64,
    bytes_copied: u64,
    copy_errors: u64,
    side_failures: u64,
    read_errors: u64,
    sectors_rewritten: u64,
}

/// The same data on all devices. Devices that are larger than the smallest one are used in part.
pub struct Mirror {
    base: Base<MirrorConfig>,
    layout: Layout,
    identity: u64,
    /// Sides that are up to date, one bit each.
    serving: u32,
    /// Sides to which the data is being copied.
    joining: u32,
    /// The sides that serve, as a list, for reads.
    readers: Vec<u32>,
    /// Side from which regions are read in which the sides may differ.
    source: usize,
    /// Reasons for which sides are out of service.
    out: Vec<(usize, String)>,
    /// Number of changes of the set of sides in service.
    events: u64,
    /// Sides that the superblocks are to name as stale.
    stale: u32,
    /// The superblocks of all sides that serve hold `events` and `stale`.
    noted: bool,
    /// The sides have superblocks and bitmaps.
    formatted: bool,
    regions: Regions,
    /// Sequence number of the last write of a bitmap.
    sequence: u64,
    /// Region that is being copied, and the first byte of it that was not copied yet.
    copying: Option<(usize, u64)>,
    /// Done when all writes since the last flush are.
    pending: Tok,
    /// Done when the superblocks are durable that later writes rely on.
    superblocks: Tok,
    /// Done when the data of all cleared regions is durable: the token of the last flush before a
    /// clearing, which itself waits for the one before.
    cleared: Tok,
    /// Regions that the current request marks; kept to reuse its memory.
    new_marks: Vec<usize>,
    buffer: Vec<u8>,
    counts: MirrorCounts,
}

/// Returns the numbers of the sides of a set, in ascending order.
fn each(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let side = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (side < SIDES_MOST).then_some(side)
    })
}

impl Resizable for MirrorConfig {
    fn sizes_for(&self, now: &DeviceSizes, bytes: u64) -> Result<DeviceSizes> {
        check_config(self, now.devices.len())?;
        let side = least_bytes(|side| Ok(Layout::new(side, self.region).is_some_and(|l| l.data >= bytes)))?;
        Ok(DeviceSizes::equal(now.devices.len(), side))
    }
}

fn check_config(config: &MirrorConfig, sides: usize) -> Result<()> {
    if !config.read_chunk.is_multiple_of(SECTOR_BYTES) {
        return Err(Error::param("read_chunk", config.read_chunk, "has to be a multiple of 512 bytes"));
    }
    if !config.region.is_power_of_two() {
        return Err(Error::param("region", size::format(config.region), "has to be a power of two"));
    }
    if config.prefer >= sides as i32 {
        let why = format!("has to be the number of a device, from 0 to {}", sides - 1);
        return Err(Error::param("prefer", config.prefer, why));
    }
    Ok(())
}

impl Mirror {
    /// Mirrors devices. `identity` distinguishes mirrors from each other: the devices of another
    /// mirror are refused.
    ///
    /// # Errors
    /// Parameters that do not fit the devices, and more devices than [`SIDES_MOST`].
    pub fn new(config: MirrorConfig, devices: Vec<Box<dyn BlockDevice>>, identity: u64) -> Result<Mirror> {
        let sides = devices.len();
        if !(2..=SIDES_MOST).contains(&sides) {
            return Err(Error::param("devices", sides, format!("a mirror has 2 to {SIDES_MOST} devices")));
        }
        check_config(&config, sides)?;
        let smallest = devices.iter().map(|d| d.bytes()).min().unwrap_or(0);
        let Some(layout) = Layout::new(smallest, config.region) else {
            let why = format!("leaves no space for data on a device of {}", size::format(smallest));
            return Err(Error::param("region", size::format(config.region), why));
        };
        let sided = devices.into_iter().map(|d| Box::new(SideDevice::new(d)) as Box<dyn BlockDevice>);
        let mut mirror = Mirror {
            base: Base::new(config, Devices::new(sided.collect())),
            layout,
            identity,
            serving: 0,
            joining: 0,
            readers: Vec::new(),
            source: 0,
            out: Vec::new(),
            events: 0,
            stale: 0,
            noted: false,
            formatted: false,
            regions: Regions::new(layout.regions()),
            sequence: 0,
            copying: None,
            pending: Tok::default(),
            superblocks: Tok::default(),
            cleared: Tok::default(),
            new_marks: Vec::new(),
            buffer: Vec::new(),
            counts: MirrorCounts::default(),
        };
        mirror.reset();
        Ok(mirror)
    }

    /// Takes the state of a new mirror.
    fn reset(&mut self) {
        self.joining = 0;
        self.out.clear();
        (self.events, self.stale, self.noted, self.formatted) = (1, 0, false, false);
        self.regions = Regions::new(self.layout.regions());
        self.copying = None;
        self.set_serving(u32::MAX >> (SIDES_MOST - self.base.devices.len()));
    }

    /// Returns the sides that receive writes.
    #[inline]
    fn active(&self) -> u32 {
        self.serving | self.joining
    }

    fn set_serving(&mut self, serving: u32) {
        self.serving = serving;
        self.readers = each(serving).map(|i| i as u32).collect();
        if serving >> self.source & 1 == 0 {
            self.source = serving.trailing_zeros() as usize % SIDES_MOST;
        }
        // Without a second side, nothing can be copied.
        if self.active().count_ones() < 2 {
            self.regions.no_copies();
            self.copying = None;
        }
    }
}

fn metric(name: &'static str, value: u64, unit: &'static str, help: &'static str) -> Metric {
    Metric { name, value: value as f64, unit, help }
}

impl Composer for Mirror {
    const NAME: &'static str = "mirror";
    const PASSES_HINTS: bool = true;
    const DEFERS_READS: bool = true;
    type Config = MirrorConfig;

    fn base(&self) -> &Base<MirrorConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<MirrorConfig> {
        &mut self.base
    }

    fn configure(&mut self, config: MirrorConfig) -> Result<()> {
        check_config(&config, self.base.devices.len())?;
        self.base.config = config;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.layout.data
    }

    /// Data have the same address on each side. A read goes to one side, which is not known yet.
    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.base.devices.iter().for_each(|side| side.prefetch(next));
    }

    fn dram_bytes(&self) -> u64 {
        self.regions.dram_bytes()
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        self.read_data(sink, at, into, after)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        self.change(sink, at..at + u64::from(data.len()), after, |device, sink, after| {
            device.write(sink, at, data, Cause::Host, after)
        })
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        self.change(sink, at..at + len, after, |device, sink, after| {
            device.zero(sink, at, len, Cause::Host, after)
        })
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.flush_sides(sink, Cause::Host, after)
    }

    fn place(&self, at: u64) -> (u64, Option<MediumKind>) {
        // The side that serves the reads: what it calls a hole, it reads as zeros.
        let (side, served) = self.reader(at);
        let (end, place) = self.base.devices.get(side).place(at);
        (end.min(served).min(self.layout.data), place)
    }

    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.reset();
        let start = sink.start();
        self.write_metadata(sink, start)
    }

    fn load(&mut self, sink: &mut Sink, _: CrashKind) -> Result<Recovery> {
        self.start(sink)
    }

    fn save(&mut self, sink: &mut Sink) -> Result<()> {
        self.shut_down(sink)
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.run_check(sink, scope, found)
    }

    fn step(&mut self, sink: &mut Sink, _: u32) -> Result<Progress> {
        if let Some(tok) = self.copy_next(sink)? {
            return Ok(Progress::Busy(tok));
        }
        if let Some(tok) = self.join_sides(sink)? {
            return Ok(Progress::Busy(tok));
        }
        Ok(self.clear_idle(sink)?.map_or(Progress::Idle, Progress::Busy))
    }

    /// One side that accepts writes is enough.
    fn refuses(&self) -> Option<String> {
        let mut reasons = each(self.serving).map(|i| self.base.devices.get(i).refuses());
        reasons.try_fold(None, |_, reason| reason.map(Some)).flatten()
    }

    fn metrics(&self) -> Vec<Metric> {
        let c = &self.counts;
        let degraded = self.base.devices.len() as u64 - u64::from(self.serving.count_ones());
        vec![
            metric("degraded", degraded, "sides", "sides that are out of service or being copied to"),
            metric("regions_marked", self.regions.marks() as u64, "regions", "regions marked as written"),
            metric(
                "regions_to_copy",
                self.regions.copies() as u64,
                "regions",
                "regions that are still to be copied to other sides",
            ),
            metric("source", self.source as u64, "side", "side that serves the regions to copy"),
            metric("mark_writes", c.mark_writes, "writes", "writes that waited for the mark of a region"),
            metric("bytes_copied", c.bytes_copied, "bytes", "data copied to other sides"),
            metric("copy_errors", c.copy_errors, "regions", "regions that could not be copied"),
            metric("side_failures", c.side_failures, "failures", "failures that took a side out of service"),
            metric("read_errors", c.read_errors, "reads", "reads that failed on a side"),
            metric(
                "sectors_rewritten",
                c.sectors_rewritten,
                "sectors",
                "sectors rewritten with the data of another side",
            ),
        ]
    }
}
