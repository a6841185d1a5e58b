//! Dynamic write cache: blocks of the common pool that an erase puts into the mode with one bit a cell.
//!
//! The size of the cache follows the fill level. Pages of the volume that lie in blocks with all bits
//! leave free space, of which each block can hold a part of its pages with one bit a cell. An erase
//! decides the mode of a block: as a cache block is needed, when one was folded, and when the other
//! blocks run out.

use super::BlockUse;
use super::space::{Flash, NandStream};
use super::{GcPolicy, WearPolicy};
use crate::planted::FlashBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Result, Sink, Tok};

/// Size of the cache of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DynamicSlc {
    /// Pages of the volume that the unit holds when the volume is full.
    pub(crate) pages: u32,
    /// Largest number of cache blocks.
    pub(crate) most_blocks: u32,
}

impl Flash {
    /// Lets the cache take blocks of the common pool.
    pub(crate) fn make_cache_dynamic(&mut self, size: DynamicSlc) {
        self.dynamic_slc = Some(size);
    }

    /// Returns `true` if there is a cache with one bit a cell.
    #[inline]
    pub(super) fn has_cache(&self) -> bool {
        self.blocks.slc().blocks > 0 || self.dynamic_slc.is_some()
    }

    /// Blocks that the cache of a unit may have: those that the pages in blocks with all bits leave free.
    pub(super) fn cache_limit(&self, unit: u32) -> u32 {
        let Some(size) = self.dynamic_slc else { return self.blocks.slc().blocks };
        let elsewhere = self.units[to_usize(unit)].valid_pages - self.cached_in(unit);
        (size.pages.saturating_sub(elsewhere) / self.blocks.pages_per_block()).min(size.most_blocks)
    }

    /// Valid pages in the cache of a unit.
    pub(super) fn cached_in(&self, unit: u32) -> u32 {
        self.blocks.slc_of_unit(unit).map(|b| u32::from(self.blocks.valid(b))).sum()
    }

    /// Blocks of the cache of a unit.
    fn cache_blocks(&self, unit: u32) -> u32 {
        let u = &self.units[to_usize(unit)];
        let open = u.open[NandStream::Slc.idx()].is_some() || u.slc.victim.is_some();
        count_u32(u.slc.free.len() + u.slc.full.len() + u.slc.awaiting_flush.len()) + u32::from(open)
    }

    /// Returns `true` if a dynamic cache has more blocks than the fill level of the unit permits.
    pub(super) fn cache_exceeds_limit(&self, unit: u32) -> bool {
        self.dynamic_slc.is_some() && self.cache_blocks(unit) > self.cache_limit(unit)
    }

    /// Returns `true` if the unit has more free blocks than garbage collection keeps.
    fn has_blocks_to_spare(&self, unit: u32) -> bool {
        self.units[to_usize(unit)].free.len() > self.config.low_blocks + 1
    }

    /// Returns `true` if a dynamic cache can take another block of the common pool.
    pub(super) fn cache_can_grow(&self, unit: u32) -> bool {
        self.dynamic_slc.is_some()
            && self.has_blocks_to_spare(unit)
            && self.cache_blocks(unit) < self.cache_limit(unit)
    }

    /// Mode of a block that is erased: that of the cache, if the block was part of it and the cache may
    /// keep it.
    pub(super) fn mode_after_erase(&self, unit: u32, block: u32) -> bool {
        match self.dynamic_slc {
            None => self.blocks.is_slc(block),
            Some(_) => self.blocks.is_slc(block) && self.cache_can_grow(unit),
        }
    }

    /// Erases a block and sets its mode.
    pub(super) fn erase_as(
        &mut self,
        sink: &mut Sink,
        block: u32,
        one_bit: bool,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        if self.dynamic_slc.is_none() {
            return self.nand.erase(sink, BlockId(block), cause, after);
        }
        let done = self.nand.erase_as(sink, BlockId(block), one_bit, cause, after)?;
        self.blocks.set_one_bit(block, one_bit);
        Ok(done)
    }

