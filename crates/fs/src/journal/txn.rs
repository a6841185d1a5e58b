//! A transaction of the journal: redo records that file-system operations append, in units of words
//! of 8 bytes.
//!
//! | kind | first word | further words |
//! |---|---|---|
//! | WRITE | kind, number of words, position in words | the words |
//! | SET, CLEAR | kind, first block of the bitmap's run | number of blocks |

use super::{HEADER, check};
use crate::counters::CounterDelta;
use crate::format::{BLOCK, Geometry};
use crate::types::Ino;

/// Contiguous blocks, numbered from the start of the medium.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct BlockRun {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl BlockRun {
    /// Returns the number of the block after the last.
    pub(crate) fn end(self) -> u64 {
        self.start + self.len
    }

    /// Returns the byte position of the first block.
    pub(crate) fn at(self) -> u64 {
        self.start * BLOCK
    }
}

/// Kinds of records, in the two highest bits of their first word. The other bits hold a word count
/// and a position in words.
const WRITE: u64 = 0;
const SET: u64 = 1;
const CLEAR: u64 = 2;
const KIND_SHIFT: u32 = 62;
const COUNT_SHIFT: u32 = 48;
const POSITION_MASK: u64 = (1 << COUNT_SHIFT) - 1;
/// Maximum number of words in one write record.
const WORDS_MAX: usize = (1 << (KIND_SHIFT - COUNT_SHIFT)) - 1;

/// One change, decoded from a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JournalRecord<'a> {
    /// Words to write at a byte position.
    Write { at: u64, words: &'a [u64] },
    /// Bits of the block bitmap to set or clear.
    Bits { run: BlockRun, set: bool },
}

/// Changes that are committed atomically.
#[derive(Debug)]
pub(crate) struct Txn {
    /// The words of the header, followed by the records.
    words: Vec<u64>,
    /// Changes of the counters.
    pub(crate) counts: CounterDelta,
    /// `true` if contents were written that must be durable before the transaction is.
    pub(crate) data: bool,
    /// Blocks that the transaction frees. They become available when it is durable.
    pub(crate) freed: Vec<BlockRun>,
    /// Blocks of a nameless-write device that no file refers to when the transaction is applied.
    pub(crate) unplaced: Vec<(Ino, BlockRun)>,
}

impl Txn {
    pub(crate) fn new() -> Self {
        Self {
            words: vec![0; HEADER],
            counts: CounterDelta::default(),
            data: false,
            freed: Vec::new(),
            unplaced: Vec::new(),
        }
    }

    /// Adds a write of words at a byte position.
    pub(crate) fn write(&mut self, at: u64, words: &[u64]) {
        debug_assert!(at.is_multiple_of(8) && !words.is_empty());
        for (i, chunk) in words.chunks(WORDS_MAX).enumerate() {
            let place = at / 8 + (i * WORDS_MAX) as u64;
            self.words.push(WRITE << KIND_SHIFT | (chunk.len() as u64) << COUNT_SHIFT | place);
            self.words.extend_from_slice(chunk);
        }
    }

    /// Adds writes of the words of `now` that differ from `before`, the current words on the
    /// medium.
    pub(crate) fn write_changed(&mut self, at: u64, before: &[u64], now: &[u64]) {
        let mut i = 0;
        while i < now.len() {
            if before[i] == now[i] {
                i += 1;
                continue;
            }
            // A single unchanged word between two changed ones is included: it costs no more than
            // the header word of a second record.
            let mut end = i + 1;
            while end < now.len() && (before[end] != now[end] || now.get(end + 1) != before.get(end + 1)) {
                end += 1;
            }
            self.write(at + i as u64 * 8, &now[i..end]);
            i = end;
        }
    }

    /// Adds a record that marks blocks as used.
    pub(crate) fn alloc(&mut self, run: BlockRun) {
        self.words.extend([SET << KIND_SHIFT | run.start, run.len]);
        self.counts.blocks += run.len as i64;
    }

    /// Adds a record that frees blocks.
    pub(crate) fn free(&mut self, run: BlockRun) {
        self.words.extend([CLEAR << KIND_SHIFT | run.start, run.len]);
        self.counts.blocks -= run.len as i64;
        self.freed.push(run);
    }

    /// Returns `true` if the transaction has no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.len() == HEADER && self.counts == CounterDelta::default() && self.unplaced.is_empty()
    }

    /// Returns the words of the records.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[HEADER..]
    }

    /// Completes the header.
    pub(super) fn seal(&mut self, seq: u64, salt: u32) {
        self.words[1] = seq;
        self.words[2] = (self.words.len() - HEADER) as u64 | u64::from(salt) << 32;
        self.words[0] = check(&self.words);
    }

    /// Returns the header and the records, in the format of a slot.
    pub(super) fn sealed(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn records(&self) -> JournalRecords<'_> {
        JournalRecords { words: self.words() }
    }

    /// Returns `true` if the transaction writes to none of the blocks that it frees. Such a block
    /// may belong to another file when recovery replays the last two transactions.
    pub(super) fn frees_nothing_it_writes(&self, geometry: &Geometry) -> bool {
        self.records().all(|record| match record {
            JournalRecord::Write { at, .. } => {
                let block = at / BLOCK;
                !geometry.holds(block, 1)
                    || self.freed.iter().all(|run| !(run.start..run.end()).contains(&block))
            }
            JournalRecord::Bits { .. } => true,
        })
    }
}

/// Iterator over the records of a transaction's words, up to the first invalid record.
#[derive(Clone, Debug)]
pub(super) struct JournalRecords<'a> {
    pub(super) words: &'a [u64],
}

impl<'a> Iterator for JournalRecords<'a> {
    type Item = JournalRecord<'a>;

    fn next(&mut self) -> Option<JournalRecord<'a>> {
        let (&first, rest) = self.words.split_first()?;
        match first >> KIND_SHIFT {
            WRITE => {
                let count = (first >> COUNT_SHIFT) as usize & WORDS_MAX;
                let words = rest.get(..count)?;
                self.words = &rest[count..];
                Some(JournalRecord::Write { at: (first & POSITION_MASK) * 8, words })
            }
            kind => {
                let (&len, rest) = rest.split_first()?;
                self.words = rest;
                Some(JournalRecord::Bits {
                    run: BlockRun { start: first & POSITION_MASK, len },
                    set: kind == SET,
                })
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let mut txn = Txn::new();
        txn.write(64, &[1, 2, 3]);
        txn.alloc(BlockRun { start: 7, len: 9 });
        txn.free(BlockRun { start: 100, len: 1 });
        txn.write_changed(800, &[1, 2, 3, 4, 5, 6], &[1, 0, 3, 9, 5, 6]);
        let records: Vec<_> = txn.records().collect();
        assert_eq!(
            records,
            [
                JournalRecord::Write { at: 64, words: &[1, 2, 3] },
                JournalRecord::Bits { run: BlockRun { start: 7, len: 9 }, set: true },
                JournalRecord::Bits { run: BlockRun { start: 100, len: 1 }, set: false },
                JournalRecord::Write { at: 808, words: &[0, 3, 9] },
            ]
        );
        assert_eq!(txn.counts.blocks, 8);
    }
}
