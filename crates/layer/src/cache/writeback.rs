//! Begin, completion and cancellation of writebacks.

use super::config::DiskFlush;
use super::directory::PINNED;
use super::in_flight::{DAMAGED, EVICT};
use super::layer::Cache;
use super::policy::{EvictionPolicy, Victim};
use crate::numbers::CacheSlot;
use crate::planted::CacheBug;
use crate::record::RecordEnd;
use crate::tokens::join_into;
use frit_core::convert::floor_u32;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, Cause, Result, Sink, Tok};

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Begins the writeback of a block: it stays readable and cannot be chosen as a victim again.
    pub(super) fn begin_writeback(&mut self, v: Victim, leaves: bool) {
        self.pin(v.slot, leaves);
        self.in_flight.add(v);
    }

    /// Pins a block until its writeback completes.
    pub(super) fn pin(&mut self, slot: CacheSlot, leaves: bool) {
        self.dir.set_flags(slot, if leaves { PINNED | EVICT } else { PINNED });
        self.in_flight.evicting += u32::from(leaves);
    }

    /// Marks a block in flight so that it leaves the cache when its writeback completes.
    pub(super) fn evict_when_done(&mut self, slot: CacheSlot) {
        let flags = self.dir.flags(slot);
        if flags & (EVICT | DAMAGED) == 0 {
            self.dir.set_flags(slot, flags | EVICT);
            self.in_flight.evicting += 1;
        }
    }

    /// Notes a write to the disk for which the blocks in flight wait.
    pub(super) fn wait_for_write(&mut self, sink: &mut Sink, tok: Tok) {
        self.in_flight.flush = true;
        join_into(sink, &mut self.in_flight.written, tok);
    }

    /// Returns `true` if more blocks are in flight than the parameter `flying` allows.
    pub(super) fn too_many_in_flight(&self) -> bool {
        self.in_flight.len() > floor_u32(f64::from(self.space.layout.slots) * self.config.in_flight)
    }

    /// Flushes the disk and completes all writebacks: the slots of evicted blocks are freed, all
    /// other blocks become clean. Returns the completion.
    pub(super) fn complete_writebacks(&mut self, sink: &mut Sink) -> Result<Tok> {
        let mut done = match self.in_flight.written {
            Some(w) => w,
            None => sink.start(),
        };
        // One flush covers the direct writes of the host too.
        if let Some(host) = self.unflushed {
            done = sink.join(done, host);
        }
        if (self.in_flight.flush || self.unflushed.is_some()) && !is_planted(CacheBug::DestageNotFlushed) {
            done = self.flush_disk(sink, Cause::Destage, done)?;
        }
        let blocks = self.in_flight.take();
        self.complete_blocks(sink, blocks, done)
    }

    /// Completes the writebacks of blocks that are durable on the disk after `done`.
    pub(super) fn complete_blocks(&mut self, sink: &mut Sink, blocks: Vec<Victim>, done: Tok) -> Result<Tok> {
        // The flush that covers an evicted clean block may be an earlier one.
        let done = if is_planted(CacheBug::CleanLeavesEarly) { done } else { sink.join(done, self.flushed) };
        // The removal of records of earlier versions must be durable before the records of the last
        // versions go; otherwise a recovery could take the earlier ones for current.
        let done = self.space.settle(sink, done);
        let mut gone = None;
        for &Victim { lbn, slot } in &blocks {
            let current = self.dir.get(lbn) == Some(slot);
            if current && self.dir.flags(slot) & EVICT == 0 {
                self.dir.set_flags(slot, 0);
                self.dir.set_dirty(lbn, slot, false);
                continue;
            }
            if current {
                self.in_flight.evicting -= 1;
                self.dir.remove(lbn);
            }
            let end = if current { RecordEnd::Evicted } else { RecordEnd::Moved };
            let tok = self.space.end_record(sink, slot, end, done)?;
            join_into(sink, &mut gone, tok);
        }
        let Some(gone) = gone else {
            self.reuse_buffer(blocks);
            return Ok(done);
        };
        // The slots must not be overwritten before the removal of their records is durable.
        let free = self.space.settle(sink, gone);
        let mut same = false;
        for &Victim { lbn, slot } in &blocks {
            if self.dir.get(lbn) != Some(slot) {
                self.give_back(slot, free, same);
                same = true;
            }
        }
        self.reuse_buffer(blocks);
        Ok(free)
    }

    fn reuse_buffer(&mut self, mut blocks: Vec<Victim>) {
        // Keeps the allocation for the next writebacks.
        if self.in_flight.blocks.capacity() == 0 {
            blocks.clear();
            self.in_flight.blocks = blocks;
        }
    }

    /// Frees a slot for reuse after `after`.
    pub(super) fn give_back(&mut self, slot: CacheSlot, after: Tok, same: bool) {
        if self.space.release(slot, after, same) {
            self.dir.free(slot);
        }
    }

    /// Flushes the disk after `after`, unless the configuration counts acknowledged data as
    /// durable.
    pub(super) fn flush_disk(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        if self.config.disk_flush == DiskFlush::Never {
            self.unflushed = None;
            return Ok(after);
        }
        self.stats.disk_flushes += 1;
        let done = self.disk.flush(sink, cause, after);
        if let (Err(e), true) = (&done, self.unflushed.is_some()) {
            self.direct_writes_lost(e);
        }
        let done = self.check_disk(done)?;
        self.unflushed = None;
        self.flushed = sink.join(self.flushed, done);
        self.disk_recovered();
        Ok(done)
    }

    /// Cancels the writebacks after a failure of the disk, and returns evicted blocks to the
    /// policy.
    pub(super) fn cancel_writebacks(&mut self) {
        let blocks = self.in_flight.take();
        for &Victim { lbn, slot } in &blocks {
            if self.dir.get(lbn) != Some(slot) {
                // The block was rewritten in another slot since. The slot is freed with the next
                // writebacks.
                self.in_flight.blocks.push(Victim { lbn, slot });
                continue;
            }
            let leaves = self.dir.flags(slot) & EVICT != 0;
            self.dir.set_flags(slot, 0);
            if leaves {
                self.in_flight.evicting -= 1;
                let access = self.access(lbn, true);
                self.policy.insert(slot, &access);
            }
        }
    }
}
