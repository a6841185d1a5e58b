//! One run of a study: a workload, a policy, a size, a view.

use super::disk_timer::{DiskTimer, DiskWork};
use crate::Result;
use crate::describe::HostLoop;
use crate::pool::PoolJob;
use crate::sweep::AvailableWorkload;
use frit_core::{ReadTarget, Sector, Sink, StackDevice, StackView, WriteData, size};
use frit_engine::LoopMode;
use frit_layer::cache::policy::EvictionReasons;
use frit_media::{Hardware, MediumSpec};
use frit_replay::findings::{Finding, FindingKind};
use frit_replay::{RunOptions, Session};
use frit_stack::{Bytes, Stack};
use frit_trace::{Fit, ReqOp, Request, Workload};
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

/// Number of requests that are announced to the layer together, as replay does.
const LOOKAHEAD_REQUESTS: usize = 16;
/// Maximum number of sectors in one call of a layer: 1 GiB.
const CALL_SECTORS_MAX: u32 = 1 << 21;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct CacheRun {
    /// Base stack.
    pub stack: String,
    /// Overrides of the stack, without the size of the cache.
    pub set: Vec<String>,
    /// Size of the cache, in bytes.
    pub cache_bytes: u64,
    /// Behavior of the host.
    pub host: HostLoop,
}

/// Result of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct CacheRunResult {
    /// Time from the first arrival to the last acknowledgement; if only the disk takes time, the
    /// disk's time; 0 if no medium does.
    pub time_ns: u64,
    /// Mean response time, in nanoseconds; 0 if only the disk takes time.
    pub response_ns: f64,
    /// Number of sectors that the host requests.
    pub asked_sectors: u64,
    /// Number of reads and writes of the disk.
    pub disk_commands: u64,
    /// Number of sectors of those commands.
    pub disk_sectors: u64,
    /// Number of sectors of the writes among them.
    pub disk_write_sectors: u64,
    /// Mean distance from the end of a disk command to the start of the next, in sectors; 0 if all
    /// media take time.
    pub distance: f64,
    /// Mean number of 4 KiB blocks in a destage write.
    pub destage_blocks: f64,
    /// Number of blocks inserted into the cache, divided by its capacity.
    pub turnovers: f64,
    /// Share of block accesses that hit the cache.
    pub hit_ratio: f64,
    /// DRAM of the cache, in bytes.
    pub dram_bytes: u64,
    /// Evictions of HALO by reason.
    pub evictions: EvictionReasons,
}

/// Result of a run, with the doubts about it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CheckedRun {
    pub(crate) result: CacheRunResult,
    /// Doubts of the run's report; `None` if the requests were not replayed, which makes no report.
    pub(crate) doubts: Option<Vec<Finding>>,
}

/// Reads the evictions of HALO by reason from the metrics of a cache; zero for other policies.
fn evictions(metric: &dyn Fn(&str) -> f64) -> EvictionReasons {
    let count = |name: &str| metric(&format!("evictions_{name}")) as u64;
    EvictionReasons {
        thresholds: count("thresholds"),
        lowered_thresholds: count("lowered_thresholds"),
        outdated: count("outdated"),
        end_of_scan: count("end_of_scan"),
    }
}

/// A metric of [`CacheRunResult`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CacheMetric {
    /// Execution time, in seconds.
    Time,
    /// Mean response time, in milliseconds.
    Response,
    /// Sectors of disk commands divided by requested sectors (the paper's traffic rate).
    Traffic,
    /// Mean distance between disk commands, in MiB (the paper's inter-request LBN distance).
    Distance,
    /// Mean number of 4 KiB blocks in a destage write.
    Destage,
    /// Hit ratio.
    Hits,
}

impl CacheMetric {
    /// Returns the heading of a table column.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            CacheMetric::Time => "execution time, s",
            CacheMetric::Response => "mean response time, ms",
            CacheMetric::Traffic => "traffic rate: disk sectors per requested sector",
            CacheMetric::Distance => {
                "mean distance from the end of a disk request to the start of the next, MiB"
            }
            CacheMetric::Destage => "mean size of a destage write, in blocks of 4 KiB",
            CacheMetric::Hits => "hit ratio, blocks",
        }
    }

    /// Returns the value of the metric.
    #[must_use]
    pub fn of(self, f: &CacheRunResult) -> f64 {
        match self {
            CacheMetric::Time => f.time_ns as f64 / 1e9,
            CacheMetric::Response => f.response_ns / 1e6,
            CacheMetric::Traffic => crate::sweep::share(f.disk_sectors, f.asked_sectors),
            CacheMetric::Distance => f.distance * 512.0 / f64::from(1 << 20),
            CacheMetric::Destage => f.destage_blocks,
            CacheMetric::Hits => f.hit_ratio,
        }
    }
}

