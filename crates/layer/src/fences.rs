//! What a layer wrote to PCM and did not fence yet, and all that it did.

use crate::Token;
use crate::wear::Leveled;
use frit_core::Sink;
use frit_media::Store;

/// The fences of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fences<T> {
    /// What the next fence has to wait for.
    open: Option<T>,
    /// All fences so far.
    done: T,
    /// A fence of no cost on memory without bytes orders nothing that could be lost.
    on: bool,
}

impl<T: Token> Fences<T> {
    /// Of a memory.
    pub(crate) fn new<P: Store>(pcm: &Leveled<T, P>) -> Fences<T> {
        Fences { open: None, done: T::default(), on: P::HOLDS || pcm.config().timing.fence.0 > 0 }
    }

    /// The next fence waits for a token as well.
    #[inline]
    pub(crate) fn wait<S: Sink<Tok = T>>(&mut self, sink: &mut S, tok: T) {
        self.open = Some(match self.open {
            Some(open) => sink.join(open, tok),
            None => tok,
        });
    }

    /// What waits for a fence, which it does no more.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<T> {
        self.open.take()
    }

    /// A fence after a token.
    #[inline]
    pub(crate) fn after<S: Sink<Tok = T>, P: Store>(
        &mut self,
        pcm: &mut Leveled<T, P>,
        sink: &mut S,
        tok: T,
    ) -> T {
        if !self.on {
            return tok;
        }
        let done = pcm.fence(sink, tok);
        self.done = sink.join(self.done, done);
        done
    }

    /// When all that was fenced so far is certain.
    #[inline]
    pub(crate) fn done(&self) -> T {
        self.done
    }
}
