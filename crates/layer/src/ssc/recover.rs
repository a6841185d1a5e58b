//! Recovery: the newest complete checkpoint, and the log pages after it.
//!
//! Log pages are durable in their order, so the map is that of a moment before the crash, at which
//! everything flushed was there. With synchronous durability, spare areas of pages that are newer than
//! the log complete it. At its end, recovery writes a checkpoint: what a crash has interrupted plays no
//! part later.
//!
//! After a power loss of the machine, pages that were not synced may be missing in any combination. Then
//! the log counts up to the first page that names data which is missing. All data of a checkpoint is
//! synced before it is written, and with two copies of metadata a flush states in the log what is synced:
//! such data is never missing, but damaged.

use super::blocks::{BlockUse, EraseBlock, OpenBlock};
use super::checkpoint::{Checkpoint, CheckpointBlock};
use super::layer::Ssc;
use super::map::{BlockMap, Entry};
use super::records::Change;
use super::scan::{FoundCheckpoint, Scan, Source};
use crate::planted::SscBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, CrashKind, Error, LostPage, ReadTarget, Recovery, Result, Sink};
use frit_media::{ExpectedPage, PageState};
use std::collections::{BTreeMap, BTreeSet};

/// Record of the log that states the current version of a block.
#[derive(Clone, Copy, Debug)]
struct Logged {
    /// Number of the log page.
    page: u64,
    seq: u64,
}

impl Ssc {
    /// Recovers from the media after the given kind of crash.
    pub(super) fn recover_from_media(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        if !self.stores_bytes() {
            let why = "media without bytes hold nothing to recover from";
            return Err(Error::param("store", "none", why));
        }
        self.reset();
        let mut scan = self.scan()?;
        let mut r = Recovery { bytes_read: scan.bytes_read, ..Recovery::default() };
        let source = self.build_map(&scan, crash)?;
        self.apply_spares(&mut scan, &source)?;
        let halted = scan.head(source.checkpoint).is_some_and(|head| head.halted);
        r.clean = halted && source.logs.is_empty() && scan.data.is_empty();
        self.note_damage(&scan, &source, crash, &mut r);
        self.note_lost(&mut r)?;
        r.pages = u64::from(self.map.len());
        self.seq = scan.seq.max(source.through);
        self.log.next =
            scan.logs.keys().next_back().map_or(source.logs.end, |&n| (n + 1).max(source.logs.end));
        self.checkpoint = self.checkpoint_of(&scan, &source);
        self.synced = scan.synced;
        let needed = scan.log_blocks(&source);
        self.assign_blocks(sink, &needed, &mut r)?;
        self.refuse_if_too_small();
        if self.health.refusal().is_none() && !is_planted(SscBug::NoCheckpointAtStart) {
            match self.write_checkpoint(sink, false) {
                // The volume is read-only from now on.
                Err(Error::ReadOnly { .. }) => {}
                written => written?,
            }
        }
        Ok(r)
    }

    /// Builds the map from the newest checkpoint and the log.
    ///
    /// A power loss of the machine can lose data that the log names. The log then counts up to the first
    /// page that names such data. Data that was synced before is not lost: it is damaged.
    fn build_map(&mut self, scan: &Scan, crash: CrashKind) -> Result<Source> {
        let mut source = scan.source(scan.newest_checkpoint());
        let from = self.replay(scan, &source);
        if crash == CrashKind::PowerLoss {
            let synced = if is_planted(SscBug::SyncedIgnored) { 0 } else { scan.synced };
            let mut from = from;
            while let Some(log) = self.first_missing(&from, synced)? {
                scan.cut(&mut source, log);
                from = self.replay(scan, &source);
            }
        }
        Ok(source)
    }

    /// Returns the lowest number of a log page that names data which is missing and was not synced.
    fn first_missing(&mut self, from: &BTreeMap<u32, Logged>, synced: u64) -> Result<Option<u64>> {
        let mut page = vec![0; to_usize(self.sizes.page_bytes)];
        let mut first = None;
        for (&block, logged) in from {
            let earlier = first.is_none_or(|f| logged.page < f);
            if earlier && logged.seq > synced && !self.is_readable(block, self.map.get(block), &mut page)? {
                first = Some(logged.page);
            }
        }
        Ok(first)
    }

