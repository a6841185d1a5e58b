//! Eviction: free slots, and the victims that free them.

use super::in_flight::DAMAGED;
use super::layer::Cache;
use super::policy::EvictionPolicy;
use crate::numbers::CacheSlot;
use frit_core::{BlockDevice, Error, Progress, Result, Sink, Tok, size};

/// Largest number of victim selections that are tried while accesses in flight keep all chosen
/// blocks in the cache. One access may cover many blocks.
const CHOICES: u32 = 256;

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Returns a slot for a block, and the completion after which it may be written.
    pub(super) fn alloc_slot(&mut self, sink: &mut Sink) -> Result<(CacheSlot, Tok)> {
        let mut tries = false;
        loop {
            let free = self.dir.free_len();
            if let Some(slot) = self.dir.alloc() {
                if let Some(soon) = self.dir.soon() {
                    self.space.prefetch(soon);
                }
                return Ok((slot, self.space.usable(sink, slot, free)));
            }
            self.stats.waits += 1;
            // The cheapest way to free a slot comes first. Eviction is the last.
            if !self.replaced.is_empty() {
                self.commit(sink)?;
                continue;
            }
            if self.space.unsynced() > 0 {
                self.sync_slots(sink)?;
                continue;
            }
            // The other ways need the disk.
            if self.disk_health.failure.is_some() && !tries && !self.disk_health.retry() {
                return Err(self.no_space());
            }
            tries = true;
            if self.deferred_io.busy() {
                return Err(Error::WouldBlock);
            } else if self.in_flight.len() > 0 {
                self.complete_or_defer(sink).map_err(|e| self.full(e))?;
            } else if !self.destage(sink).map_err(|e| self.full(e))? {
                // Victims become free once the accesses in flight to them are settled.
                return Err(if self.deferred_io.any() { Error::WouldBlock } else { self.no_space() });
            }
        }
    }

    /// Syncs PCM and frees the slots that waited for a sync.
    pub(super) fn sync_slots(&mut self, sink: &mut Sink) -> Result<()> {
        for slot in self.space.sync(sink)? {
            self.dir.free(slot);
        }
        Ok(())
    }

    /// Converts an error of the disk into a lack of space, for a write that needs a slot.
    fn full(&mut self, e: Error) -> Error {
        match (self.take_disk_error(), self.health.writable()) {
            (false, _) => e,
            (true, Err(read_only)) => read_only,
            (true, Ok(())) => self.no_space(),
        }
    }

    fn no_space(&self) -> Error {
        let all = size::format(u64::from(self.dir.capacity()) * super::BLOCK_BYTES);
        let what = match &self.disk_health.failure {
            Some(why) => format!(
                "the cache of {all} is full of dirty blocks, and the disk fails: {why}; the blocks are \
                 kept, and written once it works again"
            ),
            None => format!("all blocks of the cache of {all} are in use; make the PCM larger"),
        };
        Error::NoSpace { what }
    }

    /// Returns `true` if the share of used slots reaches `threshold`.
    fn over_threshold(&self) -> bool {
        let used = self.dir.len() - self.in_flight.evicting;
        f64::from(used) >= f64::from(self.dir.capacity()) * self.config.threshold
    }

    /// Evicts blocks after a request until the share of used slots is below the threshold.
    pub(super) fn evict_to_threshold(&mut self, sink: &mut Sink) -> Result<()> {
        let failing = self.disk_health.failure.is_some();
        if failing {
            // An attempt that has nothing to do would show nothing.
            let idle = !self.over_threshold() && self.in_flight.len() == 0 && !self.config.drain;
            if idle || !self.disk_health.retry() {
                return Ok(());
            }
        }
        while self.over_threshold() && !self.deferred_io.busy() {
            match self.destage(sink) {
                Ok(true) => {}
                Ok(false) => break,
                // The request itself is complete. The next request that needs a slot gets the
                // error.
                Err(_) if self.take_disk_error() => break,
                Err(e) => return Err(e),
            }
        }
        // Only a flush shows that the disk works again, and gives back the slots of what was written.
        if failing && self.in_flight.len() > 0 && !self.deferred_io.busy() {
            match self.complete_or_defer(sink) {
                Err(_) if self.take_disk_error() => return Ok(()),
                done => done?,
            }
        }
        if self.config.drain { self.drain(sink) } else { Ok(()) }
    }

    /// Writes back some dirty blocks with each request while `drain` is set.
    fn drain(&mut self, sink: &mut Sink) -> Result<()> {
        match self.clean(sink) {
            Ok(true) => Ok(()),
            Ok(false) if self.deferred_io.busy() => Ok(()),
            Ok(false) if self.in_flight.len() > 0 => self.complete_or_defer(sink),
            Ok(false) => {
                self.config.drain = false;
                Ok(())
            }
            Err(_) if self.take_disk_error() => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Does background work in idle time.
    pub(super) fn background(&mut self, sink: &mut Sink, budget: u32) -> Result<Progress> {
        if self.usage.halted
            || self.health.refusal().is_some()
            || self.disk_health.failure.is_some() && !self.disk_health.retry()
        {
            return Ok(Progress::Idle);
        }
        let before = self.stats;
        let mut worked = false;
        let done = self.work(sink, budget, &mut worked);
        match done {
            Ok(tok) => {
                if worked && !self.deferred_io.on() {
                    self.disk_recovered();
                }
                Ok(if worked { Progress::Busy(tok) } else { Progress::Idle })
            }
            Err(_) if self.take_disk_error() => {
                // The victims returned to the policy, so the attempt is not counted.
                self.stats = before;
                Ok(Progress::Idle)
            }
            Err(e) => Err(e),
        }
    }

    fn work(&mut self, sink: &mut Sink, budget: u32, worked: &mut bool) -> Result<Tok> {
        let low = f64::from(self.dir.capacity()) * self.config.dirty_low;
        let mut spent = 0;
        while spent < budget.max(1) && !self.deferred_io.busy() {
            let before = self.in_flight.len();
            let over = self.over_threshold();
            if !over && !self.config.drain && f64::from(self.dirty_not_in_flight()) <= low {
                break;
            }
            let more = if over { self.destage(sink)? } else { self.clean(sink)? };
            if !more {
                break;
            }
            *worked = true;
            spent += 1 + self.in_flight.len().saturating_sub(before);
        }
        if self.in_flight.len() > 0 && spent < budget.max(1) && !self.deferred_io.busy() {
            *worked = true;
            if !self.deferred_io.on() {
                return self.complete_writebacks(sink);
            }
            self.defer_completion();
        }
        if !*worked && self.config.drain && !self.deferred_io.busy() {
            self.config.drain = false;
        }
        Ok(self.in_flight.until().unwrap_or_else(|| sink.start()))
    }

    /// Returns the number of dirty blocks that are not in flight.
    fn dirty_not_in_flight(&self) -> u32 {
        self.dir.dirty_len().saturating_sub(self.in_flight.len())
    }

    /// Chooses victims and writes the dirty ones to the disk. Returns `false` if there is no
    /// victim, or if accesses in flight keep all victims in the cache.
    pub(super) fn destage(&mut self, sink: &mut Sink) -> Result<bool> {
        let mut chosen = std::mem::take(&mut self.chosen);
        let mut out = Ok(());
        let mut moves = false;
        for _ in 0..CHOICES {
            chosen.clear();
            self.policy.victims(&self.dir, self.clock, &mut chosen);
            if chosen.is_empty() {
                break;
            }
            self.stats.destages += 1;
            moves = chosen.iter().any(|v| self.may_write_back(v.lbn));
            out = self.write_out(sink, &chosen, true);
            if moves || out.is_err() {
                break;
            }
        }
        self.chosen = chosen;
        out?;
        if self.too_many_in_flight() && !self.deferred_io.busy() {
            self.complete_or_defer(sink)?;
        }
        Ok(moves)
    }

    /// Completes the writebacks in flight: at once, or deferred until the caller has flushed the
    /// disk.
    pub(super) fn complete_or_defer(&mut self, sink: &mut Sink) -> Result<()> {
        if self.deferred_io.on() {
            self.defer_completion();
            return Ok(());
        }
        self.complete_writebacks(sink).map(|_| ())
    }

    /// Pins a damaged block, which stays known as damaged until it is overwritten.
    pub(super) fn set_aside(&mut self, slot: CacheSlot) {
        self.dir.set_flags(slot, super::directory::PINNED | DAMAGED);
    }
}
