//! Write cache of blocks with one bit a cell: they are programmed faster, and hold fewer pages.
//!
//! Host data goes into a block of the cache while there is one. A full block is *folded*: its valid
//! pages are moved into the blocks with all bits, as garbage collection moves those of a victim, and
//! the block is erased. Blocks are folded in the order in which they became full.

use super::BlockUse;
use super::space::{Flash, ForwardMap, GcVictim, NandStream, OpenBlock};
use crate::planted::FlashBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Nanos, Ppn, Progress, Result, Sink, Tok};
use serde::Deserialize;
use std::collections::VecDeque;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Rule for writes while the cache is full.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SlcFull {
    /// Writes go past the cache, into blocks with all bits.
    #[default]
    Direct,
    /// Writes wait until a block of the cache is folded.
    Fold,
}

/// Cache of a unit.
#[derive(Clone, Default, Debug)]
pub(super) struct SlcCache {
    pub(super) free: VecDeque<u32>,
    /// Full blocks, and those in which a program failed; the first one is folded next.
    pub(super) full: VecDeque<u32>,
    /// Block that is being folded.
    pub(super) victim: Option<GcVictim>,
    /// Folded blocks that are erased after the next flush.
    pub(super) awaiting_flush: Vec<GcVictim>,
}

impl SlcCache {
    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        *self = SlcCache::default();
    }

    /// Returns `true` if a block can be folded.
    fn can_fold(&self) -> bool {
        self.victim.is_some() || !self.full.is_empty()
    }
}

