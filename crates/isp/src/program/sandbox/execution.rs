//! Execution of an instruction with a program.

use super::budget::Budget;
use super::compile::{Compiled, Unit as ViewUnit};
use super::host::{Conditions, Stop};
use super::instance::Instance;
use super::ticker::Running;
use super::{Loaded, Programs};
use crate::engine::{Charge, Control, Start};
use crate::instructions::{Answer, Program, ProgramAnswer};
use crate::outcome::{Failure, Status};
use crate::program::limits::Grant;
use crate::scan::{Begin, Finished, Flow, Head, Operation, StepTime, Unit, View};
use crate::source::Source;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Bytes of a call of `scan`. A line is never divided, and may be longer.
const PIECE_BYTES: usize = 64 << 10;

/// Starts an instruction with a program within the limits that it was granted.
pub(crate) fn execute(
    program: &Program,
    module: Arc<dyn Source>,
    grant: Grant,
    start: Start,
) -> Result<(), Failure> {
    let programs = start.programs();
    let execution = Execution {
        // The thread that ticks is started here, since those of the engine may have a low priority.
        _running: programs.run()?,
        programs,
        control: Arc::clone(&start.control),
        source: Arc::clone(&start.request.source),
        module,
        argument: program.argument.clone(),
        budget: Arc::new(Budget::new(grant)),
        prepared: OnceLock::new(),
    };
    start.with(execution)
}

/// Operation of `Program`.
struct Execution {
    programs: Arc<Programs>,
    control: Arc<Control>,
    source: Arc<dyn Source>,
    module: Arc<dyn Source>,
    argument: Option<Vec<u8>>,
    budget: Arc<Budget>,
    prepared: OnceLock<Prepared>,
    _running: Running,
}

/// Compiled program, and the conditions of its instances.
struct Prepared {
    compiled: Arc<Compiled>,
    was_compiled: bool,
    conditions: Conditions,
    load_ns: u64,
    _charge: Charge,
}

/// Results of a program.
struct Run {
    begin: Begin,
    state: Progress,
}

enum Progress {
    /// No byte was processed.
    New,
    /// Instance that processes bytes.
    Active(Box<Instance>),
    /// Results of a part whose instance has ended.
    Ended { output: Vec<u8>, state: Vec<u8>, done: bool, _charge: Charge },
}

impl Execution {
    fn prepared(&self) -> Result<&Prepared, Failure> {
        let missing = || Failure::new(Status::Internal, "the program was not prepared; please report it");
        self.prepared.get().ok_or_else(missing)
    }

    fn instance<'a>(&self, run: &'a mut Run) -> Result<&'a mut Instance, Stop> {
        if matches!(run.state, Progress::New) {
            run.state = Progress::Active(Box::new(self.create(&run.begin)?));
        }
        match &mut run.state {
            Progress::Active(instance) => Ok(instance),
            _ => {
                Err(Stop::Failure(Failure::new(Status::Internal, "the program has ended; please report it")))
            }
        }
    }

    fn create(&self, begin: &Begin) -> Result<Instance, Stop> {
        let prepared = self.prepared()?;
        Instance::new(&prepared.compiled, &prepared.conditions, begin, self.argument.as_deref())
    }

    /// Scans a view in pieces. Returns `false` if the program needs no more bytes.
    fn scan(&self, run: &mut Run, view: View<'_>) -> Result<bool, Stop> {
        let lines = self.prepared()?.compiled.unit == ViewUnit::Lines;
        let instance = self.instance(run)?;
        let (mut at, mut rest) = (view.at, view.bytes);
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(piece_len(rest, lines));
            if !instance.scan(piece, at)? || instance.output().1 {
                return Ok(false);
            }
            (at, rest) = (at + piece.len() as u64, others);
        }
        Ok(true)
    }

    /// Ends the instance of a part.
    fn end(&self, run: &mut Run, done: bool) -> Result<(), Stop> {
        if run.begin.role == crate::scan::Role::Total {
            return Ok(());
        }
        let instance = self.instance(run)?;
        let output = instance.take_output();
        let state = instance.partial()?;
        if output.len() + state.len() > run.begin.memory {
            return Err(Stop::Overflow);
        }
        let charge = run.begin.account.charged(output.len() + state.len())?;
        run.state = Progress::Ended { output, state, done, _charge: charge };
        Ok(())
    }
}