impl CacheRun {
    /// Returns a key that identifies the run among all runs of the workload of this name.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{name} {self:?}")
    }

    /// Returns the run as a job. `about` describes it.
    pub(crate) fn job<'a>(
        self,
        name: &str,
        about: String,
        input: &'a AvailableWorkload,
    ) -> PoolJob<'a, CheckedRun> {
        PoolJob { key: self.key(name), about, run: Box::new(move || self.checked(input)) }
    }

    /// Returns the stack with a cache of this size. PCM is sized for the cache and its records.
    ///
    /// # Errors
    /// The stack is invalid.
    pub fn stack(&self) -> Result<Stack> {
        let plain = Stack::load(&self.stack, &self.set).map_err(Box::new)?;
        let chips = pcm_chips(&plain);
        // A record takes 32 bytes a block, the header a few KiB; sizes are whole stripes.
        let need = self.cache_bytes + self.cache_bytes / 64 + (1 << 20);
        let chip = need.div_ceil(chips).next_multiple_of(1 << 18);
        let mut set = self.set.clone();
        set.push(format!("media.pcm.chip_bytes={chip}"));
        set.push(format!("cache.cache_bytes={}", size::format(self.cache_bytes)));
        Ok(Stack::load(&self.stack, &set).map_err(Box::new)?)
    }

    /// Runs the cell.
    ///
    /// # Errors
    /// A stack or a workload fails.
    pub fn run(&self, input: &AvailableWorkload) -> Result<CacheRunResult> {
        Ok(self.checked(input)?.result)
    }

    fn checked(&self, input: &AvailableWorkload) -> Result<CheckedRun> {
        let stack = self.stack()?;
        let unchecked = |result| CheckedRun { result, doubts: None };
        match self.host {
            HostLoop::DiskOnly => disk_only(&stack, input, DiskTimer::new).map(unchecked),
            HostLoop::Counted => disk_only(&stack, input, |_| DiskTimer::counting()).map(unchecked),
            HostLoop::Closed(depth) => self.replay(&stack, input, LoopMode::Closed { depth }),
            HostLoop::Open(speed) => self.replay(&stack, input, LoopMode::Open { speed, depth: None }),
        }
    }

    fn replay(&self, stack: &Stack, input: &AvailableWorkload, mode: LoopMode) -> Result<CheckedRun> {
        let (result, mut doubts) = replay(stack, input, mode)?;
        // A cache that writes pass leaves PCM unused on purpose.
        if self.set.iter().any(|s| s == "cache.mode=write-around") {
            doubts.retain(|f| !f.rule.ends_with("-unused"));
        }
        Ok(CheckedRun { result, doubts: Some(doubts) })
    }
}

/// Returns the number of chips of a stack's PCM; 1 without PCM.
pub(crate) fn pcm_chips(stack: &Stack) -> u64 {
    let chips = stack.media().iter().find_map(|m| match &m.spec {
        MediumSpec::Pcm(c) => Some(u64::from(c.geometry.channels) * u64::from(c.geometry.chips_per_channel)),
        _ => None,
    });
    chips.unwrap_or(1).max(1)
}

