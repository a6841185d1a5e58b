//! A sink that records the start and the end of each command.

use frit_core::{Cmd, Nanos, Sink, UnitId, UnitState};
use frit_engine::driver::{Completion, Tag};
use frit_engine::{Eager, Engine};

/// The eager engine, with the start and the end of every command.
#[derive(Clone, Debug)]
pub struct TimedSink {
    inner: Eager,
    spans: Vec<(Nanos, Nanos)>,
}

impl TimedSink {
    /// Creates a recorder in front of `inner`.
    #[must_use]
    pub fn new(inner: Eager) -> TimedSink {
        TimedSink { inner, spans: Vec::new() }
    }

    /// Returns the time at which the unit of each command started it, and the time of its end, in
    /// order of emission.
    #[must_use]
    pub fn spans(&self) -> &[(Nanos, Nanos)] {
        &self.spans
    }
}

impl Sink for TimedSink {
    type Tok = Nanos;

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn start(&self) -> Nanos {
        self.inner.start()
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        self.inner.unit(unit)
    }

    fn emit(&mut self, cmd: Cmd, after: Nanos) -> Nanos {
        // The eager engine starts a command when its dependencies are complete and its unit is
        // idle.
        let ready = self.inner.now().max(after);
        let start = match self.inner.unit(cmd.unit) {
            UnitState::BusyUntil(free) => ready.max(free),
            UnitState::Idle => ready,
        };
        let end = self.inner.emit(cmd, after);
        self.spans.push((start, end));
        end
    }

    fn join(&mut self, a: Nanos, b: Nanos) -> Nanos {
        self.inner.join(a, b)
    }

    fn ack(&mut self, tok: Nanos) {
        self.inner.ack(tok);
    }
}

impl Engine for TimedSink {
    fn begin(&mut self) {
        self.inner.begin();
    }

    fn end(&mut self) -> Nanos {
        self.inner.end()
    }

    fn time_or_watch(&mut self, tok: Nanos, tag: Tag) -> Option<Nanos> {
        self.inner.time_or_watch(tok, tag)
    }

    fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
        self.inner.next_done(limit)
    }
}
