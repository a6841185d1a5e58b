//! Fences of a layer: PCM writes that are not fenced yet, and the completion of all fences.

use crate::tokens::join_into;
use frit_core::planted::{PlantedBug, is_planted};
use frit_core::{Sink, Tok};
use frit_wear::Leveled;

/// State of the fences of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fences {
    /// Completion of the writes that the next fence must cover.
    open: Option<Tok>,
    /// Completion of all fences so far.
    done: Tok,
}

impl Fences {
    /// Creates the state of a layer without fences.
    pub(crate) fn new() -> Fences {
        Fences { open: None, done: Tok::default() }
    }

    /// Makes the next fence cover a token as well.
    #[inline]
    pub(crate) fn wait(&mut self, sink: &mut Sink, tok: Tok) {
        join_into(sink, &mut self.open, tok);
    }

    /// Forgets the writes that are not fenced yet.
    pub(crate) fn forget_open(&mut self) {
        self.open = None;
    }

    /// Fences the writes that are not fenced yet. Returns the completion, or `None` if there are
    /// none. `bug` is the planted bug that issues no fence.
    #[inline]
    pub(crate) fn close(&mut self, pcm: &mut Leveled, sink: &mut Sink, bug: impl PlantedBug) -> Option<Tok> {
        let open = self.open.take()?;
        Some(if is_planted(bug) { open } else { self.after(pcm, sink, open) })
    }

    /// Issues a fence after a token, and returns its completion.
    #[inline]
    pub(crate) fn after(&mut self, pcm: &mut Leveled, sink: &mut Sink, tok: Tok) -> Tok {
        let done = pcm.fence(sink, tok);
        self.done = sink.join(self.done, done);
        done
    }

    /// Returns the completion of all fences so far.
    #[inline]
    pub(crate) fn done(&self) -> Tok {
        self.done
    }
}
