//! Accesses to the disk that the caller carries out, without the layer's lock.
//!
//! A hit never waits for them, because it is served from PCM. Accesses in flight are identified by
//! their ranges: blocks in such a range are not evicted, and a request that conflicts with a write
//! in flight must be repeated.

use super::layer::Cache;
use super::policy::Victim;
use crate::Token;
use frit_core::{Buffer, Cause, Deferred, Error, Op, Result, Sink, SlowAccess, SlowMedium};
use frit_media::Store;
use std::sync::Arc;

/// Action after accesses are settled.
#[derive(Debug)]
enum Then {
    /// None for a read, except that the data may be cached.
    Read {
        /// First byte of the request.
        at: u64,
    },
    /// The disk has acknowledged data that is not flushed.
    Direct,
    /// The disk has acknowledged these blocks, but not flushed them. They are copies of cached
    /// blocks, or superseded versions.
    Written(Vec<Victim>),
    /// The same for a write-through request.
    Through(Vec<Victim>),
    /// The writebacks of these blocks are complete.
    Landed(Vec<Victim>),
    /// The disk is flushed.
    Flushed,
    /// The blocks from the first to before the second are durably zero on the disk.
    Zeroed(u32, u32),
}

/// Accesses in flight.
#[derive(Debug)]
struct UnderWay {
    id: u64,
    /// Byte ranges on the disk (from, to).
    ranges: Vec<(u64, u64)>,
    writes: bool,
    /// The flush covers data that bypassed the cache.
    covers: bool,
    then: Then,
}

/// The accesses that are deferred to the caller.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The medium on which they are carried out.
    medium: Option<Arc<dyn SlowMedium>>,
    /// `true` if accesses are deferred.
    on: bool,
    /// Accesses of the current request.
    pub(super) now: Vec<SlowAccess>,
    /// The current request is a write-through: these blocks are clean once the disk has it.
    pub(super) through: Option<Vec<Victim>>,
    /// The current request discards these blocks, from the first to before the second.
    pub(super) zeroed: Option<(u32, u32)>,
    /// The flush that begins covers data that bypassed the cache.
    covers: bool,
    under_way: Vec<UnderWay>,
    /// Background work that no caller has taken yet.
    jobs: Vec<Deferred>,
    next: u64,
}

impl Left {
    /// Returns `true` if accesses are deferred.
    pub(super) fn on(&self) -> bool {
        self.on
    }

    /// Returns `true` if a range overlaps an access in flight, and at least one of both is a write.
    fn meets(&self, from: u64, to: u64, write: bool) -> bool {
        self.under_way
            .iter()
            .filter(|u| write || u.writes)
            .any(|u| u.ranges.iter().any(|&(a, b)| a < to && from < b))
    }

