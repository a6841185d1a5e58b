//! Results of a comparison of in-storage processing with software.

use super::foreground::{ForegroundLatency, ForegroundLoad};
use super::words::WORDS;
use crate::host::HostModel;
use frit_core::Nanos;
use serde::Serialize;

/// A query by in-storage processing.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IspQuery {
    /// Time from the start register to completion, as the timer of the engine shows it.
    pub engine_ns: Nanos,
    /// Speed in that time, in MB/s (10^6 bytes).
    pub mb_s: f64,
    /// Time of the program from its first call to the results: with instruction and polling.
    pub total_ns: Nanos,
    /// Speed in the time of the program, in MB/s.
    pub total_mb_s: f64,
    /// Calls of the program, with opening and closing the command file.
    pub requests: u64,
    /// Calls among these that read the status register.
    pub polls: u64,
    /// Time of the program within calls.
    pub cpu_ns: Nanos,
    /// Share of its time, from 0 to 1.
    pub cpu_share: f64,
    /// Memory of the program for instruction and results, in bytes.
    pub memory_bytes: u64,
    /// Bytes that crossed the link, without those of the foreground load.
    pub link_bytes: Option<u64>,
    /// Time in which the link was busy; also by the foreground load.
    pub link_busy_ns: Option<Nanos>,
    /// Bytes of contents that the engine read.
    pub contents_bytes: u64,
    /// Bytes of the inode and of lines of extents that the engine read.
    pub metadata_bytes: u64,
    /// Commands to the memory with the cause `isp`.
    pub commands: u64,
    /// Bytes of these commands.
    pub command_bytes: u64,
    /// Share of the engine's time in which its units were busy, on average.
    pub engine_busy: f64,
    /// Share of the engine's time in which the units of the memory that were used at all were busy, on
    /// average.
    pub memory_busy: f64,
    /// Occurrences of the words.
    pub counts: [u64; WORDS],
}

/// A query by software: reads over the link, and comparisons by the processor.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SoftwareQuery {
    /// Time of the program.
    pub total_ns: Nanos,
    /// Speed in MB/s.
    pub mb_s: f64,
    /// Time of comparisons.
    pub compare_ns: Nanos,
    /// Calls of the program, with opening and closing the file.
    pub requests: u64,
    /// Share of the time in which the processor is busy: it waits for its loads.
    pub cpu_share: f64,
    /// Memory of the program for contents, in bytes.
    pub memory_bytes: u64,
    /// Bytes that crossed the link.
    pub link_bytes: Option<u64>,
    /// Occurrences of the words.
    pub counts: [u64; WORDS],
}

/// Response times of the foreground load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ForegroundReport {
    /// The load.
    pub load: ForegroundLoad,
    /// Response times without the engine.
    pub idle: Option<ForegroundLatency>,
    /// Response times while the engine runs, of reads at the same places and with the same arrivals.
    pub running: Option<ForegroundLatency>,
}

impl ForegroundReport {
    /// Returns the 99th percentile while the engine runs, relative to that without it.
    #[must_use]
    pub fn p99_ratio(&self) -> Option<f64> {
        Some(self.running?.p99_ns as f64 / self.idle?.p99_ns as f64)
    }
}

/// Results of one file on one machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct QueryRow {
    /// Profile of the memory.
    pub profile: String,
    /// Name of the host.
    pub host: String,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Number of extents of the file.
    pub extents: u64,
    /// Query by in-storage processing.
    pub isp: IspQuery,
    /// Query by software.
    pub software: SoftwareQuery,
    /// Speed of the engine, relative to software.
    pub ratio: f64,
    /// Speed of the program with in-storage processing, relative to software.
    pub total_ratio: f64,
    /// Response times of the foreground load.
    pub foreground: Option<ForegroundReport>,
}

/// A machine: a memory and a host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineReport {
    /// Profile of the memory.
    pub profile: String,
    /// Host with all its values.
    pub host: HostModel,
    /// Size of the file system in bytes.
    pub bytes: u64,
}

/// Report of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IspReport {
    /// Version of frit.
    pub version: &'static str,
    /// Words of the query.
    pub words: [String; WORDS],
    /// Seed.
    pub seed: u64,
    /// Machines.
    pub machines: Vec<MachineReport>,
    /// Results, by machine and size.
    pub rows: Vec<QueryRow>,
}

impl IspReport {
    /// Returns the rows of different counts of words: the engine and software read different bytes.
    pub fn mismatches(&self) -> impl Iterator<Item = &QueryRow> {
        self.rows.iter().filter(|row| row.isp.counts != row.software.counts)
    }
}

/// Returns a speed in MB/s.
pub(super) fn mb_s(bytes: u64, time: Nanos) -> f64 {
    match time {
        Nanos::ZERO => 0.0,
        time => bytes as f64 / time.as_secs() / 1e6,
    }
}