/// Returns the result of a run, and the doubts of its report.
fn replay(
    stack: &Stack,
    input: &AvailableWorkload,
    mode: LoopMode,
) -> Result<(CacheRunResult, Vec<Finding>)> {
    let session = Session::new(stack, &RunOptions { mode, ..RunOptions::default() })?;
    let mut workload = input.open()?.fit(Fit::Strict, session.sectors(), None)?;
    let r = session.measure(&mut workload, &mut |_| {})?;
    let metric = |name: &str| {
        r.layers.iter().flat_map(|l| &l.metrics).find(|m| m.name == name).map_or(0.0, |m| m.value)
    };
    let disk = |write: Option<bool>| {
        let of = |op: &str| match write {
            Some(_) => op == "disk-write",
            None => op == "disk-write" || op == "disk-read",
        };
        r.counts
            .iter()
            .filter(|c| of(c.op))
            .fold((0, 0), |n, c| (n.0 + c.count.commands, n.1 + c.count.bytes / 512))
    };
    let all = r.latency.iter().find(|l| l.class == "all");
    let result = CacheRunResult {
        time_ns: r.throughput.duration_ns,
        response_ns: all.map_or(0.0, |l| l.response.figures.mean_ns),
        asked_sectors: (r.asked.read_bytes + r.asked.written_bytes) / 512,
        disk_commands: disk(None).0,
        disk_sectors: disk(None).1,
        disk_write_sectors: disk(Some(true)).1,
        distance: 0.0,
        destage_blocks: metric("destage_blocks"),
        turnovers: metric("write_misses") / metric("cache_slots").max(1.0),
        hit_ratio: metric("hit_ratio"),
        dram_bytes: r.memory.dram_bytes,
        evictions: evictions(&metric),
    };
    let doubts = r.findings.into_iter().filter(|f| f.kind == FindingKind::Doubt).collect();
    Ok((result, doubts))
}

fn disk_only(
    stack: &Stack,
    input: &AvailableWorkload,
    timer: impl Fn(&Hardware) -> DiskTimer,
) -> Result<CacheRunResult> {
    let mut built = stack.build(&Bytes::None).map_err(Box::new)?;
    let mut sink = Sink::untimed().observed(timer(&built.hardware));
    let top = built.layer.as_mut();
    let mut workload = input.open()?.fit(Fit::Strict, top.info().sectors, None)?;
    let asked_sectors = drive(top, &mut sink, &mut workload)?;
    let mut view = StackView::default();
    top.visible(&mut view);
    let metric = |name: &str| view.metric(name).unwrap_or(0.0);
    let work = sink.observer().map_or_else(DiskWork::default, |timer: &mut DiskTimer| timer.work);
    let DiskWork { time, commands, sectors, distance, write_sectors, .. } = work;
    Ok(CacheRunResult {
        time_ns: time.0,
        response_ns: 0.0,
        asked_sectors,
        disk_commands: commands,
        disk_sectors: sectors,
        disk_write_sectors: write_sectors,
        distance: crate::sweep::share(distance, commands),
        destage_blocks: metric("destage_blocks"),
        turnovers: metric("write_misses") / metric("cache_slots").max(1.0),
        hit_ratio: metric("hit_ratio"),
        dram_bytes: top.info().dram_bytes,
        evictions: evictions(&metric),
    })
}

/// Passes all requests of a workload to a layer. Returns the number of sectors read and written.
pub(super) fn drive(top: &mut dyn StackDevice, sink: &mut Sink, workload: &mut Workload) -> Result<u64> {
    let (mut asked, mut batch) = (0, Vec::new());
    let mut next: Vec<(Sector, u32)> = Vec::with_capacity(LOOKAHEAD_REQUESTS);
    while workload.fill(&mut batch)? {
        for requests in batch.chunks(LOOKAHEAD_REQUESTS) {
            next.clear();
            let data = |r: &&Request| matches!(r.op, ReqOp::Read | ReqOp::Write);
            next.extend(requests.iter().filter(data).map(|r| (r.sector, r.sectors)));
            top.prefetch(&next);
            for r in requests {
                asked += one(top, sink, r)?;
            }
        }
    }
    Ok(asked)
}

fn one(top: &mut dyn StackDevice, sink: &mut Sink, r: &Request) -> Result<u64> {
    match r.op {
        ReqOp::Flush => top.flush(sink)?,
        ReqOp::Discard => top.discard(sink, r.sector, u64::from(r.sectors))?,
        ReqOp::Command(command) => {
            let why = "is not possible here; use a trace of reads and writes";
            return Err(frit_core::Error::param("command", command.name(), why).into());
        }
        ReqOp::Read | ReqOp::Write => {
            let (mut at, mut left) = (r.sector.0, r.sectors);
            while left > 0 {
                let n = left.min(CALL_SECTORS_MAX);
                match r.op {
                    ReqOp::Read => top.read(sink, Sector(at), ReadTarget::Len(n * 512), r.hints)?,
                    _ => top.write(sink, Sector(at), WriteData::Len(n * 512), r.hints)?,
                }
                (at, left) = (at + u64::from(n), left - n);
            }
            return Ok(u64::from(r.sectors));
        }
    }
    Ok(0)
}
