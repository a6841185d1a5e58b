//! Silent eviction: the way in which erased blocks are gained.
//!
//! The victim is the erase block with the fewest current versions (the policy *SE-Util* of FlashTier).
//! Its clean blocks are dropped, its dirty blocks are copied. A victim without dirty blocks costs no
//! copy. It is erased once the log states that it is empty.

use super::blocks::BlockUse;
use super::layer::Ssc;
use super::map::{BlockMap, Entry};
use super::place::UnitProgram;
use super::records::Change;
use crate::payload::buffered;
use crate::planted::SscBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, PAGE_NONE, Ppn, Progress, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::Spare;

/// Pages whose map entries are prefetched together.
const AHEAD: u32 = 16;

/// Blocks of the disk that wait for their copies.
#[derive(Default)]
struct Copies {
    blocks: Vec<u32>,
    bytes: Vec<u8>,
    /// Token that is done when all are read.
    read: Tok,
}

impl Ssc {
    /// Makes sure that a unit has an open block, or a free block beyond the reserve. An open block that was
    /// taken from the reserve, for a log page, does not count.
    pub(super) fn make_room(&mut self, sink: &mut Sink, unit: u32) -> Result<()> {
        loop {
            let u = &self.units[to_usize(unit)];
            let (open, emptied) = (u.open.is_some(), u.emptied.len());
            let usable = u.free.len() + usize::from(open);
            let enough = usable > self.sizes.reserve;
            if enough && (open || usable + emptied > self.sizes.low) {
                return Ok(());
            }
            if usable + emptied <= self.sizes.low && self.collect(sink, unit)? {
                continue;
            }
            if enough || open && emptied == 0 {
                return Ok(());
            }
            if emptied == 0 {
                let name = self.nand.unit_name(unit);
                let what = format!("{name} is full of dirty blocks; clean or evict some");
                return Err(Error::NoSpace { what });
            }
            // Only the log is missing for an erase.
            self.stats.forced_logs += 1;
            self.write_log(sink)?;
        }
    }

    /// Returns `true` if a unit has an open block, and the reserve is complete.
    pub(super) fn has_room(&self, unit: u32) -> bool {
        let unit = &self.units[to_usize(unit)];
        unit.open.is_some() && unit.free.len() >= self.sizes.reserve
    }

    /// Empties a victim of a unit. `false` if there is none.
    fn collect(&mut self, sink: &mut Sink, unit: u32) -> Result<bool> {
        let victim = match self.victim(unit, true) {
            Some(victim) => victim,
            None => {
                if self.victim(unit, false).is_none() {
                    return Ok(false);
                }
                // All candidates have log pages that are still needed.
                self.write_checkpoint(sink, false)?;
                match self.victim(unit, true) {
                    Some(victim) => victim,
                    None => return Ok(false),
                }
            }
        };
        self.empty(sink, unit, victim)?;
        Ok(true)
    }

    /// Block of a unit with the fewest current versions; among equals, the one with the fewest dirty
    /// ones, and then the oldest. With `covered`, the log pages in it must be superfluous.
    fn victim(&self, unit: u32, covered: bool) -> Option<u32> {
        let g = self.nand.geometry();
        let first = g.first_block(unit).0;
        let rows = (first..).zip(&self.blocks[to_usize(first)..to_usize(first + g.blocks_per_unit())]);
        rows.filter(|(_, b)| b.state == BlockUse::Sealed)
            .filter(|(_, b)| {
                !covered || b.last_log < self.checkpoint.next_log || is_planted(SscBug::LogErasedEarly)
            })
            .filter(|(_, b)| b.retiring || self.sizes.gains(b.dirty))
            .min_by_key(|(_, b)| (!b.retiring, b.valid, b.dirty, b.sealed_at))
            .map(|(n, _)| n)
    }

    /// Drops the clean blocks of a victim, and copies the dirty ones.
    fn empty(&mut self, sink: &mut Sink, unit: u32, victim: u32) -> Result<()> {
        self.stats.victims += 1;
        let first = self.first_page(victim);
        let mut copies = Copies::default();
        let mut evicted = 0;
        let pages = self.nand.geometry().pages_per_block;
        self.prefetch_entries(first, 0, pages);
        for at in 0..pages {
            if at.is_multiple_of(AHEAD) {
                self.prefetch_entries(first, at + AHEAD, pages);
            }
            let ppn = first.plus(at);
            let Some(block) = self.block_at(ppn) else { continue };
            let entry = self.map.get(block);
            if entry.is_dirty_in_nand() && !is_planted(SscBug::DirtyEvicted) {
                self.gather(sink, unit, block, entry, &mut copies)?;
            } else {
                self.set_entry(block, entry.dropped());
                evicted += 1;
            }
        }
        self.program_copies(sink, unit, &mut copies)?;
        if evicted > 0 {
            self.stats.silent_evictions += 1;
            self.stats.evicted_silently += evicted;
        }
        let row = &mut self.blocks[to_usize(victim)];
        if row.valid > 0 {
            // An unreadable dirty block stays where it is, so that a read of it is an error.
            self.retire(victim);
            return Ok(());
        }
        row.state = BlockUse::Emptied;
        let start = sink.start();
        let seq = self.record(sink, Change::Emptied { erase_block: victim }, start);
        self.units[to_usize(unit)].emptied.push((victim, seq));
        self.log_as_due(sink, unit)
    }

