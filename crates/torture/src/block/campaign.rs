//! Runs many workloads on all processor cores and sums their results.

use crate::block::case::{Case, Mode};
use crate::block::oracle::{Oracle, Violation};
use crate::block::power_cuts::WorkItem;
use crate::block::recording_sink::Mutation;
use crate::block::shrink::shrink;
use crate::block::target::TortureTarget;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random choices.
    pub seed: u64,
    /// Modes to run, in turn.
    pub modes: Vec<Mode>,
    /// Number of threads.
    pub threads: usize,
    /// Time after which no further workload begins.
    pub time: Option<Duration>,
    /// Number of workloads after which no further one begins.
    pub items: Option<u32>,
    /// Number of distinct images after which no further workload begins.
    pub images: Option<usize>,
    /// Largest number of cuts of a workload.
    pub cuts_most: Option<usize>,
    /// Interval, in images, at which an image is also rewritten in full.
    pub alive_every: u32,
    /// Interval, in images, at which the recovery of an image is cut as well.
    pub nested_every: u32,
    /// Bytes of PCM that persist as a unit; drawn for each workload if `None`.
    pub word_bytes: Option<u64>,
    /// Stop at the first violation.
    pub first_only: bool,
    /// Report the requests and commands around a violation.
    pub explain: bool,
    /// Reduce failing cases to fewer requests.
    pub shrink: bool,
    /// Bug that the recording sink plants on purpose.
    pub mutation: Option<Mutation>,
}

impl Options {
    /// Returns the case of the `n`-th workload. Modes take turns; a mode that is listed twice has
    /// two turns.
    fn case(&self, n: u32) -> Case {
        let turn = n as usize % self.modes.len();
        let mode = self.modes[turn];
        let same = |m: &&Mode| **m == mode;
        let all = self.modes.iter().filter(same).count() as u32;
        let before = self.modes[..turn].iter().filter(same).count() as u32;
        Case::workload(mode, n / self.modes.len() as u32 * all + before)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: 1,
            modes: vec![Mode::Cuts],
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            time: None,
            items: None,
            images: None,
            cuts_most: None,
            alive_every: 16,
            nested_every: 64,
            word_bytes: None,
            first_only: false,
            explain: false,
            shrink: false,
            mutation: None,
        }
    }
}

/// A violation and the case that reproduces it.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Case that reproduces the violation.
    pub case: Case,
    /// Promise that does not hold.
    pub violation: Violation,
    /// The same case with fewer requests, if it was reduced.
    pub shrunk: Option<Case>,
    /// Description of the requests that are left, or of the commands around the cut.
    pub requests: Vec<String>,
}

/// Counts of one work item.
#[derive(Default, Debug)]
pub struct Tally {
    pub(crate) images: u64,
    pub(crate) image_hashes: Vec<u64>,
    pub(crate) state_hashes: Vec<u64>,
    pub(crate) read_bytes: u64,
    pub(crate) cuts: u64,
    pub(crate) repeated: u64,
    pub(crate) nested: u64,
    pub(crate) requests: u64,
    pub(crate) commands: u64,
    pub(crate) faults: u64,
    pub(crate) faults_struck: u64,
    pub(crate) faults_seen: u64,
    pub(crate) found: Vec<Finding>,
}

/// Result of a campaign.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Report {
    /// Number of workloads.
    pub workloads: u32,
    /// Number of recorded requests of clients.
    pub requests: u64,
    /// Number of media commands that the requests issued.
    pub commands: u64,
    /// Number of cuts that were chosen.
    pub cuts: u64,
    /// Number of images equal to an earlier one, with the same acknowledgements. They are not
    /// examined again.
    pub repeated: u64,
    /// Number of images that were recovered and examined.
    pub images: u64,
    /// Number of these images that come from cuts of recoveries.
    pub nested: u64,
    /// Number of images that differ in what recovery read.
    pub distinct_images: usize,
    /// Number of images that differ in their contents after recovery.
    pub distinct_states: usize,
    /// Bytes that recoveries read.
    pub read_bytes: u64,
    /// Number of planned faults.
    pub faults: u64,
    /// Number of planned faults that struck.
    pub faults_struck: u64,
    /// Number of faults that an error or a check reported; the others did no harm.
    pub faults_seen: u64,
    /// Elapsed wall-clock time in seconds.
    pub seconds: f64,
    /// Violations, in the order of their cases.
    pub violations: Vec<Finding>,
}

