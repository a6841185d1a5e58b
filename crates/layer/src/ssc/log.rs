//! The log of map changes.
//!
//! Changes are collected in DRAM. They are written to the last program unit of an erase block when it is
//! reached (section 3.3.2), and also when they fill a program unit, at a flush, and where a block has to be
//! erased at once. Each log page waits for the one before it and for the data that it names, so what is
//! durable of the log is always a beginning of it.
//!
//! With `metadata_copies = 2`, a second copy is written to another NAND unit once the first one is done.
//! So a crash interrupts at most one of them, and a log page of which neither can be read is damaged.

use super::layer::Ssc;
use super::place::UnitProgram;
use super::records::{Change, LogPage, MetaKind, Record};
use crate::payload::buffered;
use crate::planted::SscBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Result, Sink, Tok};
use frit_media::Spare;
use std::collections::VecDeque;

/// State of the log.
#[derive(Debug)]
pub(super) struct MapLog {
    /// Changes that are not written yet.
    pub(super) pending: VecDeque<Record>,
    /// Number of the next log page.
    pub(super) next: u64,
    /// Highest sequence number in log pages and checkpoints so far.
    pub(super) through: u64,
    /// Token that is done when all log pages and checkpoints so far are durable.
    pub(super) written: Tok,
    /// Token for which the next log page waits, beside the data: the changes state its completion.
    pub(super) after: Tok,
    /// Records in log pages since the last checkpoint.
    pub(super) records: u64,
}

impl MapLog {
    pub(super) fn new() -> MapLog {
        MapLog {
            pending: VecDeque::new(),
            next: 1,
            through: 0,
            written: Tok::default(),
            after: Tok::default(),
            records: 0,
        }
    }

    /// Adds a change.
    pub(super) fn add(&mut self, seq: u64, change: Change) {
        self.pending.push_back(Record { seq, change });
    }
}

impl Ssc {
    /// Adds a change that follows an access which is done with `after`.
    pub(super) fn record(&mut self, sink: &mut Sink, change: Change, after: Tok) -> u64 {
        let seq = self.next_seq();
        self.log.add(seq, change);
        if !is_planted(SscBug::LogBeforeDisk) {
            self.log.after = sink.join(self.log.after, after);
        }
        seq
    }

    /// Token for which a page of metadata waits.
    pub(super) fn log_after(&self, sink: &mut Sink) -> Tok {
        let data = if is_planted(SscBug::LogBeforeData) {
            self.log.after
        } else {
            sink.join(self.log.after, self.programmed)
        };
        sink.join(data, self.log.written)
    }

    /// Writes log pages while the pending changes fill them, and those of a unit whose open block is at
    /// its last page.
    pub(super) fn log_as_due(&mut self, sink: &mut Sink, unit: u32) -> Result<()> {
        let full = LogPage::capacity(self.sizes.unit_bytes());
        self.close_full_block(sink, unit)?;
        while self.log.pending.len() >= full {
            self.program_log(sink, unit)?;
            self.close_full_block(sink, unit)?;
        }
        Ok(())
    }

    /// Writes all pending changes.
    pub(super) fn write_log(&mut self, sink: &mut Sink) -> Result<()> {
        while !self.log.pending.is_empty() {
            let unit = self.unit_for_log(sink);
            self.program_log(sink, unit)?;
            self.close_full_block(sink, unit)?;
        }
        Ok(())
    }

    /// Writes a log page without changes.
    pub(super) fn write_mark(&mut self, sink: &mut Sink) -> Result<()> {
        let unit = self.unit_for_log(sink);
        self.program_log(sink, unit)?;
        self.close_full_block(sink, unit)
    }

    /// Unit with an open block, if there is one; it is not one of the reserve, if that is possible.
    fn unit_for_log(&mut self, sink: &Sink) -> u32 {
        let next = self.next_unit(sink);
        let n = self.nand.geometry().units();
        let all = || (next..n).chain(0..next);
        let open = |u: &u32| self.units[to_usize(*u)].open.is_some();
        all().find(|&u| self.has_room(u)).or_else(|| all().find(open)).unwrap_or(next)
    }

    /// Writes the last page of the open block of a unit if all others are written, and seals it.
    fn close_full_block(&mut self, sink: &mut Sink, unit: u32) -> Result<()> {
        while self.at_last_page(unit) {
            let pages = self.nand.geometry().pages_per_block;
            let full = self.units[to_usize(unit)].open.is_some_and(|o| o.next >= pages);
            if full || self.log.pending.is_empty() {
                self.seal_open(unit);
            } else {
                self.program_log(sink, unit)?;
            }
        }
        Ok(())
    }

