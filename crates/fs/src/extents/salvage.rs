//! Extents of an inode of which parts may be damaged, for repairs: what can be read is kept where it is.

use super::extent::Extent;
use super::load::LineReader;
use super::places::{self, HOLDERS_MAX, INLINE, LINE_WORDS, LINES, PER_BLOCK, Where, line_at};
use crate::format::write_words;
use crate::inode::Inode;
use crate::journal::Run;
use crate::medium::Medium;

/// A block of places.
#[derive(Debug)]
struct Holder {
    block: u64,
    lines: Vec<[u64; LINE_WORDS]>,
    /// Lines that are not on the medium as they are here.
    changed: Vec<bool>,
}

/// The places of one inode.
pub(crate) struct Salvage<'a, M> {
    reader: &'a LineReader<'a, M>,
    holders: Vec<Holder>,
}

impl<'a, M: Medium> Salvage<'a, M> {
    /// Reads all places that can be read. The chain of blocks ends before one that is `taken` by others, lies
    /// outside, or of which no line matches its check; each thing that is lost is told.
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
                    "block {next} holds none of its extents: they are lost, with those in blocks behind it"
                ));
                salvage.end(inode);
                break;
            };
            next = holder.lines[0][1];
            salvage.holders.push(holder);
        }
        salvage
    }

    /// One block; nothing where no line can be used.
    fn holder(&self, block: u64, tell: &mut impl FnMut(String)) -> Option<Holder> {
        if self.holders.len() >= HOLDERS_MAX || !self.reader.geometry.holds(block, 1) {
            return None;
        }
        let read: Vec<_> = (0..LINES).map(|line| self.reader.line(block, line).ok()).collect();
        if read.iter().all(Option::is_none) {
            return None;
        }
        for line in (0..LINES).filter(|line| read[*line as usize].is_none()) {
            let more = if line == 0 { ", with those in blocks behind it" } else { "" };
            tell(format!(
                "the line of extents at byte {:#x} does not match its check: its extents are lost{more}",
                line_at(block, line)
            ));
        }
        let changed = read.iter().map(Option::is_none).collect();
        let lines = read.into_iter().map(|line| line.unwrap_or([0; LINE_WORDS])).collect();
        Some(Holder { block, lines, changed })
    }

    /// The chain ends here.
    fn end(&mut self, inode: &mut Inode) {
        match self.holders.last_mut() {
            Some(last) => {
                last.lines[0][1] = 0;
                last.changed[0] = true;
            }
            None => inode.extents = 0,
        }
    }

    /// Every extent, with its place.
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

    /// Changes one place, or empties it.
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

    /// Blocks that hold places.
    pub(crate) fn holders(&self) -> u64 {
        self.holders.len() as u64
    }

    /// Writes the lines that changed. The inode is the caller's.
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
