//! Replay of the journal during recovery.

use super::txn::{JournalRecord, JournalRecords};
use super::{HEADER, check, slot_at};
use crate::error::{Error, Result};
use crate::format::{Geometry, read_words, write_words};
use crate::medium::Medium;
use crate::planted::Bug;
use crate::space::line;
use frit_core::planted::is_planted;
use std::collections::BTreeMap;

/// Result of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replayed {
    /// Sequence number of the next transaction.
    pub(crate) next: u64,
}

/// Reads a slot; returns the sequence number and records of its transaction, if it is intact.
fn read<M: Medium>(medium: &M, geometry: &Geometry, salt: u32, slot: u64) -> Option<(u64, Vec<u64>)> {
    let at = geometry.journal_at + slot * geometry.slot_bytes;
    let [_, seq, second] = read_words(medium, at);
    let len = (second & 0xFFFF_FFFF) as usize;
    let fits = len <= geometry.slot_bytes as usize / 8 - HEADER;
    // The header is checked before the checksum, because its length determines the words to read.
    if seq == 0 || seq == u64::MAX || seq % geometry.slots != slot || !fits || second >> 32 != u64::from(salt)
    {
        return None;
    }
    let mut words = vec![0; HEADER + len];
    medium.read(at, bytemuck::cast_slice_mut(&mut words));
    let sound = words[0] == check(&words) || is_planted(Bug::TornLogTaken);
    sound.then(|| (seq, words.split_off(HEADER)))
}

/// Returns all intact transactions, ordered by sequence number.
fn all<M: Medium>(medium: &M, geometry: &Geometry, salt: u32) -> Vec<(u64, Vec<u64>)> {
    let mut found: Vec<_> =
        (0..geometry.slots).filter_map(|slot| read(medium, geometry, salt, slot)).collect();
    found.sort_unstable_by_key(|(seq, _)| *seq);
    found
}

/// Replays the last two transactions. Replay is idempotent and has no effect after a clean close.
///
/// # Errors
/// The transaction before the last is unreadable: its changes may have been applied in part.
pub(crate) fn replay<M: Medium>(medium: &M, geometry: &Geometry, salt: u32) -> Result<Replayed> {
    let found = all(medium, geometry, salt);
    let Some(&(last, _)) = found.last() else { return Ok(Replayed { next: 1 }) };
    let before = found.iter().rfind(|(seq, _)| *seq + 1 == last);
    // Changes of a lost predecessor may be applied in part. The first transaction has none.
    if before.is_none() && last > 1 {
        let at = slot_at(geometry, last - 1);
        return Err(Error::Damaged { what: "a transaction in the journal", at });
    }
    let last_two = found.iter().skip_while(|(seq, _)| seq + 1 < last);
    let skip = match found.len() {
        2.. if is_planted(Bug::ReplayLastOnly) => 1,
        _ if is_planted(Bug::ReplayForgotten) => 2,
        _ => 0,
    };
    apply_all(medium, geometry, salt, last_two.skip(skip));
    Ok(Replayed { next: last + 1 })
}

/// Replays the last transaction where the one before it is unreadable, for `repair`.
pub(crate) fn replay_last<M: Medium>(medium: &M, geometry: &Geometry, salt: u32) {
    apply_all(medium, geometry, salt, all(medium, geometry, salt).last().into_iter());
}

/// Erases the journal, so that a later replay does not undo repairs.
pub(crate) fn erase<M: Medium>(medium: &M, geometry: &Geometry) {
    medium.fence();
    for slot in 0..geometry.slots {
        medium.zero(geometry.journal_at + slot * geometry.slot_bytes, HEADER as u64 * 8);
    }
    medium.fence();
}

/// Applies the writes of transactions, and brings each line of the bitmap to its state after all of
/// them. The changes of a line are applied together: an intermediate state could not be
/// distinguished from damage.
fn apply_all<'a, M: Medium>(
    medium: &M,
    geometry: &Geometry,
    salt: u32,
    txns: impl Iterator<Item = &'a (u64, Vec<u64>)>,
) {
    let mut lines: BTreeMap<u64, line::BitChanges> = BTreeMap::new();
    for (_, words) in txns {
        for record in (JournalRecords { words }).filter(|record| inside(geometry, record)) {
            match record {
                JournalRecord::Write { at, words } => write_words(medium, at, words),
                JournalRecord::Bits { run, set } => {
                    for (line, from, to) in line::parts(geometry, run) {
                        lines.entry(line).or_default().push((from, to, set));
                    }
                }
            }
        }
    }
    for (line, changes) in lines {
        line::redo(medium, geometry, salt, line, &changes);
    }
    medium.fence();
}

/// Returns `true` if a record refers only to positions that can hold metadata.
fn inside(geometry: &Geometry, record: &JournalRecord<'_>) -> bool {
    match *record {
        JournalRecord::Write { at, words } => {
            at >= geometry.ledger_at
                && at.checked_add(words.len() as u64 * 8).is_some_and(|end| end <= geometry.copy_at())
        }
        JournalRecord::Bits { run, .. } => geometry.holds(run.start, run.len),
    }
}