    /// Prefetches the map entries of the blocks in the next pages of an erase block, from page `at` on.
    fn prefetch_entries(&self, first: Ppn, at: u32, pages: u32) {
        let blocks = || (at..pages.min(at + AHEAD)).filter_map(|at| self.block_at(first.plus(at)));
        blocks().for_each(|block| self.map.prefetch(block));
        blocks().for_each(|block| self.map.prefetch_entry(block));
    }

    /// Reads a dirty block of a victim.
    fn gather(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        block: u32,
        entry: Entry,
        copies: &mut Copies,
    ) -> Result<()> {
        let Some(ppn) = entry.ppn() else { return Ok(()) };
        let (page, from) = (self.sizes.page_bytes, copies.bytes.len());
        let into = if self.stores_bytes() {
            copies.bytes.resize(from + to_usize(page), 0);
            ReadTarget::Bytes(&mut copies.bytes[from..])
        } else {
            ReadTarget::Len(page)
        };
        let (expect, start) = (self.expected(block, entry), sink.start());
        match self.nand.read_expected(sink, ppn, 0, into, expect, Cause::Gc, start) {
            Ok(read) => {
                copies.blocks.push(block);
                copies.read = sink.join(copies.read, read);
            }
            Err(Error::Corrupt { .. }) => {
                copies.bytes.truncate(from);
                self.stats.unreadable += 1;
            }
            Err(e) => return Err(e),
        }
        if count_u32(copies.blocks.len()) == self.sizes.unit_pages {
            self.program_copies(sink, unit, copies)?;
        }
        Ok(())
    }

    /// Programs copies, with padding if they do not fill a program unit.
    fn program_copies(&mut self, sink: &mut Sink, unit: u32, copies: &mut Copies) -> Result<()> {
        if copies.blocks.is_empty() {
            return Ok(());
        }
        let Copies { blocks, mut bytes, read } = std::mem::take(copies);
        let size = self.sizes.unit_bytes();
        if self.stores_bytes() {
            bytes.resize(to_usize(size), 0);
        }
        let data = buffered(&bytes, size);
        let (first, spares, done) =
            self.program_data(sink, unit, &blocks, |_| true, data, Cause::Gc, read)?;
        for (i, &block) in (0..).zip(&blocks) {
            let (ppn, stamp) = (first.plus(i), spares[to_usize(i)].seq);
            let entry = self.map.get(block);
            let moved = Entry::in_nand(ppn, stamp);
            let moved = if entry.is_buffered() { moved.buffered(entry.is_dirty()) } else { moved };
            self.set_entry(block, moved);
            self.log.add(stamp >> 1, Change::Written { block, ppn, dirty: true });
        }
        self.stats.copied += blocks.len() as u64;
        self.note_programmed(sink, done);
        self.log_as_due(sink, unit)
    }

    /// Programs blocks of the disk into a program unit of a unit, with retries after failures. Returns
    /// its first page, its spare areas, and its token. A spare area has the sequence number × 2, and
    /// one more if the block is dirty.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn program_data(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        blocks: &[u32],
        dirty: impl Fn(usize) -> bool,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<(Ppn, Vec<Spare>, Tok)> {
        loop {
            let pages = to_usize(self.sizes.unit_pages);
            let mut spares = Vec::with_capacity(pages);
            for i in 0..pages {
                let lpn = blocks.get(i).copied().unwrap_or(PAGE_NONE);
                let dirty = lpn != PAGE_NONE && dirty(i);
                spares.push(Spare { lpn, seq: self.next_seq() << 1 | u64::from(dirty) });
            }
            let program = UnitProgram { spares: &spares, data, cause, after };
            if let Some((first, done)) = self.try_program(sink, unit, program)? {
                return Ok((first, spares, done));
            }
            if cause != Cause::Gc {
                // The reserve is not for data of the host.
                self.make_room(sink, unit)?;
            }
        }
    }

    /// Empties blocks ahead, and writes checkpoints, in idle time.
    pub(super) fn idle(&mut self, sink: &mut Sink) -> Result<Progress> {
        if self.checkpoint_as_due(sink)? {
            return Ok(Progress::Busy(self.log.written));
        }
        let due = (0..count_u32(self.units.len())).find(|&unit| {
            let u = &self.units[to_usize(unit)];
            u.free.len() + u.emptied.len() <= self.sizes.low && u.free.len() > self.sizes.reserve
        });
        let Some(unit) = due else { return Ok(Progress::Idle) };
        if !self.collect(sink, unit)? {
            return Ok(Progress::Idle);
        }
        Ok(Progress::Busy(self.programmed))
    }
}
