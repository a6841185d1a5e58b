//! Report of a run: one data structure, from which text, JSON, pages and comparisons are made.
//!
//! All values come from [`StackView`](frit_core::StackView), its counts, and the engine; nothing is
//! counted twice. `docs/reference/report.md` describes every field in JSON.

mod build;
pub mod compare;
mod disk;
mod latency;
mod links;
mod media;
pub(crate) mod show;
pub mod text;

pub(crate) use build::{ReportInputs, Snapshot, build};
pub use disk::{DiskReport, DistanceBucket};
pub use latency::{ClassLatency, Distribution, LatencyBucket, PercentileTime};
pub use media::{MediumReport, OneBitWearReport, WearAreaReport, WearBucket, WearMap, WearReport};

pub use crate::device_commands::CommandReport;
use crate::findings::{ComparisonFindings, Finding, of_comparison};
use crate::hinted::HintReport;
use crate::host::WorkloadCounts;
use crate::request_stats::WriteSize;
use crate::steady::SteadyState;
use crate::verify::Verification;
use frit_core::visible::Residence;
use frit_core::{Count, MediumKind};
use frit_engine::LatencySummary;
use frit_trace::{Problems, Reading, WorkloadIdentity};
use serde::Serialize;

/// Version of the report's structure. It is incremented when a field changes its meaning or is
/// removed; new fields may be added without an increment.
pub const SCHEMA: u32 = 2;

/// Results of one run of a workload over a stack.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Version of the structure, [`SCHEMA`].
    pub schema: u32,
    /// Program that made the report.
    pub frit: Program,
    /// What the values say: causes of doubt first, then explanations.
    pub findings: Vec<Finding>,
    /// Identity of the stack.
    pub stack: StackId,
    /// Identity of the workload.
    pub workload: WorkloadId,
    /// Options of the run.
    pub run: RunId,
    /// Counts of the requests of the workload in the measured part.
    pub asked: WorkloadCounts,
    /// Commands of a cache or a zoned device in the measured part, by command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandReport>,
    /// Writes of the workload by size, in the measured part.
    pub write_sizes: Vec<WriteSize>,
    /// Latency by class of request, and of reads and writes together (class `all`, last).
    pub latency: Vec<ClassLatency>,
    /// Throughput in virtual time.
    pub throughput: Throughput,
    /// Commands by medium, operation and cause.
    pub counts: Vec<CountRow>,
    /// Waiting and service times of commands, by operation and cause.
    pub command_times: Vec<CommandTimeRow>,
    /// Write amplification: bytes written to media for each byte that the host wrote.
    pub write_amplification: WriteAmplification,
    /// Number of writes of part of a page in NAND (the HFSL paper's "update times"); `None` for a
    /// stack without this metric.
    pub flash_updates: Option<u64>,
    /// Media: reads, writes, erases, wear, use of units and channels.
    pub media: Vec<MediumReport>,
    /// Channel use over time.
    pub channels: ChannelSeries,
    /// Layers: metrics, and placement of data.
    pub layers: Vec<LayerReport>,
    /// Requests between the layers of a stack of several, and to its media.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkReport>,
    /// Recordings of layers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<crate::layer_trace::RecordReport>,
    /// Metrics of the engine and its scheduler.
    pub engine: Vec<MetricRow>,
    /// DRAM and durable memory used for mapping.
    pub memory: MappingMemory,
    /// Steady state of the run.
    pub steady_state: SteadyState,
    /// Wall-clock time that frit itself took: the only part that differs between two runs with the
    /// same inputs.
    pub software: SoftwareTime,
    /// Hints of ranges; `None` without `--hint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<HintReport>,
    /// Results of `--verify`; `None` without it.
    pub verification: Option<Verification>,
}

/// Program that made a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Program {
    /// Version of the program.
    pub version: String,
    /// Commit of the build, with `-dirty` if files had been changed; `None` for a build without a
    /// repository.
    pub commit: Option<String>,
}

impl Program {
    /// Returns the identity of this program.
    #[must_use]
    pub fn this() -> Program {
        Program {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("FRIT_COMMIT").map(str::to_owned),
        }
    }
}

/// Identity of the stack of a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StackId {
    /// Name of the stack.
    pub name: String,
    /// SHA-256 of `toml`.
    pub sha256: String,
    /// Full description with defaults and overrides, in canonical form: a stack file that builds
    /// the same stack.
    pub toml: String,
    /// Capacity of the volume, in bytes.
    pub volume_bytes: u64,
}

/// Identity of the workload of a report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkloadId {
    /// Name, origin (real or generated), hash or specification.
    #[serde(flatten)]
    pub identity: WorkloadIdentity,
    /// Format, units and conventions used to read it, with all assumptions.
    pub reading: Reading,
    /// Lines that could not be parsed, and other notes.
    pub problems: Problems,
}