    /// Moves a free block into the pool of the cache, or out of it, by an erase. Returns `false` if there
    /// is none; a block whose erase fails is retired.
    pub(super) fn change_mode(&mut self, sink: &mut Sink, unit: u32, one_bit: bool) -> Result<bool> {
        let u = &mut self.units[to_usize(unit)];
        let nand = &self.nand;
        let erases = |b: u32| nand.erases(BlockId(b));
        let pool = if one_bit { &mut u.free } else { &mut u.slc.free };
        let Some(block) = self.config.wear.take(pool, !one_bit, &erases) else { return Ok(false) };
        match self.erase_as(sink, block, one_bit, Cause::Destage, self.in_use) {
            Ok(done) => {
                self.note_erased(sink, unit, done);
                self.blocks.set_suspect(block, false);
                self.stats.slc_mode_changes += 1;
                let u = &mut self.units[to_usize(unit)];
                if one_bit { &mut u.slc.free } else { &mut u.free }.push_back(block);
                self.idle_work_pending = true;
                Ok(true)
            }
            Err(Error::EraseFailed { .. }) => {
                self.retire(unit, block);
                Ok(true)
            }
            Err(e) => Err(e),
        }
    }

    /// Gives free blocks of the cache back while a unit has no others to spare. Returns `true` if any was.
    pub(super) fn shrink_cache(&mut self, sink: &mut Sink, unit: u32) -> Result<bool> {
        if self.dynamic_slc.is_none() {
            return Ok(false);
        }
        let mut any = false;
        while self.units[to_usize(unit)].free.len() <= self.config.low_blocks
            && self.change_mode(sink, unit, false)?
        {
            any = true;
        }
        Ok(any)
    }

    /// Oldest full block of a dynamic cache, to be collected like garbage: if the cache is larger than it
    /// may be, or, with `any`, in any case.
    pub(super) fn take_cached(&mut self, unit: u32, any: bool) -> Option<u32> {
        // A recovery folds only if it has to, as with a static cache.
        let wanted = || !self.past_cache && self.cache_exceeds_limit(unit);
        if self.dynamic_slc.is_none() || !(any || wanted()) {
            return None;
        }
        let block = self.units[to_usize(unit)].slc.full.pop_front()?;
        self.stats.slc_folds += 1;
        self.stats.slc_folded += u64::from(self.blocks.valid(block));
        Some(block)
    }

    /// Returns `true` if garbage is to be collected in idle time for a dynamic cache that could be larger:
    /// a victim has to be half empty, so that a block is not copied for a small gain.
    pub(super) fn collects_for_cache(&mut self, unit: u32) -> bool {
        if self.dynamic_slc.is_none() || self.config.slc_idle.is_none() {
            return false;
        }
        let (limit, blocks) = (self.cache_limit(unit), self.cache_blocks(unit));
        let wanted = self.config.low_blocks + 1 + to_usize(limit.saturating_sub(blocks));
        if blocks >= limit || self.units[to_usize(unit)].free.len() >= wanted {
            return false;
        }
        let victim = self.config.gc.victim(unit, &self.blocks);
        victim.is_some_and(|b| u32::from(self.blocks.valid(b)) <= self.blocks.pages_per_block() / 2)
    }

    /// Reads the modes of all blocks from the medium.
    pub(super) fn adopt_modes(&mut self) {
        if self.dynamic_slc.is_none() && !self.blocks.slc().dynamic {
            return;
        }
        for block in 0..self.blocks.count() {
            let one_bit = self.nand.is_one_bit(BlockId(block)) && !is_planted(FlashBug::ModeForgotten);
            self.blocks.set_one_bit(block, one_bit);
        }
    }

    /// Counts a block that is out of use as lost to the capacity, unless it belonged to a static cache.
    pub(super) fn counts_for_capacity(&self, block: u32) -> bool {
        self.dynamic_slc.is_some() || !self.blocks.is_slc(block)
    }

    /// Number of blocks with one bit a cell that are not bad, in all units.
    pub(super) fn cache_capacity_blocks(&self) -> u64 {
        let units = 0..count_u32(self.units.len());
        if self.dynamic_slc.is_some() {
            return units.map(|u| u64::from(self.cache_limit(u))).sum();
        }
        let blocks = units.flat_map(|u| self.blocks.slc_of_unit(u));
        blocks.filter(|&b| self.blocks.state(b) != BlockUse::Bad).count() as u64
    }
}
