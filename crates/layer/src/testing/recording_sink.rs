//! An engine that records commands and what requests wait for.

use frit_core::{Cmd, Engine, Nanos, Sink, Tok};

/// Records all commands. The number of a token is a set of commands, one bit each.
#[derive(Default)]
struct SetRecorder(Vec<Cmd>);

impl Engine for SetRecorder {
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn emit(&mut self, cmd: Cmd, _: Tok) -> Tok {
        self.0.push(cmd);
        Tok::new(1 << (self.0.len() - 1))
    }
    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        Tok::new(a.number() | b.number())
    }
}

/// A sink that records its commands.
pub(crate) struct RecordingSink(pub(crate) Sink);

impl Default for RecordingSink {
    fn default() -> RecordingSink {
        RecordingSink(Sink::new(SetRecorder::default()))
    }
}

impl RecordingSink {
    /// All commands so far.
    pub(crate) fn commands(&self) -> &[Cmd] {
        &self.0.engine::<SetRecorder>().unwrap().0
    }

    /// Executes a request. Returns the commands that it emits, and the set of those that its
    /// acknowledgement waits for, among all commands.
    pub(crate) fn request(&mut self, run: impl FnOnce(&mut Sink)) -> (&[Cmd], u64) {
        let before = self.commands().len();
        self.0.begin();
        run(&mut self.0);
        let acknowledged = self.0.end();
        (&self.commands()[before..], acknowledged.number())
    }
}
