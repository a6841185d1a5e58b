//! The journal: metadata changes in transactions that are atomic with respect to power loss.
//!
//! A transaction is written to the next slot of a ring, fenced, and then applied in place. The
//! fence of the following transaction makes the applied changes durable, so at any time at most the
//! last two transactions are needed. Recovery replays these two, the older first. Slots have fixed
//! positions, so data of a program cannot be mistaken for a transaction. An operation costs one
//! fence, or two if file contents have to be durable before its transaction.

mod replay;
mod txn;

pub(crate) use replay::{erase, replay, replay_last};
pub(crate) use txn::{BlockRun, Txn};

use crate::counters::Counters;
use crate::format::{Geometry, write_words};
use crate::medium::Medium;
use crate::planted::Bug;
use crate::space::line;
use crate::sync::Mutex;
use frit_core::planted::is_planted;
use frit_media::checksum::digest;
use txn::JournalRecord;

/// Words of a slot's header: the checksum, the sequence number, the length in words with the salt
/// in the upper half.
const HEADER: usize = 3;

/// The journal of an open file system.
#[derive(Debug)]
pub(crate) struct Journal {
    geometry: Geometry,
    salt: u32,
    inner: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    /// Sequence number of the next transaction.
    next: u64,
    counters: Counters,
}

/// Computes the checksum of a slot: a CRC-64 over all words except the first. CRC32C is not
/// suitable, because transactions contain many words that end with their own CRC32C: it cannot
/// detect two such transactions torn into one another.
fn check(words: &[u64]) -> u64 {
    digest(bytemuck::cast_slice(&words[1..]))
}

/// Returns the byte position of a transaction's slot.
fn slot_at(geometry: &Geometry, seq: u64) -> u64 {
    geometry.journal_at + seq % geometry.slots * geometry.slot_bytes
}

impl Journal {
    /// Creates the journal of an open file system. `next` is the sequence number after the replayed
    /// ones.
    pub(crate) fn new(geometry: Geometry, salt: u32, next: u64, counters: Counters) -> Self {
        Self { geometry, salt, inner: Mutex::new(JournalState { next, counters }) }
    }

    /// Returns the maximum number of words in a transaction.
    pub(crate) fn capacity(&self) -> usize {
        self.geometry.slot_bytes as usize / 8 - HEADER - Counters::RECORD_WORDS
    }

    /// Returns the current counters.
    pub(crate) fn counters(&self) -> Counters {
        self.inner.lock().counters
    }

    /// Commits a transaction and returns the blocks that it freed. It is durable when this returns.
    ///
    /// # Panics
    /// The transaction has more words than [`Journal::capacity`].
    pub(crate) fn commit<M: Medium>(&self, medium: &M, mut txn: Txn) -> Vec<BlockRun> {
        assert!(txn.words().len() <= self.capacity(), "a transaction of {} words", txn.words().len());
        debug_assert!(txn.frees_nothing_it_writes(&self.geometry));
        // Contents must be durable before the metadata that refers to them.
        if txn.data && !is_planted(Bug::DataNotFenced) {
            medium.fence();
        }
        // The lock covers the write and the application: the next transaction's fence makes this
        // one's changes durable, so transactions have to be applied in sequence.
        let mut inner = self.inner.lock();
        let counters = inner.counters.changed_by(&txn.counts);
        if counters != inner.counters {
            txn.write(self.geometry.ledger_at, &counters.encode(self.salt));
            inner.counters = counters;
        }
        let seq = inner.next;
        inner.next += 1;
        let at = slot_at(&self.geometry, seq);
        txn.seal(seq, self.salt);
        if is_planted(Bug::ApplyBeforeLog) {
            self.apply(medium, &txn);
        }
        write_words(medium, at, txn.sealed());
        if !is_planted(Bug::LogNotFenced) {
            medium.fence();
        }
        self.apply(medium, &txn);
        drop(inner);
        txn.freed
    }

    fn apply<M: Medium>(&self, medium: &M, txn: &Txn) {
        for record in txn.records() {
            match record {
                JournalRecord::Write { at, words } => write_words(medium, at, words),
                JournalRecord::Bits { run, set } => line::change(medium, &self.geometry, self.salt, run, set),
            }
        }
    }
}
