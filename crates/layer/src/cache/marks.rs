//! Marks: up to which number records are known to be whole, and up to which they were synced.

use super::layout::MARKS;
use super::space::Space;
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Result, Sink, Source};
use frit_media::Store;

impl<T: Token, P: Store> Space<T, P> {
    /// Returns `true` if the mark should move: a quarter of the slots was written since.
    #[inline]
    pub(super) fn mark_due(&self) -> bool {
        self.seq - self.mark >= u64::from(self.layout.slots / 4).max(64)
    }

    /// Remembers that all records up to the last one are whole: they are fenced.
    pub(super) fn set_mark<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let after = if is(Bug::MarkTooEarly) { sink.start() } else { self.fenced() };
        self.mark = self.seq;
        self.marks += 1;
        let word = self.mark.to_le_bytes();
        let source = if P::HOLDS { Source::Bytes(&word) } else { Source::Len(8) };
        self.pcm.write(sink, self.layout.mark(self.marks), source, Cause::Meta, after)?;
        Ok(())
    }

    /// Remembers that all records up to the last one were synced. The word follows a sync: where it is found, that sync
    /// was done, whatever stopped the machine.
    pub(super) fn set_synced_mark<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if !P::HOLDS || self.synced_mark == self.synced {
            return Ok(());
        }
        let after = self.fenced();
        self.synced_mark = self.synced;
        self.synced_marks += 1;
        let word = self.synced_mark.to_le_bytes();
        for at in self.layout.synced_marks(self.synced_marks) {
            self.pcm.write(sink, at, Source::Bytes(&word), Cause::Meta, after)?;
        }
        Ok(())
    }

    /// Reads the marks. `highest` is the highest number of a record; a mark that is far above it is damaged: at most
    /// one number a slot is without a record.
    pub(super) fn load_marks(&mut self, highest: u64) -> Result<()> {
        let most = highest.saturating_add(2 * u64::from(self.layout.slots));
        let (mut mark, mut synced) = ((0, 0), (0, 0));
        for i in 0..MARKS {
            self.best_mark(&mut mark, (self.layout.mark(i), i), most)?;
            for at in self.layout.synced_marks(i) {
                self.best_mark(&mut synced, (at, i), most)?;
            }
        }
        (self.mark, self.marks) = mark;
        (self.synced_mark, self.synced_marks) = synced;
        self.seq = highest.max(self.mark);
        Ok(())
    }

    /// Takes a mark in place of `best` when it is higher, and not above `most`.
    fn best_mark(&self, best: &mut (u64, u64), (at, i): (u64, u64), most: u64) -> Result<()> {
        let mut word = [0; 8];
        self.pcm.peek(at, &mut word)?;
        let number = u64::from_le_bytes(word);
        if number <= most {
            *best = (*best).max((number, i));
        }
        Ok(())
    }
}
