//! Execution of the steps of mapping schemes that map blocks.
//!
//! Reads and recovery need only the place of each page. So a block that a scheme gives up, or of which
//! it does not know after a start, costs time at most: its pages are brought together in their data
//! blocks before the next page is placed (*stray pages*), and garbage collection erases it.

use super::layer::Ftl;
use super::mapping::{BlockPage, MappingScheme, MergeKind, Scheme, Step};
use super::page_map::PageEntry;
use crate::flash::{BlockUse, Copied, PlacedPage};
use crate::planted::FtlBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Lpn, Ppn, Result, Sink, Tok, WriteData};
use std::collections::BTreeSet;

/// Counters of merges.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MergeStats {
    pub(super) switch: u64,
    pub(super) partial: u64,
    pub(super) full: u64,
    /// Merges of stray pages.
    pub(super) stray: u64,
    /// Pages copied, by all merges.
    pub(super) copied: u64,
    /// Pages of padding where a logical block has no page.
    pub(super) padded: u64,
}

impl Ftl {
    /// Programs the page in the merge buffer where the mapping scheme wants it. Returns its NAND unit as
    /// well.
    pub(super) fn place_page(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        cause: Cause,
    ) -> Result<(u32, PlacedPage)> {
        let page = Scheme::page_of(lpn, self.pages_per_block());
        loop {
            self.flash.writable()?;
            self.merge_strays(sink)?;
            let (block, at) = match self.scheme.step(page) {
                Step::Program { block, at } => (block, at),
                step => {
                    self.execute(sink, step)?;
                    continue;
                }
            };
            self.pad_to(sink, block, at)?;
            let after = self.buffer.read;
            let data = match self.stores_bytes() {
                true => WriteData::Bytes(self.buffer.unit()),
                false => WriteData::Len(self.page_bytes),
            };
            match self.flash.program_placed(sink, block, lpn, (data, cause, after))? {
                Some(placed) => {
                    self.scheme.programmed(page, block, at + 1);
                    return Ok((self.flash.blocks().unit_of(block), placed));
                }
                None => self.lose_block(block),
            }
        }
    }

    /// Executes what a mapping scheme does after a request.
    pub(super) fn end_request(&mut self, sink: &mut Sink) -> Result<()> {
        while let Some(step) = self.scheme.step_after_request() {
            self.execute(sink, step)?;
        }
        Ok(())
    }

    /// Executes a step other than the program of the page.
    fn execute(&mut self, sink: &mut Sink, step: Step) -> Result<()> {
        match step {
            Step::Anywhere | Step::Program { .. } => Ok(()),
            Step::Take(purpose) => {
                let block = self.take_block(sink)?;
                self.scheme.took(purpose, block);
                Ok(())
            }
            Step::Fill { lbn, block, until } => self.fill(sink, lbn, block, until).map(|_| ()),
            Step::Merge { lbn, into, kind } => {
                let merged = self.merge(sink, lbn, into)?;
                let stats = &mut self.stats.merges;
                match kind {
                    MergeKind::Switch => stats.switch += u64::from(merged),
                    MergeKind::Partial => stats.partial += u64::from(merged),
                    MergeKind::Full => stats.full += u64::from(merged),
                }
                Ok(())
            }
            Step::Reclaim { block } => self.reclaim(sink, block),
        }
    }

    fn take_block(&mut self, sink: &mut Sink) -> Result<u32> {
        let turn = self.streams.next_turn();
        let block = self.flash.take_placed(sink, &mut self.map, turn)?;
        // A merge may program the version that was interrupted in this block at the same place again. A
        // mark that lists the interrupted one would then hide it.
        if self.interrupted.iter().any(|(page, _)| page.seq != 0 && self.block_of(page.ppn).0 == block) {
            let mark = self.mark();
            self.write_mark_alone(sink, &mark, self.mark_after)?;
        }
        Ok(block)
    }

    /// Merges the logical blocks with pages in a log block, and gives it up.
    fn reclaim(&mut self, sink: &mut Sink, block: u32) -> Result<()> {
        let lbns = self.logical_blocks_in(block);
        for lbn in lbns {
            let merged = self.merge(sink, lbn, None)?;
            self.stats.merges.full += u64::from(merged);
        }
        self.scheme.forget(block);
        let done = if is_planted(FtlBug::MergedErasedEarly) { sink.start() } else { self.merged };
        self.give_up(sink, block, done)
    }

