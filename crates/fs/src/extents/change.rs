//! Changes of a file's extents within a transaction.

use super::extent::Extent;
use super::load::LineReader;
use super::slots::{self, INLINE, LINE_WORDS, LINES, PER_BLOCK, SlotPosition, line_at};
use super::{ExtentMap, SlottedExtent};
use crate::error::Result;
use crate::format::{BLOCK, write_words};
use crate::inode::Inode;
use crate::journal::{BlockRun, Txn};
use crate::medium::Medium;
use std::collections::BTreeMap;

/// Maximum number of words in a transaction for one call of [`ExtentChange::insert`], or for one
/// extent of [`ExtentChange::remove`]: three slots with the checksums of their lines, and the bits
/// of two runs.
pub(crate) const STEP_WORDS: usize = 24;

/// Changes of one file's extents, collected for a transaction. The step that can fail comes first
/// ([`ExtentChange::add_extent_block`]), so that no change has to be undone.
pub(crate) struct ExtentChange<'a, M> {
    reader: LineReader<'a, M>,
    map: &'a mut ExtentMap,
    inode: &'a mut Inode,
    /// Changed lines, with their old and new words.
    lines: BTreeMap<u64, ([u64; LINE_WORDS], [u64; LINE_WORDS])>,
    /// Number of steps so far, for the size of the transaction.
    steps: usize,
}

impl<'a, M: Medium> ExtentChange<'a, M> {
    pub(crate) fn new(reader: LineReader<'a, M>, map: &'a mut ExtentMap, inode: &'a mut Inode) -> Self {
        Self { reader, map, inode, lines: BTreeMap::new(), steps: 0 }
    }

    /// Returns the current extents.
    pub(crate) fn map(&self) -> &ExtentMap {
        self.map
    }

    /// Marks blocks `from..to` of the file as new contents without a checksum.
    pub(crate) fn unsummed(&mut self, from: u64, to: u64) {
        self.map.unsummed.add(from, to);
    }

    /// Returns the maximum number of words that the changes so far take in a transaction.
    pub(crate) fn words(&self) -> usize {
        self.steps * STEP_WORDS
    }

    /// Returns `true` if at least `slots` extent slots are free.
    pub(crate) fn has_free_slots(&self, slots: usize) -> bool {
        self.map.free.len() >= slots
    }

    /// Adds a newly reserved extent block. Its lines are written directly, before the transaction.
    ///
    /// # Errors
    /// The line that must refer to the block is damaged.
    pub(crate) fn add_extent_block(&mut self, txn: &mut Txn, block: BlockRun) -> Result<()> {
        let mut empty = [0; LINE_WORDS];
        self.link(block)?;
        for line in 0..LINES {
            let at = line_at(block.start, line);
            empty[0] = slots::check(self.reader.salt, self.reader.ino, at, &empty);
            write_words(self.reader.medium, at, &empty);
        }
        // The fence before the transaction makes the lines durable before the file refers to them.
        txn.data = true;
        txn.alloc(block);
        self.add_slots(block);
        self.steps += 1;
        Ok(())
    }

    /// Adds a block of the file that reads as zeros as an extent block. Its lines are written by
    /// the transaction, because the block belongs to the file's contents until the transaction is
    /// durable.
    ///
    /// # Errors
    /// The line that must refer to the block is damaged.
    pub(crate) fn adopt_extent_block(&mut self, block: BlockRun) -> Result<()> {
        self.link(block)?;
        for line in 0..LINES {
            self.lines.insert(line_at(block.start, line), ([0; LINE_WORDS], [0; LINE_WORDS]));
        }
        self.add_slots(block);
        self.steps += 2;
        Ok(())
    }

    /// Appends a block to the chain of extent blocks.
    fn link(&mut self, block: BlockRun) -> Result<()> {
        match self.map.blocks.last().copied() {
            Some(last) => self.line(last, 0)?[1] = block.start,
            None => self.inode.extents = block.start,
        }
        Ok(())
    }

    /// Adds the slots of a linked extent block to the free slots.
    fn add_slots(&mut self, block: BlockRun) {
        self.add_blocks(1);
        let n = self.map.blocks.len();
        self.map.blocks.push(block.start);
        // Free slots are taken from the end, so those in the new block are used last.
        self.map.free.splice(0..0, slots::of_block(n));
    }

    /// Returns the words of a line, including the changes so far.
    fn line(&mut self, block: u64, line: u32) -> Result<&mut [u64; LINE_WORDS]> {
        let at = line_at(block, line);
        if !self.lines.contains_key(&at) {
            let words = self.reader.line(block, line)?;
            self.lines.insert(at, (words, words));
        }
        Ok(&mut self.lines.entry(at).or_insert(([0; LINE_WORDS], [0; LINE_WORDS])).1)
    }

    fn put(&mut self, slot: u32, words: [u64; 2]) -> Result<()> {
        match slots::find(slot) {
            SlotPosition::Inode(word) => self.inode.inline_area[word..word + 2].copy_from_slice(&words),
            SlotPosition::Block(block, line, word) => {
                let block = self.map.blocks[block];
                self.line(block, line)?[word..word + 2].copy_from_slice(&words);
            }
        }
        Ok(())
    }

