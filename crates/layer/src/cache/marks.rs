//! Marks: the sequence numbers up to which records are known to be complete, and known to be
//! synced.

use super::layout::{marks_at, synced_marks_at};
use super::space::CachePcm;
use crate::marks::{HighestMark, WORDS, is_due};
use crate::planted::CacheBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Result, Sink, WriteData};

impl CachePcm {
    /// Returns `true` if the mark should advance.
    #[inline]
    pub(super) fn mark_due(&self) -> bool {
        is_due(self.seq, self.mark, self.layout.slots)
    }

    /// Advances the mark to the last record. All records up to it are complete, because they are
    /// fenced.
    pub(super) fn set_mark(&mut self, sink: &mut Sink) -> Result<()> {
        let after = if is_planted(CacheBug::MarkTooEarly) { sink.start() } else { self.fenced() };
        self.mark = self.seq;
        self.marks += 1;
        let word = self.mark.to_le_bytes();
        for at in marks_at(self.marks, self.layout.copies) {
            self.pcm.write(sink, at, WriteData::Bytes(&word), Cause::Meta, after)?;
        }
        Ok(())
    }

    /// Advances the synced mark: all records up to the last sync are durable. The word is written
    /// after the sync, so wherever it is found after a power loss, that sync had completed.
    pub(super) fn set_synced_mark(&mut self, sink: &mut Sink) -> Result<()> {
        if !self.stores_bytes() || self.synced_mark == self.synced {
            return Ok(());
        }
        let after = self.fenced();
        self.synced_mark = self.synced;
        self.synced_marks += 1;
        let word = self.synced_mark.to_le_bytes();
        for at in synced_marks_at(self.synced_marks) {
            self.pcm.write(sink, at, WriteData::Bytes(&word), Cause::Meta, after)?;
        }
        Ok(())
    }

    /// Reads the marks. `highest` is the highest sequence number of a record. A mark far above it
    /// is damaged, because at most one sequence number for each slot has no record.
    pub(super) fn load_marks(&mut self, highest: u64) -> Result<()> {
        let most = highest.saturating_add(2 * u64::from(self.layout.slots));
        let (mut mark, mut synced) = (HighestMark::default(), HighestMark::default());
        for i in 0..WORDS {
            for at in marks_at(i, self.layout.copies) {
                self.best_mark(&mut mark, at, i, most)?;
            }
            for at in synced_marks_at(i) {
                self.best_mark(&mut synced, at, i, most)?;
            }
        }
        (self.mark, self.marks) = (mark.number, mark.index);
        (self.synced_mark, self.synced_marks) = (synced.number, synced.index);
        self.seq = highest.max(self.mark);
        Ok(())
    }

    /// Replaces `best` by a mark that is higher, unless it is above `most`.
    fn best_mark(&self, best: &mut HighestMark, at: u64, index: u64, most: u64) -> Result<()> {
        let mut word = [0; 8];
        self.pcm.peek(at, &mut word)?;
        let number = u64::from_le_bytes(word);
        if number <= most {
            *best = (*best).max(HighestMark { number, index });
        }
        Ok(())
    }
}
