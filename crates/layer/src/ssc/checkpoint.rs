//! Checkpoints: the whole map, in blocks of their own.
//!
//! A checkpoint makes the log pages before it superfluous, so that their blocks can be erased. Checkpoints
//! are appended to one open block of each unit. A block of them is erased when it is full, and once a
//! checkpoint without parts in it is durable. The prototype has a fixed area for them (section 3.3.2).
//!
//! After a crash, the blocks of the last checkpoint are not continued: the program that the crash
//! interrupted can be in them.
//!
//! With `metadata_copies = 2`, the second copies of all parts are written, to other NAND units, once the
//! first ones are done: a crash interrupts at most one copy of a part. With media in files, all data that a
//! checkpoint names is synced before, and so is each copy before the next one.

use super::blocks::{BlockUse, straddles};
use super::layer::Ssc;
use super::map::BlockMap;
use super::records::{CheckpointPart, MetaKind};
use crate::payload::buffered;
use crate::planted::SscBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Result, Sink, Tok};
use frit_media::{Spare, Transfer};

/// State of the checkpoints.
#[derive(Clone, Default, Debug)]
pub(super) struct Checkpoint {
    /// Number of the newest one; 0 for none.
    pub(super) number: u64,
    /// Number of the first log page that it does not contain.
    pub(super) next_log: u64,
    /// Number of its entries.
    pub(super) entries: u64,
    /// Blocks of checkpoints that are not erased yet.
    pub(super) blocks: Vec<CheckpointBlock>,
    /// Sequence number of its first part.
    pub(super) first_seq: u64,
    /// `true` if it states a halt.
    pub(super) halted: bool,
}

/// Block with parts of checkpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckpointBlock {
    pub(super) block: u32,
    /// Number of the newest checkpoint with a part in it.
    pub(super) newest: u64,
}

impl Ssc {
    /// Writes a checkpoint if the log has grown to its share.
    pub(super) fn checkpoint_as_due(&mut self, sink: &mut Sink) -> Result<bool> {
        // A record takes 16 bytes, an entry 12.
        let log = self.log.records as f64 * 16.0;
        let entries = self.checkpoint.entries.max(u64::from(self.map.len())).max(1);
        let due = log > entries as f64 * 12.0 * self.config.checkpoint_log;
        if due {
            self.write_checkpoint(sink, false)?;
        }
        Ok(due)
    }

    /// Writes a checkpoint of all versions in NAND.
    pub(super) fn write_checkpoint(&mut self, sink: &mut Sink, halted: bool) -> Result<()> {
        let mut entries = Vec::with_capacity(to_usize(self.map.len()));
        self.map.each(&mut |block, entry| {
            if entry.ppn().is_some() {
                entries.push((block, entry));
            }
        });
        let per_part = CheckpointPart::capacity(self.sizes.unit_bytes());
        let parts = count_u32(entries.len().div_ceil(per_part).max(1));
        if !is_planted(SscBug::CheckpointNotSynced) {
            self.sync_files()?;
        }
        let synced = self.config.over_files;
        let (number, through, next_log) = (self.checkpoint.number + 1, self.seq, self.log.next);
        let parts: Vec<CheckpointPart> = (0..parts)
            .map(|index| {
                let from = to_usize(index) * per_part;
                let entries = entries[from.min(entries.len())..(from + per_part).min(entries.len())].to_vec();
                CheckpointPart { number, through, next_log, index, parts, halted, synced, entries }
            })
            .collect();
        let first_seq = self.seq + 1;
        self.seq += parts.len() as u64;
        self.close_short_blocks(&parts);
        let after = self.log_after(sink);
        let mut done = after;
        for copy in 0..self.config.metadata_copies {
            let start = if is_planted(SscBug::CopiesTogether) { after } else { done };
            for (part, seq) in parts.iter().zip(first_seq..) {
                let spare = Spare { lpn: MetaKind::Checkpoint.lpn(copy), seq: seq << 1 };
                let unit = self.unit_for_part(part, copy);
                let written = self.write_part(sink, part, spare, unit, start)?;
                done = sink.join(done, written);
            }
            self.sync_files()?;
        }
        let blocks = std::mem::take(&mut self.checkpoint.blocks);
        let entries = entries.len() as u64;
        self.checkpoint = Checkpoint { number, next_log, entries, blocks, first_seq, halted };
        self.log.pending.clear();
        (self.log.through, self.log.records) = (through, 0);
        let start = sink.start();
        self.log.written = done;
        self.stats.checkpoints += 1;
        self.stats.checkpoint_pages += parts.len() as u64 * u64::from(self.config.metadata_copies);
        self.erase_old_checkpoints(sink, if is_planted(SscBug::OldCheckpointErased) { start } else { done })?;
        self.erase_emptied(sink)
    }

