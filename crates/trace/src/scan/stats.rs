//! Statistics of requests, updated one request at a time.

use super::Scan;
use crate::devices::DeviceLayout;
use crate::fit::CHUNK_BYTES;
use crate::identity::WorkloadIdentity;
use crate::problems::Problems;
use crate::{DeviceCommand, DeviceMapping, Reading, ReqOp, Request};
use frit_core::{Hints, Nanos, SECTOR_BYTES};
use hdrhistogram::Histogram;
use roaring::RoaringTreemap;
use serde::Serialize;
use std::collections::BTreeMap;

/// Size of a page in bytes, the unit of footprints.
const PAGE: u64 = 4096;
/// Number of previous requests that are searched for the end of an interleaved stream.
const STREAMS: usize = 16;

/// Statistics of the requests with one operation; all sizes are in bytes.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct SizeStats {
    /// Number of requests.
    pub count: u64,
    /// Total number of bytes.
    pub bytes: u64,
    /// Smallest size.
    #[serde(rename = "min_bytes")]
    pub min: u64,
    /// Mean size.
    #[serde(rename = "mean_bytes")]
    pub mean: f64,
    /// Median size.
    #[serde(rename = "p50_bytes")]
    pub p50: u64,
    /// 90th percentile.
    #[serde(rename = "p90_bytes")]
    pub p90: u64,
    /// 99th percentile.
    #[serde(rename = "p99_bytes")]
    pub p99: u64,
    /// Largest size.
    #[serde(rename = "max_bytes")]
    pub max: u64,
}

/// Number of the requests with one command of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CommandCount {
    /// Name of the command.
    pub command: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Total number of bytes that they cover.
    pub bytes: u64,
}

/// Statistics of arrivals and of the gaps between requests.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct ArrivalStats {
    /// Requests per second, over the whole duration; 0 if the duration is zero.
    pub mean_per_s: f64,
    /// Maximum number of requests in one second of the trace.
    pub peak_per_s: u64,
    /// Median gap between requests.
    #[serde(rename = "gap_p50_ns")]
    pub gap_p50: Nanos,
    /// 99th percentile of the gaps.
    #[serde(rename = "gap_p99_ns")]
    pub gap_p99: Nanos,
    /// Longest gap.
    #[serde(rename = "gap_max_ns")]
    pub gap_max: Nanos,
}

/// A histogram with exact values up to 2047 (sizes up to 1 MiB in sectors) and a precision of 0.1 %
/// beyond.
struct ValueHistogram {
    histogram: Option<Histogram<u64>>,
    sum: u128,
    max: u64,
    /// Smallest size in bytes.
    min_bytes: u64,
    /// Bytes of the sectors that the requests do not use.
    unused: u64,
}

impl ValueHistogram {
    fn new() -> ValueHistogram {
        ValueHistogram { histogram: Histogram::new(3).ok(), sum: 0, max: 0, min_bytes: u64::MAX, unused: 0 }
    }

    /// Adds the size of a request. The quantiles count sectors, the other values bytes.
    fn add_size(&mut self, r: &Request) {
        self.add(u64::from(r.sectors));
        self.unused += u64::from(r.cut.head) + u64::from(r.cut.tail);
        self.min_bytes = self.min_bytes.min(r.bytes());
    }

