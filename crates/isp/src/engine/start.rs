//! Start of instructions: in the thread that gives them, or in one of the pool if it takes long.

use super::control::{Control, cancelled};
use super::job::Job;
use super::pool::{Pool, Step, Steps};
use super::{Engine, EngineOptions, Request};
use crate::instructions::{Command, Instruction};
use crate::outcome::{Failure, Outcome};
use crate::program::Programs;
use crate::scan::{Operation, StepTime};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// Memory of an instruction itself in bytes: its files, its state, and empty results of its parts.
const INSTRUCTION_BYTES: usize = 16 << 10;

/// Memory that an instruction holds from its begin to its end, in bytes.
pub(super) fn held_bytes(instruction: &Instruction) -> usize {
    INSTRUCTION_BYTES + instruction.command.held_bytes()
}

/// Starts an instruction. If this takes long, a thread of the pool does it in the turn of its user: the thread that
/// gives it may have to answer the requests of others.
pub(super) fn begin(engine: &Engine, control: Arc<Control>, request: Request) {
    let ticket = control.ticket.clone();
    let is_quick = request.instruction.command.starts_quickly();
    let (pool, options) = (Arc::clone(&engine.pool), Arc::clone(&engine.options));
    let programs = Arc::clone(&engine.programs);
    let start = Start { pool, options, programs, control, request, may_inline: is_quick };
    let started = if is_quick {
        Command::start(start)
    } else {
        let (control, pool) = (Arc::clone(&start.control), Arc::clone(&start.pool));
        let later = Later { submitted: Instant::now(), start: Mutex::new(Some(start)), control };
        pool.add(later.control.user(), Arc::new(later))
    };
    if let Err(failure) = started {
        ticket.complete(Outcome::failed(failure), None);
    }
}

/// Start of an instruction whose operation is not yet known.
pub(crate) struct Start {
    pool: Arc<Pool>,
    options: Arc<EngineOptions>,
    #[cfg_attr(not(feature = "programs"), expect(dead_code, reason = "programs are refused"))]
    programs: Arc<Programs>,
    pub(crate) control: Arc<Control>,
    pub(crate) request: Request,
    /// `true` if this thread may scan a short range itself.
    may_inline: bool,
}

impl Start {
    /// Compiled programs of the engine.
    #[cfg(feature = "programs")]
    pub(crate) fn programs(&self) -> Arc<Programs> {
        Arc::clone(&self.programs)
    }

    /// Starts the instruction with its operation.
    pub(crate) fn with<O: Operation>(self, operation: O) -> Result<(), Failure> {
        let options = &self.options;
        let range = self.request.instruction.range.within(self.request.source.len());
        // A destination may have to wait for requests that the caller's thread answers.
        let inline = self.may_inline
            && range.end - range.start <= operation.inline_bytes(options.inline_bytes)
            && self.request.destination.is_none()
            && !options.foreground.is_active();
        let user = self.control.user();
        let job = Arc::new(Job::new(operation, self.request, self.control));
        if inline {
            loop {
                match job.step() {
                    Step::Worked => {}
                    Step::Finished => return Ok(()),
                    Step::Blocked | Step::Waits => break,
                }
            }
        }
        self.pool.add(user, job)
    }
}

/// Start in a thread of the pool.
struct Later {
    submitted: Instant,
    start: Mutex<Option<Start>>,
    control: Arc<Control>,
}

impl Steps for Later {
    fn step(&self) -> Step {
        let room = match self.control.check_stop() {
            Ok(()) => self.control.has_room(self.submitted),
            Err(failure) => Err(failure),
        };
        let started = match room {
            Ok(false) => return Step::Waits,
            Ok(true) => {
                let Some(start) = self.start.lock().take() else { return Step::Finished };
                super::job::guarded(|| Command::start(start))
            }
            Err(failure) => Err(failure),
        };
        if let Err(failure) = started {
            self.control.ticket.complete(Outcome::failed(failure), None);
        }
        Step::Finished
    }

    fn cancel(&self) {
        self.control.ticket.cancel();
    }

    fn step_time(&self) -> StepTime {
        StepTime::Long
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        // An engine that is closed drops what it has not begun.
        if self.start.lock().is_some() {
            self.control.ticket.complete(Outcome::failed(cancelled()), None);
        }
    }
}
