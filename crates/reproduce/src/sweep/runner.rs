//! Runner of cells. Each cell runs once, for any number of metrics that are read from it.

use super::scale::ScaledDevice;
use super::{AvailableWorkload, RunMetrics, Traces, WorkloadLookup, WorkloadStats};
use crate::describe::{Column, HintHandling, ParameterSweep, SweepState, WorkloadSpec};
use crate::findings::RunDoubts;
use crate::{Error, Result};
use frit_engine::LoopMode;
use frit_replay::findings::Finding;
use frit_replay::{RunOptions, Session, WarmUp, WarmUpRequests};
use frit_stack::Stack;
use frit_trace::identity::WorkloadKind;
use frit_trace::{Fit, Workload};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Callback that receives the name of each run that starts.
pub type RunNoteFn<'a> = &'a mut dyn FnMut(&str);

/// A cell of a sweep: one run, for a given column.
#[derive(Clone, Copy, Debug)]
pub struct SweepCell<'a> {
    /// The sweep.
    pub sweep: &'a ParameterSweep,
    /// The workload.
    pub workload: &'a WorkloadSpec,
    /// `true` if the host's hints are kept.
    pub hints: bool,
    /// The state.
    pub state: &'a SweepState,
}

/// Runs cells and keeps their results.
#[derive(Debug)]
pub struct SweepRunner {
    traces: Traces,
    quick: bool,
    seed: Option<u64>,
    inputs: BTreeMap<String, Rc<WorkloadLookup>>,
    facts: BTreeMap<(String, u64, u64), Rc<WorkloadStats>>,
    figures: BTreeMap<String, Rc<RunMetrics>>,
    /// Runs of the current experiment.
    ran: Vec<RunDoubts>,
}

impl SweepRunner {
    /// Returns a runner that looks for recordings in `traces`; without `seed`, the sweeps' own
    /// seeds are used.
    #[must_use]
    pub fn new(traces: Traces, quick: bool, seed: Option<u64>) -> SweepRunner {
        SweepRunner {
            traces,
            quick,
            seed,
            inputs: BTreeMap::new(),
            facts: BTreeMap::new(),
            figures: BTreeMap::new(),
            ran: Vec::new(),
        }
    }

    /// Returns the workloads of a sweep to run: all, or those of `--quick` and those given by name.
    pub fn workloads<'a>(&'a self, sweep: &'a ParameterSweep) -> impl Iterator<Item = &'a WorkloadSpec> {
        let named = |w: &WorkloadSpec| self.traces.named.contains_key(&w.name);
        sweep
            .workloads
            .iter()
            .filter(move |w| !self.quick || sweep.quick.workloads.contains(&w.name) || named(w))
    }

    /// Returns a workload, or the reason why it is missing.
    ///
    /// # Errors
    /// The workload exists and cannot be read.
    pub fn input(&mut self, sweep: &ParameterSweep, workload: &WorkloadSpec) -> Result<Rc<WorkloadLookup>> {
        if let Some(found) = self.inputs.get(&workload.name) {
            return Ok(Rc::clone(found));
        }
        let limit = self.quick.then_some(sweep.quick.requests);
        let found = Rc::new(self.traces.find(workload, limit)?);
        self.inputs.insert(workload.name.clone(), Rc::clone(&found));
        Ok(found)
    }

    /// Returns the rows of a workload in a state, as values of `hints`: without hints, and with
    /// them if there are any.
    #[must_use]
    pub fn rows(workload: &WorkloadSpec, input: &AvailableWorkload, state: &SweepState) -> Vec<bool> {
        if state.real_only && input.kind == WorkloadKind::Generated {
            return Vec::new();
        }
        match workload.hints {
            HintHandling::Both if input.has_metadata() => vec![false, true],
            _ => vec![false],
        }
    }

    /// Returns the characteristics of the workload of a cell.
    ///
    /// # Errors
    /// The workload cannot be read.
    pub fn facts(&mut self, cell: SweepCell<'_>, input: &AvailableWorkload) -> Result<Rc<WorkloadStats>> {
        let key = (cell.workload.name.clone(), page_bytes(cell)?, cell.state.chunk);
        if let Some(facts) = self.facts.get(&key) {
            return Ok(Rc::clone(facts));
        }
        let facts = Rc::new(WorkloadStats::of(&mut input.open()?, key.1, key.2)?);
        self.facts.insert(key, Rc::clone(&facts));
        Ok(facts)
    }

