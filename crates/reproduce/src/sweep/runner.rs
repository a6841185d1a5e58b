//! Runner of cells. Each cell runs once, for any number of metrics that are read from it.

use super::scale::Sized;
use super::{Facts, Figures, Found, Input, Traces};
use crate::describe::{Column, Hints, State, Sweep, WorkloadSpec};
use crate::{Error, Result};
use frit_engine::Mode;
use frit_replay::{Lead, RunOptions, Session, Warm};
use frit_stack::Stack;
use frit_trace::identity::Kind;
use frit_trace::{Fit, Workload};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Callback that receives the name of each run that starts.
pub type Watch<'a> = &'a mut dyn FnMut(&str);

/// A cell of a sweep: one run, for a given column.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// The sweep.
    pub sweep: &'a Sweep,
    /// The workload.
    pub workload: &'a WorkloadSpec,
    /// `true` if the host's hints are kept.
    pub hints: bool,
    /// The state.
    pub state: &'a State,
}

/// Runs cells and keeps their results.
#[derive(Debug)]
pub struct Runner {
    traces: Traces,
    quick: bool,
    seed: Option<u64>,
    inputs: BTreeMap<String, Rc<Found>>,
    facts: BTreeMap<(String, u64, u64), Rc<Facts>>,
    figures: BTreeMap<String, Rc<Figures>>,
}

impl Runner {
    /// Returns a runner that looks for recordings in `traces`; without `seed`, the sweeps' own
    /// seeds are used.
    #[must_use]
    pub fn new(traces: Traces, quick: bool, seed: Option<u64>) -> Runner {
        Runner {
            traces,
            quick,
            seed,
            inputs: BTreeMap::new(),
            facts: BTreeMap::new(),
            figures: BTreeMap::new(),
        }
    }

    /// Returns `true` in a quick run with reduced workloads.
    #[must_use]
    pub fn quick(&self) -> bool {
        self.quick
    }

    /// Returns the workloads of a sweep to run: all, or those of `--quick` and those given by name.
    pub fn workloads<'a>(&'a self, sweep: &'a Sweep) -> impl Iterator<Item = &'a WorkloadSpec> {
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
    pub fn input(&mut self, sweep: &Sweep, workload: &WorkloadSpec) -> Result<Rc<Found>> {
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
    pub fn rows(workload: &WorkloadSpec, input: &Input, state: &State) -> Vec<bool> {
        if state.real_only && input.kind == Kind::Generated {
            return Vec::new();
        }
        match workload.hints {
            Hints::Both if input.has_metadata() => vec![false, true],
            _ => vec![false],
        }
    }

    /// Returns the characteristics of the workload of a cell.
    ///
    /// # Errors
    /// The workload cannot be read.
    pub fn facts(&mut self, cell: Cell<'_>, input: &Input) -> Result<Rc<Facts>> {
        let key = (cell.workload.name.clone(), page_bytes(cell)?, cell.state.chunk);
        if let Some(facts) = self.facts.get(&key) {
            return Ok(Rc::clone(facts));
        }
        let facts = Rc::new(Facts::of(&mut input.open()?, key.1, key.2)?);
        self.facts.insert(key, Rc::clone(&facts));
        Ok(facts)
    }

    /// Returns the metrics of a cell in a column.
    ///
    /// # Errors
    /// A stack or a workload fails.
    pub fn run(
        &mut self,
        cell: Cell<'_>,
        column: &Column,
        input: &Input,
        watch: Watch<'_>,
    ) -> Result<Rc<Figures>> {
        let (w, s) = (&cell.workload.name, cell.state);
        let facts = self.facts(cell, input)?;
        let stack = stack(cell, column, &facts)?;
        // States may share columns: the key contains only what determines the result, so equal runs
        // are shared.
        let seed = self.seed.unwrap_or(cell.sweep.seed);
        let run = (stack.identity().sha256, &s.warm, s.chunk, cell.sweep.depth, seed);
        let key = format!("{w} {} {run:?}", cell.hints);
        if let Some(figures) = self.figures.get(&key) {
            return Ok(Rc::clone(figures));
        }
        watch(&format!("{w}, {}, {}", s.name, column.name));
        let figures = Rc::new(measure(cell, &stack, input, &facts, seed)?);
        self.figures.insert(key, Rc::clone(&figures));
        Ok(figures)
    }
}

/// Returns the page size of a state's stacks.
fn page_bytes(cell: Cell<'_>) -> Result<u64> {
    let Some(column) = cell.sweep.columns_of(cell.state).next() else {
        let why = format!("the state '{}' has no column", cell.state.name);
        return Err(Error::Description { name: cell.sweep.name.clone(), why });
    };
    let built =
        load(cell, column, &[])?.build::<frit_core::Null>(&frit_stack::Bytes::None).map_err(Box::new)?;
    Ok(u64::from(built.layer.info().page_bytes))
}

fn load(cell: Cell<'_>, column: &Column, more: &[String]) -> Result<Stack> {
    let (sweep, state) = (cell.sweep, cell.state);
    let mut sets = sweep.set.clone();
    sets.extend(state.set.iter().cloned());
    sets.extend(column.sets(state));
    sets.extend(cell.workload.set.iter().cloned());
    sets.extend(more.iter().cloned());
    Ok(Stack::load(&column.stack, &sets).map_err(Box::new)?)
}

/// Returns the stack of a column, sized to the workload if the state requests it.
fn stack(cell: Cell<'_>, column: &Column, facts: &Facts) -> Result<Stack> {
    let plain = load(cell, column, &[])?;
    let Some(scale) = &cell.state.scale else { return Ok(plain) };
    let sized = Sized::new(scale, facts.chunks.bytes());
    let mut sets = sized.nand();
    if plain.media().iter().any(|m| m.name == "pcm") {
        sets.extend(sized.pcm(column.pcm));
    }
    load(cell, column, &sets)
}

fn measure(cell: Cell<'_>, stack: &Stack, input: &Input, facts: &Facts, seed: u64) -> Result<Figures> {
    let described = |why: String| Error::Description { name: cell.sweep.name.clone(), why };
    let warm: Warm = cell.state.warm.parse().map_err(described)?;
    let options = RunOptions { mode: Mode::Closed { depth: cell.sweep.depth }, warm, seed, verify: false };
    let mut session = Session::new(stack, &options)?;
    let sectors = session.sectors();
    let open = || -> Result<Workload> {
        Ok(input.packed(&facts.chunks, cell.hints)?.fit(Fit::Strict, sectors, None)?)
    };
    match warm.lead {
        Lead::None => {}
        Lead::Whole => {
            session.warm(&mut open()?, None, &mut |_| {})?;
            // Warm-up and measurement are two workloads of one session, so that the measured one
            // meets the state that the first has left.
            session.next_workload();
        }
        Lead::Requests(_) | Lead::Share(_) => {
            return Err(described(format!(
                "warm = \"{warm}\": a sweep warms with the whole workload or not at all"
            )));
        }
    }
    Ok(Figures::of(&session.measure(&mut open()?, &mut |_| {})?))
}