/// Options with which the workload was run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunId {
    /// `in-order` or `event`.
    pub engine: String,
    /// Scheduler of an event engine.
    pub scheduler: Option<String>,
    /// `closed` (queue depth) or `open` (arrival times).
    pub mode: &'static str,
    /// Maximum number of outstanding requests; `None` for no limit (open loop).
    pub queue_depth: Option<u32>,
    /// Divisor of the arrival times in an open loop.
    pub speed: Option<f64>,
    /// Seed of the run.
    pub seed: u64,
    /// Warm-up, in the form of `--warm`.
    pub warm: String,
    /// Number of requests of the warm-up.
    pub warm_requests: u64,
    /// Number of requests with an arrival time before that of the previous request; they arrived
    /// together with it.
    pub unordered: u64,
    /// Address space that `--wrap` folded onto the volume; `None` if it changed no address, or if the
    /// extent of the workload is not known before the run.
    pub wrapped: Option<WrappedAddresses>,
}

/// Address space of a trace that `--wrap` folded onto a smaller volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WrappedAddresses {
    /// Size of the address space of the trace, in bytes.
    pub address_bytes: u64,
    /// Size of the chunks of 1 MiB that the trace touches, in bytes.
    pub touched_bytes: u64,
}

/// Throughput, in virtual time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Throughput {
    /// Time from the first arrival to the last acknowledgement, in nanoseconds.
    pub duration_ns: u64,
    /// Open loop: time from the first to the last arrival, in nanoseconds; `None` in a closed loop.
    pub arrivals_ns: Option<u64>,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Bytes that the host read and wrote, in megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// Bytes that the host read, in megabytes per second.
    pub read_mb_per_s: f64,
    /// Bytes that the host wrote, in megabytes per second.
    pub write_mb_per_s: f64,
}

/// Count of the commands with one operation and cause on one medium.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CountRow {
    /// Name of the medium in the stack.
    pub medium: String,
    /// Name of the operation.
    pub op: &'static str,
    /// Name of the cause.
    pub cause: &'static str,
    /// Number of commands, and their bytes.
    #[serde(flatten)]
    pub count: Count,
}

/// Times of the commands with one operation and cause.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CommandTimeRow {
    /// Name of the operation.
    pub op: &'static str,
    /// Name of the cause.
    pub cause: &'static str,
    /// Number of commands that the engine executed.
    pub commands: u64,
    /// Mean time from the earliest possible start of a command to the time at which it got its
    /// unit, in nanoseconds.
    pub waited_mean_ns: f64,
    /// Mean time from then to the end of the command, in nanoseconds.
    pub served_mean_ns: f64,
    /// Number of suspensions by reads; left out if there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub suspensions: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the form that serde needs
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Write amplification. Each ratio is `None` if its denominator is zero.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WriteAmplification {
    /// NAND bytes programmed (copybacks included) divided by bytes that the host wrote. The ratio
    /// is below 1 if PCM absorbs writes.
    pub nand: Option<f64>,
    /// Parts of `nand` by cause; their sum is `nand`.
    pub nand_by_cause: Vec<CauseShare>,
    /// NAND pages programmed for any cause, divided by NAND pages programmed because data arrived
    /// at NAND (causes host, merge, migrate, destage). It shows the writes that cleaning, wear
    /// leveling and metadata add, and corresponds to the write amplification of the theory.
    pub flash: Option<f64>,
    /// PCM bytes written (all causes) divided by bytes that the host wrote.
    pub pcm: Option<f64>,
}

/// Write amplification of a cause.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CauseShare {
    /// Name of the cause.
    pub cause: &'static str,
    /// NAND bytes programmed for the cause, divided by bytes that the host wrote.
    pub ratio: f64,
}

/// Use of all channels over time, in equal bins.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct ChannelSeries {
    /// Width of a bin, in nanoseconds of virtual time. The first bin begins with the measured part.
    pub bin_ns: u64,
    /// One entry per channel of all media, in the order of `media`.
    pub channels: Vec<ChannelUse>,
}

/// Use of one channel over time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChannelUse {
    /// Name of the medium.
    pub medium: String,
    /// Number of the channel within the medium.
    pub channel: u32,
    /// Share of each bin, 0 to 1, in which the channel was busy.
    pub busy: Vec<f32>,
}

/// Requests of a layer to a layer or a medium below it, in a stack of several layers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkReport {
    /// Name of the upper layer.
    pub from: String,
    /// Name of the layer or the medium below it.
    pub to: String,
    /// Reads.
    pub reads: Count,
    /// Writes.
    pub writes: Count,
    /// Discards; a medium has none.
    pub discards: Count,
    /// Flushes, and fences of memory.
    pub flushes: u64,
    /// Bytes written to `to` for each byte that was written to `from`.
    pub written_per_byte: Option<f64>,
    /// Writes by the cause that `from` gives.
    pub causes: Vec<CauseCount>,
    /// Times by kind of request; a kind that did not occur has none.
    pub latency: Vec<LinkLatency>,
}

/// Times of the requests of one kind: from the start of a request, when what it waits for is done, to
/// its acknowledgement. For a medium, the requests are its commands.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkLatency {
    /// Kind of request: read, write, discard or flush.
    pub kind: &'static str,
    /// The distribution.
    #[serde(flatten)]
    pub figures: LatencySummary,
}

