//! Tokens that are joined over several commands.

use crate::Token;
use frit_core::Sink;

/// Joins a token with those before it, if there are any.
#[inline]
pub(crate) fn join_into<S: Sink>(sink: &mut S, all: &mut Option<S::Tok>, tok: S::Tok) {
    *all = Some(match *all {
        Some(before) => sink.join(before, tok),
        None => tok,
    });
}

/// Accumulator of tokens: completes when all added tokens have completed.
#[derive(Clone, Copy)]
pub(crate) struct JoinedToken<T>(Option<T>);

impl<T: Token> JoinedToken<T> {
    pub(crate) fn new() -> JoinedToken<T> {
        JoinedToken(None)
    }

    pub(crate) fn add<S: Sink<Tok = T>>(&mut self, sink: &mut S, tok: T) {
        join_into(sink, &mut self.0, tok);
    }

    /// Returns the joined token; a completed one if nothing was added.
    pub(crate) fn get<S: Sink<Tok = T>>(self, sink: &S) -> T {
        self.0.unwrap_or_else(|| sink.start())
    }
}
