//! Garbage collection in small steps: each write pays for the page that it takes, idle time works
//! ahead, and a write waits only if its unit has no spare block.

use super::pacing::{IdleCopies, PaceState, PacingPolicy};
use super::space::{Flash, ForwardMap, GcVictim, MovedPage, NandStream};
use super::{BlockUse, GcPolicy, WearPolicy};
use crate::planted::FlashBug;
use frit_core::convert::{count_u32, low_u16, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Lpn, Nanos, Ppn, Progress, Result, Sink, Tok};
use frit_media::{ExpectedPage, Spare};

/// Time after which background work that leaves busy units alone looks at them again: a part of a
/// program.
const BUSY_UNITS_LATER: Nanos = Nanos(100_000);

impl Flash {
    /// Pays for `pages` pages written into `unit`, with the copies that are due by the pacing policy.
    #[inline]
    pub(crate) fn collect_on_write<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        pages: u32,
    ) -> Result<()> {
        let u = &mut self.units[to_usize(unit)];
        // Includes blocks that wait for a flush, since no more moves are needed to free them.
        let free = u.free.len() + u.awaiting_flush.len();
        if u.victim.is_none() && free > self.config.low_blocks && u.retiring.is_empty() {
            self.config.pacing.rested(&mut u.pace, self.blocks.pages_per_block());
            return Ok(());
        }
        self.pay(sink, map, unit, pages)
    }

    fn pay<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M, unit: u32, pages: u32) -> Result<()> {
        if self.shrink_cache(sink, unit)? && self.units[to_usize(unit)].victim.is_none() {
            return Ok(());
        }
        let Some(v) = self.victim(map, unit) else { return Ok(()) };
        let state = self.pace_state(unit, v);
        let due = self.config.pacing.due(&mut self.units[to_usize(unit)].pace, pages, state);
        let mut copied = 0;
        while copied < due {
            match self.move_next(sink, map, unit)? {
                0 => break,
                n => copied += n,
            }
        }
        self.config.pacing.paid(&mut self.units[to_usize(unit)].pace, due, copied, state);
        if self.unit_pages > 1 {
            self.finish_drained(sink, map, unit)?;
        }
        if self.units[to_usize(unit)].victim.is_some_and(|v| self.blocks.valid(v.block) == 0) {
            self.finish(sink, map, unit)?;
        }
        Ok(())
    }

    /// State of a unit with a victim, for the pacing policy.
    fn pace_state(&self, unit: u32, v: GcVictim) -> PaceState {
        let u = &self.units[to_usize(unit)];
        PaceState {
            valid: v.valid,
            gain: v.gain,
            free: u.free.len() + u.awaiting_flush.len(),
            low: self.config.low_blocks,
            pages_per_block: self.blocks.pages_per_block(),
        }
    }

    /// Frees blocks in a unit so that the given number of pages can be written without garbage
    /// collection.
    pub(crate) fn reserve<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        stream: NandStream,
        pages: u32,
    ) -> Result<()> {
        let u = &self.units[to_usize(unit)];
        let left = u.open[stream.idx()].map_or(0, |o| self.blocks.pages_per_block() - o.next);
        if left >= pages || u.free.len() > self.reserve {
            return Ok(());
        }
        self.collect_until_free(sink, map, unit)
    }

    /// Collects garbage until the unit has a free block for the host.
    #[cold]
    pub(super) fn collect_until_free<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
    ) -> Result<()> {
        while self.units[to_usize(unit)].free.len() <= self.reserve {
            // A flush frees blocks without any moves.
            if !self.units[to_usize(unit)].awaiting_flush.is_empty() {
                self.stats.space_flushes += 1;
                self.make_durable(sink, map)?;
                continue;
            }
            if self.shrink_cache(sink, unit)? {
                continue;
            }
            self.stats.forced += 1;
            if self.victim(map, unit).is_none() {
                if self.finish_gathered(sink, map, unit)? || self.seal_partial_block(unit) {
                    continue;
                }
                let gc: &'static str = (&self.config.gc).into();
                return Err(Error::NoSpace {
                    what: format!(
                        "{} has no block to clean (gc = {gc}); discard data, switch garbage \
                         collection on or raise over_provisioning",
                        self.nand.unit_name(unit)
                    ),
                });
            }
            while self.move_next(sink, map, unit)? > 0 {}
            self.finish_drained(sink, map, unit)?;
            // Wear leveling can start a victim when a drained one is erased. Its pages are not moved yet.
            if self.units[to_usize(unit)].victim.is_some_and(|v| self.blocks.valid(v.block) == 0) {
                self.finish(sink, map, unit)?;
            }
            self.writable()?;
        }
        Ok(())
    }

    /// Collects garbage in idle time: about `budget` copies, with the units in round-robin order.
    pub(crate) fn step<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        budget: u32,
    ) -> Result<Progress> {
        let (copies, wait_for_idle) = match self.config.pacing.in_background(budget.max(1)) {
            IdleCopies::InTurn(copies) => (copies, false),
            IdleCopies::InIdleUnits(copies) => (copies, true),
        };
        let Some(unit) = self.next_unit_to_collect(map) else {
            return self.fold_in_idle(sink, map, budget);
        };
        if !wait_for_idle {
            return Ok(Progress::Busy(self.collect_in_background(sink, map, unit, copies)?));
        }
        self.collect_in_idle_units(sink, map, unit, copies)
    }

    /// Makes copies in all idle units that have a victim or need one, from `first` on.
    fn collect_in_idle_units<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        first: u32,
        copies: u32,
    ) -> Result<Progress> {
        let n = count_u32(self.units.len());
        let mut begun = None;
        for unit in (first..n).chain(0..first) {
            if !sink.is_idle(self.nand.unit_id(unit)) || !self.has_idle_work(map, unit) {
                continue;
            }
            let done = self.collect_in_background(sink, map, unit, copies)?;
            let done = sink.join(done, self.units[to_usize(unit)].gather.read());
            begun = Some(begun.map_or(done, |other| sink.join(other, done)));
        }
        Ok(match begun {
            Some(done) => Progress::Busy(done),
            None => Progress::At(sink.now() + BUSY_UNITS_LATER),
        })
    }

    /// Makes at most `copies` copies in a unit, and finishes its victim if that is empty. Returns a
    /// token that is done when the copies of the victim are.
    fn collect_in_background<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        copies: u32,
    ) -> Result<Tok> {
        if self.units[to_usize(unit)].victim.is_none() {
            self.finish_gathered(sink, map, unit)?;
        }
        for _ in 0..copies {
            let Some(v) = self.units[to_usize(unit)].victim else { break };
            let copied = self.move_next(sink, map, unit)?;
            if copied == 0 {
                break;
            }
            let state = self.pace_state(unit, v);
            let account = &mut self.units[to_usize(unit)].pace;
            self.config.pacing.copied_in_background(account, copied, state);
        }
        self.finish_drained(sink, map, unit)?;
        let v = self.units[to_usize(unit)].victim;
        match v {
            Some(v) if self.blocks.valid(v.block) == 0 => self.finish(sink, map, unit),
            v => Ok(v.map(|v| v.done).unwrap_or_default()),
        }
    }

    /// Returns `true` if a unit has a victim, or is below the high threshold and another one was found.
    fn has_idle_work<M: ForwardMap>(&mut self, map: &M, unit: u32) -> bool {
        let u = &self.units[to_usize(unit)];
        let begun = u.victim.is_some() || !u.retiring.is_empty();
        let free = u.free.len() + u.awaiting_flush.len();
        let drained = !u.gather.drained.is_empty();
        let wanted = begun || free < self.config.high_blocks || self.collects_for_cache(unit);
        (wanted && self.victim(map, unit).is_some()) || drained
    }

    /// Next unit in round-robin order that is below the high threshold and has a victim. After a
    /// search without result, no further search is made until a block is taken from a pool.
    fn next_unit_to_collect<M: ForwardMap>(&mut self, map: &M) -> Option<u32> {
        if !self.idle_work_pending {
            return None;
        }
        let n = count_u32(self.units.len());
        for unit in (self.next_idle_unit..n).chain(0..self.next_idle_unit) {
            if self.has_idle_work(map, unit) {
                self.next_idle_unit = (unit + 1) % n;
                return Some(unit);
            }
        }
        self.idle_work_pending = false;
        None
    }

    /// Victim of a unit: the current one, otherwise a retiring block, otherwise the policy's choice.
    pub(super) fn victim<M: ForwardMap>(&mut self, map: &M, unit: u32) -> Option<GcVictim> {
        if let Some(v) = self.units[to_usize(unit)].victim {
            return Some(v);
        }
        if let Some(v) = self.cached_victim(map, unit, false) {
            return Some(v);
        }
        let (block, retiring) = match self.units[to_usize(unit)].retiring.pop() {
            Some(b) => (b, true),
            None => {
                let Some(b) = self.config.gc.victim(unit, &self.blocks) else {
                    return self.cached_victim(map, unit, true);
                };
                self.config.gc.removed(b, &self.blocks);
                (b, false)
            }
        };
        self.stats.victims += 1;
        self.stats.victim_valid += u64::from(self.blocks.valid(block));
        let first = self.nand.geometry().ppn(BlockId(block), 0).idx();
        map.prepare(&self.reverse[first..first + to_usize(self.blocks.pages_per_block())]);
        // The rescue of the pages of a failed block counts as garbage collection too.
        Some(self.start_victim(unit, block, Cause::Gc, retiring))
    }

    /// Makes the oldest block of a dynamic cache the victim; see [`Flash::take_cached`].
    fn cached_victim<M: ForwardMap>(&mut self, map: &M, unit: u32, any: bool) -> Option<GcVictim> {
        let block = self.take_cached(unit, any)?;
        let retiring = self.blocks.state(block) == BlockUse::Retiring;
        let first = self.nand.geometry().ppn(BlockId(block), 0).idx();
        map.prepare(&self.reverse[first..first + to_usize(self.blocks.pages_in(block))]);
        Some(self.start_victim(unit, block, Cause::Destage, retiring))
    }

    fn start_victim(&mut self, unit: u32, block: u32, cause: Cause, retiring: bool) -> GcVictim {
        self.blocks.set_state(block, BlockUse::Victim);
        let valid = u32::from(self.blocks.valid(block));
        let gain = if retiring { 0 } else { self.blocks.pages_per_block() - valid };
        let v = GcVictim { block, cursor: 0, valid, gain, cause, retiring, done: Tok::default() };
        let u = &mut self.units[to_usize(unit)];
        u.victim = Some(v);
        self.config.pacing.started(&mut u.pace);
        v
    }

    /// Moves the next valid pages of the victim, as many as one command reads. Returns their
    /// number, 0 if there is none left.
    #[inline]
    pub(super) fn move_next<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
    ) -> Result<u32> {
        if self.unit_pages > 1 {
            return self.gather_next(sink, map, unit);
        }
        self.move_next_page(sink, map, unit).map(u32::from)
    }

    /// Moves the next valid page of the victim. Returns `false` if there is none left.
    #[inline]
    fn move_next_page<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M, unit: u32) -> Result<bool> {
        let Some(v) = self.units[to_usize(unit)].victim else { return Ok(false) };
        let base = self.nand.geometry().ppn(BlockId(v.block), 0).idx();
        let pages = to_usize(self.blocks.pages_per_block());
        let rest = &self.reverse[base + to_usize(v.cursor)..base + pages];
        let Some(skip) = rest.iter().position(|&r| r != 0) else { return Ok(false) };
        let lpn = Lpn(rest[skip] - 1);
        let at = v.cursor + count_u32(skip);
        let from = Ppn::of_idx(base + to_usize(at));
        let seq = self.sequence_of_copy(map, from);
        let expect = self.expected(from, || tag_of(map, lpn, &seq));
        let after = map.copy_after(lpn);
        let copied = seq.and_then(|seq| self.copy(sink, unit, (from, lpn), seq, expect, v.cause, after));
        let copied = match copied {
            // The page is unreadable. It is marked as lost, so that it does not block the move of
            // others.
            Err(e @ Error::Corrupt { .. }) => {
                map.lost_at(lpn, from, &e);
                self.retire_if_lost(map, unit);
                None
            }
            Err(Error::NoSpace { .. }) => return Err(self.out_of_blocks(unit)),
            copied => Some(copied?),
        };
        self.reverse[from.idx()] = 0;
        self.blocks.block[to_usize(v.block)].valid -= 1;
        self.units[to_usize(unit)].valid_pages -= 1;
        let durable = match copied {
            Some((to, seq, done)) => map.moved(sink, MovedPage { lpn, from, to, seq, done })?,
            None => v.done,
        };
        // The victim is erased after all its pages are durable elsewhere (`done`).
        self.record_named(sink, durable);
        if let Some(v) = &mut self.units[to_usize(unit)].victim {
            v.cursor = at + 1;
            v.done = sink.join(v.done, durable);
        }
        Ok(true)
    }

    /// Refuses writes because garbage collection has no block for the pages that it moves, and
    /// returns the error.
    #[cold]
    pub(super) fn out_of_blocks(&mut self, unit: u32) -> Error {
        // The reserve can only be used up by blocks that went bad.
        let name = self.nand.unit_name(unit);
        let why = format!("{name} has no block left to clean with: too many went bad");
        self.health.refuse(why.clone());
        Error::ReadOnly { why }
    }

    /// Sequence number of the copy of a page; `None` for a new one.
    pub(super) fn sequence_of_copy<M: ForwardMap>(&self, map: &M, from: Ppn) -> Result<Option<u64>> {
        if !map.keeps_versions() { Ok(None) } else { Ok(self.nand.spare(from)?.map(|spare| spare.seq)) }
    }

    /// Copies a page within its unit, by copyback inside the plane or over the bus. Returns the new
    /// place, the sequence number there, and the token of the program.
    #[allow(clippy::too_many_arguments)]
    fn copy(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        (from, lpn): (Ppn, Lpn),
        seq: Option<u64>,
        expect: Option<ExpectedPage>,
        cause: Cause,
        after: Tok,
    ) -> Result<(Ppn, u64, Tok)> {
        let stream = self.gc_stream(unit);
        loop {
            let to = self.next_page(sink, unit, stream)?;
            let spare = Spare { lpn: lpn.0, seq: seq.unwrap_or_else(|| self.next_seq()) };
            let after = self.order_after(sink, to, after);
            let copied = if self.config.copyback {
                self.nand.copyback(sink, from, to, spare, expect, cause, after)
            } else {
                self.nand.relocate(sink, from, to, spare, expect, cause, after)
            };
            match copied {
                Ok(done) => {
                    self.mark_valid(unit, to, lpn);
                    return Ok((to, spare.seq, done));
                }
                Err(Error::ProgramFailed { .. }) => self.start_retiring(unit, stream),
                Err(e) => {
                    // Nothing was programmed, so the position is used again.
                    self.undo_next_page(unit, stream);
                    return Err(e);
                }
            }
        }
    }

    /// Stream for the pages that garbage collection moves out of the current victim of a unit.
    #[inline]
    fn gc_stream(&self, unit: u32) -> NandStream {
        match self.units[to_usize(unit)].victim {
            Some(v) if !self.handle_of.is_empty() => NandStream::gc_of(self.handle_of[to_usize(v.block)]),
            _ => NandStream::Gc,
        }
    }

    /// Finishes an empty victim: erases it, holds it back until the next flush, or retires it.
    fn finish<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M, unit: u32) -> Result<Tok> {
        match self.units[to_usize(unit)].victim.take() {
            Some(v) => self.finish_victim(sink, map, unit, v),
            None => Ok(Tok::default()),
        }
    }

    /// Finishes an empty block that was a victim; see [`Flash::finish`].
    pub(super) fn finish_victim<M: ForwardMap>(
        &mut self,
        sink: &mut Sink,
        map: &mut M,
        unit: u32,
        v: GcVictim,
    ) -> Result<Tok> {
        debug_assert_eq!(self.blocks.valid(v.block), 0);
        // Pages that were read out of this block must not be taken for those that are written there next.
        self.drop_overwritten(unit);
        if self.erase_after_flush && !is_planted(FlashBug::EraseBeforeFlush) {
            self.blocks.set_state(v.block, BlockUse::Emptied);
            let u = &mut self.units[to_usize(unit)];
            if self.blocks.is_slc(v.block) && self.dynamic_slc.is_none() {
                u.slc.awaiting_flush.push(v);
                return Ok(v.done);
            }
            u.awaiting_flush.push(v);
            // A flush now, since the next victim needs a free block for its pages.
            if u.free.len() <= self.reserve {
                self.stats.space_flushes += 1;
                self.make_durable(sink, map)?;
            }
            return Ok(v.done);
        }
        self.erase(sink, unit, v)
    }

    /// Erases an empty block after all its pages are durable elsewhere, and returns it to the pool;
    /// retires it if the erase fails.
    fn erase(&mut self, sink: &mut Sink, unit: u32, v: GcVictim) -> Result<Tok> {
        let moved = if is_planted(FlashBug::EraseBeforeMoved) { sink.start() } else { v.done };
        let after = match self.freed.get(to_usize(v.block)) {
            Some(&freed) if !is_planted(FlashBug::EraseBeforeFreed) => sink.join(moved, freed),
            _ => moved,
        };
        let after = sink.join(after, self.in_use);
        let erased = if v.retiring {
            Err(Error::EraseFailed { block: v.block })
        } else {
            let one_bit = self.mode_after_erase(unit, v.block);
            self.erase_as(sink, v.block, one_bit, v.cause, after)
        };
        match erased {
            Ok(done) => {
                self.note_erased(sink, unit, done);
                self.blocks.set_state(v.block, BlockUse::Free);
                let u = &mut self.units[to_usize(unit)];
                if self.blocks.is_slc(v.block) { &mut u.slc.free } else { &mut u.free }.push_back(v.block);
                if let Some(freed) = self.freed.get_mut(to_usize(v.block)) {
                    *freed = Tok::default();
                }
                self.relocate(unit);
                Ok(done)
            }
            Err(Error::EraseFailed { .. }) => {
                self.retire(unit, v.block);
                Ok(v.done)
            }
            Err(e) => Err(e),
        }
    }

    /// Returns `true` if garbage collection moves pages of a block of a unit.
    pub(crate) fn has_victim(&self, unit: u32) -> bool {
        self.units[to_usize(unit)].victim.is_some()
    }

    /// Retires a block.
    pub(super) fn retire(&mut self, unit: u32, block: u32) {
        self.nand.retire(BlockId(block));
        self.blocks.set_state(block, BlockUse::Bad);
        self.stats.retired += 1;
        // The cache becomes smaller, which costs no capacity.
        if self.counts_for_capacity(block) {
            self.units[to_usize(unit)].usable_blocks -= 1;
            self.degrade(unit);
        }
    }

    /// Flushes data and map, and erases the blocks that were held back until then.
    pub(crate) fn make_durable<M: ForwardMap>(&mut self, sink: &mut Sink, map: &mut M) -> Result<()> {
        if !is_planted(FlashBug::FlushOneMedium) {
            self.nand.sync()?;
        }
        map.make_durable(sink)?;
        for unit in 0..count_u32(self.units.len()) {
            let u = &mut self.units[to_usize(unit)];
            let mut emptied = std::mem::take(&mut u.awaiting_flush);
            emptied.append(&mut u.slc.awaiting_flush);
            for v in emptied {
                self.erase(sink, unit, v)?;
            }
        }
        Ok(())
    }

    /// Starts to move a sealed block with cold data if static wear leveling asks for it.
    fn relocate(&mut self, unit: u32) {
        if self.units[to_usize(unit)].victim.is_some() {
            return;
        }
        let nand = &self.nand;
        let erases = |b: u32| nand.erases(BlockId(b));
        let Some(block) = self.config.wear.relocate(unit, &self.blocks, &erases) else { return };
        self.config.gc.removed(block, &self.blocks);
        self.stats.relocated += 1;
        let mut v = self.start_victim(unit, block, Cause::WearLevel, false);
        // A write then pays for one copy a page, however many pages the block has.
        v.gain = 0;
        self.idle_work_pending = true;
        self.units[to_usize(unit)].victim = Some(v);
    }
}

/// Low bits of the sequence number that a page must have, which is to be copied with `seq`.
pub(super) fn tag_of<M: ForwardMap>(map: &M, lpn: Lpn, seq: &Result<Option<u64>>) -> u16 {
    match seq {
        Ok(Some(seq)) if !map.knows_version(lpn) => low_u16(*seq),
        _ => map.tag(lpn),
    }
}
