//! A single pass over a workload: statistics, problems and identity.

mod stats;

pub use stats::{ArrivalStats, CommandCount, SizeStats};

use crate::devices::DeviceLayout;
use crate::identity::WorkloadIdentity;
use crate::problems::Problems;
use crate::source::{RequestSource, SourceKind, check_only};
use crate::{DeviceMapping, Error, Options, Reading, Request, Result};
use frit_core::{Nanos, SECTOR_BYTES};
use serde::Serialize;
use stats::StatsCollector;

/// Results of one pass over a workload.
///
/// The statistics cover the requests that a run would see (`--limit`, `--devices`); the hash and
/// the extents of the devices cover the whole trace.
#[derive(Clone, Debug, Serialize)]
pub struct Scan {
    /// Identity of the workload.
    pub identity: WorkloadIdentity,
    /// Format, units and conventions used to read it.
    pub reading: Reading,
    /// Problems of the trace.
    pub problems: Problems,
    /// Device names.
    pub devices: Vec<String>,
    /// Start of each device in the one address space.
    #[serde(skip)]
    pub layout: DeviceLayout,
    /// Number of requests.
    pub requests: u64,
    /// Statistics of reads.
    pub reads: SizeStats,
    /// Statistics of writes.
    pub writes: SizeStats,
    /// Statistics of discards.
    pub discards: SizeStats,
    /// Commands of devices, which the other statistics of sizes and places leave out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandCount>,
    /// Number of flushes.
    pub flushes: u64,
    /// Share of writes among reads and writes, from 0 to 1.
    pub write_ratio: f64,
    /// Number of requests marked as metadata.
    pub metadata: u64,
    /// Number of requests with forced unit access.
    pub fua: u64,
    /// Number of requests marked as synchronous.
    pub sync: u64,
    /// Sector after the highest one, with devices laid out in one address space.
    pub end_sector: u64,
    /// Number of pages of 4 KiB that are read or written at least once.
    pub footprint_pages: u64,
    /// Number of pages of 4 KiB that are written at least once.
    pub written_pages: u64,
    /// Share of written pages (with repetition) that had been written before.
    pub overwrite_ratio: f64,
    /// Number of touched chunks of 1 MiB, which `--compact` needs.
    pub chunks: u64,
    /// Share of reads and writes that begin at the end of the previous request on their device.
    pub sequential: f64,
    /// Share of reads and writes that begin at the end of any of the last 16 requests on the
    /// device, which also covers interleaved streams.
    pub streams: f64,
    /// Share of reads and writes that begin and end at multiples of 4 KiB.
    pub aligned_4k: f64,
    /// Time from the first to the last request.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// Statistics of the arrivals.
    pub arrivals: ArrivalStats,
}

impl Scan {
    /// Reads a workload once from start to end.
    ///
    /// # Errors
    /// As [`crate::Workload::open`] and [`crate::Workload::fill`].
    pub fn of(spec: &str, options: &Options) -> Result<Scan> {
        Scan::with_progress(spec, options, |_| {})
    }

    /// Like [`Scan::of`], and calls `progress` with the number of requests after each batch.
    ///
    /// # Errors
    /// As [`Scan::of`].
    pub fn with_progress(spec: &str, options: &Options, mut progress: impl FnMut(u64)) -> Result<Scan> {
        let mut source = RequestSource::open(spec, options, true)?;
        let limit = options.limit.unwrap_or(u64::MAX);
        let (mut stats, mut ends) = (StatsCollector::new(&options.devices), Vec::new());
        let mut batch = Vec::new();
        while source.fill(&mut batch)? {
            extend(&mut ends, &batch);
            if let DeviceMapping::Only(name) = &options.devices {
                let only = source.devices().iter().position(|d| d == name);
                batch.retain(|r| only == Some(usize::from(r.device)));
            }
            let room = usize::try_from(limit - stats.requests).unwrap_or(usize::MAX);
            batch.iter().take(room).for_each(|r| stats.add(r));
            progress(stats.requests);
            // A generator has no devices to measure and no bytes to hash, so the rest of it is not
            // needed.
            if stats.requests == limit && matches!(source.kind, SourceKind::Generated(_)) {
                break;
            }
        }
        check_only(&source, &options.devices, spec)?;
        let sha256 = match &mut source.kind {
            SourceKind::Trace(s) => s.digest(),
            SourceKind::Generated(_) => None,
        };
        let problems = source.problems();
        let identity = source.identity(spec, sha256);
        let layout = match &options.devices {
            DeviceMapping::Ranges(ranges) => DeviceLayout::of_ranges(source.devices(), &ends, ranges)
                .map_err(|why| Error::Devices { name: identity.name.clone(), why })?,
            _ => DeviceLayout::concat(&ends),
        };
        Ok(stats.finish(identity, source.reading(), problems, source.devices().to_vec(), layout))
    }

    /// Returns the number of bytes from sector 0 to the end of the highest request.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        self.end_sector.saturating_mul(SECTOR_BYTES)
    }
}

/// Updates the highest end of each device.
fn extend(ends: &mut Vec<u64>, batch: &[Request]) {
    for r in batch {
        let device = usize::from(r.device);
        if ends.len() <= device {
            ends.resize(device + 1, 0);
        }
        ends[device] = ends[device].max(r.end());
    }
}

/// Reads a trace only to determine the extents of its devices.
pub(crate) fn layout(spec: &str, options: &Options) -> Result<DeviceLayout> {
    let mut source = RequestSource::open(spec, options, false)?;
    let (mut ends, mut batch) = (Vec::new(), Vec::new());
    while source.fill(&mut batch)? {
        extend(&mut ends, &batch);
    }
    Ok(DeviceLayout::concat(&ends))
}
