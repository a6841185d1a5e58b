//! Transactions: changes of metadata that power cuts leave whole or not at all.
//!
//! A transaction is written to the next slot of a ring, fenced, and then carried out in place. Carrying out is made
//! durable by the fence of the transaction behind it, so at any moment at most the last two are needed: a start
//! carries those out again, the older first. Slots lie at fixed places, so nothing that a program writes can be
//! taken for a transaction. One fence an operation, two where contents of files have to be durable before.

mod replay;
mod txn;

pub(crate) use replay::{carry_out_last, forget, replay};
pub(crate) use txn::{Run, Txn};

use crate::format::{Geometry, write_words};
use crate::ledger::Ledger;
use crate::medium::Medium;
use crate::space::line;
use crate::sync::Mutex;
use frit_core::planted::{Bug, is};
use frit_media::checksum::digest;
use txn::Record;

/// Words of a slot's header: the check, the sequence number, the length in words with the salt above it.
const HEADER: usize = 3;

/// The journal of an open file system.
#[derive(Debug)]
pub(crate) struct Journal {
    geometry: Geometry,
    salt: u32,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The number of the next transaction.
    next: u64,
    ledger: Ledger,
}

/// The check of a slot's words: a CRC-64 over all but the first. Not CRC32C: transactions are full of words that end
/// with their own CRC32C, and of two such that were torn into one another CRC32C sees nothing.
fn check(words: &[u64]) -> u64 {
    digest(bytemuck::cast_slice(&words[1..]))
}

/// The position of the slot of a transaction.
fn slot_at(geometry: &Geometry, seq: u64) -> u64 {
    geometry.journal_at + seq % geometry.slots * geometry.slot_bytes
}

impl Journal {
    /// Goes on behind what `replay` found.
    pub(crate) fn new(geometry: Geometry, salt: u32, next: u64, ledger: Ledger) -> Self {
        Self { geometry, salt, inner: Mutex::new(Inner { next, ledger }) }
    }

    /// Words that one transaction can have.
    pub(crate) fn room(&self) -> usize {
        self.geometry.slot_bytes as usize / 8 - HEADER - Ledger::RECORD_WORDS
    }

    /// The counters as they are now.
    pub(crate) fn ledger(&self) -> Ledger {
        self.inner.lock().ledger
    }

    /// Carries a transaction out. When this returns it is durable; it returns what it freed.
    ///
    /// # Panics
    /// It has more words than [`Journal::room`]: the operation did not divide its work.
    pub(crate) fn commit<M: Medium>(&self, medium: &M, mut txn: Txn) -> Vec<Run> {
        assert!(txn.words().len() <= self.room(), "a transaction of {} words", txn.words().len());
        debug_assert!(txn.frees_nothing_it_writes(&self.geometry));
        if txn.data && !is(Bug::FsDataNotFenced) {
            medium.fence();
        }
        let mut inner = self.inner.lock();
        let ledger = inner.ledger.changed_by(&txn.counts);
        if ledger != inner.ledger {
            txn.write(self.geometry.ledger_at, &ledger.encode(self.salt));
            inner.ledger = ledger;
        }
        let seq = inner.next;
        inner.next += 1;
        let at = slot_at(&self.geometry, seq);
        txn.seal(seq, self.salt);
        if is(Bug::FsApplyBeforeLog) {
            self.apply(medium, &txn);
        }
        write_words(medium, at, txn.sealed());
        if !is(Bug::FsLogNotFenced) {
            medium.fence();
        }
        self.apply(medium, &txn);
        drop(inner);
        txn.freed
    }

    fn apply<M: Medium>(&self, medium: &M, txn: &Txn) {
        for record in txn.records() {
            match record {
                Record::Write { at, words } => write_words(medium, at, words),
                Record::Bits { run, set } => line::change(medium, &self.geometry, self.salt, run, set),
            }
        }
    }
}
