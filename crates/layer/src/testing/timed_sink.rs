//! A sink for tests of the order of commands.

use frit_core::{Cmd, Nanos, RequestScope, Sink, UnitId, UnitState};

/// Decides how long commands take.
pub(crate) trait CommandClock: Send {
    /// Returns the time at which a command is done that waits for time `after`.
    fn done(&mut self, cmd: Cmd, after: u64) -> u64;
}

/// Sink whose tokens are times. All units are idle, and requests start at time 0.
pub(crate) struct TimedSink<C> {
    pub(crate) clock: C,
    scope: RequestScope<u64>,
}

impl<C> TimedSink<C> {
    pub(crate) fn new(clock: C) -> TimedSink<C> {
        TimedSink { clock, scope: RequestScope::default() }
    }
}

impl<C: CommandClock> Sink for TimedSink<C> {
    type Tok = u64;
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn start(&self) -> u64 {
        0
    }
    fn unit(&self, _: UnitId) -> UnitState {
        UnitState::Idle
    }
    fn emit(&mut self, cmd: Cmd, after: u64) -> u64 {
        self.clock.done(cmd, after)
    }
    fn join(&mut self, a: u64, b: u64) -> u64 {
        a.max(b)
    }
    fn ack(&mut self, _: u64) {}
    fn scope(&mut self) -> &mut RequestScope<u64> {
        &mut self.scope
    }
}
