//! An engine that records its commands, for the unit tests of media.

use frit_core::{Cmd, Engine, Nanos, Sink, Tok};

/// All emitted commands, each with the tokens that it waited for. The number of a token is a set of
/// commands, one bit each.
#[derive(Default)]
struct SetRecorder(Vec<(Cmd, u64)>);

impl Engine for SetRecorder {
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        self.0.push((cmd, after.number()));
        Tok::new(1 << (self.0.len() - 1))
    }
    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        Tok::new(a.number() | b.number())
    }
}

/// Returns a sink that records its commands.
pub(crate) fn recording_sink() -> Sink {
    Sink::new(SetRecorder::default())
}

/// Returns what a [`recording_sink`] has recorded so far.
pub(crate) fn recorded(sink: &Sink) -> &[(Cmd, u64)] {
    &sink.engine::<SetRecorder>().unwrap().0
}

/// Forgets what a [`recording_sink`] has recorded.
pub(crate) fn forget(sink: &mut Sink) {
    sink.engine_mut::<SetRecorder>().unwrap().0.clear();
}