    /// Returns `true` if any access is in flight.
    pub(super) fn any(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Returns `true` if background work is in flight or waits for a caller.
    pub(super) fn busy(&self) -> bool {
        self.under_way.iter().any(|u| matches!(u.then, Then::Written(_) | Then::Landed(_)))
    }

    /// Returns the number of slots in flight whose blocks were rewritten in other slots since.
    #[cfg(test)]
    pub(super) fn orphans(&self, dir: &super::directory::Directory) -> u32 {
        let blocks = self.under_way.iter().flat_map(|u| match &u.then {
            Then::Written(b) | Then::Through(b) | Then::Landed(b) => b.as_slice(),
            _ => &[],
        });
        blocks.filter(|v| dir.get(v.lbn) != Some(v.slot)).count() as u32
    }

    /// Returns `true` if a flush of the disk is in flight.
    pub(super) fn syncs(&self) -> bool {
        self.under_way.iter().any(|u| matches!(u.then, Then::Landed(_) | Then::Flushed | Then::Zeroed(..)))
    }

    fn begin(&mut self, accesses: Vec<SlowAccess>, writes: bool, then: Then) -> Option<Deferred> {
        let medium = self.medium.clone()?;
        self.next += 1;
        let ranges = accesses.iter().filter_map(range).collect();
        let covers = std::mem::take(&mut self.covers);
        self.under_way.push(UnderWay { id: self.next, ranges, writes, covers, then });
        Some(Deferred { id: self.next, accesses, medium })
    }
}

fn range(access: &SlowAccess) -> Option<(u64, u64)> {
    match access {
        SlowAccess::Read { at, into: part } | SlowAccess::Write { at, from: part } => {
            Some((*at, at + part.len() as u64))
        }
        SlowAccess::Put { at, data } => Some((*at, at + data.len() as u64)),
        SlowAccess::Zero { at, len } => Some((*at, at + len)),
        SlowAccess::Sync => None,
    }
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    pub(super) fn set_deferring(&mut self, on: bool) -> bool {
        if on && P::HOLDS && self.left.medium.is_none() {
            self.left.medium = self.disk.shared();
        }
        self.left.on = on && self.left.medium.is_some();
        self.left.on
    }

    /// Checks that a range of the disk may be accessed now.
    ///
    /// # Errors
    /// Returns `Error::Later` if the range conflicts with an access in flight.
    pub(super) fn free_to(&self, from: u64, to: u64, write: bool) -> Result<()> {
        if self.left.meets(from, to, write) { Err(Error::Later) } else { Ok(()) }
    }

    /// Returns `true` if a block may be evicted or written to the disk: no access in flight
    /// overlaps it.
    pub(super) fn may_fly(&self, lbn: u32) -> bool {
        let at = u64::from(lbn) * super::BLOCK_BYTES;
        !self.left.meets(at, at + super::BLOCK_BYTES, true)
    }

    /// Returns the accesses that the current request has deferred.
    pub(super) fn take_left(&mut self) -> Option<Deferred> {
        let accesses = std::mem::take(&mut self.left.now);
        let zeroed = self.left.zeroed.take();
        if let Some(blocks) = self.left.through.take() {
            return self.left.begin(accesses, true, Then::Through(blocks));
        }
        let (writes, then) = match (accesses.first()?, zeroed) {
            (_, Some((first, last))) => (true, Then::Zeroed(first, last)),
            (SlowAccess::Read { at, into }, _) => (false, Then::Read { at: at - into.start as u64 }),
            (SlowAccess::Sync, _) => (false, Then::Flushed),
            _ => (true, Then::Direct),
        };
        self.left.begin(accesses, writes, then)
    }

    /// Begins a flush. Data that it covers counts as unflushed no more; if the flush fails, it
    /// counts again.
    pub(super) fn begin_flush(&mut self) {
        self.left.covers = self.unflushed.take().is_some();
    }

    /// Drops the deferred accesses of a request that failed.
    pub(super) fn forget_left(&mut self) {
        self.left.now.clear();
        self.left.zeroed = None;
        if let Some(blocks) = self.left.through.take() {
            blocks.into_iter().for_each(|v| self.flying.add(v));
            self.call_back();
        }
    }

    /// Defers these writes to the disk. Their blocks are in flight once the disk has them.
    pub(super) fn leave_writes(&mut self, accesses: Vec<SlowAccess>, blocks: Vec<Victim>) {
        if let Some(job) = self.left.begin(accesses, true, Then::Written(blocks)) {
            self.left.jobs.push(job);
        }
    }

    /// Defers a flush of the disk, after which the writebacks in flight are complete.
    pub(super) fn leave_landing(&mut self) {
        let blocks = self.flying.take();
        self.begin_flush();
        if let Some(job) = self.left.begin(vec![SlowAccess::Sync], false, Then::Landed(blocks)) {
            self.left.jobs.push(job);
        }
    }

    /// Returns background work that waits, or that is due now.
    pub(super) fn next_job<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<Option<Deferred>> {
        if let Some(job) = self.left.jobs.pop() {
            return Ok(Some(job));
        }
        // At most one background job is in flight.
        if self.left.busy() || !self.left.on() {
            return Ok(None);
        }
        self.keep_room(sink)?;
        Ok(self.left.jobs.pop())
    }

    /// Completes deferred accesses that were carried out.
    pub(super) fn settle_left<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        id: u64,
        outcome: Result<()>,
        buffer: &Buffer<'_>,
    ) -> Result<()> {
        let Some(i) = self.left.under_way.iter().position(|u| u.id == id) else { return outcome };
        let done = self.left.under_way.swap_remove(i);
        let start = sink.start();
        if let Err(e) = outcome {
            if done.covers {
                self.direct_lost(&e);
            }
            return self.failed(sink, done.then, e);
        }
        match done.then {
            Then::Read { at } => match buffer {
                Buffer::In(read) if self.config.read_caching => {
                    self.keep_ranges(sink, at, read, &done.ranges);
                    Ok(())
                }
                _ => Ok(()),
            },
            Then::Direct => {
                self.not_flushed(sink, start);
                Ok(())
            }
            Then::Written(blocks) | Then::Through(blocks) => {
                blocks.into_iter().for_each(|v| self.flying.add(v));
                self.flies_until(sink, start);
                self.came_back();
                Ok(())
            }
            Then::Landed(blocks) => {
                self.stats.disk_flushes += 1;
                self.land_blocks(sink, blocks, start).map(|_| ())
            }
            Then::Flushed => self.outlive(sink),
            Then::Zeroed(first, last) => self.forget_blocks(sink, first, last, start),
        }
    }

    /// Restores the state of the blocks in flight after a failure of the disk.
    fn failed<S: Sink<Tok = T>>(&mut self, sink: &mut S, then: Then, e: Error) -> Result<()> {
        let start = sink.start();
        match then {
            Then::Read { .. } => Err(self.read_failed(&e)),
            Then::Written(blocks) | Then::Through(blocks) | Then::Landed(blocks) => {
                blocks.into_iter().for_each(|v| self.flying.add(v));
                self.not_flushed(sink, start);
                // No request waits for a writeback. The next request to the disk reports the
                // failure.
                drop(self.of_disk::<()>(Err(e)));
                self.was_disk();
                Ok(())
            }
            Then::Direct | Then::Flushed | Then::Zeroed(..) => {
                self.not_flushed(sink, start);
                let failed = self.of_disk(Err(e));
                self.was_disk();
                failed
            }
        }
    }

    /// Defers a flush of the disk to the caller.
    pub(super) fn leave_flush<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let start = sink.start();
        self.begin_flush();
        self.disk.note(sink, Op::DiskFlush, 0, 0, Cause::Host, start)?;
        self.left.now.push(SlowAccess::Sync);
        Ok(())
    }
}