    /// Logical blocks with valid pages in a block, in the order of their first pages there.
    fn logical_blocks_in(&self, block: u32) -> Vec<u32> {
        let pages = self.pages_per_block();
        let first = self.flash.nand().geometry().ppn(BlockId(block), 0);
        let mut lbns = Vec::new();
        for lpn in (0..pages).filter_map(|i| self.flash.lpn_of(first.plus(i))) {
            if lpn.0 < self.pages && !lbns.contains(&(lpn.0 / pages)) {
                lbns.push(lpn.0 / pages);
            }
        }
        lbns
    }

    /// Brings the pages of a logical block together. Returns `false` if a program failed, after which
    /// the pages are strays.
    fn merge(&mut self, sink: &mut Sink, lbn: u32, into: Option<u32>) -> Result<bool> {
        let end = self.mapped_end(lbn);
        let into = match into {
            None if end > 0 => Some(self.take_block(sink)?),
            into => into,
        };
        if let Some(block) = into {
            if is_planted(FtlBug::RestNotCopied) {
                self.drop_rest(lbn, block);
            } else if !self.fill(sink, lbn, block, end)? {
                self.strays.insert(lbn);
                return Ok(false);
            }
        }
        let mut released = std::mem::take(&mut self.released);
        let into = into.map(|block| (block, self.flash.next_in(block)));
        self.scheme.merged(lbn, into, &mut released);
        self.strays.remove(&lbn);
        for block in released.drain(..) {
            let done = if is_planted(FtlBug::MergedErasedEarly) { sink.start() } else { self.merged };
            self.give_up(sink, block, done)?;
        }
        self.released = released;
        Ok(true)
    }

    /// Position after the last page of a logical block that has data in NAND.
    fn mapped_end(&self, lbn: u32) -> u32 {
        let pages = self.pages_per_block();
        let first = lbn * pages;
        let last = (first..(first + pages).min(self.pages)).rfind(|&l| self.map.get(Lpn(l)).ppn().is_some());
        last.map_or(0, |last| last - first + 1)
    }

    /// Copies the pages of a logical block to their positions in a block, from its next page on. Returns
    /// `false` if a program failed.
    fn fill(&mut self, sink: &mut Sink, lbn: u32, block: u32, until: u32) -> Result<bool> {
        let first = lbn * self.pages_per_block();
        let mut merged = Tok::default();
        loop {
            let at = self.flash.next_in(block);
            if at >= until {
                break;
            }
            let from = self.newest_of(Lpn(first + at));
            let copied = match from {
                Some(from) => self.flash.copy_placed(sink, &mut self.map, from, block)?,
                None => Copied::Lost,
            };
            match copied {
                Copied::Page(done) => {
                    merged = sink.join(merged, done);
                    self.stats.merges.copied += 1;
                }
                Copied::Lost => {
                    if let Some(from) = from {
                        self.lose_if_retired(from);
                    }
                    self.flash.pad_placed(sink, block, Cause::Gc)?;
                    self.stats.merges.padded += 1;
                }
                Copied::Failed => {
                    self.lose_block(block);
                    return Ok(false);
                }
            }
        }
        self.programmed = sink.join(self.programmed, merged);
        self.merged = sink.join(self.merged, merged);
        let offset = self.flash.next_in(block).saturating_sub(1);
        self.scheme.programmed(BlockPage { lbn, offset }, block, self.flash.next_in(block));
        Ok(true)
    }

    /// Place of the newest version of a page in NAND.
    fn newest_of(&self, lpn: Lpn) -> Option<Ppn> {
        self.map.find(u64::from(lpn.0)).filter(|_| lpn.0 < self.pages).and_then(PageEntry::ppn)
    }

    /// Forgets the pages that a merge does not copy, for a planted bug.
    #[cold]
    fn drop_rest(&mut self, lbn: u32, block: u32) {
        let pages = self.pages_per_block();
        for lpn in (lbn * pages..(lbn + 1) * pages).map(Lpn) {
            if let Some(ppn) = self.newest_of(lpn).filter(|&ppn| self.block_of(ppn).0 != block) {
                self.flash.invalidate(ppn);
                self.map.set(lpn, PageEntry::default());
            }
        }
    }

    /// Pads a block up to a position.
    fn pad_to(&mut self, sink: &mut Sink, block: u32, at: u32) -> Result<()> {
        while self.flash.next_in(block) < at {
            self.flash.pad_placed(sink, block, Cause::Gc)?;
            self.stats.merges.padded += 1;
        }
        Ok(())
    }

    /// Merges all logical blocks with stray pages.
    fn merge_strays(&mut self, sink: &mut Sink) -> Result<()> {
        while let Some(lbn) = self.strays.first().copied() {
            self.flash.writable()?;
            let merged = self.merge(sink, lbn, None)?;
            self.stats.merges.stray += u64::from(merged);
        }
        Ok(())
    }

