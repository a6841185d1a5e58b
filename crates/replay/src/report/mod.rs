//! What a run found: one plain structure, from which text, JSON, pages and comparisons are made.
//!
//! Everything in it comes from [`Visible`](frit_core::Visible), its counts, and the engine; nothing is counted twice.
//! `docs/report.md` describes every field as JSON has it.

mod build;
pub mod compare;
mod disk;
mod latency;
mod media;
pub(crate) mod show;
pub mod text;

pub(crate) use build::{Before, Inputs, build};
pub use disk::{DiskReport, DistanceBucket};
pub use latency::{Bucket, ClassLatency, Distribution};
pub use media::{MediumReport, WearBucket, WearMap, WearReport};

use crate::host::Asked;
use crate::steady::SteadyState;
use crate::verify::Verification;
use frit_core::visible::Residence;
use frit_core::{Count, MediumKind};
use frit_trace::{Identity, Problems, Reading};
use serde::Serialize;

/// The version of the report's structure. It grows when a field changes its meaning or goes; new fields may
/// come without.
pub const SCHEMA: u32 = 1;

/// What one run of a workload over a stack found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program that made it.
    pub frit: Program,
    /// The stack.
    pub stack: StackId,
    /// The workload.
    pub workload: WorkloadId,
    /// How it was run.
    pub run: RunId,
    /// What the workload asked for, in the measured part.
    pub asked: Asked,
    /// Latency by class of request, and of all together (class `all`, last).
    pub latency: Vec<ClassLatency>,
    /// Throughput in virtual time.
    pub throughput: Throughput,
    /// Commands by medium, operation and cause.
    pub counts: Vec<CountRow>,
    /// How long commands waited and took, by operation and cause.
    pub command_times: Vec<CommandTimeRow>,
    /// Bytes written to media for each byte that the host wrote.
    pub write_amplification: WriteAmplification,
    /// Writes of part of a page that lay in NAND (the HFSL paper's "update times"); none for a stack without
    /// such a figure.
    pub flash_updates: Option<u64>,
    /// The media: reads, writes, erases, wear, use of units and channels.
    pub media: Vec<MediumReport>,
    /// Channel use over time.
    pub channels: ChannelSeries,
    /// The layers: figures, and where data lies.
    pub layers: Vec<LayerReport>,
    /// Figures of the engine and its scheduler.
    pub engine: Vec<MetricRow>,
    /// Memory that mapping takes.
    pub memory: Memory,
    /// Whether the run reached steady state.
    pub steady_state: SteadyState,
    /// What frit itself took, in wall-clock time: the only part that differs between two runs of the same inputs.
    pub software: Software,
    /// What `--verify` found; none without it.
    pub verification: Option<Verification>,
}

/// The program that made a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The commit it was built from, `-dirty` when files had been changed; none when it was built without a repository.
    pub commit: Option<String>,
}

impl Program {
    /// This one.
    #[must_use]
    pub fn this() -> Program {
        Program {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("FRIT_COMMIT").map(str::to_owned),
        }
    }
}

/// What stack it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StackId {
    /// Its name.
    pub name: String,
    /// SHA-256 of `toml`.
    pub sha256: String,
    /// The whole description, with defaults and overrides, in canonical form: a stack file that builds the same stack.
    pub toml: String,
    /// Size of the volume, in bytes.
    pub volume_bytes: u64,
}

/// What workload it was.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkloadId {
    /// Name, real or generated, hash or specification.
    #[serde(flatten)]
    pub identity: Identity,
    /// How its format was read: nothing is assumed in silence.
    pub reading: Reading,
    /// Lines that could not be understood, and other remarks.
    pub problems: Problems,
}

/// How the workload was run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunId {
    /// `eager` or `event`.
    pub engine: String,
    /// The scheduler of an event engine.
    pub scheduler: Option<String>,
    /// `closed` (queue depth) or `open` (arrival times).
    pub mode: &'static str,
    /// The most requests outstanding; none: no limit (open loop).
    pub queue_depth: Option<u32>,
    /// Open loop: by what arrival times were divided.
    pub speed: Option<f64>,
    /// The seed of the run.
    pub seed: u64,
    /// What went before, as `--warm` takes it.
    pub warm: String,
    /// Requests of the warm-up.
    pub warm_requests: u64,
    /// Requests whose arrival was earlier than that of the one before, and was taken as the same.
    pub unordered: u64,
}

/// Throughput, in virtual time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Throughput {
    /// From the first arrival to the last acknowledgement, in nanoseconds.
    pub duration_ns: u64,
    /// Requests a second.
    pub requests_per_s: f64,
    /// Bytes that the host read and wrote, in megabytes (10^6 bytes) a second.
    pub mb_per_s: f64,
    /// Bytes that the host read, in megabytes a second.
    pub read_mb_per_s: f64,
    /// Bytes that the host wrote, in megabytes a second.
    pub write_mb_per_s: f64,
}

/// Commands of one operation and cause on one medium.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CountRow {
    /// The medium's name in the stack.
    pub medium: String,
    /// The operation.
    pub op: &'static str,
    /// The cause.
    pub cause: &'static str,
    /// Commands, and their bytes.
    #[serde(flatten)]
    pub count: Count,
}

