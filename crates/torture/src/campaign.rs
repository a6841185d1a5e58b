//! Many workloads on all cores, and what came of them.

use crate::case::{Case, Mode};
use crate::cuts::Item;
use crate::oracle::{Oracle, Violation};
use crate::shrink::shrink;
use crate::subject::Subject;
use crate::tape::Mutation;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How to torture.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of all choices.
    pub seed: u64,
    /// What is done, in turns.
    pub modes: Vec<Mode>,
    /// Threads.
    pub threads: usize,
    /// Workloads are begun until this time has passed …
    pub time: Option<Duration>,
    /// … or until this many were begun …
    pub items: Option<u32>,
    /// … or until there were this many distinct images.
    pub images: Option<usize>,
    /// Cuts of a workload, at most.
    pub cuts_most: Option<usize>,
    /// One image of so many is written full.
    pub alive_every: u32,
    /// The recovery of one image of so many is cut as well.
    pub nested_every: u32,
    /// What PCM writes as a whole; drawn by workload when it is not given.
    pub word_bytes: Option<u64>,
    /// Stops at the first violation.
    pub first_only: bool,
    /// Tells the requests and commands around a violation.
    pub explain: bool,
    /// Shrinks what fails.
    pub shrink: bool,
    /// What is left out on purpose.
    pub mutation: Option<Mutation>,
}

impl Options {
    /// The `n`-th workload: modes take turns, and one that is there twice has two turns.
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

/// Something that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Where.
    pub case: Case,
    /// What.
    pub violation: Violation,
    /// The same with fewer requests.
    pub shrunk: Option<Case>,
    /// The requests that are left, or the commands around it, in words.
    pub requests: Vec<String>,
}

/// What a work item counted.
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
    pub(crate) found: Vec<Found>,
}

/// What a campaign came to.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Report {
    /// Workloads.
    pub workloads: u32,
    /// Requests of clients that were recorded.
    pub requests: u64,
    /// Media commands that they gave.
    pub commands: u64,
    /// Cuts that were chosen.
    pub cuts: u64,
    /// Images that were the same as one before, with the same acknowledgements, and not looked at again.
    pub repeated: u64,
    /// Images that were recovered and looked at.
    pub images: u64,
    /// Of these, cuts of recoveries.
    pub nested: u64,
    /// Distinct by what recovery read.
    pub distinct_images: usize,
    /// Distinct by what they held afterwards.
    pub distinct_states: usize,
    /// Bytes that recoveries read.
    pub read_bytes: u64,
    /// Faults that were planned.
    pub faults: u64,
    /// Of these, those that struck.
    pub faults_struck: u64,
    /// Of these, those that a client or a check was told of; the others did no harm.
    pub faults_seen: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// What does not hold.
    pub violations: Vec<Found>,
}

impl Report {
    /// Kinds of violations: how many each oracle found, most first.
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

    /// Images looked at in a second.
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

/// Tortures a subject. `progress` hears after each workload.
pub fn run(subject: &dyn Subject, options: &Options, progress: &(dyn Fn(&Report) + Sync)) -> Report {
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
                    let tally = item(subject, options, options.case(n));
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
    // Workloads end in any order; what was found is told in theirs.
    report.violations.sort_by_key(|f| (f.case.number, f.case.mode.letter(), f.case.epoch, f.case.cut));
    report.seconds = begun.elapsed().as_secs_f64();
    if options.shrink {
        shrink_first(subject, options, &mut report);
    }
    report
}

/// Shrinks the first violation of each oracle.
fn shrink_first(subject: &dyn Subject, options: &Options, report: &mut Report) {
    let mut done = Vec::new();
    for f in &mut report.violations {
        if done.contains(&f.violation.oracle) {
            continue;
        }
        done.push(f.violation.oracle);
        if let Some((case, requests)) = shrink(subject, options, f) {
            f.shrunk = Some(case);
            f.requests = requests;
        }
    }
}

/// Runs one case.
#[must_use]
pub fn replay(subject: &dyn Subject, options: &Options, case: Case) -> Report {
    let begun = Instant::now();
    let mut total = Total::default();
    total.add(item(subject, options, case));
    total.report.seconds = begun.elapsed().as_secs_f64();
    total.report
}

thread_local! {
    static CURRENT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The workload that this thread is at, for a message when the program ends in it.
#[must_use]
pub fn current() -> String {
    CURRENT.with(|c| c.try_borrow().map(|c| c.clone()).unwrap_or_default())
}

fn item(subject: &dyn Subject, options: &Options, case: Case) -> Tally {
    CURRENT.with(|c| *c.borrow_mut() = case.to_string());
    let mut item = Item { subject, options, case, tally: Tally::default() };
    item.run();
    item.tally
}