    /// Returns `true` if the data of an entry can be read.
    fn is_readable(&mut self, block: u32, entry: Entry, page: &mut [u8]) -> Result<bool> {
        let Some(ppn) = entry.ppn() else { return Ok(true) };
        let expect = ExpectedPage { lpn: block, tag: entry.tag() };
        match self.nand.copy_out(ppn, 0, ReadTarget::Bytes(page), Some(expect)) {
            Ok(()) => Ok(true),
            Err(Error::Corrupt { .. } | Error::Rule { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Builds the map from a checkpoint and the log. Returns the record of each block that is not from the
    /// checkpoint.
    fn replay(&mut self, scan: &Scan, source: &Source) -> BTreeMap<u32, Logged> {
        self.map.clear();
        self.reverse.fill(0);
        self.dirty = 0;
        for block in &mut self.blocks {
            (block.valid, block.dirty) = (0, 0);
        }
        let mut from = BTreeMap::new();
        for part in scan.checkpoints.get(&source.checkpoint).into_iter().flat_map(FoundCheckpoint::parts) {
            for &(block, entry) in &part.entries {
                self.adopt(block, entry);
            }
        }
        for (&number, log) in scan.logs.range(source.logs.clone()) {
            for record in &log.page.records {
                match record.change {
                    Change::Written { block, ppn, dirty } => {
                        self.adopt(block, Entry::in_nand(ppn, record.seq << 1 | u64::from(dirty)));
                        from.insert(block, Logged { page: number, seq: record.seq });
                    }
                    Change::Evicted { block } => self.set_entry(block, Entry::default()),
                    Change::Cleaned { block } => self.set_entry(block, self.map.get(block).cleaned()),
                    Change::Emptied { erase_block } => self.forget_pages(erase_block),
                }
            }
        }
        from
    }

    /// Sets an entry, if its page is one of the NAND. A page has one owner.
    fn adopt(&mut self, block: u32, entry: Entry) {
        let Some(ppn) = entry.ppn().filter(|p| p.0 < self.nand.geometry().pages()) else { return };
        if let Some(other) = self.block_at(ppn).filter(|&b| b != block) {
            self.set_entry(other, Entry::default());
        }
        self.set_entry(block, entry);
    }

    /// Removes the blocks in an erase block.
    fn forget_pages(&mut self, erase_block: u32) {
        if erase_block >= self.nand.geometry().blocks() || is_planted(SscBug::EmptiedForgotten) {
            return;
        }
        let first = self.first_page(erase_block);
        for at in 0..self.nand.geometry().pages_per_block {
            if let Some(block) = self.block_at(first.plus(at)) {
                self.set_entry(block, Entry::default());
            }
        }
    }

    /// Applies spare areas that are newer than the log, if the durability is synchronous. Leaves these
    /// pages in the scan.
    fn apply_spares(&mut self, scan: &mut Scan, source: &Source) -> Result<()> {
        let synchronous = self.config.is_synchronous() && !is_planted(SscBug::SparesIgnored);
        scan.data.retain(|page| synchronous && page.stamp >> 1 > source.through);
        scan.data.sort_unstable_by_key(|page| page.stamp);
        let mut bytes = vec![0; to_usize(self.sizes.page_bytes)];
        for page in &scan.data {
            let entry = Entry::in_nand(page.ppn, page.stamp);
            // The crash may have interrupted its program, which was not acknowledged.
            if is_planted(SscBug::TornUnverified) || self.is_readable(page.block, entry, &mut bytes)? {
                self.adopt(page.block, entry);
            }
        }
        Ok(())
    }

    /// Notes metadata that is missing although no crash explains it.
    fn note_damage(&mut self, scan: &Scan, source: &Source, crash: CrashKind, r: &mut Recovery) {
        if let Some(what) = scan.missing(source, crash) {
            self.health.note_missing(format!("{what}: the cache may hold older versions"), r);
        }
    }

    /// Drops clean blocks that are damaged, and lists dirty ones.
    fn note_lost(&mut self, r: &mut Recovery) -> Result<()> {
        let mut all = Vec::new();
        self.map.each(&mut |block, entry| all.push((block, entry)));
        for (block, entry) in all {
            let Some(ppn) = entry.ppn() else { continue };
            let expect = ExpectedPage { lpn: block, tag: entry.tag() };
            if matches!(self.nand.page_state(ppn)?, PageState::Programmed(spare) if expect.is(spare)) {
                continue;
            }
            if entry.is_dirty_in_nand() {
                let why = format!("page {} does not hold its newest version", ppn.0);
                r.lost.push(LostPage { lpn: block, why });
            } else {
                self.set_entry(block, Entry::default());
            }
        }
        r.lost.sort_by_key(|lost| lost.lpn);
        Ok(())
    }

    fn checkpoint_of(&self, scan: &Scan, source: &Source) -> Checkpoint {
        let found = scan.checkpoints.get(&source.checkpoint);
        let blocks = found.into_iter().flat_map(|found| found.blocks.iter().copied());
        // A block with data is not erased with the checkpoint: an earlier version of the program could append
        // parts to it.
        let holds_parts_only = |row: &EraseBlock| row.state != BlockUse::Bad && row.valid == 0;
        let blocks = blocks.filter(|&b| holds_parts_only(&self.blocks[to_usize(b)]));
        let number = scan.checkpoints.keys().next_back().copied().unwrap_or(0);
        Checkpoint {
            // Parts of an interrupted one must not complete a later one.
            number: number.max(source.checkpoint),
            next_log: source.logs.start,
            first_seq: self.seq + 1,
            halted: false,
            entries: u64::from(self.map.len()),
            blocks: blocks.map(|block| CheckpointBlock { block, newest: source.checkpoint }).collect(),
        }
    }

    /// Assigns the blocks to the pools. One partly written block of each unit is continued after the
    /// program that the crash may have interrupted; other free blocks are erased again before use.
    fn assign_blocks(&mut self, sink: &mut Sink, needed: &BTreeSet<u32>, r: &mut Recovery) -> Result<()> {
        let g = *self.nand.geometry();
        let last = self.sizes.log_at();
        let held: BTreeSet<u32> = self.checkpoint.blocks.iter().map(|row| row.block).collect();
        for unit in 0..count_u32(self.units.len()) {
            self.units[to_usize(unit)].free.clear();
            let mut partial: Option<OpenBlock> = None;
            let first = g.first_block(unit).0;
            for b in first..first + g.blocks_per_unit() {
                let (next, row) = (self.nand.next_page(BlockId(b)), self.blocks[to_usize(b)]);
                if row.state == BlockUse::Bad {
                    continue;
                }
                if held.contains(&b) {
                    self.blocks[to_usize(b)].state = BlockUse::Checkpoint;
                } else if row.valid == 0 && !needed.contains(&b) {
                    self.blocks[to_usize(b)].suspect = true;
                    self.units[to_usize(unit)].free.push(b);
                    r.suspect_blocks += 1;
                } else {
                    // Age is unknown: the order of the blocks takes its place.
                    self.seal(b);
                    if next + self.sizes.unit_pages < last && partial.is_none_or(|p| next < p.next) {
                        partial = Some(OpenBlock { block: b, next });
                    }
                }
            }
            let Some(open) = partial else { continue };
            let (ppn, start) = (g.ppn(BlockId(open.block), open.next), sink.start());
            let done = self.nand.pad(sink, ppn, Cause::Meta, start)?;
            self.note_programmed(sink, done);
            r.padded += 1;
            self.blocks[to_usize(open.block)].state = BlockUse::Open;
            self.units[to_usize(unit)].open =
                Some(OpenBlock { next: self.nand.next_page(BlockId(open.block)), ..open });
        }
        Ok(())
    }
}
