//! One pass over a workload: what is in it, how large it is, and what it is.

mod tally;

pub use tally::{Arrivals, Sizes};

use crate::devices::Layout;
use crate::identity::Identity;
use crate::problems::Problems;
use crate::workload::Source;
use crate::{Devices, Options, Reading, Request, Result};
use frit_core::{Nanos, SECTOR_BYTES};
use serde::Serialize;
use tally::Tally;

/// What one pass over a workload found.
///
/// Statistics are over the requests that a run would see (`--limit`, `--devices`), the hash and the devices' extents
/// over the whole trace.
#[derive(Clone, Debug, Serialize)]
pub struct Scan {
    /// What it is.
    pub identity: Identity,
    /// How it was read.
    pub reading: Reading,
    /// What was wrong.
    pub problems: Problems,
    /// Device names.
    pub devices: Vec<String>,
    /// Where each device begins.
    #[serde(skip)]
    pub layout: Layout,
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: Sizes,
    /// Writes.
    pub writes: Sizes,
    /// Discards.
    pub discards: Sizes,
    /// Flushes.
    pub flushes: u64,
    /// Writes among reads and writes, 0 to 1.
    pub write_ratio: f64,
    /// Requests marked as metadata.
    pub metadata: u64,
    /// Requests with forced unit access.
    pub fua: u64,
    /// Requests marked as synchronous.
    pub sync: u64,
    /// One past the highest sector, devices laid out.
    pub end_sector: u64,
    /// Pages of 4 KiB that are read or written at least once.
    pub footprint_pages: u64,
    /// Pages of 4 KiB that are written at least once.
    pub written_pages: u64,
    /// Share of written pages (with repetition) that had been written before.
    pub overwrite_ratio: f64,
    /// Chunks of 1 MiB that are touched: what `--compact` needs.
    pub chunks: u64,
    /// Share of reads and writes that begin where the one before on their device ended.
    pub sequential: f64,
    /// The same, counting any of the last 16 on the device: interleaved streams.
    pub streams: f64,
    /// Share of reads and writes that begin and end at multiples of 4 KiB.
    pub aligned_4k: f64,
    /// Time from the first to the last request.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// Arrivals.
    pub arrivals: Arrivals,
}

impl Scan {
    /// Reads a workload once from end to end.
    ///
    /// # Errors
    /// As [`crate::Workload::open`] and [`crate::Workload::fill`].
    pub fn of(spec: &str, options: &Options) -> Result<Scan> {
        Scan::watched(spec, options, |_| {})
    }

    /// The same, and `progress` is told how many requests there were after each batch.
    ///
    /// # Errors
    /// As [`Scan::of`].
    pub fn watched(spec: &str, options: &Options, mut progress: impl FnMut(u64)) -> Result<Scan> {
        let mut source = Source::open(spec, options, true)?;
        let limit = options.limit.unwrap_or(u64::MAX);
        let (mut tally, mut ends) = (Tally::new(&options.devices), Vec::new());
        let mut batch = Vec::new();
        while source.fill(&mut batch)? {
            extend(&mut ends, &batch);
            if let Devices::Only(name) = &options.devices {
                let only = source.devices().iter().position(|d| d == name);
                batch.retain(|r| only == Some(usize::from(r.device)));
            }
            let room = usize::try_from(limit - tally.requests).unwrap_or(usize::MAX);
            batch.iter().take(room).for_each(|r| tally.add(r));
            progress(tally.requests);
            // A generator has no devices to be measured and nothing to be hashed: the rest of it tells nothing.
            if tally.requests == limit && matches!(source, Source::Generated(_)) {
                break;
            }
        }
        crate::workload::check_only(&source, &options.devices, spec)?;
        let (sha256, problems) = match &mut source {
            Source::Trace(s) => (s.digest(), s.problems().clone()),
            Source::Generated(_) => (None, Problems::default()),
        };
        let layout = Layout::concat(&ends);
        let identity = source.identity(spec, sha256);
        Ok(tally.finish(identity, source.reading(), problems, source.devices().to_vec(), layout))
    }

    /// Bytes from sector 0 to the end of the highest request.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        self.end_sector.saturating_mul(SECTOR_BYTES)
    }
}

/// Keeps the highest end of each device.
fn extend(ends: &mut Vec<u64>, batch: &[Request]) {
    for r in batch {
        let device = usize::from(r.device);
        if ends.len() <= device {
            ends.resize(device + 1, 0);
        }
        ends[device] = ends[device].max(r.end());
    }
}

/// Reads a trace only for the extents of its devices.
pub(crate) fn layout(spec: &str, options: &Options) -> Result<Layout> {
    let mut source = Source::open(spec, options, false)?;
    let (mut ends, mut batch) = (Vec::new(), Vec::new());
    while source.fill(&mut batch)? {
        extend(&mut ends, &batch);
    }
    Ok(Layout::concat(&ends))
}