/// Length of the next piece of a view. It ends with a line if it consists of lines.
fn piece_len(rest: &[u8], lines: bool) -> usize {
    if rest.len() <= PIECE_BYTES {
        return rest.len();
    }
    if !lines {
        return PIECE_BYTES;
    }
    let before = memchr::memrchr(b'\n', &rest[..PIECE_BYTES]);
    let end = before.or_else(|| memchr::memchr(b'\n', &rest[PIECE_BYTES..]).map(|at| PIECE_BYTES + at));
    end.map_or(rest.len(), |line_feed| line_feed + 1)
}

/// Flow after a part of the work.
fn flow(result: Result<Flow, Stop>) -> Result<Flow, Failure> {
    match result {
        Ok(flow) => Ok(flow),
        Err(Stop::Overflow) => Ok(Flow::Overflow),
        Err(Stop::Failure(failure)) => Err(failure),
    }
}

impl Operation for Execution {
    type Results = Run;

    fn unit(&self) -> Unit {
        match self.prepared.get() {
            Some(prepared) if prepared.compiled.unit == ViewUnit::Lines => Unit::Lines,
            _ => Unit::Positions { overlap: 0 },
        }
    }

    fn sequential(&self) -> bool {
        self.prepared.get().is_none_or(|prepared| !prepared.compiled.parallel)
    }

    fn step_time(&self) -> StepTime {
        StepTime::Endless
    }

    fn inline_bytes(&self, _: u64) -> u64 {
        0
    }

    fn prepare(&self, head: &dyn Head) -> Result<(), Failure> {
        let began = Instant::now();
        let counts_fuel = self.budget.grant().fuel.is_some();
        let bytes_max = self.control.options().programs.module_bytes_max;
        let loaded = self.programs.load(&self.control, &*self.module, counts_fuel, bytes_max)?;
        let Loaded { compiled, was_compiled, charge } = loaded;
        if self.argument.is_some() && !compiled.takes_argument {
            return Err(Failure::invalid(
                "the program takes no \"argument\": it does not export the function \"start\"",
            ));
        }
        let conditions = Conditions {
            control: Arc::clone(&self.control),
            source: Arc::clone(&self.source),
            range: head.range(),
            budget: Arc::clone(&self.budget),
        };
        let load_ns = began.elapsed().as_nanos() as u64;
        let _ = self.prepared.set(Prepared { compiled, was_compiled, conditions, load_ns, _charge: charge });
        Ok(())
    }

    fn begin(&self, begin: Begin) -> Run {
        Run { begin, state: Progress::New }
    }

    fn view(&self, run: &mut Run, view: View<'_>) -> Result<Flow, Failure> {
        flow(self.scan(run, view).and_then(|go_on| {
            if go_on {
                return Ok(Flow::Continue);
            }
            self.end(run, true)?;
            Ok(Flow::Done)
        }))
    }

    fn end_of_part(&self, run: &mut Run) -> Result<Flow, Failure> {
        flow(self.end(run, false).map(|()| Flow::Continue))
    }

    fn merge(&self, total: &mut Run, next: Run) -> Result<Flow, Failure> {
        let Progress::Ended { output, state, done, _charge } = next.state else {
            return Err(Failure::new(
                Status::Internal,
                "a part of the program has no results; please report it",
            ));
        };
        let merged = self.instance(total).and_then(|instance| instance.merge(&output, &state));
        flow(merged.map(|whole| if done || !whole { Flow::Done } else { Flow::Continue }))
    }

    fn finish(&self, total: Run) -> Result<Finished, Failure> {
        let ended = match total.state {
            Progress::Active(instance) => instance.finish(),
            // No byte is in the range.
            _ => self.create(&total.begin).and_then(Instance::finish),
        };
        let (payload, truncated, charge) = ended.map_err(|stop| match stop {
            Stop::Failure(failure) => failure,
            Stop::Overflow => Failure::new(Status::Internal, "results exceed their memory; please report it"),
        })?;
        let (fuel_used, prepared) = (self.budget.fuel_used(), self.prepared()?);
        let (compiled, load_ns) = (prepared.was_compiled, prepared.load_ns);
        let answer = ProgramAnswer { fuel_used, compiled, load_ns, payload };
        Ok(Finished::new(Answer::Program(answer), truncated, charge))
    }
}
