//! A sink that records the start and the end of each command.

use frit_core::{Cmd, Nanos, RequestScope, Sink, UnitId, UnitState};
use frit_engine::driver::{Completion, Tag};
use frit_engine::in_order::Tok;
use frit_engine::{Engine, InOrder};
use std::collections::HashMap;

/// The in-order engine, with the start and the end of every command.
#[derive(Debug)]
pub struct TimedSink {
    inner: InOrder,
    /// The commands in order of emission; `None` for a fence that takes no time, which no unit
    /// executes.
    commands: Vec<Option<Tok>>,
}

impl TimedSink {
    /// Creates a recorder in front of `inner`.
    #[must_use]
    pub fn new(mut inner: InOrder) -> TimedSink {
        inner.record_times();
        TimedSink { inner, commands: Vec::new() }
    }

    /// Waits for all commands, and returns the time at which the unit of each command started it,
    /// and the time of its end, in order of emission. A fence that takes no time has none: it is
    /// done when the commands that it waits for are.
    #[must_use]
    pub fn into_spans(mut self) -> Vec<Option<(Nanos, Nanos)>> {
        while self.inner.next_done(Nanos::MAX).is_some() {}
        let times: HashMap<Tok, (Nanos, Nanos)> =
            self.inner.recorded_times().iter().map(|t| (t.command, (t.start, t.end))).collect();
        self.commands.iter().map(|command| times.get(command.as_ref()?).copied()).collect()
    }
}

impl Sink for TimedSink {
    type Tok = Tok;

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn start(&self) -> Tok {
        self.inner.start()
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        self.inner.unit(unit)
    }

    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        let tok = self.inner.emit(cmd, after);
        // The engine passes on what a fence without a duration waits for.
        self.commands.push((tok != after).then_some(tok));
        tok
    }

    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        self.inner.join(a, b)
    }

    fn ack(&mut self, tok: Tok) {
        self.inner.ack(tok);
    }

    fn scope(&mut self) -> &mut RequestScope<Tok> {
        self.inner.scope()
    }
}

impl Engine for TimedSink {
    fn begin(&mut self) {
        self.inner.begin();
    }

    fn end(&mut self) -> Tok {
        self.inner.end()
    }

    fn time_or_watch(&mut self, tok: Tok, tag: Tag) -> Option<Nanos> {
        self.inner.time_or_watch(tok, tag)
    }

    fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
        self.inner.next_done(limit)
    }
}