    /// Programs one log page at the next place of a unit, and its copy, and erases the blocks that it
    /// states to be empty. It has as many of the pending changes as it has room for; it may have none.
    fn program_log(&mut self, sink: &mut Sink, unit: u32) -> Result<()> {
        let count = self.log.pending.len().min(LogPage::capacity(self.sizes.unit_bytes()));
        let last = count.checked_sub(1).and_then(|i| self.log.pending.get(i));
        let through = last.map_or(self.log.through, |record| record.seq);
        let page = LogPage {
            number: self.log.next,
            through,
            checkpoint: self.checkpoint.number,
            synced: if is_planted(SscBug::SyncedEarly) { self.seq } else { self.synced },
            records: self.log.pending.iter().take(count).copied().collect(),
        };
        if self.stores_bytes() {
            self.scratch.fill(0);
            page.encode(&mut self.scratch);
        }
        let (after, seq) = (self.log_after(sink), self.next_seq());
        let mut done =
            self.program_copy(sink, unit, page.number, Spare { lpn: MetaKind::Log.lpn(0), seq }, after)?;
        let other = self.unit_for_copy(unit);
        if self.has_copies() {
            let first = if is_planted(SscBug::CopiesTogether) { after } else { done };
            let spare = Spare { lpn: MetaKind::Log.lpn(1), seq };
            match self.program_copy(sink, other, page.number, spare, first) {
                Ok(second) => done = sink.join(done, second),
                // The page is in force with one copy.
                Err(e @ (Error::NoSpace { .. } | Error::ReadOnly { .. })) => {
                    self.health.refuse(e.to_string());
                }
                Err(e) => return Err(e),
            }
        }
        self.log.pending.drain(..count);
        self.log.next += 1;
        self.log.through = through;
        self.log.written = done;
        self.log.records += count as u64;
        self.stats.log_pages += 1;
        if self.has_copies() && other != unit {
            self.close_full_block(sink, other)?;
        }
        self.erase_emptied(sink)
    }

    /// Unit for the second copy of a log page: another one, if there is one with space.
    fn unit_for_copy(&self, unit: u32) -> u32 {
        let n = count_u32(self.units.len());
        let pages = self.nand.geometry().pages_per_block;
        let has_space = |u: &u32| {
            let unit = &self.units[to_usize(*u)];
            unit.open.is_some_and(|open| open.next < pages) || unit.free.len() > self.sizes.reserve
        };
        (unit + 1..n).chain(0..unit).find(has_space).unwrap_or(unit)
    }

    /// Programs a copy of the log page in the scratch buffer. Returns its token.
    fn program_copy(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        number: u64,
        spare: Spare,
        after: Tok,
    ) -> Result<Tok> {
        let scratch = std::mem::take(&mut self.scratch);
        let data = buffered(&scratch, self.sizes.unit_bytes());
        let spares = vec![Spare { seq: spare.seq << 1, ..spare }; to_usize(self.sizes.unit_pages)];
        let program = UnitProgram { spares: &spares, data, cause: Cause::Meta, after };
        let programmed = self.program_until_done(sink, unit, program);
        self.scratch = scratch;
        let (block, done) = programmed?;
        let row = &mut self.blocks[to_usize(block)];
        row.last_log = row.last_log.max(number);
        Ok(done)
    }

    fn program_until_done(
        &mut self,
        sink: &mut Sink,
        unit: u32,
        program: UnitProgram<'_>,
    ) -> Result<(u32, Tok)> {
        let pages = self.nand.geometry().pages_per_block;
        loop {
            if self.units[to_usize(unit)].open.is_some_and(|open| open.next >= pages) {
                self.seal_open(unit);
            }
            if let Some((first, done)) = self.try_program(sink, unit, program)? {
                return Ok((self.nand.geometry().block_of(first).0, done));
            }
        }
    }

    /// Erases the blocks that the log states to be empty.
    pub(super) fn erase_emptied(&mut self, sink: &mut Sink) -> Result<()> {
        let through = self.log.through;
        let due = |(_, seq): &(u32, u64)| *seq <= through;
        if !self.units.iter().any(|u| u.emptied.iter().any(due)) {
            return Ok(());
        }
        if !is_planted(SscBug::EraseNotSynced) {
            self.sync_files()?;
        }
        for unit in 0..self.units.len() {
            let all = std::mem::take(&mut self.units[unit].emptied);
            let (due, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(due);
            self.units[unit].emptied = rest;
            for (block, _) in due {
                let after = if is_planted(SscBug::EraseBeforeLog) { sink.start() } else { self.log.written };
                self.erase(sink, block, after)?;
            }
        }
        Ok(())
    }
}