    /// Inserts an extent into unallocated blocks, and merges it with its neighbours if possible.
    /// One slot must be free.
    ///
    /// # Errors
    /// An extent line is damaged.
    pub(crate) fn insert(&mut self, mut extent: Extent) -> Result<()> {
        self.steps += 1;
        let mut slot = None;
        let before = self.map.extents.range(..extent.at).next_back().map(|(_, placed)| *placed);
        if let Some(before) = before.filter(|before| before.extent.joins(&extent)) {
            extent = Extent { at: before.extent.at, len: before.extent.len + extent.len, ..before.extent };
            slot = Some(before.slot);
        }
        let behind = self.map.extents.get(&extent.end()).copied();
        if let Some(behind) = behind.filter(|behind| extent.joins(&behind.extent)) {
            extent.len += behind.extent.len;
            self.map.extents.remove(&behind.extent.at);
            // The extent joins both neighbours, so one of their slots becomes free.
            if slot.is_some() {
                self.put(behind.slot, [0, 0])?;
                self.map.free.push(behind.slot);
            } else {
                slot = Some(behind.slot);
            }
        }
        let slot = slot.or_else(|| self.map.free.pop());
        debug_assert!(slot.is_some(), "a free slot was ensured before");
        let Some(slot) = slot else { return Ok(()) };
        self.put(slot, extent.encode())?;
        self.map.extents.insert(extent.at, SlottedExtent { extent, slot });
        Ok(())
    }

    /// Increases the file's block count.
    pub(crate) fn add_blocks(&mut self, blocks: u64) {
        self.inode.blocks = self.inode.blocks.saturating_add(blocks);
    }

    /// Decreases the file's block count.
    pub(crate) fn sub_blocks(&mut self, blocks: u64) {
        self.inode.blocks = self.inode.blocks.saturating_sub(blocks);
    }

    /// Removes blocks `from..to` of the file, in at most `steps` extents, the last extents first,
    /// and passes each removed part to `each`. Returns the first block from which on nothing is
    /// left. One slot must be free.
    ///
    /// # Errors
    /// An extent line is damaged.
    pub(crate) fn remove(
        &mut self,
        from: u64,
        to: u64,
        mut steps: usize,
        mut each: impl FnMut(Extent),
    ) -> Result<u64> {
        let mut end = to;
        while let Some(placed) = self.last_in(from, end) {
            if steps == 0 {
                return Ok(end);
            }
            steps -= 1;
            self.steps += 1;
            let part = placed.extent.part(from, end);
            self.map.extents.remove(&placed.extent.at);
            let mut slot = Some(placed.slot);
            let rests = [(placed.extent.at, part.at), (part.end(), placed.extent.end())];
            // Parts before and after the removed range remain. The second one needs an additional
            // slot.
            for (at, end) in rests.into_iter().filter(|(at, end)| at < end) {
                let extent = placed.extent.part(at, end);
                let Some(slot) = slot.take().or_else(|| self.map.free.pop()) else { continue };
                self.put(slot, extent.encode())?;
                self.map.extents.insert(at, SlottedExtent { extent, slot });
            }
            if let Some(slot) = slot {
                self.put(slot, [0, 0])?;
                self.map.free.push(slot);
            }
            each(part);
            end = part.at;
        }
        Ok(from)
    }

    fn last_in(&self, from: u64, to: u64) -> Option<SlottedExtent> {
        let (_, placed) = self.map.extents.range(..to).next_back()?;
        (placed.extent.end() > from).then_some(*placed)
    }

    /// Frees up to `most` extent blocks of a file without extents, the last ones first. Returns
    /// `true` if none is left.
    ///
    /// # Errors
    /// An extent line is damaged.
    pub(crate) fn free_extent_blocks(&mut self, txn: &mut Txn, most: usize) -> Result<bool> {
        if !self.map.is_empty() || self.map.blocks.is_empty() {
            return Ok(true);
        }
        let left = self.map.blocks.len().saturating_sub(most);
        for start in self.map.blocks.split_off(left) {
            // Pending changes of a freed block must not be written.
            self.lines.retain(|at, _| at / BLOCK != start);
            txn.free(BlockRun { start, len: 1 });
            self.sub_blocks(1);
        }
        match self.map.blocks.last().copied() {
            Some(last) => self.line(last, 0)?[1] = 0,
            None => self.inode.extents = 0,
        }
        self.map.free = (0..INLINE + left as u32 * PER_BLOCK).rev().collect();
        Ok(left == 0)
    }

    /// Adds the changed lines to the transaction. The caller adds the inode.
    pub(crate) fn finish(mut self, txn: &mut Txn) {
        for (at, (before, now)) in &mut self.lines {
            now[0] = slots::check(self.reader.salt, self.reader.ino, *at, now);
            txn.write_changed(*at, before, now);
        }
    }
}

impl ExtentMap {
    /// Creates the extent map of a new file.
    pub(crate) fn empty() -> Self {
        Self { free: (0..INLINE).rev().collect(), ..Self::default() }
    }
}
