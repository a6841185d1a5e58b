//! A sink for tests of the order of commands.

use frit_core::{Cmd, Engine, Nanos, Sink, Tok};

/// Decides how long commands take.
pub(crate) trait CommandClock: Send + 'static {
    /// Returns the time at which a command is done that waits for time `after`.
    fn done(&mut self, cmd: Cmd, after: u64) -> u64;
}

/// Engine whose tokens are times. All units are idle, and requests start at time 0.
struct Clocked<C>(C);

impl<C: CommandClock> Engine for Clocked<C> {
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        Tok::new(self.0.done(cmd, after.number()))
    }
    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        a.max(b)
    }
}

/// Returns a sink whose tokens are times.
pub(crate) fn timed_sink(clock: impl CommandClock) -> Sink {
    Sink::new(Clocked(clock))
}

/// Returns the clock of a [`timed_sink`].
pub(crate) fn clock<C: CommandClock>(sink: &mut Sink) -> &mut C {
    &mut sink.engine_mut::<Clocked<C>>().unwrap().0
}