    /// Returns the metrics of a cell in a column.
    ///
    /// # Errors
    /// A stack or a workload fails.
    pub fn run(
        &mut self,
        cell: SweepCell<'_>,
        column: &Column,
        input: &AvailableWorkload,
        watch: RunNoteFn<'_>,
    ) -> Result<Rc<RunMetrics>> {
        let (w, s) = (&cell.workload.name, cell.state);
        let facts = self.facts(cell, input)?;
        let stack = stack(cell, column, &facts)?;
        // States may share columns: the key contains only what determines the result, so equal runs
        // are shared.
        let seed = self.seed.unwrap_or(cell.sweep.seed);
        let run = (stack.identity().sha256, &s.warm, s.chunk, cell.sweep.depth, seed);
        let key = format!("{w} {} {run:?}", cell.hints);
        let about = format!("{w}, {}, {}", s.name, column.name);
        let figures = match self.figures.get(&key) {
            Some(figures) => Rc::clone(figures),
            None => {
                watch(&about);
                let figures = Rc::new(measure(cell, &stack, input, &facts, seed)?);
                self.figures.insert(key, Rc::clone(&figures));
                figures
            }
        };
        // A column without a threshold leaves PCM unused on purpose.
        let counts = |f: &&Finding| column.threshold > 0 || !f.rule.ends_with("-unused");
        let doubts = figures.doubts().iter().filter(counts).cloned().collect();
        self.ran.push(RunDoubts { about, doubts });
        Ok(figures)
    }

    /// Returns the runs since the last call, with the doubts about them.
    pub(crate) fn take_runs(&mut self) -> Vec<RunDoubts> {
        std::mem::take(&mut self.ran)
    }
}

/// Returns the page size of a state's stacks.
fn page_bytes(cell: SweepCell<'_>) -> Result<u64> {
    let Some(column) = cell.sweep.columns_of(cell.state).next() else {
        let why = format!("the state '{}' has no column", cell.state.name);
        return Err(Error::Description { name: cell.sweep.name.clone(), why });
    };
    let built = load(cell, column, &[])?.build(&frit_stack::Bytes::None).map_err(Box::new)?;
    Ok(u64::from(built.layer.info().page_bytes))
}

fn load(cell: SweepCell<'_>, column: &Column, more: &[String]) -> Result<Stack> {
    let (sweep, state) = (cell.sweep, cell.state);
    let mut sets = sweep.set.clone();
    sets.extend(state.set.iter().cloned());
    sets.extend(column.sets(state));
    sets.extend(cell.workload.set.iter().cloned());
    sets.extend(more.iter().cloned());
    Ok(Stack::load(&column.stack, &sets).map_err(Box::new)?)
}

/// Returns the stack of a column, sized to the workload if the state requests it.
fn stack(cell: SweepCell<'_>, column: &Column, facts: &WorkloadStats) -> Result<Stack> {
    let plain = load(cell, column, &[])?;
    let Some(scale) = &cell.state.scale else { return Ok(plain) };
    let sized = ScaledDevice::new(scale, facts.chunks.bytes());
    let mut sets = sized.nand();
    if plain.media().iter().any(|m| m.name == "pcm") {
        sets.extend(sized.pcm(column.pcm));
    }
    load(cell, column, &sets)
}

fn measure(
    cell: SweepCell<'_>,
    stack: &Stack,
    input: &AvailableWorkload,
    facts: &WorkloadStats,
    seed: u64,
) -> Result<RunMetrics> {
    let described = |why: String| Error::Description { name: cell.sweep.name.clone(), why };
    let warm: WarmUp = cell.state.warm.parse().map_err(described)?;
    let mode = LoopMode::Closed { depth: cell.sweep.depth };
    let options = RunOptions { mode, warm, seed, ..RunOptions::default() };
    let mut session = Session::new(stack, &options)?;
    let sectors = session.sectors();
    let open = || -> Result<Workload> {
        Ok(input.packed(&facts.chunks, cell.hints)?.fit(Fit::Strict, sectors, None)?)
    };
    match warm.warm_up_requests {
        WarmUpRequests::None => {}
        WarmUpRequests::Whole => {
            session.warm(&mut open()?, None, &mut |_| {})?;
            // Warm-up and measurement are two workloads of one session, so that the measured one
            // meets the state that the first has left.
            session.next_workload();
        }
        WarmUpRequests::Requests(_) | WarmUpRequests::Share(_) => {
            return Err(described(format!(
                "warm = \"{warm}\": a sweep warms with the whole workload or not at all"
            )));
        }
    }
    Ok(RunMetrics::of(&session.measure(&mut open()?, &mut |_| {})?))
}