    /// Erases the blocks that have no part of the newest checkpoint and take no further parts.
    fn erase_old_checkpoints(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        let newest = self.checkpoint.number;
        let mut kept = Vec::with_capacity(self.checkpoint.blocks.len());
        for row in std::mem::take(&mut self.checkpoint.blocks) {
            let needed = row.newest == newest && !is_planted(SscBug::NewestCheckpointErased);
            if needed || self.open_checkpoint_block(self.unit_of(row.block)) == Some(row.block) {
                kept.push(row);
            } else {
                // The newest checkpoint may have no part on this unit. The erased block is not full any more,
                // and would take parts of the next one beside the data that is written to it.
                let unit = to_usize(self.unit_of(row.block));
                self.units[unit].checkpoint = self.units[unit].checkpoint.filter(|&block| block != row.block);
                self.erase(sink, row.block, after)?;
            }
        }
        self.checkpoint.blocks = kept;
        Ok(())
    }

    /// Block of a unit to which parts of checkpoints are appended, if it has space.
    fn open_checkpoint_block(&self, unit: u32) -> Option<u32> {
        let pages = self.nand.geometry().pages_per_block;
        self.units[to_usize(unit)].checkpoint.filter(|&block| self.nand.next_page(BlockId(block)) < pages)
    }

    /// Closes the open blocks without space for the parts of a checkpoint, if these must not straddle
    /// blocks.
    fn close_short_blocks(&mut self, parts: &[CheckpointPart]) {
        let mut of_units = vec![0; self.units.len()];
        for part in parts {
            for copy in 0..self.config.metadata_copies {
                of_units[to_usize(self.unit_for_part(part, copy))] += 1;
            }
        }
        let block_units = self.nand.geometry().pages_per_block / self.sizes.unit_pages;
        for (unit, of_unit) in self.units.iter_mut().zip(of_units) {
            let left = |block| block_units - self.nand.next_page(BlockId(block)) / self.sizes.unit_pages;
            let has_space = |&block: &u32| straddles(of_unit, block_units) || left(block) >= of_unit;
            unit.checkpoint = unit.checkpoint.filter(has_space);
        }
    }

    /// Unit for a copy of a part. The copies of all parts are on the units in turn, and those of one part
    /// on different units, if there are several.
    fn unit_for_part(&self, part: &CheckpointPart, copy: u32) -> u32 {
        let n = count_u32(self.units.len());
        let skipped = if part.parts.is_multiple_of(n) { 1 } else { part.parts % n };
        (part.index % n + copy * skipped) % n
    }

    /// Writes a copy of a part of a checkpoint into the block of its unit.
    fn write_part(
        &mut self,
        sink: &mut Sink,
        part: &CheckpointPart,
        spare: Spare,
        unit: u32,
        after: Tok,
    ) -> Result<Tok> {
        let mut bytes = std::mem::take(&mut self.scratch);
        if self.stores_bytes() {
            bytes.fill(0);
            part.encode(&mut bytes);
        }
        let data = buffered(&bytes, self.sizes.unit_bytes());
        let written = loop {
            let block = match self.checkpoint_block(sink, unit, part.number) {
                Ok(block) => block,
                Err(e) => break Err(e),
            };
            let first = self.nand.geometry().ppn(BlockId(block), self.nand.next_page(BlockId(block)));
            let spares = vec![spare; to_usize(self.sizes.unit_pages)];
            match self.nand.program_unit(sink, first, data, &spares, Transfer::Pages, Cause::Meta, after) {
                Err(Error::ProgramFailed { .. }) => {
                    self.stats.program_retries += 1;
                    // It holds parts of checkpoints, and is retired with them.
                    self.blocks[to_usize(block)].retiring = true;
                    let unit = self.unit_of(block);
                    self.units[to_usize(unit)].checkpoint = None;
                }
                done => break done,
            }
        };
        self.scratch = bytes;
        written
    }

    /// Block for a part of checkpoint `number`: on its unit, or another one if that has no block left.
    fn checkpoint_block(&mut self, sink: &mut Sink, home: u32, number: u64) -> Result<u32> {
        let n = count_u32(self.units.len());
        for unit in (home..n).chain(0..home) {
            if let Some(open) = self.open_checkpoint_block(unit) {
                if let Some(row) = self.checkpoint.blocks.iter_mut().find(|row| row.block == open) {
                    row.newest = number;
                }
                return Ok(open);
            }
            let block = match self.take_free(sink, unit) {
                Err(Error::NoSpace { .. }) => continue,
                taken => taken?,
            };
            self.blocks[to_usize(block)].state = BlockUse::Checkpoint;
            self.units[to_usize(unit)].checkpoint = Some(block);
            self.checkpoint.blocks.push(CheckpointBlock { block, newest: number });
            return Ok(block);
        }
        let why = "no block is left for a checkpoint: too many went bad".to_owned();
        self.health.refuse(why.clone());
        Err(Error::ReadOnly { why })
    }
}
