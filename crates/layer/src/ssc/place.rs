//! Places for programs: open blocks, the pools, failed programs.

use super::blocks::{BlockUse, OpenBlock};
use super::layer::Ssc;
use frit_core::convert::{count_u32, to_usize};
use frit_core::{BlockId, Cause, Error, Ppn, Result, Sink, Tok, WriteData};
use frit_media::{Spare, Transfer};

/// A program unit to be programmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitProgram<'a> {
    pub(super) spares: &'a [Spare],
    pub(super) data: WriteData<'a>,
    pub(super) cause: Cause,
    pub(super) after: Tok,
}

impl Ssc {
    /// Opens a block of a unit, unless one is open. It may be one of the reserve.
    pub(super) fn open_block(&mut self, sink: &mut Sink, unit: u32) -> Result<OpenBlock> {
        if let Some(open) = self.units[to_usize(unit)].open {
            return Ok(open);
        }
        let block = self.take_free(sink, unit)?;
        self.blocks[to_usize(block)].state = BlockUse::Open;
        let open = OpenBlock { block, next: 0 };
        self.units[to_usize(unit)].open = Some(open);
        Ok(open)
    }

    /// Takes the free block of a unit that was erased least often.
    pub(super) fn take_free(&mut self, sink: &mut Sink, unit: u32) -> Result<u32> {
        loop {
            let nand = &self.nand;
            let free = &mut self.units[to_usize(unit)].free;
            let least = (0..free.len()).min_by_key(|&i| (nand.erases(BlockId(free[i])), free[i]));
            let Some(i) = least else {
                let name = self.nand.unit_name(unit);
                return Err(Error::NoSpace { what: format!("{name} has no free block; too many went bad") });
            };
            let block = free.swap_remove(i);
            if !self.blocks[to_usize(block)].suspect {
                return Ok(block);
            }
            let after = self.log.written;
            match self.nand.erase(sink, BlockId(block), Cause::Meta, after) {
                Ok(_) => {
                    self.blocks[to_usize(block)].suspect = false;
                    return Ok(block);
                }
                Err(Error::EraseFailed { .. }) => self.retire(block),
                Err(e) => return Err(e),
            }
        }
    }

    /// Tries once to program the next program unit of the open block of a unit. `None` if the program
    /// failed: the block takes no further programs.
    pub(super) fn try_program(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        program: UnitProgram<'_>,
    ) -> Result<Option<(Ppn, Tok)>> {
        let open = self.open_block(sink, unit)?;
        let first = self.nand.geometry().ppn(BlockId(open.block), open.next);
        let UnitProgram { spares, data, cause, after } = program;
        match self.nand.program_unit(sink, first, data, spares, Transfer::Pages, cause, after) {
            Ok(done) => {
                let next = open.next + self.sizes.unit_pages;
                self.units[to_usize(unit)].open = Some(OpenBlock { next, ..open });
                Ok(Some((first, done)))
            }
            Err(Error::ProgramFailed { .. }) => {
                self.stats.program_retries += 1;
                self.units[to_usize(unit)].open = None;
                self.blocks[to_usize(open.block)].retiring = true;
                self.seal(open.block);
                self.refuse_if_too_small();
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Returns `true` if only the page of the log is left in the open block of a unit.
    pub(super) fn at_last_page(&self, unit: u32) -> bool {
        let last = self.sizes.log_at();
        self.units[to_usize(unit)].open.is_some_and(|o| o.next >= last)
    }

    /// Seals the open block of a unit.
    pub(super) fn seal_open(&mut self, unit: u32) {
        if let Some(open) = self.units[to_usize(unit)].open.take() {
            self.seal(open.block);
        }
    }

    /// Makes a block a candidate for eviction.
    pub(super) fn seal(&mut self, block: u32) {
        self.clock = self.clock.wrapping_add(1);
        let sealed_at = self.clock;
        let block = &mut self.blocks[to_usize(block)];
        (block.state, block.sealed_at) = (BlockUse::Sealed, sealed_at);
    }

    /// Takes a block out of use. Its pages can still be read.
    pub(super) fn retire(&mut self, block: u32) {
        self.nand.retire(BlockId(block));
        self.blocks[to_usize(block)].state = BlockUse::Bad;
        self.stats.retired += 1;
        self.refuse_if_too_small();
    }

    /// Erases a block after `after`, and returns it to its pool; retires it if it is worn.
    pub(super) fn erase(&mut self, sink: &mut Sink, block: u32, after: Tok) -> Result<()> {
        if self.blocks[to_usize(block)].retiring {
            self.retire(block);
            return Ok(());
        }
        match self.nand.erase(sink, BlockId(block), Cause::Gc, after) {
            Ok(_) => {
                let unit = self.unit_of(block);
                self.blocks[to_usize(block)] = super::blocks::EraseBlock::default();
                self.units[to_usize(unit)].free.push(block);
                Ok(())
            }
            Err(Error::EraseFailed { .. }) => {
                self.retire(block);
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Unit for the next program: the next one in turn, or the next idle one if that is busy.
    pub(super) fn next_unit(&mut self, sink: &Sink) -> u32 {
        let n = count_u32(self.units.len());
        self.turn = (self.turn + 1) % n;
        let turn = self.turn;
        let idle = |u: &u32| sink.unit(self.nand.unit_id(*u)).is_idle();
        (turn..n).chain(0..turn).find(idle).unwrap_or(turn)
    }
}
