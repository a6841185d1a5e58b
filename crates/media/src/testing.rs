//! A sink that records its commands, for the unit tests of media.

use frit_core::{Cmd, Nanos, RequestScope, Sink, UnitId, UnitState};

/// All emitted commands, each with the tokens that it waited for. A token is a set of commands, one
/// bit each.
#[derive(Default)]
pub(crate) struct RecordingSink {
    pub(crate) cmds: Vec<(Cmd, u64)>,
    scope: RequestScope<u64>,
}

impl Sink for RecordingSink {
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
        self.cmds.push((cmd, after));
        1 << (self.cmds.len() - 1)
    }
    fn join(&mut self, a: u64, b: u64) -> u64 {
        a | b
    }
    fn ack(&mut self, _: u64) {}
    fn scope(&mut self) -> &mut RequestScope<u64> {
        &mut self.scope
    }
}