/// Writes of one cause.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CauseCount {
    /// The cause.
    pub cause: &'static str,
    /// Number and bytes.
    #[serde(flatten)]
    pub count: Count,
}

/// Report of a layer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LayerReport {
    /// Name of the layer.
    pub name: String,
    /// Metrics of the layer.
    pub metrics: Vec<MetricRow>,
    /// Placement of data at the end of the run, over the whole address space.
    pub residence_total: PagePlacement,
    /// The same for equal slices of the address space, in pages.
    pub residence: Vec<Residence>,
}

/// A metric of a layer or the engine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricRow {
    /// Name of the metric.
    pub name: &'static str,
    /// Value at the end of the run.
    pub value: f64,
    /// Change in the measured part; for a counter, the count in that part.
    pub change: f64,
    /// Unit of the value.
    pub unit: &'static str,
    /// Description of the metric.
    pub help: &'static str,
}

/// Number of pages by place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct PagePlacement {
    /// Pages that were never written, or were discarded.
    pub unmapped: u64,
    /// Pages in NAND.
    pub nand: u64,
    /// Pages in PCM used as storage.
    pub pcm_level: u64,
    /// Pages in PCM used as a cache.
    pub pcm_cache: u64,
    /// Pages on a disk only.
    pub disk: u64,
}

impl PagePlacement {
    /// Returns the number of pages that have a place.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.nand + self.pcm_level + self.pcm_cache + self.disk
    }
}

/// DRAM and durable memory used for mapping.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct MappingMemory {
    /// DRAM that the layer uses for mapping, in bytes.
    pub dram_bytes: u64,
    /// Durable memory that the layer reserves for mapping, in bytes.
    pub durable_map_bytes: u64,
    /// Size of a page in bytes.
    pub page_bytes: u32,
    /// Number of pages of the volume.
    pub pages: u64,
    /// Number of pages that are mapped at the end of the run.
    pub mapped_pages: u64,
    /// `dram_bytes` divided by `pages`.
    pub dram_bytes_a_page: f64,
    /// `dram_bytes` divided by `mapped_pages`; `None` if no page is mapped.
    pub dram_bytes_a_mapped_page: Option<f64>,
}

/// Wall-clock time that frit itself took.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SoftwareTime {
    /// Nanoseconds per request on one core: the driver, the layer with its media rules, the engine
    /// and the histograms; without parsing, decompressing or generating the workload. With
    /// verification it includes generating and checking contents.
    pub ns_per_request: f64,
    /// Nanoseconds per media command, for the same work.
    pub ns_per_command: Option<f64>,
    /// Wall-clock time of the measured part without the time of the workload, in nanoseconds.
    pub wall_ns: u64,
    /// Wall-clock time spent in the workload (parsing, decompressing, generating), in nanoseconds.
    pub workload_wall_ns: u64,
    /// Contents were generated and checked during the measurement.
    pub includes_verification: bool,
}

impl Report {
    /// Returns the change of a layer's metric in the measured part.
    #[must_use]
    pub fn counted(&self, name: &str) -> Option<f64> {
        self.layers.iter().flat_map(|l| &l.metrics).find(|m| m.name == name).map(|m| m.change)
    }

    /// Returns the latency of a class: `read`, `write`, `discard`, `flush` or `all`.
    #[must_use]
    pub fn class(&self, class: &str) -> Option<&ClassLatency> {
        self.latency.iter().find(|l| l.class == class)
    }

    /// Returns the count of an operation over all causes and media.
    #[must_use]
    pub fn of(&self, op: frit_core::Op) -> Count {
        let name: &'static str = op.into();
        self.counts.iter().filter(|c| c.op == name).fold(Count::default(), |a, c| Count {
            commands: a.commands + c.count.commands,
            bytes: a.bytes + c.count.bytes,
        })
    }

    /// Returns `true` if the stack has a medium of this kind.
    #[must_use]
    pub fn has(&self, kind: MediumKind) -> bool {
        self.media.iter().any(|m| m.kind == kind)
    }

    /// Returns `true` if no verification failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verification.as_ref().is_none_or(Verification::passed)
    }
}

/// A report in JSON.
#[derive(Serialize)]
struct ReportInJson<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Findings of the comparison with the stacks that follow; `None` in the reports of those.
    comparison: Option<ComparisonFindings>,
}

/// Writes reports as a JSON array, even if there is only one. Reports are ordered by workload, with
/// `stacks` stacks for each. The first report of a workload contains the comparison of its stacks.
///
/// # Errors
/// Errors of the writer.
pub fn write_json(reports: &[Report], stacks: usize, mut out: impl std::io::Write) -> std::io::Result<()> {
    let mut all = Vec::new();
    for runs in reports.chunks(stacks.max(1)) {
        let mut comparison = (runs.len() > 1).then(|| of_comparison(runs));
        all.extend(runs.iter().map(|report| ReportInJson { report, comparison: comparison.take() }));
    }
    serde_json::to_writer_pretty(&mut out, &all)?;
    out.write_all(b"\n")?;
    out.flush()
}
