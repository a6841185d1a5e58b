//! Pool of erase blocks without data.

use super::layer::Zns;
use crate::planted::ZnsBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Progress, Result, Sink, Tok, ZoneState};

/// A block without data.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeBlock {
    pub(super) block: u32,
    /// It has to be erased before it is programmed, once this token is done.
    pub(super) used: Option<Tok>,
}

impl Zns {
    /// Fills the pool with the blocks of new NAND.
    pub(super) fn fill_pool(&mut self) {
        for block in 0..self.nand.geometry().blocks() {
            if !self.nand.is_bad(BlockId(block)) {
                let unit = to_usize(self.unit_of_block(block));
                self.free[unit].push(FreeBlock { block, used: None });
                self.good_blocks += 1;
            }
        }
    }

    /// Puts a block into the pool, to be erased after `after`.
    pub(super) fn release(&mut self, block: u32, after: Tok) {
        let unit = to_usize(self.unit_of_block(block));
        self.free[unit].push(FreeBlock { block, used: Some(after) });
        self.freed_unsynced = true;
    }

    /// Blocks of a unit that zones can take: all but those that its log can need.
    fn spare_of(&self, unit: u32) -> i64 {
        let log = i64::from(self.sizes.log_reserve()) - self.logs[to_usize(unit)].blocks.len() as i64;
        self.free[to_usize(unit)].len() as i64 - log.max(0)
    }

    /// Takes an erased block for a zone, of this unit if it has one to spare. `None` if there is none.
    pub(super) fn take_for_zone(&mut self, sink: &mut Sink, unit: u32) -> Result<Option<u32>> {
        loop {
            let from = if self.spare_of(unit) > 0 {
                unit
            } else {
                let most = (0..self.sizes.units).max_by_key(|&u| self.spare_of(u));
                let Some(other) = most.filter(|&u| self.spare_of(u) > 0) else { return Ok(None) };
                other
            };
            if let Some(block) = self.take_from(sink, from)? {
                return Ok(Some(block));
            }
        }
    }

    /// Takes an erased block for the log, of this unit if it has one.
    ///
    /// # Errors
    /// `NoSpace` if no unit has a block.
    pub(super) fn take_for_log(&mut self, sink: &mut Sink, unit: u32) -> Result<u32> {
        loop {
            let from = if self.free[to_usize(unit)].is_empty() {
                let most = (0..self.sizes.units).max_by_key(|&u| self.free[to_usize(u)].len());
                most.unwrap_or(unit)
            } else {
                unit
            };
            if self.free[to_usize(from)].is_empty() {
                let what = "no erase block is left for the table of zones; too many went bad".to_owned();
                self.health.refuse(what.clone());
                return Err(Error::NoSpace { what });
            }
            if let Some(block) = self.take_from(sink, from)? {
                return Ok(block);
            }
        }
    }

    /// Takes the block of a unit that was erased least often, an erased one if there is any. `None` if its
    /// erase failed.
    fn take_from(&mut self, sink: &mut Sink, unit: u32) -> Result<Option<u32>> {
        let nand = &self.nand;
        let pool = &self.free[to_usize(unit)];
        let wear = |b: &FreeBlock| (b.used.is_some(), nand.erases(BlockId(b.block)), b.block);
        let Some(i) = (0..pool.len()).min_by_key(|&i| wear(&pool[i])) else { return Ok(None) };
        let taken = self.free[to_usize(unit)].swap_remove(i);
        match taken.used {
            None => Ok(Some(taken.block)),
            Some(after) => Ok(self.erase(sink, taken.block, after)?.map(|_| taken.block)),
        }
    }

    /// Erases a block without data. `None` if the erase failed: the block is out of use.
    pub(super) fn erase(&mut self, sink: &mut Sink, block: u32, after: Tok) -> Result<Option<Tok>> {
        self.sync_freed()?;
        let after = if is_planted(ZnsBug::ErasedEarly) { sink.start() } else { after };
        let after = sink.join(after, self.in_use);
        match self.nand.erase(sink, BlockId(block), Cause::Gc, after) {
            Ok(done) => Ok(Some(done)),
            Err(Error::EraseFailed { .. }) => {
                self.retire(block);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Syncs the media before the first erase after a block was freed: with media in files, what took the
    /// place of its data is durable then.
    pub(super) fn sync_freed(&mut self) -> Result<()> {
        if std::mem::take(&mut self.freed_unsynced) {
            self.nand.sync()?;
        }
        Ok(())
    }

    /// Takes a block without data out of use.
    pub(super) fn retire(&mut self, block: u32) {
        self.nand.retire(BlockId(block));
        self.good_blocks -= 1;
        self.stats.retired += 1;
        self.retire_zones();
    }

    /// Erases a block in which a program failed, after `after`, and takes it out of use. The erase keeps a
    /// recovery from its pages.
    pub(super) fn erase_and_retire(&mut self, sink: &mut Sink, block: u32, after: Tok) -> Result<()> {
        self.freed_unsynced = true;
        if self.erase(sink, block, after)?.is_some() {
            self.retire(block);
        }
        Ok(())
    }

    /// Blocks that have to be good for this number of zones.
    fn blocks_for(&self, zones: u32) -> u32 {
        zones * self.sizes.zone_blocks + self.sizes.units * self.sizes.log_reserve() + 1
    }

    /// Returns `true` if there are too few blocks for all zones that are not offline.
    pub(super) fn is_short(&self) -> bool {
        let online = self.zones.iter().filter(|z| z.state != ZoneState::Offline).count();
        self.good_blocks < self.blocks_for(count_u32(online))
    }

    /// Takes empty zones offline, the last first, until the blocks suffice for the others.
    pub(super) fn retire_zones(&mut self) {
        while self.is_short() {
            let empty = self.zones.iter().rposition(|z| z.state == ZoneState::Empty);
            let Some(zone) = empty else { return };
            self.set_state(count_u32(zone), ZoneState::Offline);
            self.changed.insert(count_u32(zone));
        }
    }

    /// Erases a block that was freed, in the background.
    pub(super) fn erase_one(&mut self, sink: &mut Sink) -> Result<Progress> {
        let is_used = |b: &FreeBlock| b.used.is_some();
        let found =
            self.free.iter().enumerate().find_map(|(u, pool)| Some((u, pool.iter().position(is_used)?)));
        let Some((unit, i)) = found else { return Ok(Progress::Idle) };
        let FreeBlock { block, used } = self.free[unit].swap_remove(i);
        let after = used.unwrap_or_default();
        match self.erase(sink, block, after)? {
            Some(done) => {
                self.free[unit].push(FreeBlock { block, used: None });
                Ok(Progress::Busy(done))
            }
            None => Ok(Progress::Busy(after)),
        }
    }
}
