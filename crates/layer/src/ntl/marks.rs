//! Mark and tail: the sequence numbers up to which records are known to be complete and durable,
//! and up to which records of the log no longer count.

use super::layout::tail_at;
use super::space::NtlMemory;
use crate::marks::{HighestMark, WORDS, is_due, mark_at, mark_copy_at};
use crate::planted::NtlBug;
use crate::words::{seal, unseal};
use frit_core::planted::is_planted;
use frit_core::{Cause, Result, Sink, Tok, WriteData};

/// Kind of a word that holds the mark.
const MARK: Option<u8> = Some(1);
/// Kind of a word that holds the tail.
const TAIL: Option<u8> = Some(2);

impl NtlMemory {
    fn write_word(&mut self, sink: &mut Sink, at: u64, word: u64, after: Tok) -> Result<Tok> {
        self.pcm.write(sink, at, WriteData::Bytes(&word.to_le_bytes()), Cause::Meta, after)
    }

    /// Replaces `best` by the number in the word at `at`, if it is higher.
    fn best_number(&self, best: &mut HighestMark, at: u64, index: u64, kind: Option<u8>) -> Result<()> {
        let mut word = [0; 8];
        self.pcm.peek(at, &mut word)?;
        let number = unseal(u64::from_le_bytes(word), kind).unwrap_or(0);
        *best = (*best).max(HighestMark { number, index });
        Ok(())
    }

    /// Returns `true` if the mark should advance: many records were written since it was set, and
    /// all of them are durable.
    #[inline]
    pub(super) fn mark_due(&self) -> bool {
        self.protected && is_due(self.seq, self.mark, self.layout.all_places()) && !self.volatile()
    }

    /// Advances the mark to the last record. All records up to it are complete: they are fenced,
    /// and synced if necessary.
    pub(super) fn set_mark(&mut self, sink: &mut Sink) -> Result<()> {
        let after = if is_planted(NtlBug::MarkTooEarly) { sink.start() } else { self.fenced() };
        (self.mark, self.marks) = (self.seq, self.marks + 1);
        let word = seal(self.mark, MARK);
        self.write_word(sink, mark_at(self.marks), word, after)?;
        // The copy lies on another page, so that damage to one page cannot make all pages uncertain.
        self.write_word(sink, mark_copy_at(self.marks), word, after)?;
        Ok(())
    }

    /// Invalidates the log records up to `seq`, after `after`. Returns the completion.
    pub(super) fn set_tail(&mut self, sink: &mut Sink, seq: u64, after: Tok) -> Result<Tok> {
        let after = if is_planted(NtlBug::TailEarly) { sink.start() } else { after };
        (self.tail, self.tails) = (seq, self.tails + 1);
        let tok = self.write_word(sink, tail_at(self.tails), seal(seq, TAIL), after)?;
        Ok(self.fence_after(sink, tok))
    }

    /// Reads mark and tail.
    pub(super) fn load_counters(&mut self) -> Result<()> {
        let (mut mark, mut tail) = (HighestMark::default(), HighestMark::default());
        for i in 0..WORDS {
            self.best_number(&mut mark, mark_at(i), i, MARK)?;
            self.best_number(&mut mark, mark_copy_at(i), i, MARK)?;
            self.best_number(&mut tail, tail_at(i), i, TAIL)?;
        }
        (self.mark, self.marks) = (mark.number, mark.index);
        (self.tail, self.tails) = (tail.number, tail.index);
        self.seq = self.mark.max(self.tail);
        Ok(())
    }
}
