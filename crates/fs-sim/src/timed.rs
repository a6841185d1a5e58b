//! A sink that records the start and the end of each command.

use frit_core::{Cmd, Nanos, Sink, UnitId, UnitState};
use frit_engine::driver::{Completion, Tag};
use frit_engine::in_order::Tok;
use frit_engine::{Engine, InOrder};
use std::collections::HashMap;

/// The in-order engine, with the start and the end of every command.
#[derive(Debug)]
pub struct TimedSink {
    inner: InOrder,
    commands: Vec<EmittedCommand>,
    /// Tokens that joins wait for.
    joins: HashMap<Tok, (Tok, Tok)>,
}

/// A command in order of emission.
#[derive(Clone, Copy, Debug)]
enum EmittedCommand {
    /// A command that its unit executes.
    Executed(Tok),
    /// A fence that takes no time: it is done when this token is done, and not before this time.
    FreeFence(Tok, Nanos),
}

impl TimedSink {
    /// Creates a recorder in front of `inner`.
    #[must_use]
    pub fn new(mut inner: InOrder) -> TimedSink {
        inner.record_times();
        TimedSink { inner, commands: Vec::new(), joins: HashMap::new() }
    }

    /// Waits for all commands, and returns the time at which the unit of each command started it,
    /// and the time of its end, in order of emission.
    #[must_use]
    pub fn into_spans(mut self) -> Vec<(Nanos, Nanos)> {
        while self.inner.next_done(Nanos::MAX).is_some() {}
        let times: HashMap<Tok, (Nanos, Nanos)> =
            self.inner.recorded_times().iter().map(|t| (t.command, (t.start, t.end))).collect();
        let span = |command: &EmittedCommand| match *command {
            EmittedCommand::Executed(tok) => times.get(&tok).copied().unwrap_or_default(),
            EmittedCommand::FreeFence(after, emitted) => {
                let at = self.completion(&times, after).max(emitted);
                (at, at)
            }
        };
        self.commands.iter().map(span).collect()
    }

    /// Returns the completion time of a token from the times of the commands; zero for a token that
    /// was always done.
    fn completion(&self, times: &HashMap<Tok, (Nanos, Nanos)>, tok: Tok) -> Nanos {
        let (mut latest, mut todo) = (Nanos::ZERO, vec![tok]);
        while let Some(tok) = todo.pop() {
            latest = latest.max(times.get(&tok).map_or(Nanos::ZERO, |t| t.1));
            todo.extend(self.joins.get(&tok).into_iter().flat_map(|&(a, b)| [a, b]));
        }
        latest
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
        self.commands.push(match cmd.op.is_fence() && tok == after {
            true => EmittedCommand::FreeFence(after, self.inner.now()),
            false => EmittedCommand::Executed(tok),
        });
        tok
    }

    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        let tok = self.inner.join(a, b);
        if tok != a && tok != b {
            self.joins.insert(tok, (a, b));
        }
        tok
    }

    fn ack(&mut self, tok: Tok) {
        self.inner.ack(tok);
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
