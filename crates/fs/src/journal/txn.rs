//! A transaction while it is put together.

use super::{HEADER, check};
use crate::format::{BLOCK, Geometry};
use crate::ledger::Counts;

/// Blocks that follow each other, counted from the start of the medium.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Run {
    /// The block behind the last.
    pub(crate) fn end(self) -> u64 {
        self.start + self.len
    }

    /// Where it begins, in bytes.
    pub(crate) fn at(self) -> u64 {
        self.start * BLOCK
    }
}

/// The kinds of records, in the two highest bits of their first word; the other bits of it are a count of words and
/// a position in words.
const WRITE: u64 = 0;
const SET: u64 = 1;
const CLEAR: u64 = 2;
const KIND: u32 = 62;
const COUNT: u32 = 48;
const PLACE: u64 = (1 << COUNT) - 1;
/// Most words of one record of writing.
const WORDS_MAX: usize = (1 << (KIND - COUNT)) - 1;

/// One change, read back from a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record<'a> {
    /// Words to be written at a byte position.
    Write { at: u64, words: &'a [u64] },
    /// Bits of the block bitmap to be set or cleared.
    Bits { run: Run, set: bool },
}

/// Changes that belong together.
#[derive(Debug)]
pub(crate) struct Txn {
    /// The header's words, and the records.
    words: Vec<u64>,
    /// How the counters change.
    pub(crate) counts: Counts,
    /// Whether contents were written that must be durable before this is.
    pub(crate) data: bool,
    /// What it gives up, to be available to others when it is durable.
    pub(crate) freed: Vec<Run>,
}

impl Txn {
    pub(crate) fn new() -> Self {
        Self { words: vec![0; HEADER], counts: Counts::default(), data: false, freed: Vec::new() }
    }

    /// Writes words at a byte position.
    pub(crate) fn write(&mut self, at: u64, words: &[u64]) {
        debug_assert!(at.is_multiple_of(8) && !words.is_empty());
        for (i, chunk) in words.chunks(WORDS_MAX).enumerate() {
            let place = at / 8 + (i * WORDS_MAX) as u64;
            self.words.push(WRITE << KIND | (chunk.len() as u64) << COUNT | place);
            self.words.extend_from_slice(chunk);
        }
    }

    /// Writes those of `now` that differ from `before`, which is what is there.
    pub(crate) fn write_changed(&mut self, at: u64, before: &[u64], now: &[u64]) {
        let mut i = 0;
        while i < now.len() {
            if before[i] == now[i] {
                i += 1;
                continue;
            }
            // A record's own word is no dearer than an unchanged one between two changed ones.
            let mut end = i + 1;
            while end < now.len() && (before[end] != now[end] || now.get(end + 1) != before.get(end + 1)) {
                end += 1;
            }
            self.write(at + i as u64 * 8, &now[i..end]);
            i = end;
        }
    }

    /// Marks blocks as used.
    pub(crate) fn take(&mut self, run: Run) {
        self.words.extend([SET << KIND | run.start, run.len]);
        self.counts.blocks += run.len as i64;
    }

    /// Gives blocks up.
    pub(crate) fn free(&mut self, run: Run) {
        self.words.extend([CLEAR << KIND | run.start, run.len]);
        self.counts.blocks -= run.len as i64;
        self.freed.push(run);
    }

    /// Whether nothing was put in.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.len() == HEADER && self.counts == Counts::default()
    }

    /// The records' words.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[HEADER..]
    }

    /// Completes the header.
    pub(super) fn seal(&mut self, seq: u64, salt: u32) {
        self.words[1] = seq;
        self.words[2] = (self.words.len() - HEADER) as u64 | u64::from(salt) << 32;
        self.words[0] = check(&self.words);
    }

    /// The header and the records, as a slot has them.
    pub(super) fn sealed(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn records(&self) -> Records<'_> {
        Records { words: self.words() }
    }

    /// Whether no block is given up that is also written: it may belong to another file when the last two
    /// transactions are carried out again.
    pub(super) fn frees_nothing_it_writes(&self, geometry: &Geometry) -> bool {
        self.records().all(|record| match record {
            Record::Write { at, .. } => {
                let block = at / BLOCK;
                !geometry.holds(block, 1)
                    || self.freed.iter().all(|run| !(run.start..run.end()).contains(&block))
            }
            Record::Bits { .. } => true,
        })
    }
}

/// The records of a transaction's words, up to the first that makes no sense.
#[derive(Clone, Debug)]
pub(super) struct Records<'a> {
    pub(super) words: &'a [u64],
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (&first, rest) = self.words.split_first()?;
        match first >> KIND {
            WRITE => {
                let count = (first >> COUNT) as usize & WORDS_MAX;
                let words = rest.get(..count)?;
                self.words = &rest[count..];
                Some(Record::Write { at: (first & PLACE) * 8, words })
            }
            kind => {
                let (&len, rest) = rest.split_first()?;
                self.words = rest;
                Some(Record::Bits { run: Run { start: first & PLACE, len }, set: kind == SET })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let mut txn = Txn::new();
        txn.write(64, &[1, 2, 3]);
        txn.take(Run { start: 7, len: 9 });
        txn.free(Run { start: 100, len: 1 });
        txn.write_changed(800, &[1, 2, 3, 4, 5, 6], &[1, 0, 3, 9, 5, 6]);
        let records: Vec<_> = txn.records().collect();
        assert_eq!(
            records,
            [
                Record::Write { at: 64, words: &[1, 2, 3] },
                Record::Bits { run: Run { start: 7, len: 9 }, set: true },
                Record::Bits { run: Run { start: 100, len: 1 }, set: false },
                Record::Write { at: 808, words: &[0, 3, 9] },
            ]
        );
        assert_eq!(txn.counts.blocks, 8);
    }
}