impl Report {
    /// Returns the number of violations of each oracle, highest first.
    #[must_use]
    pub fn by_oracle(&self) -> Vec<(Oracle, usize)> {
        let mut all: Vec<(Oracle, usize)> = Vec::new();
        for f in &self.violations {
            match all.iter_mut().find(|(o, _)| *o == f.violation.oracle) {
                Some((_, n)) => *n += 1,
                None => all.push((f.violation.oracle, 1)),
            }
        }
        all.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        all
    }

    /// Returns the number of images examined per second.
    #[must_use]
    pub fn images_per_second(&self) -> f64 {
        self.images as f64 / self.seconds.max(1e-9)
    }
}

#[derive(Default)]
struct Total {
    report: Report,
    images: HashSet<u64>,
    states: HashSet<u64>,
}

impl Total {
    fn add(&mut self, t: Tally) {
        let r = &mut self.report;
        r.workloads += 1;
        r.requests += t.requests;
        r.commands += t.commands;
        r.cuts += t.cuts;
        r.repeated += t.repeated;
        r.images += t.images;
        r.nested += t.nested;
        r.read_bytes += t.read_bytes;
        r.faults += t.faults;
        r.faults_struck += t.faults_struck;
        r.faults_seen += t.faults_seen;
        r.violations.extend(t.found);
        self.images.extend(t.image_hashes);
        self.states.extend(t.state_hashes);
        r.distinct_images = self.images.len();
        r.distinct_states = self.states.len();
    }
}

/// Runs a campaign over a target. Calls `progress` after each workload.
pub fn run(target: &dyn TortureTarget, options: &Options, progress: &(dyn Fn(&Report) + Sync)) -> Report {
    let begun = Instant::now();
    let (next, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    let total = Mutex::new(Total::default());
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if options.items.is_some_and(|most| n >= most)
                        || options.time.is_some_and(|t| begun.elapsed() >= t)
                    {
                        return;
                    }
                    let tally = item(target, options, options.case(n));
                    let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    total.add(tally);
                    total.report.seconds = begun.elapsed().as_secs_f64();
                    if options.images.is_some_and(|n| total.report.distinct_images >= n)
                        || options.first_only && !total.report.violations.is_empty()
                    {
                        stop.store(true, Ordering::Relaxed);
                    }
                    progress(&total.report);
                }
            });
        }
    });
    let mut report = total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).report;
    // Threads finish workloads in any order; the report lists violations in the order of cases.
    report.violations.sort_by_key(|f| (f.case.number, f.case.mode.letter(), f.case.epoch, f.case.cut));
    report.seconds = begun.elapsed().as_secs_f64();
    if options.shrink {
        shrink_first(target, options, &mut report);
    }
    report
}

/// Reduces the first violation of each oracle.
fn shrink_first(target: &dyn TortureTarget, options: &Options, report: &mut Report) {
    let mut done = Vec::new();
    for f in &mut report.violations {
        if done.contains(&f.violation.oracle) {
            continue;
        }
        done.push(f.violation.oracle);
        if let Some((case, requests)) = shrink(target, options, f) {
            f.shrunk = Some(case);
            f.requests = requests;
        }
    }
}

/// Runs a single case.
#[must_use]
pub fn replay(target: &dyn TortureTarget, options: &Options, case: Case) -> Report {
    let begun = Instant::now();
    let mut total = Total::default();
    total.add(item(target, options, case));
    total.report.seconds = begun.elapsed().as_secs_f64();
    total.report
}

thread_local! {
    static CURRENT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the case that this thread runs, for the message of a program that aborts.
#[must_use]
pub fn current() -> String {
    CURRENT.with(|c| c.try_borrow().map(|c| c.clone()).unwrap_or_default())
}

fn item(target: &dyn TortureTarget, options: &Options, case: Case) -> Tally {
    CURRENT.with(|c| *c.borrow_mut() = case.to_string());
    let mut item = WorkItem { target, options, case, tally: Tally::default() };
    item.run();
    item.tally
}