    fn add(&mut self, value: u64) {
        // The histogram grows as needed. A value beyond 2^63 is counted at the current maximum.
        if let Some(h) = &mut self.histogram
            && h.record(value).is_err()
        {
            h.saturating_record(value);
        }
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    fn at(&self, quantile: f64) -> u64 {
        self.histogram.as_ref().map_or(0, |h| h.value_at_quantile(quantile)).min(self.max)
    }

    fn len(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    fn sizes(&self) -> SizeStats {
        let count = self.len();
        if count == 0 {
            return SizeStats::default();
        }
        let bytes = self.sum.saturating_mul(u128::from(SECTOR_BYTES)) - u128::from(self.unused);
        SizeStats {
            count,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            min: self.min_bytes,
            mean: bytes as f64 / count as f64,
            p50: self.at(0.50) * SECTOR_BYTES,
            p90: self.at(0.90) * SECTOR_BYTES,
            p99: self.at(0.99) * SECTOR_BYTES,
            max: self.max * SECTOR_BYTES,
        }
    }
}

/// Statistics of the address space of one device.
#[derive(Default)]
struct DeviceStats {
    touched: RoaringTreemap,
    written: RoaringTreemap,
    chunks: RoaringTreemap,
    /// Ends of the last requests, a ring buffer.
    ends: [u64; STREAMS],
    next: usize,
}

/// Statistics of a workload.
pub(super) struct StatsCollector {
    pub(super) requests: u64,
    merge: bool,
    flat: bool,
    reads: ValueHistogram,
    writes: ValueHistogram,
    discards: ValueHistogram,
    /// Requests and their bytes, by command.
    commands: BTreeMap<DeviceCommand, (u64, u64)>,
    gaps: ValueHistogram,
    flushes: u64,
    metadata: u64,
    fua: u64,
    sync: u64,
    spaces: Vec<DeviceStats>,
    ends: Vec<u64>,
    pages_written: u64,
    pages_overwritten: u64,
    sequential: u64,
    streams: u64,
    aligned: u64,
    first: Nanos,
    last: Nanos,
    second: (u64, u64),
    peak: u64,
}

impl StatsCollector {
    pub(super) fn new(devices: &DeviceMapping) -> StatsCollector {
        StatsCollector {
            requests: 0,
            merge: *devices == DeviceMapping::Merge,
            flat: matches!(devices, DeviceMapping::Merge | DeviceMapping::Only(_)),
            reads: ValueHistogram::new(),
            writes: ValueHistogram::new(),
            discards: ValueHistogram::new(),
            commands: BTreeMap::new(),
            gaps: ValueHistogram::new(),
            flushes: 0,
            metadata: 0,
            fua: 0,
            sync: 0,
            spaces: Vec::new(),
            ends: Vec::new(),
            pages_written: 0,
            pages_overwritten: 0,
            sequential: 0,
            streams: 0,
            aligned: 0,
            first: Nanos::ZERO,
            last: Nanos::ZERO,
            second: (0, 0),
            peak: 0,
        }
    }

    pub(super) fn add(&mut self, r: &Request) {
        self.arrival(r.at);
        self.requests += 1;
        self.metadata += u64::from(r.hints.has(Hints::METADATA));
        self.fua += u64::from(r.hints.has(Hints::FUA));
        self.sync += u64::from(r.hints.has(Hints::SYNC));
        match r.op {
            ReqOp::Flush => {
                self.flushes += 1;
                return;
            }
            ReqOp::Read => self.reads.add_size(r),
            ReqOp::Write => self.writes.add_size(r),
            ReqOp::Discard => self.discards.add_size(r),
            ReqOp::Command(command) => self.command(command, r),
        }
        let device = if self.merge { 0 } else { usize::from(r.device) };
        if self.spaces.len() <= device {
            self.spaces.resize_with(device + 1, DeviceStats::default);
            self.ends.resize(device + 1, 0);
        }
        self.ends[device] = self.ends[device].max(r.end());
        if matches!(r.op, ReqOp::Read | ReqOp::Write) {
            self.place(r, device);
        }
    }

    fn command(&mut self, command: DeviceCommand, r: &Request) {
        let (requests, bytes) = self.commands.entry(command).or_default();
        *requests += 1;
        *bytes = bytes.saturating_add(r.bytes());
    }

    fn arrival(&mut self, at: Nanos) {
        if self.requests == 0 {
            self.first = at;
        } else {
            self.gaps.add(at.since(self.last).0);
        }
        self.last = at;
        let second = at.since(self.first).0 / 1_000_000_000;
        // Times never run backwards, so one counter for the current second is enough.
        if second != self.second.0 {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        self.peak = self.peak.max(self.second.1);
    }

    fn place(&mut self, r: &Request, device: usize) {
        let space = &mut self.spaces[device];
        let (start, end) = (r.offset(), r.offset() + r.bytes());
        self.aligned += u64::from((start | end) % PAGE == 0);
        let latest = space.ends[(space.next + STREAMS - 1) % STREAMS];
        // Byte 0 continues no request: an end of 0 means that there was no request yet.
        if start > 0 {
            self.sequential += u64::from(latest == start);
            self.streams += u64::from(space.ends.contains(&start));
        }
        space.ends[space.next] = end;
        space.next = (space.next + 1) % STREAMS;
        let pages = start / PAGE..=(end - 1) / PAGE;
        space.chunks.insert_range(start / CHUNK_BYTES..=(end - 1) / CHUNK_BYTES);
        if r.op == ReqOp::Write {
            let n = pages.end() - pages.start() + 1;
            let new = space.written.insert_range(pages.clone());
            self.pages_written += n;
            self.pages_overwritten += n - new;
        }
        space.touched.insert_range(pages);
    }

    pub(super) fn finish(
        self,
        identity: WorkloadIdentity,
        reading: Reading,
        problems: Problems,
        devices: Vec<String>,
        layout: DeviceLayout,
    ) -> Scan {
        let sum =
            |f: fn(&DeviceStats) -> &RoaringTreemap| self.spaces.iter().map(|s| f(s).len()).sum::<u64>();
        let (reads, writes) = (self.reads.sizes(), self.writes.sizes());
        let moves = reads.count + writes.count;
        let share = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 / of as f64 };
        let duration = self.last.since(self.first);
        let seconds = duration.as_secs();
        // The layout is that of the whole trace. With a limit, the used part may end earlier.
        let end = |(i, &e): (usize, &u64)| match (e, layout.base(i as u16)) {
            (0, _) | (_, None) => 0,
            (e, Some(base)) => base.saturating_add(e),
        };
        let laid_out = self.ends.iter().enumerate().map(end).max().unwrap_or(0);
        Scan {
            identity,
            reading,
            problems,
            devices,
            requests: self.requests,
            reads,
            writes,
            discards: self.discards.sizes(),
            commands: self
                .commands
                .iter()
                .map(|(c, &(requests, bytes))| CommandCount { command: c.name(), requests, bytes })
                .collect(),
            flushes: self.flushes,
            write_ratio: share(writes.count, moves),
            metadata: self.metadata,
            fua: self.fua,
            sync: self.sync,
            end_sector: if self.flat { self.ends.iter().copied().max().unwrap_or(0) } else { laid_out },
            footprint_pages: sum(|s| &s.touched),
            written_pages: sum(|s| &s.written),
            overwrite_ratio: share(self.pages_overwritten, self.pages_written),
            chunks: sum(|s| &s.chunks),
            sequential: share(self.sequential, moves),
            streams: share(self.streams, moves),
            aligned_4k: share(self.aligned, moves),
            duration,
            arrivals: ArrivalStats {
                mean_per_s: if seconds > 0.0 { self.requests as f64 / seconds } else { 0.0 },
                peak_per_s: self.peak,
                gap_p50: Nanos(self.gaps.at(0.50)),
                gap_p99: Nanos(self.gaps.at(0.99)),
                gap_max: Nanos(self.gaps.max),
            },
            layout,
        }
    }
}
