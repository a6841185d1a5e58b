//! Contents of the NAND at a recovery: a scan of all spare areas, and of the pages of metadata.

use super::layer::Ssc;
use super::records::{BLOCKS_MAX, CheckpointPart, LogPage, MetaKind};
use crate::planted::SscBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{BlockId, CrashKind, Error, Ppn, ReadTarget, Result};
use frit_media::{ExpectedPage, PageState, SPARE_RECORD_BYTES, Spare};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A page of data, as its spare area describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataPage {
    pub(super) stamp: u64,
    pub(super) block: u32,
    pub(super) ppn: Ppn,
}

/// Copies of a page of metadata.
#[derive(Clone, Copy, Debug)]
struct Copies {
    kind: MetaKind,
    /// Number of those that can be read.
    readable: u32,
    /// The second one was begun, so the first one was complete.
    second: bool,
}

/// A log page, and the sequence number of its spare area.
#[derive(Clone, Debug)]
pub(super) struct FoundLog {
    pub(super) page: LogPage,
    seq: u64,
    /// Erase blocks of its copies.
    blocks: Vec<u32>,
}

/// Parts of a checkpoint that can be read, by index.
#[derive(Clone, Default, Debug)]
pub(super) struct FoundCheckpoint {
    parts: BTreeMap<u32, CheckpointPart>,
    /// Erase blocks of their copies.
    pub(super) blocks: BTreeSet<u32>,
}

/// Contents of the NAND.
#[derive(Default)]
pub(super) struct Scan {
    /// Log pages by number.
    pub(super) logs: BTreeMap<u64, FoundLog>,
    /// Checkpoints by number.
    pub(super) checkpoints: BTreeMap<u64, FoundCheckpoint>,
    /// Pages of metadata by sequence number.
    meta: BTreeMap<u64, Copies>,
    pub(super) data: Vec<DataPage>,
    /// Highest sequence number.
    pub(super) seq: u64,
    /// Sequence number up to which all programs were synced, with media in files.
    pub(super) synced: u64,
    pub(super) bytes_read: u64,
}

/// The metadata from which the map is built.
#[derive(Clone, Default)]
pub(super) struct Source {
    /// Number of the checkpoint; 0 for none.
    pub(super) checkpoint: u64,
    /// Numbers of the log pages.
    pub(super) logs: Range<u64>,
    /// Highest sequence number in them.
    pub(super) through: u64,
}

impl FoundCheckpoint {
    pub(super) fn parts(&self) -> impl Iterator<Item = &CheckpointPart> {
        self.parts.values()
    }

    /// First part; all parts have the same head.
    pub(super) fn head(&self) -> Option<&CheckpointPart> {
        self.parts.values().next()
    }

    fn is_complete(&self) -> bool {
        self.head().is_some_and(|part| to_usize(part.parts) == self.parts.len())
    }
}

impl Scan {
    /// Number of the newest complete checkpoint; 0 for none.
    pub(super) fn newest_checkpoint(&self) -> u64 {
        self.checkpoints.iter().rev().find(|(_, found)| found.is_complete()).map_or(0, |(&number, _)| number)
    }

    /// Head of a checkpoint.
    pub(super) fn head(&self, checkpoint: u64) -> Option<&CheckpointPart> {
        self.checkpoints.get(&checkpoint).and_then(FoundCheckpoint::head)
    }

    /// The checkpoint with this number, and all log pages that follow it.
    pub(super) fn source(&self, checkpoint: u64) -> Source {
        let next = self.head(checkpoint).map_or(1, |head| head.next_log);
        let mut end = next;
        while self.logs.contains_key(&end) {
            end += 1;
        }
        let mut source = Source { checkpoint, logs: next..end, through: 0 };
        self.cut(&mut source, end);
        source
    }

    /// Ends the log of a source before the page with this number.
    pub(super) fn cut(&self, source: &mut Source, end: u64) {
        source.logs.end = end;
        let last = self.logs.range(source.logs.clone()).next_back();
        let head = self.head(source.checkpoint);
        source.through = last.map_or(head.map_or(0, |head| head.through), |(_, log)| log.page.through);
    }

    /// Erase blocks that hold the log pages of a source.
    pub(super) fn log_blocks(&self, source: &Source) -> BTreeSet<u32> {
        self.logs.range(source.logs.clone()).flat_map(|(_, log)| log.blocks.iter().copied()).collect()
    }