    /// Gives up a block that the scheme does not use any more.
    fn give_up(&mut self, sink: &mut Sink, block: u32, done: Tok) -> Result<()> {
        let pages = self.logical_blocks_in(block);
        self.strays.extend(pages);
        self.flash.give_up(sink, &mut self.map, block, done)
    }

    /// Forgets the block of a lost page, if it is retired because of the page.
    fn lose_if_retired(&mut self, lost: Ppn) {
        let block = self.block_of(lost).0;
        if self.flash.blocks().state(block) == BlockUse::Retiring {
            self.lose_block(block);
        }
    }

    /// Forgets a block in which a program failed. Garbage collection moves its pages.
    fn lose_block(&mut self, block: u32) {
        self.scheme.forget(block);
        let pages = self.logical_blocks_in(block);
        self.strays.extend(pages);
    }

    /// Finds the data blocks after a recovery or a precondition, and the stray pages.
    pub(super) fn adopt_blocks(&mut self) {
        self.scheme.reset();
        self.strays.clear();
        if !self.config.mapping.maps_blocks() {
            return;
        }
        let blocks = self.flash.blocks().count();
        // Valid pages and number of the best block of each logical block.
        let mut best = vec![(0, 0); to_usize(self.pages.div_ceil(self.pages_per_block()))];
        for block in (0..blocks).filter(|&b| self.flash.blocks().state(b) != BlockUse::Bad) {
            if let Some(lbn) = self.in_place(block) {
                let valid = self.flash.blocks().valid(block);
                best[to_usize(lbn)] = best[to_usize(lbn)].max((valid, block));
            }
        }
        for (lbn, &(valid, block)) in (0..).zip(&best) {
            if valid > 0 {
                self.flash.claim_placed(block);
                self.scheme.adopt(lbn, block, self.flash.next_in(block));
            }
        }
        self.flash.seal_open_blocks();
        for block in 0..blocks {
            let lbns = self.logical_blocks_in(block);
            self.strays.extend(lbns.into_iter().filter(|&lbn| best[to_usize(lbn)].1 != block));
        }
    }

    /// Logical block whose pages a block has at their own positions, and no others.
    fn in_place(&self, block: u32) -> Option<u32> {
        let pages = self.pages_per_block();
        let first = self.flash.nand().geometry().ppn(BlockId(block), 0);
        let mut lbn = None;
        for at in 0..pages {
            let Some(lpn) = self.flash.lpn_of(first.plus(at)) else { continue };
            let place = Scheme::page_of(lpn, pages);
            if lpn.0 >= self.pages || place.offset != at || lbn.is_some_and(|lbn| lbn != place.lbn) {
                return None;
            }
            lbn = Some(place.lbn);
        }
        lbn
    }

    /// Pages of an erase block.
    pub(super) fn pages_per_block(&self) -> u32 {
        self.flash.blocks().pages_per_block()
    }

    /// Log blocks for a volume: as many as the configuration states, or as there is space for.
    ///
    /// # Errors
    /// Too few blocks.
    pub(super) fn log_blocks(
        config: &super::FtlConfig,
        usable_blocks: u32,
        logical_blocks: u32,
        meta_blocks: u32,
    ) -> Result<u32> {
        // A merge fills one block before it frees another.
        let free = usable_blocks.saturating_sub(logical_blocks + meta_blocks + 1);
        let least = config.mapping.log_blocks_min();
        let wanted = if config.log_blocks == 0 { free.max(least) } else { config.log_blocks };
        if !config.mapping.has_log() {
            let enough = usable_blocks > logical_blocks + meta_blocks;
            return if enough { Ok(0) } else { Err(too_few_blocks(config, 1)) };
        }
        if free < least {
            return Err(too_few_blocks(config, least - free));
        }
        if wanted < least || wanted > free {
            let why = format!("has to be from {least} to {free} on this NAND, or 0 for all of them");
            return Err(Error::param("log_blocks", wanted, why));
        }
        Ok(wanted)
    }
}

fn too_few_blocks(config: &super::FtlConfig, missing: u32) -> Error {
    if config.capacity > 0 {
        let why = format!("is {missing} blocks too much for data and log blocks on this NAND; lower it");
        return Error::param("capacity", config.capacity, why);
    }
    let why = format!("leaves {missing} blocks too few for data and log blocks; raise it");
    Error::param("over_provisioning", config.over_provisioning, why)
}

/// Logical blocks with stray pages.
pub(super) type Strays = BTreeSet<u32>;

/// Number of blocks that the pages of metadata take.
pub(super) fn meta_blocks(pages: u32, pages_per_block: u32) -> u32 {
    if pages == 0 { 0 } else { count_u32(to_usize(pages.div_ceil(pages_per_block))) + 1 }
}