impl Flash {
    /// Stream of host data that is to be written into a unit: the cache, if it has a page left. It is
    /// folded first if the rule says so.
    #[inline]
    pub(super) fn stream_of<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        stream: NandStream,
    ) -> Result<NandStream> {
        if !self.has_cache() || stream != NandStream::Host || self.past_cache {
            return Ok(stream);
        }
        self.cached_stream(sink, map, unit)
    }

    fn cached_stream<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
    ) -> Result<NandStream> {
        if !self.cache_has_page(unit) {
            match self.config.slc_full {
                SlcFull::Fold => self.fold_until_free(sink, map, unit)?,
                SlcFull::Direct => self.drop_empty(sink, map, unit)?,
            }
        }
        Ok(if self.cache_has_page(unit) { NandStream::Slc } else { NandStream::Host })
    }

    /// Counts pages of host data by the place that they went to, if there is a cache.
    #[inline]
    pub(super) fn count_host_pages(&mut self, stream: NandStream, pages: usize) {
        match stream {
            NandStream::Slc => self.stats.slc_written += pages as u64,
            NandStream::Host if self.has_cache() => self.stats.slc_bypassed += pages as u64,
            _ => {}
        }
    }

    /// Sets the rules of the cache.
    pub(crate) fn set_cache_rules(&mut self, full: SlcFull, idle: Option<Nanos>) {
        let config = self.config_mut();
        (config.slc_full, config.slc_idle) = (full, idle);
    }

    /// Makes writes go past the cache, or through it again.
    pub(crate) fn write_past_cache(&mut self, past: bool) {
        self.past_cache = past;
    }

    /// Notes the time of a request, from which idle time is measured.
    #[inline]
    pub(crate) fn note_request(&mut self, now: Nanos) {
        self.last_request = now;
        self.in_idle_time = false;
    }

    /// Returns `true` if the cache of a unit has an erased page.
    fn cache_has_page(&self, unit: u32) -> bool {
        let u = &self.units[to_usize(unit)];
        let open = u.open[NandStream::Slc.idx()];
        !u.slc.free.is_empty()
            || open.is_some_and(|o| o.next < self.blocks.pages_in(o.block))
            || self.cache_can_grow(unit)
    }

    /// Returns `true` if a page lies in the cache.
    pub(crate) fn is_cached(&self, ppn: Ppn) -> bool {
        self.blocks.is_slc(self.nand.geometry().block_of(ppn).0)
    }

    /// Number of valid pages in the cache.
    pub(crate) fn cached_pages(&self) -> u64 {
        let units = 0..count_u32(self.units.len());
        units.map(|u| u64::from(self.cached_in(u))).sum()
    }

    /// Pages that the cache holds at most, with the blocks that are not bad, at the present fill level.
    pub(crate) fn cache_pages(&self) -> u64 {
        self.cache_capacity_blocks() * u64::from(self.blocks.slc().pages)
    }

    /// Folds blocks of a unit until one is free, or none can be folded.
    #[cold]
    fn fold_until_free<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M, unit: u32) -> Result<()> {
        self.close(unit, NandStream::Slc);
        // A cache that may have no block is not worth a fold.
        if self.dynamic_slc.is_some() && self.cache_limit(unit) == 0 {
            return Ok(());
        }
        while !self.cache_has_page(unit) {
            if !self.units[to_usize(unit)].slc.awaiting_flush.is_empty() {
                self.stats.space_flushes += 1;
                self.make_durable(sink, map)?;
                continue;
            }
            if !self.units[to_usize(unit)].slc.can_fold() {
                // A folded block waits for the program of its last pages.
                if self.finish_gathered(sink, map, unit)? {
                    continue;
                }
                return Ok(());
            }
            self.stats.slc_forced += u64::from(self.units[to_usize(unit)].slc.victim.is_none());
            while self.fold_next(sink, map, unit)? > 0 {}
            self.writable()?;
            // The other blocks of the unit need the space.
            if self.dynamic_slc.is_some() && self.units[to_usize(unit)].slc.victim.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Erases the oldest full block of a unit if it has no valid pages.
    fn drop_empty<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M, unit: u32) -> Result<()> {
        self.close(unit, NandStream::Slc);
        let slc = &self.units[to_usize(unit)].slc;
        let first = slc.victim.map(|v| v.block).or_else(|| slc.full.front().copied());
        if first.is_some_and(|b| self.blocks.valid(b) == 0) {
            self.fold_next(sink, map, unit)?;
        }
        Ok(())
    }

    /// Folds in idle time: at most `budget` moves in the next unit that has a block to fold.
    pub(super) fn fold_in_idle<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        budget: u32,
    ) -> Result<Progress> {
        let Some(idle) = self.config.slc_idle.filter(|_| self.has_cache()) else {
            return Ok(Progress::Idle);
        };
        let n = count_u32(self.units.len());
        let units = (self.next_idle_unit..n).chain(0..self.next_idle_unit);
        let found = units.into_iter().find(|&u| {
            let u = &self.units[to_usize(u)];
            u.slc.can_fold() || !u.gather.drained.is_empty()
        });
        let Some(unit) = found else { return Ok(Progress::Idle) };
        if !self.in_idle_time {
            let now = sink.now();
            // Commands of requests that came long ago.
            if (0..n).any(|u| !sink.is_idle(self.nand.unit_id(u))) {
                self.last_request = now;
            }
            let due = self.last_request + idle;
            // In live use there is no clock, and steps are taken in idle time only.
            if now < due && now != Nanos::ZERO {
                return Ok(Progress::At(due));
            }
            self.in_idle_time = true;
        }
        self.next_idle_unit = (unit + 1) % n;
        if !self.units[to_usize(unit)].slc.can_fold() {
            self.finish_gathered(sink, map, unit)?;
            return Ok(Progress::Busy(Tok::default()));
        }
        let mut done = Tok::default();
        for _ in 0..budget.max(1) {
            if self.fold_next(sink, map, unit)? == 0 {
                break;
            }
            done = self.units[to_usize(unit)].slc.victim.map_or(done, |v| v.done);
        }
        Ok(Progress::Busy(done))
    }

    /// Moves the next pages of the oldest full block of the cache of a unit, and erases the block after
    /// its last page. Returns the number of moved pages, 0 if the block had none left.
    fn fold_next<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M, unit: u32) -> Result<u32> {
        self.start_fold(unit);
        let Some(v) = self.units[to_usize(unit)].slc.victim else { return Ok(0) };
        let before = self.blocks.valid(v.block);
        if before > 0 {
            // Folded pages take blocks as host data does, and not those of the reserve.
            self.reserve_block(sink, map, unit, NandStream::Gc)?;
            self.exchange_victims(unit);
            let moved = self.move_next(sink, map, unit);
            self.exchange_victims(unit);
            moved?;
            self.finish_drained(sink, map, unit)?;
        }
        let left = self.blocks.valid(v.block);
        let moved = u32::from(before - left);
        self.stats.slc_folded += u64::from(moved);
        if left == 0 && self.units[to_usize(unit)].slc.victim.is_some_and(|now| now.block == v.block) {
            self.finish_fold(sink, map, unit)?;
        }
        if moved > 0 {
            self.collect_on_write(sink, map, unit, moved)?;
        }
        // Pages that wait for a program are moved with those of the next block.
        let going_on = self.units[to_usize(unit)].slc.victim.is_some();
        Ok(if going_on { moved.max(1) } else { 0 })
    }

    /// Chooses the oldest full block of a unit, if none is being folded.
    fn start_fold(&mut self, unit: u32) {
        let u = &mut self.units[to_usize(unit)];
        if u.slc.victim.is_some() {
            return;
        }
        let Some(block) = u.slc.full.pop_front() else { return };
        let retiring = self.blocks.state(block) == BlockUse::Retiring;
        let valid = u32::from(self.blocks.valid(block));
        u.slc.victim = Some(GcVictim {
            block,
            cursor: 0,
            valid,
            gain: 0,
            cause: Cause::Destage,
            retiring,
            done: Tok::default(),
        });
        self.blocks.set_state(block, BlockUse::Victim);
        self.stats.slc_folds += 1;
    }

    fn finish_fold<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M, unit: u32) -> Result<()> {
        let Some(mut v) = self.units[to_usize(unit)].slc.victim.take() else { return Ok(()) };
        if is_planted(FlashBug::FoldedErasedEarly) {
            v.done = sink.start();
        }
        self.finish_victim(sink, map, unit, v).map(|_| ())
    }

    /// Exchanges the victim of garbage collection and the block that is being folded, whose pages are
    /// moved in the same way.
    fn exchange_victims(&mut self, unit: u32) {
        let u = &mut self.units[to_usize(unit)];
        std::mem::swap(&mut u.victim, &mut u.slc.victim);
    }

    /// Adopts a block of the cache after a recovery. `next` is its next page.
    pub(super) fn adopt_cached(&mut self, unit: u32, block: u32, next: u32, suspect: bool) {
        let slot = NandStream::Slc.idx();
        let next = if is_planted(FlashBug::CacheForgotten) { 0 } else { next };
        match next {
            0 => {
                self.blocks.set_suspect(block, suspect);
                self.units[to_usize(unit)].slc.free.push_back(block);
            }
            n if n < self.blocks.pages_in(block) && self.units[to_usize(unit)].open[slot].is_none() => {
                self.blocks.set_state(block, BlockUse::Open);
                self.units[to_usize(unit)].open[slot] = Some(OpenBlock { block, next: n });
            }
            // A block that was left open by an earlier crash is folded as it is.
            _ => self.seal(block),
        }
    }
}
