//! Recovery of extents from an inode with partial damage, for repair. Readable extents keep their
//! slots.

use super::extent::Extent;
use super::load::LineReader;
use super::places::{self, HOLDERS_MAX, INLINE, LINE_WORDS, LINES, PER_BLOCK, Where, line_at};
use crate::format::write_words;
use crate::inode::Inode;
use crate::journal::Run;
use crate::medium::Medium;

/// An extent block.
#[derive(Debug)]
struct Holder {
    block: u64,
    lines: Vec<[u64; LINE_WORDS]>,
    /// For each line, `true` if it differs from the medium.
    changed: Vec<bool>,
}

/// All extent slots of one inode.
pub(crate) struct Salvage<'a, M> {
    reader: &'a LineReader<'a, M>,
    holders: Vec<Holder>,
}

impl<'a, M: Medium> Salvage<'a, M> {
    /// Reads all readable slots. The chain of extent blocks ends before a block that is `taken` by
    /// another inode, lies outside the data space, or has no valid line. Each loss is reported to
    /// `tell`.
    pub(crate) fn read(
        reader: &'a LineReader<'a, M>,
        inode: &mut Inode,
        mut taken: impl FnMut(Run) -> bool,
        mut tell: impl FnMut(String),
    ) -> Self {
        let mut salvage = Self { reader, holders: Vec::new() };
        let mut next = inode.extents;
        while next != 0 {
            let holder = salvage.holder(next, &mut tell);
            let Some(holder) = holder.filter(|h| !taken(Run { start: h.block, len: 1 })) else {
                tell(format!(
                    "extent block {next} is unusable: its extents are lost, with those in later blocks"
                ));
                salvage.end(inode);
                break;
            };
            next = holder.lines[0][1];
            salvage.holders.push(holder);
        }
        salvage
    }

    /// Reads one extent block; returns `None` if no line is valid.
    fn holder(&self, block: u64, tell: &mut impl FnMut(String)) -> Option<Holder> {
        if self.holders.len() >= HOLDERS_MAX || !self.reader.geometry.holds(block, 1) {
            return None;
        }
        let read: Vec<_> = (0..LINES).map(|line| self.reader.line(block, line).ok()).collect();
        if read.iter().all(Option::is_none) {
            return None;
        }
        for line in (0..LINES).filter(|line| read[*line as usize].is_none()) {
            let more = if line == 0 { ", with those in later blocks" } else { "" };
            tell(format!(
                "the line of extents at byte {:#x} does not match its checksum: its extents are lost{more}",
                line_at(block, line)
            ));
        }
        let changed = read.iter().map(Option::is_none).collect();
        let lines = read.into_iter().map(|line| line.unwrap_or([0; LINE_WORDS])).collect();
        Some(Holder { block, lines, changed })
    }

    /// Terminates the chain at the last extent block.
    fn end(&mut self, inode: &mut Inode) {
        match self.holders.last_mut() {
            Some(last) => {
                last.lines[0][1] = 0;
                last.changed[0] = true;
            }
            None => inode.extents = 0,
        }
    }

    /// Returns all extents with their slots.
    pub(crate) fn extents(&self, inode: &Inode) -> Vec<(u32, Extent)> {
        let places = INLINE + self.holders.len() as u32 * PER_BLOCK;
        (0..places).filter_map(|place| Some((place, Extent::decode(self.words(inode, place))?))).collect()
    }

    fn words(&self, inode: &Inode, place: u32) -> [u64; 2] {
        match places::find(place) {
            Where::Inode(word) => [inode.area[word], inode.area[word + 1]],
            Where::Block(block, line, word) => {
                let line = &self.holders[block].lines[line as usize];
                [line[word], line[word + 1]]
            }
        }
    }

    /// Writes an extent to a slot, or clears the slot.
    pub(crate) fn put(&mut self, inode: &mut Inode, place: u32, extent: Option<Extent>) {
        let words = extent.map_or([0, 0], |extent| extent.encode());
        match places::find(place) {
            Where::Inode(word) => inode.area[word..word + 2].copy_from_slice(&words),
            Where::Block(block, line, word) => {
                let holder = &mut self.holders[block];
                holder.lines[line as usize][word..word + 2].copy_from_slice(&words);
                holder.changed[line as usize] = true;
            }
        }
    }

    /// Returns the number of extent blocks.
    pub(crate) fn holders(&self) -> u64 {
        self.holders.len() as u64
    }

    /// Writes the changed lines. The caller writes the inode.
    pub(crate) fn write(self) {
        let LineReader { medium, salt, ino, .. } = *self.reader;
        for mut holder in self.holders {
            for line in (0..LINES).filter(|line| holder.changed[*line as usize]) {
                let at = line_at(holder.block, line);
                let words = &mut holder.lines[line as usize];
                words[0] = places::check(salt, ino, at, words);
                write_words(medium, at, words);
            }
        }
    }
}
