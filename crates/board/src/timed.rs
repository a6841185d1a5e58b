//! A sink that records the start and the end of each command.

use frit_core::{Cmd, Nanos, Sink, UnitId, UnitState};
use frit_engine::driver::{Done, Tag};
use frit_engine::{Eager, Engine};

/// The eager engine, with the start and the end of every command.
#[derive(Clone, Debug)]
pub struct Timed {
    below: Eager,
    spans: Vec<(Nanos, Nanos)>,
}

impl Timed {
    /// Creates a recorder in front of `below`.
    #[must_use]
    pub fn new(below: Eager) -> Timed {
        Timed { below, spans: Vec::new() }
    }

    /// Returns the time at which the unit of each command started it, and the time of its end, in
    /// order of emission.
    #[must_use]
    pub fn spans(&self) -> &[(Nanos, Nanos)] {
        &self.spans
    }
}

impl Sink for Timed {
    type Tok = Nanos;

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn start(&self) -> Nanos {
        self.below.start()
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        self.below.unit(unit)
    }

    fn emit(&mut self, cmd: Cmd, after: Nanos) -> Nanos {
        // The eager engine starts a command when its dependencies are complete and its unit is
        // idle.
        let ready = self.below.now().max(after);
        let start = match self.below.unit(cmd.unit) {
            UnitState::BusyUntil(free) => ready.max(free),
            UnitState::Idle => ready,
        };
        let end = self.below.emit(cmd, after);
        self.spans.push((start, end));
        end
    }

    fn join(&mut self, a: Nanos, b: Nanos) -> Nanos {
        self.below.join(a, b)
    }

    fn ack(&mut self, tok: Nanos) {
        self.below.ack(tok);
    }
}

impl Engine for Timed {
    fn begin(&mut self) {
        self.below.begin();
    }

    fn end(&mut self) -> Nanos {
        self.below.end()
    }

    fn settle(&mut self, tok: Nanos, tag: Tag) -> Option<Nanos> {
        self.below.settle(tok, tag)
    }

    fn next_done(&mut self, limit: Nanos) -> Option<Done> {
        self.below.next_done(limit)
    }
}
