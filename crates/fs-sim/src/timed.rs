//! The start and the end of each command of the in-order engine.

use frit_core::{Cmd, CommandObserver, Nanos, Sink, Tok};
use frit_engine::InOrder;
use std::collections::HashMap;

/// The commands in order of emission; `None` for a fence that takes no time, which no unit executes.
#[derive(Default, Debug)]
struct EmittedCommands(Vec<Option<Tok>>);

impl CommandObserver for EmittedCommands {
    fn command(&mut self, _: &Cmd, after: Tok, done: Tok) {
        // The engine passes on what a fence without a duration waits for.
        self.0.push((done != after).then_some(done));
    }
}

/// Returns a sink of the in-order engine that keeps the times of every command for [`spans`].
pub(crate) fn timed(mut engine: InOrder) -> Sink {
    engine.record_times();
    Sink::new(engine).observed(EmittedCommands::default())
}

/// Waits for all commands of a sink of [`timed`], and returns the time at which the unit of each command
/// started it, and the time of its end, in order of emission. A fence that takes no time has none: it is
/// done when the commands that it waits for are.
pub(crate) fn spans(mut sink: Sink) -> Vec<Option<(Nanos, Nanos)>> {
    while sink.next_done(Nanos::MAX).is_some() {}
    let Some(engine) = sink.engine::<InOrder>() else { return Vec::new() };
    let times: HashMap<Tok, (Nanos, Nanos)> =
        engine.recorded_times().iter().map(|t| (t.command, (t.start, t.end))).collect();
    let Some(EmittedCommands(commands)) = sink.observer() else { return Vec::new() };
    commands.iter().map(|command| times.get(command.as_ref()?).copied()).collect()
}
