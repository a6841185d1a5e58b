//! Software time of a request: frit's path and the kernel's block path, measured in turns in one
//! run.

mod kernel;
mod paths;

use super::{Measure, Present, Subject};
use crate::Result;
use crate::outcome::{Cell, Outcome, OutcomePart, OutcomeTable, count};
use crate::workbench::Workbench;
use frit_core::size;
use frit_stack::{Bytes, Stack};
use kernel::TempLoopDevice;
use paths::{LayerPath, MeasuredPath};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Seed of the request addresses.
const SEED: u64 = 1;
/// Numbers of rounds and requests with `--quick`.
const QUICK: (u32, u32) = (3, 1000);

/// Measurement of the software time of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePlan {
    /// Stack whose path is measured.
    pub stack: String,
    /// Overrides of the stack.
    #[serde(default)]
    pub set: Vec<String>,
    /// Size of a request, in bytes.
    #[serde(deserialize_with = "size::deserialize")]
    pub request: u64,
    /// Size of the address range of requests, in bytes, on both paths.
    #[serde(deserialize_with = "size::deserialize")]
    pub span: u64,
    /// Number of reads, and of writes, in a round.
    pub requests: u32,
    /// Number of rounds; the median is reported.
    pub rounds: u32,
}

/// Software time of requests.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SoftwareOutcome {
    /// Size of a request, in bytes.
    pub request_bytes: u64,
    /// Number of reads, and of writes, in a round.
    pub requests: u32,
    /// Number of rounds; the paths take turns.
    pub rounds: u32,
    /// Paths, frit's first.
    pub paths: Vec<PathTime>,
    /// Reason why the kernel's path was not measured.
    pub skipped: Option<String>,
}

/// Time on one path, in nanoseconds a request: the median over rounds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathTime {
    /// Name of the path.
    pub name: &'static str,
    /// Components of the path.
    pub contains: &'static str,
    /// Time of a read.
    pub read_ns: f64,
    /// Time of a write.
    pub write_ns: f64,
    /// Times of the fastest and the slowest round of reads.
    pub read_range_ns: (f64, f64),
    /// Times of the fastest and the slowest round of writes.
    pub write_range_ns: (f64, f64),
    /// `true` for the kernel's path.
    pub kernel: bool,
}

impl Measure for SoftwarePlan {
    type Data = SoftwareOutcome;

    /// Measures all paths in turns, so that disturbances of the machine affect all of them alike.
    fn measure(
        &self,
        _: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<SoftwareOutcome> {
        let (rounds, requests) = if bench.options.quick { QUICK } else { (self.rounds, self.requests) };
        let (mut paths, skipped) = self.paths()?;
        for p in &mut paths {
            note(&format!("filling: {}", p.name));
            // Filled before the measurement, so that measured reads and writes meet mapped blocks
            // on every path.
            p.fill(self)?;
        }
        let mut rng = SmallRng::seed_from_u64(SEED);
        for round in 0..rounds {
            note(&format!("round {} of {rounds}", round + 1));
            let place = |_| rng.random_range(0..self.span / self.request) * self.request;
            let places: Vec<u64> = (0..requests).map(place).collect();
            for p in &mut paths {
                p.round(&places)?;
            }
        }
        let paths = paths.into_iter().map(MeasuredPath::time).collect();
        Ok(SoftwareOutcome { request_bytes: self.request, requests, rounds, paths, skipped })
    }
}

impl SoftwarePlan {
    /// Returns the paths, and the reason why the kernel's path is missing.
    fn paths(&self) -> Result<(Vec<MeasuredPath>, Option<String>)> {
        let stack = Stack::load(&self.stack, &self.set).map_err(Box::new)?;
        let mut paths = vec![
            MeasuredPath::new(
                "frit, with bytes",
                "map, policies, media rules, checksums, copies to and from memory, garbage collection",
                false,
                Box::new(LayerPath::new(&stack, self, &Bytes::Memory)?),
            ),
            MeasuredPath::new(
                "frit, without bytes",
                "map, policies, media rules, garbage collection",
                false,
                Box::new(LayerPath::new(&stack, self, &Bytes::None)?),
            ),
        ];
        let mut skipped = None;
        match TempLoopDevice::new(self.span, self.request as usize) {
            Ok(device) => paths.push(MeasuredPath::new(
                "kernel",
                "system call (O_DIRECT pread or pwrite), block layer, loop driver with its worker, copy to or from a file in tmpfs",
                true,
                Box::new(device),
            )),
            Err(why) => skipped = Some(why),
        }
        Ok((paths, skipped))
    }
}

impl Present for SoftwareOutcome {
    fn present(&self) -> Outcome {
        let kernel = self.paths.iter().find(|p| p.kernel);
        let head = ["path", "", "read", "write", "read, relative to kernel", "write, relative to kernel"];
        let rows = self.paths.iter().flat_map(|p| path_rows(p, kernel)).collect();
        let about = format!(
            "Wall-clock time of a request of {} at random places, over {} rounds of {} reads and as many writes. The paths are measured in \
             turns. The times differ from run to run. On a busy machine the fastest rounds are more reliable than the medians, because the \
             path of the kernel waits until its worker is scheduled.",
            size::format(self.request_bytes),
            self.rounds,
            count(u64::from(self.requests)),
        );
        let mut parts = vec![
            OutcomePart::Text(about),
            OutcomePart::Table(OutcomeTable::new(2, &head, rows)),
            OutcomePart::List {
                head: None,
                items: self.paths.iter().map(|p| format!("{}: {}", p.name, p.contains)).collect(),
            },
        ];
        if let Some(why) = &self.skipped {
            parts.push(OutcomePart::Text(format!("The path of the kernel was SKIPPED: {why}.")));
        }
        Outcome::of(parts)
    }
}

/// Returns the rows of a path: median, fastest and slowest round.
fn path_rows(p: &PathTime, kernel: Option<&PathTime>) -> [Vec<Cell>; 3] {
    let by = |mine: f64, theirs: Option<f64>| match theirs {
        Some(t) if !p.kernel => Cell::Change(mine / t),
        _ => Cell::Missing,
    };
    let row = |name: &str, what: &str, of: fn(&PathTime) -> (f64, f64)| {
        let ((read, write), theirs) = (of(p), kernel.map(of));
        vec![
            Cell::text(name),
            Cell::text(what),
            Cell::with_unit(read, 0, " ns"),
            Cell::with_unit(write, 0, " ns"),
            by(read, theirs.map(|t| t.0)),
            by(write, theirs.map(|t| t.1)),
        ]
    };
    [
        row(p.name, "median", |p| (p.read_ns, p.write_ns)),
        row("", "fastest", |p| (p.read_range_ns.0, p.write_range_ns.0)),
        row("", "slowest", |p| (p.read_range_ns.1, p.write_range_ns.1)),
    ]
}
