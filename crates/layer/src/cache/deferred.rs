//! Accesses to the disk that the caller carries out, without the layer's lock.
//!
//! A hit never waits for them, because it is served from PCM. Accesses in flight are identified by
//! their ranges: blocks in such a range are not evicted, and a request that conflicts with a write
//! in flight must be repeated.

use super::layer::Cache;
use super::policy::Victim;
use crate::Token;
use frit_core::{BlockingAccess, BlockingMedium, Buffer, Cause, Deferred, Error, Op, Result, Sink};
use frit_media::Store;
use std::sync::Arc;

/// Action after accesses are settled.
#[derive(Debug)]
enum Completion {
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
    WrittenThrough(Vec<Victim>),
    /// The writebacks of these blocks are complete.
    WritebackFlushed(Vec<Victim>),
    /// The disk is flushed.
    Flushed,
    /// The blocks from the first to before the second are durably zero on the disk.
    Zeroed(u32, u32),
}

/// Accesses in flight.
#[derive(Debug)]
struct InFlightIo {
    id: u64,
    /// Byte ranges on the disk (from, to).
    ranges: Vec<(u64, u64)>,
    writes: bool,
    /// The flush covers data that bypassed the cache.
    covers: bool,
    then: Completion,
}

/// The accesses that are deferred to the caller.
#[derive(Debug, Default)]
pub(super) struct DeferredIo {
    /// The medium on which they are carried out.
    medium: Option<Arc<dyn BlockingMedium>>,
    /// `true` if accesses are deferred.
    on: bool,
    /// Accesses of the current request.
    pub(super) now: Vec<BlockingAccess>,
    /// The current request is a write-through: these blocks are clean once the disk has it.
    pub(super) through: Option<Vec<Victim>>,
    /// The current request discards these blocks, from the first to before the second.
    pub(super) zeroed: Option<(u32, u32)>,
    /// The flush that begins covers data that bypassed the cache.
    covers: bool,
    in_flight_io: Vec<InFlightIo>,
    /// Background work that no caller has taken yet.
    jobs: Vec<Deferred>,
    next: u64,
}

impl DeferredIo {
    /// Returns `true` if accesses are deferred.
    pub(super) fn on(&self) -> bool {
        self.on
    }

    /// Returns `true` if a range overlaps an access in flight, and at least one of both is a write.
    fn conflicts(&self, from: u64, to: u64, write: bool) -> bool {
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
            .any(|u| matches!(u.then, Completion::Written(_) | Completion::WritebackFlushed(_)))
    }

    /// Returns the number of slots in flight whose blocks were rewritten in other slots since.
    #[cfg(test)]
    pub(super) fn orphans(&self, dir: &super::directory::Directory) -> u32 {
        let blocks = self.in_flight_io.iter().flat_map(|u| match &u.then {
            Completion::Written(b) | Completion::WrittenThrough(b) | Completion::WritebackFlushed(b) => {
                b.as_slice()
            }
            _ => &[],
        });
        blocks.filter(|v| dir.get(v.lbn) != Some(v.slot)).count() as u32
    }

    /// Returns `true` if a flush of the disk is in flight.
    pub(super) fn flush_in_flight(&self) -> bool {
        self.in_flight_io.iter().any(|u| {
            matches!(u.then, Completion::WritebackFlushed(_) | Completion::Flushed | Completion::Zeroed(..))
        })
    }

    fn begin(&mut self, accesses: Vec<BlockingAccess>, writes: bool, then: Completion) -> Option<Deferred> {
        let medium = self.medium.clone()?;
        self.next += 1;
        let ranges = accesses.iter().filter_map(range).collect();
        let covers = std::mem::take(&mut self.covers);
        self.in_flight_io.push(InFlightIo { id: self.next, ranges, writes, covers, then });
        Some(Deferred { id: self.next, accesses, medium })
    }
}

fn range(access: &BlockingAccess) -> Option<(u64, u64)> {
    match access {
        BlockingAccess::Read { at, into: part } | BlockingAccess::Write { at, from: part } => {
            Some((*at, at + part.len() as u64))
        }
        BlockingAccess::Put { at, data } => Some((*at, at + data.len() as u64)),
        BlockingAccess::Zero { at, len } => Some((*at, at + len)),
        BlockingAccess::Sync => None,
    }
}

impl<T: Token, P: Store, D: Store> Cache<T, P, D> {
    pub(super) fn set_deferring(&mut self, on: bool) -> bool {
        if on && P::HOLDS && self.deferred_io.medium.is_none() {
            self.deferred_io.medium = self.disk.shared();
        }
        self.deferred_io.on = on && self.deferred_io.medium.is_some();
        self.deferred_io.on
    }

    /// Checks that a range of the disk may be accessed now.
    ///
    /// # Errors
    /// Returns `Error::WouldBlock` if the range conflicts with an access in flight.
    pub(super) fn check_no_conflict(&self, from: u64, to: u64, write: bool) -> Result<()> {
        if self.deferred_io.conflicts(from, to, write) { Err(Error::WouldBlock) } else { Ok(()) }
    }

    /// Returns `true` if a block may be evicted or written to the disk: no access in flight
    /// overlaps it.
    pub(super) fn may_write_back(&self, lbn: u32) -> bool {
        let at = u64::from(lbn) * super::BLOCK_BYTES;
        !self.deferred_io.conflicts(at, at + super::BLOCK_BYTES, true)
    }