/// Time of the commands of one operation and cause.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CommandTimeRow {
    /// The operation.
    pub op: &'static str,
    /// The cause.
    pub cause: &'static str,
    /// Commands that the engine carried out.
    pub commands: u64,
    /// Mean time from when a command could have begun to when it got its unit, in nanoseconds.
    pub waited_mean_ns: f64,
    /// Mean time from then to its end, in nanoseconds.
    pub served_mean_ns: f64,
}

/// Write amplification. All ratios are none when their denominator is zero.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WriteAmplification {
    /// NAND bytes programmed (copybacks included) by bytes that the host wrote. Below 1 when PCM keeps data from NAND.
    pub nand: Option<f64>,
    /// The parts of `nand` by cause; they add up to it.
    pub nand_by_cause: Vec<CauseShare>,
    /// NAND pages programmed for any cause by NAND pages programmed since data came to NAND (causes host, merge,
    /// migrate, destage): what cleaning, wear leveling and metadata add. The figure that theory gives.
    pub flash: Option<f64>,
    /// PCM bytes written (all causes) by bytes that the host wrote.
    pub pcm: Option<f64>,
}

/// A share by cause.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CauseShare {
    /// The cause.
    pub cause: &'static str,
    /// The share.
    pub ratio: f64,
}

/// Use of all channels over time, in equal bins.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct ChannelSeries {
    /// Width of a bin, in nanoseconds of virtual time, from the start of the measured part.
    pub bin_ns: u64,
    /// One entry a channel, through all media in the order of `media`.
    pub channels: Vec<ChannelUse>,
}

/// Use of one channel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChannelUse {
    /// The medium.
    pub medium: String,
    /// The channel's number within the medium.
    pub channel: u32,
    /// For each bin the part of it, 0 to 1, in which the channel carried something.
    pub busy: Vec<f32>,
}

/// A layer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LayerReport {
    /// Its name.
    pub name: String,
    /// Its figures.
    pub metrics: Vec<MetricRow>,
    /// Where data lies at the end, over the whole address space.
    pub residence_total: Placed,
    /// The same in equal slices of the address space, in pages.
    pub residence: Vec<Residence>,
}

/// A figure of a layer or the engine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricRow {
    /// Its name.
    pub name: &'static str,
    /// Its value at the end of the run.
    pub value: f64,
    /// By how much it changed in the measured part: of a counter, what was counted there.
    pub change: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What it says.
    pub help: &'static str,
}

/// Pages by where they lie.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Placed {
    /// Never written, or discarded.
    pub unmapped: u64,
    /// In NAND.
    pub nand: u64,
    /// In PCM as storage.
    pub pcm_level: u64,
    /// In PCM as a cache.
    pub pcm_cache: u64,
    /// On a disk alone.
    pub disk: u64,
}

impl Placed {
    /// Pages that lie somewhere.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.nand + self.pcm_level + self.pcm_cache + self.disk
    }
}

/// Memory that mapping takes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Memory {
    /// DRAM that the layer holds for its mapping, in bytes.
    pub dram_bytes: u64,
    /// Durable memory that it reserves for its mapping, in bytes.
    pub durable_map_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Pages of the volume.
    pub pages: u64,
    /// Pages that are mapped at the end of the run.
    pub mapped_pages: u64,
    /// `dram_bytes` by `pages`.
    pub dram_bytes_a_page: f64,
    /// `dram_bytes` by `mapped_pages`; none when no page is.
    pub dram_bytes_a_mapped_page: Option<f64>,
}

/// What frit itself took, in wall-clock time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Software {
    /// Nanoseconds a request on one core: the driver, the layer with its media rules, the engine and the histograms; not
    /// parsing, decompressing or generating the workload. With verification also making and checking contents.
    pub ns_per_request: f64,
    /// The same by media command.
    pub ns_per_command: Option<f64>,
    /// Wall-clock time of the measured part without the workload's, in nanoseconds.
    pub wall_ns: u64,
    /// Wall-clock time that the workload took (parsing, decompressing, generating), in nanoseconds.
    pub workload_wall_ns: u64,
    /// Whether contents were made and checked meanwhile.
    pub includes_verification: bool,
}

impl Report {
    /// What a layer counted under a name in the measured part.
    #[must_use]
    pub fn counted(&self, name: &str) -> Option<f64> {
        self.layers.iter().flat_map(|l| &l.metrics).find(|m| m.name == name).map(|m| m.change)
    }

    /// The latency of a class: `read`, `write`, `discard`, `flush` or `all`.
    #[must_use]
    pub fn class(&self, class: &str) -> Option<&ClassLatency> {
        self.latency.iter().find(|l| l.class == class)
    }

    /// All commands of an operation, over all causes and media.
    #[must_use]
    pub fn of(&self, op: frit_core::Op) -> Count {
        let name: &'static str = op.into();
        self.counts.iter().filter(|c| c.op == name).fold(Count::default(), |a, c| Count {
            commands: a.commands + c.count.commands,
            bytes: a.bytes + c.count.bytes,
        })
    }

    /// Whether the stack has a medium of this kind.
    #[must_use]
    pub fn has(&self, kind: MediumKind) -> bool {
        self.media.iter().any(|m| m.kind == kind)
    }

    /// Whether there is nothing that should make a run fail.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verification.as_ref().is_none_or(Verification::passed)
    }
}

/// Writes reports as JSON: an array, also of one.
///
/// # Errors
/// What the writer says.
pub fn write_json(reports: &[Report], mut out: impl std::io::Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut out, reports)?;
    out.write_all(b"\n")?;
    out.flush()
}
