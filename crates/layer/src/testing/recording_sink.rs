//! A sink that records commands and what requests wait for.

use frit_core::{Cmd, Nanos, RequestScope, Sink, UnitId, UnitState};

/// Records all commands. A token is a set of commands, one bit each.
#[derive(Default)]
pub(crate) struct RecordingSink {
    pub(crate) commands: Vec<Cmd>,
    pub(crate) scope: RequestScope<u64>,
}

impl RecordingSink {
    /// Executes a request. Returns the commands that it emits, and the set of those that its
    /// acknowledgement waits for, among all commands.
    pub(crate) fn request(&mut self, run: impl FnOnce(&mut RecordingSink)) -> (&[Cmd], u64) {
        let before = self.commands.len();
        self.scope = RequestScope::default();
        run(self);
        (&self.commands[before..], self.scope.ack)
    }
}

impl Sink for RecordingSink {
    type Tok = u64;
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn start(&self) -> u64 {
        self.scope.start
    }
    fn unit(&self, _: UnitId) -> UnitState {
        UnitState::Idle
    }
    fn emit(&mut self, cmd: Cmd, _: u64) -> u64 {
        self.commands.push(cmd);
        1 << (self.commands.len() - 1)
    }
    fn join(&mut self, a: u64, b: u64) -> u64 {
        a | b
    }
    fn ack(&mut self, tok: u64) {
        self.scope.ack |= tok;
    }
    fn scope(&mut self) -> &mut RequestScope<u64> {
        &mut self.scope
    }
}
