//! Tokens that are joined over several commands.

use frit_core::{Sink, Tok};

/// Joins a token with those before it, if there are any.
#[inline]
pub(crate) fn join_into(sink: &mut Sink, all: &mut Option<Tok>, tok: Tok) {
    *all = Some(match *all {
        Some(before) => sink.join(before, tok),
        None => tok,
    });
}

/// Accumulator of tokens: completes when all added tokens have completed.
#[derive(Clone, Copy)]
pub(crate) struct JoinedToken(Option<Tok>);

impl JoinedToken {
    pub(crate) fn new() -> JoinedToken {
        JoinedToken(None)
    }

    pub(crate) fn add(&mut self, sink: &mut Sink, tok: Tok) {
        join_into(sink, &mut self.0, tok);
    }

    /// Returns the joined token; a completed one if nothing was added.
    pub(crate) fn get(self, sink: &Sink) -> Tok {
        self.0.unwrap_or_else(|| sink.start())
    }
}