    /// Describes metadata that is newer than the source and missing, although no crash explains it.
    ///
    /// A crash of the process, or a power loss of modelled media, leaves a beginning of the log, and a
    /// page with one copy that can be read once its second copy is begun. A power loss of the machine can
    /// lose any page that was not synced.
    pub(super) fn missing(&self, source: &Source, crash: CrashKind) -> Option<&'static str> {
        let over_files = crash == CrashKind::PowerLoss;
        let named = self.logs.range(source.logs.clone()).map(|(_, log)| log.page.checkpoint).max();
        let seen = self.checkpoints.keys().next_back().copied().unwrap_or(0);
        if named.is_some_and(|n| n > source.checkpoint) || (source.checkpoint == 0 && seen > 1) {
            return Some("the newest checkpoint is damaged");
        }
        let durable = |seq: u64| !over_files || seq <= self.synced;
        if self.logs.range(source.logs.end..).any(|(_, log)| durable(log.seq)) {
            return Some("a page of the log is damaged");
        }
        let covered = self.head(source.checkpoint).map_or(0, |head| head.through);
        let lost = self.meta.range(covered + 1..).any(|(&seq, copies)| {
            // With media in files, the first copy of a checkpoint is synced before the second one.
            let ordered = !over_files || copies.kind == MetaKind::Checkpoint;
            copies.readable == 0 && (copies.second && ordered || over_files && seq <= self.synced)
        });
        lost.then_some("both copies of a page of metadata are damaged")
    }

    /// Sequence numbers, from `first` on, of the pages of metadata that have one copy only.
    pub(super) fn single_copies(&self, first: u64) -> Vec<u64> {
        self.meta.range(first..).filter(|(_, copies)| copies.readable < 2).map(|(&seq, _)| seq).collect()
    }

    fn add_log(&mut self, page: LogPage, seq: u64, block: u32) {
        self.synced = self.synced.max(page.synced);
        match self.logs.get_mut(&page.number) {
            Some(found) if found.seq == seq => found.blocks.push(block),
            // An attempt to write the page failed before: it has a beginning of the same changes.
            Some(found) if found.seq > seq => {}
            _ => drop(self.logs.insert(page.number, FoundLog { page, seq, blocks: vec![block] })),
        }
    }

    fn add_part(&mut self, part: CheckpointPart, block: u32) {
        if part.synced {
            self.synced = self.synced.max(part.through);
        }
        let found = self.checkpoints.entry(part.number).or_default();
        found.blocks.insert(block);
        found.parts.insert(part.index, part);
    }
}

impl Ssc {
    /// Reads all spare areas, and the pages of metadata.
    pub(super) fn scan(&mut self) -> Result<Scan> {
        let g = *self.nand.geometry();
        let mut scan = Scan::default();
        let mut unit = std::mem::take(&mut self.scratch);
        for block in (0..g.blocks()).map(BlockId) {
            for at in 0..self.nand.next_page(block) {
                let ppn = g.ppn(block, at);
                scan.bytes_read += SPARE_RECORD_BYTES as u64;
                let PageState::Programmed(spare) = self.nand.page_state(ppn)? else { continue };
                scan.seq = scan.seq.max(spare.seq >> 1);
                match MetaKind::of(spare.lpn) {
                    Some((kind, copy)) if at.is_multiple_of(g.program_pages) => {
                        self.scan_meta(&mut scan, ppn, spare, kind, copy, &mut unit)?;
                    }
                    None if spare.lpn < BLOCKS_MAX => {
                        scan.data.push(DataPage { stamp: spare.seq, block: spare.lpn, ppn });
                    }
                    _ => {}
                }
            }
        }
        self.scratch = unit;
        Ok(scan)
    }

    /// Adds a copy of a page of metadata.
    fn scan_meta(
        &mut self,
        scan: &mut Scan,
        first: Ppn,
        spare: Spare,
        kind: MetaKind,
        copy: u32,
        unit: &mut [u8],
    ) -> Result<()> {
        if copy > 0 && is_planted(SscBug::SecondCopyIgnored) {
            return Ok(());
        }
        let seq = spare.seq >> 1;
        let readable = self.read_meta(first, ExpectedPage { lpn: spare.lpn, tag: spare.seq as u16 }, unit)?;
        let copies = scan.meta.entry(seq).or_insert(Copies { kind, readable: 0, second: false });
        copies.second |= copy > 0;
        copies.readable += u32::from(readable);
        if !readable {
            return Ok(());
        }
        scan.bytes_read += unit.len() as u64;
        let block = self.nand.geometry().block_of(first).0;
        match kind {
            MetaKind::Log => {
                if let Some(page) = LogPage::decode(unit) {
                    scan.add_log(page, seq, block);
                }
            }
            MetaKind::Checkpoint => {
                if let Some(part) = CheckpointPart::decode(unit) {
                    scan.add_part(part, block);
                }
            }
        }
        Ok(())
    }

    /// Reads a program unit of metadata. `false` if it is damaged.
    fn read_meta(&mut self, first: Ppn, expect: ExpectedPage, unit: &mut [u8]) -> Result<bool> {
        for (i, page) in (0..).zip(unit.chunks_exact_mut(to_usize(self.sizes.page_bytes))) {
            match self.nand.copy_out(first.plus(i), 0, ReadTarget::Bytes(page), Some(expect)) {
                Ok(()) => {}
                Err(Error::Corrupt { .. }) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}
