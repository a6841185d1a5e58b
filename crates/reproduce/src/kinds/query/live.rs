//! Word query on the machine that runs the measurement: the engine over a file in an image in memory,
//! and software that reads a file on tmpfs.

use super::command_file::ImageWithFile;
use super::software::{self, SoftwareRun};
use crate::kinds::machine_rules::RuleValue;
use crate::kinds::this_machine::{Spread, ThisMachine, memory_missing, new_file, tmpfs};
use crate::{Error, Result};
use frit_core::size;
use frit_core::split_mix::mix;
use frit_isp::Engine;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Number of rounds with `--quick`.
const QUICK_ROUNDS: u32 = 2;
/// Words of the text; one of [`QUERY_SHARE`] is a word of the query.
const COMMON: [&str; 8] = ["the", "system", "of", "memory", "file", "and", "processor", "data"];
/// One of this many words is a word of the query, on average.
const QUERY_SHARE: u64 = 64;

/// Word query on the machine that runs the measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveQueryPlan {
    /// Name in tables and rules.
    pub name: String,
    /// Number of rounds, in which the programs take turns.
    pub rounds: u32,
    /// Size of the reads of software in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub block: u64,
}

/// Results of queries on this machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LiveQueryOutcome {
    /// Name in tables and rules.
    pub name: String,
    /// The machine.
    pub machine: ThisMachine,
    /// Size of the reads of software in bytes.
    pub block_bytes: u64,
    /// Files, by size.
    pub files: Vec<LiveFile>,
    /// Reason why nothing was measured.
    pub skipped: Option<String>,
}

/// Queries of a file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LiveFile {
    /// Size in bytes.
    pub file_bytes: u64,
    /// Number of occurrences of each word, which all programs count.
    pub counts: Vec<u64>,
    /// Rounds.
    pub rounds: Vec<LiveRound>,
}

/// A query of each program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LiveRound {
    /// The engine, through a command file.
    pub engine: EngineRun,
    /// The software of the paper: each word is compared at every position.
    pub software: SoftwareRun,
    /// Software with the search of the engine, in the thread of the caller.
    pub vector: SoftwareRun,
}

/// A query by the engine.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct EngineRun {
    /// Time of the engine, from the submission to the completion.
    pub engine_ns: u64,
    /// Time of the caller, from opening the command file to closing it.
    pub total_ns: u64,
    /// Time in which the caller's thread waited for a processor that had other work.
    pub waited_ns: u64,
    /// Processor time of the caller's thread.
    pub caller_cpu_ns: u64,
    /// Processor time of the engine.
    pub engine_cpu_ns: u64,
    /// Calls of the caller: open, write, read, close.
    pub requests: u64,
}

/// Time of the clock and of the calling thread, for the difference of two moments.
#[derive(Clone, Copy)]
pub(super) struct ThreadTimes {
    clock: Instant,
    cpu_ns: u64,
    waited_ns: u64,
}

impl ThreadTimes {
    pub(super) fn now() -> ThreadTimes {
        // The clock is the last, and the first below: the times between them are not measured.
        let waited_ns = waited_ns();
        let cpu_ns = cpu_ns();
        ThreadTimes { clock: Instant::now(), cpu_ns, waited_ns }
    }

    /// Returns the times since then in nanoseconds: of the clock, of the processor, and of waits for a
    /// processor.
    pub(super) fn elapsed(self) -> (u64, u64, u64) {
        let total = self.clock.elapsed().as_nanos() as u64;
        let cpu = cpu_ns() - self.cpu_ns;
        (total, cpu, waited_ns().saturating_sub(self.waited_ns))
    }
}

/// Returns the processor time of the calling thread.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time of the calling thread in the run queue: the second number of `schedstat`
/// (Linux, Documentation/scheduler/sched-stats.rst). Zero if the kernel does not count it.
fn waited_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    text.and_then(|text| text.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
}

/// Returns a text of this size, in which some words are those of the query.
fn text(words: &[String], bytes: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes as usize + 16);
    let mut at = 0;
    while (text.len() as u64) < bytes {
        let random = mix(at);
        let pick = (random >> 32) as usize;
        let word = if random.is_multiple_of(QUERY_SHARE) {
            &words[pick % words.len()]
        } else {
            COMMON[pick % COMMON.len()]
        };
        text.extend_from_slice(word.as_bytes());
        text.push(if random >> 60 == 0 { b'\n' } else { b' ' });
        at += 1;
    }
    text.truncate(bytes as usize);
    text
}

