//! Accesses to the disk that the caller carries out: those of the current request, those in flight,
//! and background work.

use super::policy::Victim;
use crate::numbers::Lbn;
use frit_core::convert::to_u64;
use frit_core::{BlockingAccess, BlockingMedium, Deferred, DeferredPart};
use std::ops::Range;
use std::sync::Arc;

/// Action after accesses are settled.
#[derive(Debug)]
pub(super) enum SettleAction {
    /// None for a read, except that the data may be cached.
    Read {
        /// First byte of the request.
        at: u64,
        /// `true` if the data may be cached.
        fills: bool,
    },
    /// The disk has acknowledged data that is not flushed.
    Direct,
    /// The disk has acknowledged these blocks, but not flushed them. They are copies of cached
    /// blocks, or superseded versions.
    Written(Vec<Victim>),
    /// The same for a write-through request.
    WrittenThrough(Vec<Victim>),
    /// The writebacks of these blocks are complete.
    WritebackFlushed(Vec<Victim>),
    /// The disk is flushed.
    Flushed,
    /// The blocks from the first to before the second are durably zero on the disk.
    Zeroed(Range<Lbn>),
}

/// Accesses in flight.
#[derive(Debug)]
pub(super) struct InFlightIo {
    id: u64,
    /// Byte ranges on the disk (from, to).
    pub(super) ranges: Vec<(u64, u64)>,
    writes: bool,
    /// The flush covers data that bypassed the cache.
    pub(super) covers: bool,
    /// A sync of the disk failed while they were in flight, which may have lost what they wrote.
    pub(super) failed: Option<String>,
    pub(super) then: SettleAction,
}

/// The accesses that are deferred to the caller.
#[derive(Debug, Default)]
pub(super) struct DeferredIo {
    /// The medium on which they are carried out.
    pub(super) medium: Option<Arc<dyn BlockingMedium>>,
    /// `true` if the current read may fill the cache.
    pub(super) fills: bool,
    /// `true` if accesses are deferred.
    pub(super) on: bool,
    /// Accesses of the current request.
    pub(super) now: Vec<BlockingAccess>,
    /// The current request is a write-through: these blocks are clean once the disk has it.
    pub(super) through: Option<Vec<Victim>>,
    /// The current request discards these blocks, from the first to before the second.
    pub(super) zeroed: Option<Range<Lbn>>,
    /// The flush that begins covers data that bypassed the cache.
    pub(super) covers: bool,
    in_flight_io: Vec<InFlightIo>,
    /// Background work that no caller has taken yet.
    pub(super) jobs: Vec<Deferred>,
    next: u64,
}

impl DeferredIo {
    /// Returns `true` if accesses are deferred.
    pub(super) fn on(&self) -> bool {
        self.on
    }

    /// Returns `true` if a range overlaps an access in flight, and at least one of both is a write.
    pub(super) fn conflicts(&self, from: u64, to: u64, write: bool) -> bool {
        self.in_flight_io
            .iter()
            .filter(|u| write || u.writes)
            .any(|u| u.ranges.iter().any(|&(a, b)| a < to && from < b))
    }

    /// Returns `true` if any access is in flight.
    pub(super) fn any(&self) -> bool {
        !self.in_flight_io.is_empty()
    }

    /// Returns `true` if background work is in flight or waits for a caller.
    pub(super) fn busy(&self) -> bool {
        self.in_flight_io
            .iter()
            .any(|u| matches!(u.then, SettleAction::Written(_) | SettleAction::WritebackFlushed(_)))
    }

    /// Returns the number of slots in flight whose blocks were rewritten in other slots since.
    #[cfg(test)]
    pub(super) fn orphans(&self, dir: &super::directory::Directory) -> usize {
        self.blocks().filter(|v| dir.get(v.lbn) != Some(v.slot)).count()
    }

    /// Returns the blocks of writebacks in flight.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Victim> {
        self.in_flight_io.iter().flat_map(|u| match &u.then {
            SettleAction::Written(b)
            | SettleAction::WrittenThrough(b)
            | SettleAction::WritebackFlushed(b) => b.as_slice(),
            _ => &[],
        })
    }

    /// Returns `true` if a flush of the disk is in flight.
    pub(super) fn flush_in_flight(&self) -> bool {
        self.in_flight_io.iter().any(|u| {
            matches!(
                u.then,
                SettleAction::WritebackFlushed(_) | SettleAction::Flushed | SettleAction::Zeroed(..)
            )
        })
    }

    /// Notes these accesses as in flight and returns them for the caller. Returns `None` if accesses
    /// cannot be deferred.
    pub(super) fn begin(
        &mut self,
        accesses: Vec<BlockingAccess>,
        writes: bool,
        then: SettleAction,
    ) -> Option<Deferred> {
        let medium = self.medium.clone()?;
        self.next += 1;
        let ranges = accesses.iter().filter_map(range).collect();
        let covers = std::mem::take(&mut self.covers);
        self.in_flight_io.push(InFlightIo { id: self.next, ranges, writes, covers, failed: None, then });
        Some(Deferred { id: self.next, parts: vec![DeferredPart { medium, accesses }] })
    }

    /// Lets all accesses that are in flight fail when they are settled, whatever their results.
    pub(super) fn fail_all(&mut self, why: &str) {
        self.in_flight_io.iter_mut().for_each(|u| u.failed = Some(why.to_owned()));
    }

    /// Removes the accesses with this number, which were carried out, and returns them.
    pub(super) fn end(&mut self, id: u64) -> Option<InFlightIo> {
        let i = self.in_flight_io.iter().position(|u| u.id == id)?;
        Some(self.in_flight_io.swap_remove(i))
    }
}

/// Returns the bytes of the disk that an access reads or writes.
fn range(access: &BlockingAccess) -> Option<(u64, u64)> {
    match access {
        BlockingAccess::Read { at, into: part } | BlockingAccess::Write { at, from: part } => {
            Some((*at, at + to_u64(part.len())))
        }
        BlockingAccess::Put { at, data } => Some((*at, at + to_u64(data.len()))),
        BlockingAccess::Zero { at, len } => Some((*at, at + len)),
        BlockingAccess::Sync => None,
    }
}