    /// Returns the accesses that the current request has deferred.
    pub(super) fn take_deferred(&mut self) -> Option<Deferred> {
        let accesses = std::mem::take(&mut self.deferred_io.now);
        let zeroed = self.deferred_io.zeroed.take();
        if let Some(blocks) = self.deferred_io.through.take() {
            return self.deferred_io.begin(accesses, true, Completion::WrittenThrough(blocks));
        }
        let (writes, then) = match (accesses.first()?, zeroed) {
            (_, Some((first, last))) => (true, Completion::Zeroed(first, last)),
            (BlockingAccess::Read { at, into }, _) => {
                (false, Completion::Read { at: at - into.start as u64 })
            }
            (BlockingAccess::Sync, _) => (false, Completion::Flushed),
            _ => (true, Completion::Direct),
        };
        self.deferred_io.begin(accesses, writes, then)
    }

    /// Begins a flush. Data that it covers counts as unflushed no more; if the flush fails, it
    /// counts again.
    pub(super) fn begin_flush(&mut self) {
        self.deferred_io.covers = self.unflushed.take().is_some();
    }

    /// Drops the deferred accesses of a request that failed.
    pub(super) fn cancel_deferred(&mut self) {
        self.deferred_io.now.clear();
        self.deferred_io.zeroed = None;
        if let Some(blocks) = self.deferred_io.through.take() {
            blocks.into_iter().for_each(|v| self.in_flight.add(v));
            self.cancel_writebacks();
        }
    }

    /// Defers these writes to the disk. Their blocks are in flight once the disk has them.
    pub(super) fn defer_writes(&mut self, accesses: Vec<BlockingAccess>, blocks: Vec<Victim>) {
        if let Some(job) = self.deferred_io.begin(accesses, true, Completion::Written(blocks)) {
            self.deferred_io.jobs.push(job);
        }
    }

    /// Defers a flush of the disk, after which the writebacks in flight are complete.
    pub(super) fn defer_completion(&mut self) {
        let blocks = self.in_flight.take();
        self.begin_flush();
        if let Some(job) =
            self.deferred_io.begin(vec![BlockingAccess::Sync], false, Completion::WritebackFlushed(blocks))
        {
            self.deferred_io.jobs.push(job);
        }
    }

    /// Returns background work that waits, or that is due now.
    pub(super) fn next_job<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<Option<Deferred>> {
        if let Some(job) = self.deferred_io.jobs.pop() {
            return Ok(Some(job));
        }
        // At most one background job is in flight.
        if self.deferred_io.busy() || !self.deferred_io.on() {
            return Ok(None);
        }
        self.evict_to_threshold(sink)?;
        Ok(self.deferred_io.jobs.pop())
    }

    /// Completes deferred accesses that were carried out.
    pub(super) fn settle_deferred<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        id: u64,
        outcome: Result<()>,
        buffer: &Buffer<'_>,
    ) -> Result<()> {
        let Some(i) = self.deferred_io.in_flight_io.iter().position(|u| u.id == id) else { return outcome };
        let done = self.deferred_io.in_flight_io.swap_remove(i);
        let start = sink.start();
        if let Err(e) = outcome {
            if done.covers {
                self.direct_writes_lost(&e);
            }
            return self.failed(sink, done.then, e);
        }
        match done.then {
            Completion::Read { at } => match buffer {
                Buffer::In(read) if self.config.read_caching => {
                    self.cache_ranges(sink, at, read, &done.ranges);
                    Ok(())
                }
                _ => Ok(()),
            },
            Completion::Direct => {
                self.note_unflushed(sink, start);
                Ok(())
            }
            Completion::Written(blocks) | Completion::WrittenThrough(blocks) => {
                blocks.into_iter().for_each(|v| self.in_flight.add(v));
                self.wait_for_write(sink, start);
                self.disk_recovered();
                Ok(())
            }
            Completion::WritebackFlushed(blocks) => {
                self.stats.disk_flushes += 1;
                self.complete_blocks(sink, blocks, start).map(|_| ())
            }
            Completion::Flushed => self.sync_pcm(sink),
            Completion::Zeroed(first, last) => self.forget_blocks(sink, first, last, start),
        }
    }

    /// Restores the state of the blocks in flight after a failure of the disk.
    fn failed<S: Sink<Tok = T>>(&mut self, sink: &mut S, then: Completion, e: Error) -> Result<()> {
        let start = sink.start();
        match then {
            Completion::Read { .. } => Err(self.read_failed(&e)),
            Completion::Written(blocks)
            | Completion::WrittenThrough(blocks)
            | Completion::WritebackFlushed(blocks) => {
                blocks.into_iter().for_each(|v| self.in_flight.add(v));
                self.note_unflushed(sink, start);
                // No request waits for a writeback. The next request to the disk reports the
                // failure.
                drop(self.check_disk::<()>(Err(e)));
                self.take_disk_error();
                Ok(())
            }
            Completion::Direct | Completion::Flushed | Completion::Zeroed(..) => {
                self.note_unflushed(sink, start);
                let failed = self.check_disk(Err(e));
                self.take_disk_error();
                failed
            }
        }
    }

    /// Defers a flush of the disk to the caller.
    pub(super) fn defer_flush<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let start = sink.start();
        self.begin_flush();
        self.disk.emit_deferred(sink, Op::DiskFlush, 0, 0, Cause::Host, start)?;
        self.deferred_io.now.push(BlockingAccess::Sync);
        Ok(())
    }
}
