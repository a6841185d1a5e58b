//! Recovery of extents from an inode with partial damage, for repair. Readable extents keep their
//! slots.

use super::extent::Extent;
use super::load::LineReader;
use super::slots::{self, EXTENT_BLOCKS_MAX, INLINE, LINE_WORDS, LINES, PER_BLOCK, SlotPosition, line_at};
use crate::format::write_words;
use crate::inode::Inode;
use crate::journal::BlockRun;
use crate::medium::Medium;

/// An extent block.
#[derive(Debug)]
struct ExtentBlock {
    block: u64,
    lines: Vec<[u64; LINE_WORDS]>,
    /// For each line, `true` if it differs from the medium.
    changed: Vec<bool>,
}

/// All extent slots of one inode.
pub(crate) struct Salvage<'a, M> {
    reader: &'a LineReader<'a, M>,
    extent_blocks: Vec<ExtentBlock>,
}

impl<'a, M: Medium> Salvage<'a, M> {
    /// Reads all readable slots. The chain of extent blocks ends before a block that is `taken` by
    /// another inode, lies outside the data space, or has no valid line. Each loss is reported to
    /// `report_loss`.
    pub(crate) fn read(
        reader: &'a LineReader<'a, M>,
        inode: &mut Inode,
        mut taken: impl FnMut(BlockRun) -> bool,
        mut report_loss: impl FnMut(String),
    ) -> Self {
        let mut salvage = Self { reader, extent_blocks: Vec::new() };
        let mut next = inode.extents;
        while next != 0 {
            let extent_block = salvage.extent_block(next, &mut report_loss);
            let Some(extent_block) = extent_block.filter(|h| !taken(BlockRun { start: h.block, len: 1 }))
            else {
                report_loss(format!(
                    "extent block {next} is unusable: its extents are lost, with those in later blocks"
                ));
                salvage.end(inode);
                break;
            };
            next = extent_block.lines[0][1];
            salvage.extent_blocks.push(extent_block);
        }
        salvage
    }

    /// Reads one extent block; returns `None` if no line is valid.
    fn extent_block(&self, block: u64, report_loss: &mut impl FnMut(String)) -> Option<ExtentBlock> {
        if self.extent_blocks.len() >= EXTENT_BLOCKS_MAX || !self.reader.geometry.holds(block, 1) {
            return None;
        }
        let read: Vec<_> = (0..LINES).map(|line| self.reader.line(block, line).ok()).collect();
        if read.iter().all(Option::is_none) {
            return None;
        }
        for line in (0..LINES).filter(|line| read[*line as usize].is_none()) {
            let more = if line == 0 { ", with those in later blocks" } else { "" };
            report_loss(format!(
                "the line of extents at byte {:#x} does not match its checksum: its extents are lost{more}",
                line_at(block, line)
            ));
        }
        let changed = read.iter().map(Option::is_none).collect();
        let lines = read.into_iter().map(|line| line.unwrap_or([0; LINE_WORDS])).collect();
        Some(ExtentBlock { block, lines, changed })
    }

    /// Terminates the chain at the last extent block.
    fn end(&mut self, inode: &mut Inode) {
        match self.extent_blocks.last_mut() {
            Some(last) => {
                last.lines[0][1] = 0;
                last.changed[0] = true;
            }
            None => inode.extents = 0,
        }
    }

    /// Returns all extents with their slots.
    pub(crate) fn extents(&self, inode: &Inode) -> Vec<(u32, Extent)> {
        let slots = INLINE + self.extent_blocks.len() as u32 * PER_BLOCK;
        (0..slots).filter_map(|slot| Some((slot, Extent::decode(self.words(inode, slot))?))).collect()
    }

    fn words(&self, inode: &Inode, slot: u32) -> [u64; 2] {
        match slots::find(slot) {
            SlotPosition::Inode(word) => [inode.inline_area[word], inode.inline_area[word + 1]],
            SlotPosition::Block(block, line, word) => {
                let line = &self.extent_blocks[block].lines[line as usize];
                [line[word], line[word + 1]]
            }
        }
    }

    /// Writes an extent to a slot, or clears the slot.
    pub(crate) fn put(&mut self, inode: &mut Inode, slot: u32, extent: Option<Extent>) {
        let words = extent.map_or([0, 0], |extent| extent.encode());
        match slots::find(slot) {
            SlotPosition::Inode(word) => inode.inline_area[word..word + 2].copy_from_slice(&words),
            SlotPosition::Block(block, line, word) => {
                let extent_block = &mut self.extent_blocks[block];
                extent_block.lines[line as usize][word..word + 2].copy_from_slice(&words);
                extent_block.changed[line as usize] = true;
            }
        }
    }

    /// Returns the number of extent blocks.
    pub(crate) fn extent_blocks(&self) -> u64 {
        self.extent_blocks.len() as u64
    }

    /// Writes the changed lines. The caller writes the inode.
    pub(crate) fn write(self) {
        let LineReader { medium, salt, ino, .. } = *self.reader;
        for mut extent_block in self.extent_blocks {
            for line in (0..LINES).filter(|line| extent_block.changed[*line as usize]) {
                let at = line_at(extent_block.block, line);
                let words = &mut extent_block.lines[line as usize];
                words[0] = slots::check(salt, ino, at, words);
                write_words(medium, at, words);
            }
        }
    }
}
