//! Accesses to the disk that the caller carries out, without the layer's lock.
//!
//! A hit never waits for them, because it is served from PCM. Accesses in flight are identified by
//! their ranges: blocks in such a range are not evicted, and a request that conflicts with a write
//! in flight must be repeated.

use super::deferred_io::SettleAction;
use super::layer::Cache;
use super::policy::Victim;
use crate::numbers::Lbn;
use frit_core::convert::to_u64;
use frit_core::{BlockDevice, BlockingAccess, Buffer, Cause, Deferred, Error, Op, Result, Sink};

impl<D: BlockDevice + ?Sized> Cache<D> {
    pub(super) fn set_deferring(&mut self, on: bool) -> bool {
        if on && self.stores_bytes() && self.deferred_io.medium.is_none() {
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
    pub(super) fn may_write_back(&self, lbn: Lbn) -> bool {
        let at = u64::from(lbn) * super::BLOCK_BYTES;
        !self.deferred_io.conflicts(at, at + super::BLOCK_BYTES, true)
    }

    /// Returns the accesses that the current request has deferred.
    pub(super) fn take_deferred(&mut self) -> Option<Deferred> {
        let accesses = std::mem::take(&mut self.deferred_io.now);
        let zeroed = self.deferred_io.zeroed.take();
        if let Some(blocks) = self.deferred_io.through.take() {
            return self.deferred_io.begin(accesses, true, SettleAction::WrittenThrough(blocks));
        }
        let (writes, then) = match (accesses.first()?, zeroed) {
            (_, Some(blocks)) => (true, SettleAction::Zeroed(blocks)),
            (BlockingAccess::Read { at, into }, _) => {
                let fills = self.deferred_io.fills;
                (false, SettleAction::Read { at: at - to_u64(into.start), fills })
            }
            (BlockingAccess::Sync, _) => (false, SettleAction::Flushed),
            _ => (true, SettleAction::Direct),
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
        if let Some(job) = self.deferred_io.begin(accesses, true, SettleAction::Written(blocks)) {
            self.deferred_io.jobs.push(job);
        }
    }

    /// Defers a flush of the disk, after which the writebacks in flight are complete.
    pub(super) fn defer_completion(&mut self) {
        let blocks = self.in_flight.take();
        self.begin_flush();
        if let Some(job) =
            self.deferred_io.begin(vec![BlockingAccess::Sync], false, SettleAction::WritebackFlushed(blocks))
        {
            self.deferred_io.jobs.push(job);
        }
    }

    /// Returns background work that waits, or that is due now.
    pub(super) fn next_job(&mut self, sink: &mut Sink) -> Result<Option<Deferred>> {
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
    pub(super) fn settle_deferred(
        &mut self,
        sink: &mut Sink,
        id: u64,
        outcome: Result<()>,
        buffer: &mut Buffer<'_>,
    ) -> Result<()> {
        let Some(mut done) = self.deferred_io.end(id) else { return outcome };
        let start = sink.start();
        let outcome = match done.failed.take() {
            // What a read has read is there all the same.
            Some(why) if !matches!(done.then, SettleAction::Read { .. }) => outcome.and(Err(Error::Io {
                what: "the disk".into(),
                source: std::io::Error::other(format!("a sync failed meanwhile ({why})")),
            })),
            _ => outcome,
        };
        if let Err(e) = outcome {
            if done.covers {
                self.direct_writes_lost(&e);
            }
            return self.failed(sink, done.then, e);
        }
        match done.then {
            SettleAction::Read { at, fills } => match buffer {
                Buffer::In(read) if fills && self.config.read_caching => {
                    self.cache_ranges(sink, at, read, &done.ranges);
                    Ok(())
                }
                _ => Ok(()),
            },
            SettleAction::Direct => {
                self.note_unflushed(sink, start);
                Ok(())
            }
            SettleAction::Written(blocks) | SettleAction::WrittenThrough(blocks) => {
                blocks.into_iter().for_each(|v| self.in_flight.add(v));
                self.wait_for_write(sink, start);
                self.disk_recovered();
                Ok(())
            }
            SettleAction::WritebackFlushed(blocks) => {
                self.stats.disk_flushes += 1;
                self.complete_blocks(sink, blocks, start).map(|_| ())
            }
            SettleAction::Flushed => self.sync_pcm(sink),
            SettleAction::Zeroed(blocks) => self.forget_blocks(sink, &blocks, start),
        }
    }

    /// Restores the state of the blocks in flight after a failure of the disk.
    fn failed(&mut self, sink: &mut Sink, then: SettleAction, e: Error) -> Result<()> {
        let start = sink.start();
        match then {
            SettleAction::Read { .. } => Err(self.read_failed(&e)),
            SettleAction::Written(blocks)
            | SettleAction::WrittenThrough(blocks)
            | SettleAction::WritebackFlushed(blocks) => {
                blocks.into_iter().for_each(|v| self.in_flight.add(v));
                // No request waits for a writeback. The next request to the disk reports the
                // failure.
                drop(self.check_disk::<()>(Err(e)));
                self.note_unflushed(sink, start);
                self.take_disk_error();
                Ok(())
            }
            SettleAction::Direct | SettleAction::Flushed | SettleAction::Zeroed(..) => {
                let failed = self.check_disk(Err(e));
                self.note_unflushed(sink, start);
                failed
            }
        }
    }

    /// Defers a flush of the disk to the caller.
    pub(super) fn defer_flush(&mut self, sink: &mut Sink) -> Result<()> {
        let start = sink.start();
        self.begin_flush();
        self.disk.emit_deferred(sink, Op::DiskFlush, 0, 0, Cause::Host, start)?;
        self.deferred_io.now.push(BlockingAccess::Sync);
        Ok(())
    }
}
