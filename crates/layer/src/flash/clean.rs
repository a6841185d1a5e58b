//! Cleaning in small pieces: each write pays for the page it takes, idle time works ahead, and only
//! a unit without a block to spare makes a write wait.

use super::space::{Flash, ForwardMap, Moved, Stream, Victim};
use super::{BlockState, GcPolicy, WearPolicy};
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{BlockId, Cause, Error, Lpn, Ppn, Progress, Result, Sink};
use frit_media::{Expected, Spare, Store};

/// Moves that a written page pays for at most when its unit cleans a block that gains nothing
/// (wear leveling, retirement).
const MOVES_WITHOUT_GAIN: u32 = 1;

impl<T: Token, N: Store> Flash<T, N> {
    /// Pays for one page written into `unit`: a victim with `v` valid of `b` pages gives `b − v` pages
    /// for `v` moves, so each page written owes `v / (b − v)` moves. The unit is never out of blocks,
    /// and no write waits for a whole block.
    #[inline]
    pub(crate) fn pace<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
        unit: u32,
    ) -> Result<()> {
        let u = &self.units[unit as usize];
        let free = u.free.len() + u.emptied.len();
        if u.victim.is_none() && free > self.config.low_blocks && u.doomed.is_empty() {
            return Ok(());
        }
        self.pay(sink, map, unit)
    }

    fn pay<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
        unit: u32,
    ) -> Result<()> {
        let Some(v) = self.victim(map, unit) else { return Ok(()) };
        let u = &mut self.units[unit as usize];
        u.debt += v.valid;
        let mut moves = u.debt.checked_div(v.gain).unwrap_or(MOVES_WITHOUT_GAIN);
        u.debt = u.debt.checked_rem(v.gain).unwrap_or(0);
        while moves > 0 && self.move_next(sink, map, unit)? {
            moves -= 1;
        }
        if self.units[unit as usize].victim.is_some_and(|v| self.blocks.valid(v.block) == 0) {
            self.finish(sink, map, unit)?;
        }
        Ok(())
    }

    /// Makes room for some pages in a unit, so that none of them has to wait for cleaning.
    pub(crate) fn reserve<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
        unit: u32,
        stream: Stream,
        pages: u32,
    ) -> Result<()> {
        let u = &self.units[unit as usize];
        let left = u.open[stream as usize].map_or(0, |o| self.blocks.pages_per_block() - o.next);
        if left >= pages || u.free.len() > self.reserve {
            return Ok(());
        }
        self.make_room(sink, map, unit)
    }

    /// Cleans until the unit has a block for the host.
    #[cold]
    pub(super) fn make_room<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
        unit: u32,
    ) -> Result<()> {
        while self.units[unit as usize].free.len() <= self.reserve {
            if !self.units[unit as usize].emptied.is_empty() {
                self.outlive(sink, map)?;
                continue;
            }
            self.stats.forced += 1;
            if self.victim(map, unit).is_none() {
                let gc: &'static str = (&self.config.gc).into();
                return Err(Error::NoSpace {
                    what: format!(
                        "NAND unit {unit} has no block to clean (gc = {gc}); discard data, switch \
                         garbage collection on or raise over_provisioning"
                    ),
                });
            }
            while self.move_next(sink, map, unit)? {}
            self.finish(sink, map, unit)?;
            self.writable()?;
        }
        Ok(())
    }

    /// Works ahead in idle time: at most `budget` moves, the units taking turns.
    pub(crate) fn step<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
        budget: u32,
    ) -> Result<Progress<T>> {
        let Some(unit) = self.next_to_clean(map) else { return Ok(Progress::Idle) };
        for _ in 0..budget.max(1) {
            if !self.move_next(sink, map, unit)? {
                break;
            }
        }
        let v = self.units[unit as usize].victim;
        let mut done = v.map(|v| v.done).unwrap_or_default();
        if v.is_some_and(|v| self.blocks.valid(v.block) == 0) {
            done = self.finish(sink, map, unit)?;
        }
        Ok(Progress::Busy(done))
    }

    /// The next unit, in turn, whose pool is below the mark and that has a block to clean. Once none has,
    /// none is looked for until a block is taken from a pool.
    fn next_to_clean<M: ForwardMap<T>>(&mut self, map: &M) -> Option<u32> {
        if !self.restless {
            return None;
        }
        let n = self.units.len() as u32;
        for unit in (self.turn..n).chain(0..self.turn) {
            let u = &self.units[unit as usize];
            let begun = u.victim.is_some() || !u.doomed.is_empty();
            let free = u.free.len() + u.emptied.len();
            if (begun || free < self.config.high_blocks) && self.victim(map, unit).is_some() {
                self.turn = (unit + 1) % n;
                return Some(unit);
            }
        }
        self.restless = false;
        None
    }

    /// The block that a unit cleans: the current one, else a doomed one, else the policy's choice.
    fn victim<M: ForwardMap<T>>(&mut self, map: &M, unit: u32) -> Option<Victim<T>> {
        if let Some(v) = self.units[unit as usize].victim {
            return Some(v);
        }
        let (block, cause, doomed) = match self.units[unit as usize].doomed.pop() {
            Some(b) => (b, Cause::Gc, true),
            None => {
                let b = self.config.gc.victim(unit, &self.blocks)?;
                self.config.gc.removed(b, &self.blocks);
                (b, Cause::Gc, false)
            }
        };
        self.stats.victims += 1;
        self.stats.victim_valid += u64::from(self.blocks.valid(block));
        let first = self.nand.geometry().ppn(BlockId(block), 0).idx();
        map.prepare(&self.reverse[first..first + self.blocks.pages_per_block() as usize]);
        Some(self.start_victim(unit, block, cause, doomed))
    }

    fn start_victim(&mut self, unit: u32, block: u32, cause: Cause, doomed: bool) -> Victim<T> {
        self.blocks.block[block as usize].state = BlockState::Victim;
        let valid = u32::from(self.blocks.valid(block));
        let gain = if doomed { 0 } else { self.blocks.pages_per_block() - valid };
        let v = Victim { block, cursor: 0, valid, gain, cause, doomed, done: T::default() };
        let u = &mut self.units[unit as usize];
        u.victim = Some(v);
        u.debt = 0;
        v
    }

    /// Moves the next valid page of the victim; `false` when there is none left.
    #[inline]
    fn move_next<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
        unit: u32,
    ) -> Result<bool> {
        let Some(v) = self.units[unit as usize].victim else { return Ok(false) };
        let base = self.nand.geometry().ppn(BlockId(v.block), 0).idx();
        let pages = self.blocks.pages_per_block() as usize;
        let rest = &self.reverse[base + v.cursor as usize..base + pages];
        let Some(skip) = rest.iter().position(|&r| r != 0) else { return Ok(false) };
        let lpn = Lpn(rest[skip] - 1);
        let at = v.cursor + skip as u32;
        let from = Ppn((base + at as usize) as u32);
        let expect = self.expected(from, || map.tag(lpn));
        let copied = match self.copy(sink, unit, from, lpn, expect, v.cause) {
            // It cannot be given back, and does not hold up the others.
            Err(e @ Error::Corrupt { .. }) => {
                map.lost(lpn, &e);
                None
            }
            Err(Error::NoSpace { .. }) => {
                let why = format!("NAND unit {unit} has no block left to clean with: too many went bad");
                self.refuse_writes(why.clone());
                return Err(Error::ReadOnly { why });
            }
            copied => Some(copied?),
        };
        self.reverse[from.idx()] = 0;
        self.blocks.block[v.block as usize].valid -= 1;
        self.units[unit as usize].valid_pages -= 1;
        let durable = match copied {
            Some((to, done)) => map.moved(sink, Moved { lpn, to, seq: self.seq, done })?,
            None => v.done,
        };
        self.note_named(sink, durable);
        if let Some(v) = &mut self.units[unit as usize].victim {
            v.cursor = at + 1;
            v.done = sink.join(v.done, durable);
        }
        Ok(true)
    }

    /// Copies a page within its unit, inside the plane or over the bus.
    fn copy<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        unit: u32,
        from: Ppn,
        lpn: Lpn,
        expect: Option<Expected>,
        cause: Cause,
    ) -> Result<(Ppn, T)> {
        loop {
            let to = self.next_page(sink, unit, Stream::Gc)?;
            let spare = Spare { lpn: lpn.0, seq: self.next_seq() };
            let after = if self.begins(to) { sink.join(self.in_use, self.named) } else { self.in_use };
            let copied = if self.config.copyback {
                self.nand.copyback(sink, from, to, spare, expect, cause, after)
            } else {
                self.nand.relocate(sink, from, to, spare, expect, cause, after)
            };
            match copied {
                Ok(done) => {
                    self.note_valid(unit, to, lpn);
                    return Ok((to, done));
                }
                Err(Error::ProgramFailed { .. }) => self.doom(unit, Stream::Gc),
                Err(e) => {
                    // Nothing was programmed: the place is still the next one.
                    self.give_page_back(unit, Stream::Gc);
                    return Err(e);
                }
            }
        }
    }

    /// Erases an emptied victim into the pool, or retires it.
    fn finish<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
        unit: u32,
    ) -> Result<T> {
        let Some(v) = self.units[unit as usize].victim.take() else { return Ok(T::default()) };
        debug_assert_eq!(self.blocks.valid(v.block), 0);
        if self.holds_back && !is(Bug::EraseBeforeFlush) {
            self.blocks.block[v.block as usize].state = BlockState::Emptied;
            let u = &mut self.units[unit as usize];
            u.emptied.push(v);
            // The next victim needs a block to move to.
            if u.free.len() <= self.reserve {
                self.outlive(sink, map)?;
            }
            return Ok(v.done);
        }
        self.erase(sink, unit, v)
    }

    /// Erases an emptied block into the pool once all that it held is durable elsewhere, or retires it.
    fn erase<S: Sink<Tok = T>>(&mut self, sink: &mut S, unit: u32, v: Victim<T>) -> Result<T> {
        let moved = if is(Bug::EraseBeforeMoved) { sink.start() } else { v.done };
        let after = match self.freed.get(v.block as usize) {
            Some(&freed) if !is(Bug::EraseBeforeFreed) => sink.join(moved, freed),
            _ => moved,
        };
        let after = sink.join(after, self.in_use);
        let erased = if v.doomed {
            Err(Error::EraseFailed { block: v.block })
        } else {
            self.nand.erase(sink, BlockId(v.block), v.cause, after)
        };
        match erased {
            Ok(done) => {
                self.erased = sink.join(self.erased, done);
                self.blocks.block[v.block as usize].state = BlockState::Free;
                self.units[unit as usize].free.push_back(v.block);
                if let Some(freed) = self.freed.get_mut(v.block as usize) {
                    *freed = T::default();
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

    /// Takes a block out of use.
    pub(super) fn retire(&mut self, unit: u32, block: u32) {
        self.nand.retire(BlockId(block));
        self.blocks.block[block as usize].state = BlockState::Bad;
        self.units[unit as usize].usable_blocks -= 1;
        self.stats.retired += 1;
        self.degrade(unit);
    }

    /// Makes data and map outlive the machine, and erases what was waiting for that.
    pub(crate) fn outlive<S: Sink<Tok = T>, M: ForwardMap<T>>(
        &mut self,
        sink: &mut S,
        map: &mut M,
    ) -> Result<()> {
        if !is(Bug::FlushOneMedium) {
            self.nand.store_mut().sync()?;
        }
        map.outlive(sink)?;
        for unit in 0..self.units.len() as u32 {
            for v in std::mem::take(&mut self.units[unit as usize].emptied) {
                self.erase(sink, unit, v)?;
            }
        }
        Ok(())
    }

    /// Starts to move a block whose data wears nothing, when static wear leveling asks for it.
    fn relocate(&mut self, unit: u32) {
        if self.units[unit as usize].victim.is_some() {
            return;
        }
        let nand = &self.nand;
        let erases = |b: u32| nand.erases(BlockId(b));
        let Some(block) = self.config.wear.relocate(unit, &self.blocks, &erases) else { return };
        self.config.gc.removed(block, &self.blocks);
        self.stats.relocated += 1;
        let mut v = self.start_victim(unit, block, Cause::WearLevel, false);
        v.gain = 0;
        self.restless = true;
        self.units[unit as usize].victim = Some(v);
    }
}
