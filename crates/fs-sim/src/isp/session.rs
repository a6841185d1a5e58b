//! The query by in-storage processing: the program of the host, which writes an instruction to the
//! command file and polls for results, beside the engine and the foreground load.

use super::IspMedium;
use super::engine::IspEngine;
use super::foreground::{ARRIVAL, Foreground, READ};
use super::params::IspParams;
use crate::error::{Error, Result};
use frit_core::Nanos;
use frit_core::{Completion, Tag};
use frit_fs::{Caller, Fs, Paths};

/// Tag of the end of a call of the program.
const CALL: Tag = 3;
/// Tag of the end of its sleep.
const WAKE: Tag = 4;
/// Bytes of the status register.
pub(super) const STATUS_BYTES: u32 = 4;

/// Calls of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProgramCall {
    Open,
    WriteInstruction,
    PollStatus,
    ReadResults,
    Close,
    Over,
}

/// A query in execution.
pub(super) struct QuerySession<'s, 'm> {
    medium: &'m IspMedium,
    fs: &'s Fs<&'m IspMedium>,
    path: &'s str,
    params: IspParams,
    engine: IspEngine<'m>,
    foreground: Option<Foreground<'s, 'm>>,
    program: Program,
}

/// State and counters of the program.
#[derive(Debug)]
pub(super) struct Program {
    call: ProgramCall,
    begun: Nanos,
    /// Number of calls.
    pub(super) calls: u64,
    /// Number of reads of the status register.
    pub(super) polls: u64,
    /// Time within calls.
    pub(super) busy: Nanos,
}

impl<'s, 'm> QuerySession<'s, 'm> {
    pub(super) fn new(
        medium: &'m IspMedium,
        fs: &'s Fs<&'m IspMedium>,
        path: &'s str,
        params: IspParams,
        engine: IspEngine<'m>,
        foreground: Option<Foreground<'s, 'm>>,
    ) -> Self {
        let begun = Nanos::ZERO;
        let program = Program { call: ProgramCall::Open, begun, calls: 0, polls: 0, busy: Nanos::ZERO };
        QuerySession { medium, fs, path, params, engine, foreground, program }
    }

    /// Runs until the program has the results and the load is served. Returns the time of the program.
    pub(super) fn run(&mut self) -> Result<Nanos> {
        let begun = self.medium.now();
        let mut took = Nanos::ZERO;
        self.make_call()?;
        while self.program.call != ProgramCall::Over || !self.is_served() {
            let Some(done) = self.medium.next_done() else { break };
            let was_over = self.program.call == ProgramCall::Over;
            self.dispatch(done)?;
            if self.program.call == ProgramCall::Over && !was_over {
                took = done.at.since(begun);
            }
        }
        Ok(took)
    }

    fn is_served(&self) -> bool {
        self.foreground.as_ref().is_none_or(Foreground::is_idle)
    }

    fn dispatch(&mut self, done: Completion) -> Result<()> {
        match (done.tag, &mut self.foreground) {
            (tag, _) if IspEngine::is_own(tag) => self.advance_engine(tag)?,
            (ARRIVAL | READ, Some(foreground)) => foreground.continue_after(done.tag, done.at)?,
            (CALL, _) => self.end_call(done.at)?,
            (WAKE, _) => self.make_call()?,
            _ => {}
        }
        Ok(())
    }

    fn advance_engine(&mut self, tag: Tag) -> Result<()> {
        self.engine.continue_after(tag)?;
        if let (false, Some(foreground)) = (self.engine.is_running(), &mut self.foreground) {
            foreground.stop();
        }
        Ok(())
    }

    /// Begins calls until one of them takes time.
    fn make_call(&mut self) -> Result<()> {
        while self.program.call != ProgramCall::Over {
            let (medium, params) = (self.medium, self.params);
            let started = match self.program.call {
                ProgramCall::WriteInstruction => medium.start(CALL, || {
                    let found = self.fs.metadata(&Caller::ROOT, self.path).map(drop);
                    medium.work(params.command_software.nanos());
                    medium.write_registers(params.instruction_bytes);
                    found
                }),
                ProgramCall::PollStatus => medium.start(CALL, || {
                    medium.read_registers(STATUS_BYTES);
                    Ok(())
                }),
                ProgramCall::ReadResults => medium.start(CALL, || {
                    medium.read_registers(params.result_bytes);
                    Ok(())
                }),
                _ => medium.start(CALL, || Ok(())),
            };
            started.answer.map_err(Error::fs("lookup"))?;
            self.program.begun = started.begun;
            if started.is_reported || !self.next_call(started.begun) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn end_call(&mut self, at: Nanos) -> Result<()> {
        match self.next_call(at) {
            true => self.make_call(),
            false => Ok(()),
        }
    }

    /// Ends a call. Returns `true` if the next one begins at once.
    fn next_call(&mut self, at: Nanos) -> bool {
        let program = &mut self.program;
        program.calls += 1;
        program.busy += at.since(program.begun);
        program.call = match program.call {
            ProgramCall::Open => ProgramCall::WriteInstruction,
            ProgramCall::WriteInstruction => {
                self.engine.start();
                self.foreground.iter_mut().for_each(Foreground::start);
                ProgramCall::PollStatus
            }
            ProgramCall::PollStatus => {
                program.polls += 1;
                if self.engine.is_running() {
                    self.medium.wake_after(self.params.poll_period.nanos(), WAKE);
                    return false;
                }
                ProgramCall::ReadResults
            }
            ProgramCall::ReadResults => ProgramCall::Close,
            ProgramCall::Close | ProgramCall::Over => ProgramCall::Over,
        };
        true
    }

    /// Returns the counters of the program, the engine and the load.
    pub(super) fn finish(self) -> (Program, IspEngine<'m>, Option<Foreground<'s, 'm>>) {
        (self.program, self.engine, self.foreground)
    }
}