impl LiveQueryPlan {
    /// Measures queries of files of these sizes.
    pub(super) fn measure(
        &self,
        words: &[String],
        sizes: &[u64],
        quick: bool,
        note: &mut dyn FnMut(&str),
    ) -> Result<LiveQueryOutcome> {
        let rounds = if quick { QUICK_ROUNDS } else { self.rounds };
        let mut outcome = LiveQueryOutcome {
            name: self.name.clone(),
            machine: ThisMachine::now(),
            block_bytes: self.block,
            files: Vec::new(),
            skipped: memory_missing(sizes.iter().max().unwrap_or(&0) * 4),
        };
        if outcome.skipped.is_some() {
            return Ok(outcome);
        }
        let engine = Arc::new(Engine::default());
        for bytes in sizes {
            note(&format!("{}, {}", self.name, size::format(*bytes)));
            outcome.files.push(self.measure_file(&engine, words, *bytes, rounds)?);
        }
        Ok(outcome)
    }

    fn measure_file(
        &self,
        engine: &Arc<Engine>,
        words: &[String],
        bytes: u64,
        rounds: u32,
    ) -> Result<LiveFile> {
        let contents = text(words, bytes);
        let image = ImageWithFile::new(&contents)?;
        // It loses its name at once, so that a killed program leaves nothing. Software opens it again.
        let mut file = new_file(bytes).map_err(Error::ThisMachine)?.into_file();
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let failed = |source| Error::File { path: tmpfs().display().to_string(), source };
        file.write_all(&contents).map_err(failed)?;
        drop(contents);
        // Not measured: it starts the threads, and creates the page tables.
        let (_, counts) = image.query(engine, words)?;
        let mut measured = LiveFile { file_bytes: bytes, counts, rounds: Vec::new() };
        for _ in 0..rounds {
            let (engine, of_engine) = image.query(engine, words)?;
            let (software, of_software) = software::by_position(&path, self.block, words)?;
            let (vector, of_vector) = software::by_vectors(&path, self.block, words)?;
            for (program, counts) in
                [("the engine", of_engine), ("software", of_software), ("vector search", of_vector)]
            {
                if counts != measured.counts {
                    let first = &measured.counts;
                    let why = format!("{program} counted {counts:?}, and the engine {first:?} before");
                    return Err(Error::ThisMachine(why));
                }
            }
            measured.rounds.push(LiveRound { engine, software, vector });
        }
        Ok(measured)
    }
}

impl LiveQueryOutcome {
    /// Returns a value by name, over the rounds.
    pub(super) fn value(&self, name: &str) -> Option<RuleValue> {
        if let Some(why) = &self.skipped {
            return Some(RuleValue::NotMeasured(why.clone()));
        }
        let rounds = self.files.iter().map(|f| f.rounds.len()).min()?;
        let all: Option<Vec<f64>> = (0..rounds).map(|round| self.value_of_round(round, name)).collect();
        Some(RuleValue::Measured(Spread::of(all?)))
    }

    /// Returns a value of a round: of speeds the mean over the files, of other values that of the
    /// largest file.
    fn value_of_round(&self, round: usize, name: &str) -> Option<f64> {
        let last = self.files.iter().max_by_key(|f| f.file_bytes)?.rounds.get(round)?;
        let speeds = |ns: fn(&LiveRound) -> u64| -> Vec<f64> {
            self.files.iter().map(|f| mb_s(f.file_bytes, ns(&f.rounds[round]))).collect()
        };
        let engine = || speeds(|r| r.engine.engine_ns);
        let software = || speeds(|r| r.software.total_ns);
        let vector = || speeds(|r| r.vector.total_ns);
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let flat = |all: &[f64]| {
            all.iter().copied().fold(f64::INFINITY, f64::min) / all.iter().copied().fold(0.0, f64::max)
        };
        let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
        let (e, s) = (&last.engine, &last.software);
        Some(match name {
            "engine_mb_s" => mean(&engine()),
            "software_mb_s" => mean(&software()),
            "ratio" => mean(&engine()) / mean(&software()),
            "vector_ratio" => mean(&engine()) / mean(&vector()),
            "engine_flatness" => flat(&engine()),
            "software_flatness" => flat(&software()),
            "program_ratio" => ratio(s.total_ns, e.total_ns),
            "engine_cpu" => ratio(e.caller_cpu_ns, e.total_ns.saturating_sub(e.waited_ns)),
            "software_cpu" => ratio(s.cpu_ns, s.total_ns.saturating_sub(s.waited_ns)),
            "cpu_ratio" => ratio(e.caller_cpu_ns + e.engine_cpu_ns, s.cpu_ns),
            "engine_requests" => e.requests as f64,
            "software_requests" => s.requests as f64,
            "fewer_requests" => 1.0 - ratio(e.requests, s.requests),
            _ => return None,
        })
    }
}

/// Returns a speed in MB/s.
pub(super) fn mb_s(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 1e3 / ns.max(1) as f64
}
