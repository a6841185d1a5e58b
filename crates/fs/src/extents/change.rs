//! Changing the extents of a file inside a transaction.

use super::extent::Extent;
use super::load::LineReader;
use super::places::{self, INLINE, LINE_WORDS, LINES, PER_BLOCK, Where, line_at};
use super::{Map, Placed};
use crate::error::Result;
use crate::format::{BLOCK, write_words};
use crate::inode::Inode;
use crate::journal::{Run, Txn};
use crate::medium::Medium;
use std::collections::BTreeMap;

/// Most words of a transaction that one call of [`Change::insert`], or one extent of [`Change::remove`], takes: three
/// places with the check of their lines, and the bits of two runs.
pub(crate) const STEP_WORDS: usize = 24;

/// Changes of one file's extents, gathered until they go into a transaction. Whatever can fail comes first
/// ([`Change::make_room`]), so that no change has to be taken back.
pub(crate) struct Change<'a, M> {
    reader: LineReader<'a, M>,
    map: &'a mut Map,
    inode: &'a mut Inode,
    /// Lines that are changed, as they were and as they will be.
    lines: BTreeMap<u64, ([u64; LINE_WORDS], [u64; LINE_WORDS])>,
    /// Steps taken, for the room that they need.
    steps: usize,
}

impl<'a, M: Medium> Change<'a, M> {
    pub(crate) fn new(reader: LineReader<'a, M>, map: &'a mut Map, inode: &'a mut Inode) -> Self {
        Self { reader, map, inode, lines: BTreeMap::new(), steps: 0 }
    }

    /// The extents as they are now.
    pub(crate) fn map(&self) -> &Map {
        self.map
    }

    /// Contents of blocks `from..to` of the file are new, and have no checksum yet.
    pub(crate) fn unsummed(&mut self, from: u64, to: u64) {
        self.map.unsummed.add(from, to);
    }

    /// Words that the changes so far will take at most.
    pub(crate) fn words(&self) -> usize {
        self.steps * STEP_WORDS
    }

    /// Whether so many more places are free.
    pub(crate) fn has_room(&self, places: usize) -> bool {
        self.map.free.len() >= places
    }

    /// Makes places in a block that was reserved for them. Its lines are on the medium before the transaction is.
    ///
    /// # Errors
    /// The line that it is to be linked from is damaged.
    pub(crate) fn make_room(&mut self, txn: &mut Txn, block: Run) -> Result<()> {
        let mut empty = [0; LINE_WORDS];
        self.link(block)?;
        for line in 0..LINES {
            let at = line_at(block.start, line);
            empty[0] = places::check(self.reader.salt, self.reader.ino, at, &empty);
            write_words(self.reader.medium, at, &empty);
        }
        txn.data = true;
        txn.take(block);
        self.add_places(block);
        self.steps += 1;
        Ok(())
    }

    /// Makes places in a block that the file has and that reads as zeros. Its lines go through the transaction: until
    /// that is durable the block belongs to the contents of the file.
    ///
    /// # Errors
    /// The line that it is to be linked from is damaged.
    pub(crate) fn make_room_of_own(&mut self, block: Run) -> Result<()> {
        self.link(block)?;
        for line in 0..LINES {
            self.lines.insert(line_at(block.start, line), ([0; LINE_WORDS], [0; LINE_WORDS]));
        }
        self.add_places(block);
        self.steps += 2;
        Ok(())
    }

    /// Makes a block the last of the chain of those that hold places.
    fn link(&mut self, block: Run) -> Result<()> {
        match self.map.blocks.last().copied() {
            Some(last) => self.line(last, 0)?[1] = block.start,
            None => self.inode.extents = block.start,
        }
        Ok(())
    }

    /// The places of a block that was linked can be used.
    fn add_places(&mut self, block: Run) {
        self.add_blocks(1);
        let n = self.map.blocks.len();
        self.map.blocks.push(block.start);
        self.map.free.splice(0..0, places::of_block(n));
    }

    /// The words of a line with the changes so far.
    fn line(&mut self, block: u64, line: u32) -> Result<&mut [u64; LINE_WORDS]> {
        let at = line_at(block, line);
        if !self.lines.contains_key(&at) {
            let words = self.reader.line(block, line)?;
            self.lines.insert(at, (words, words));
        }
        Ok(&mut self.lines.entry(at).or_insert(([0; LINE_WORDS], [0; LINE_WORDS])).1)
    }

    fn put(&mut self, place: u32, words: [u64; 2]) -> Result<()> {
        match places::find(place) {
            Where::Inode(word) => self.inode.area[word..word + 2].copy_from_slice(&words),
            Where::Block(block, line, word) => {
                let block = self.map.blocks[block];
                self.line(block, line)?[word..word + 2].copy_from_slice(&words);
            }
        }
        Ok(())
    }

    /// Puts an extent where none is, in one piece with its neighbours where that is possible. One place must be free.
    ///
    /// # Errors
    /// A line of extents is damaged.
    pub(crate) fn insert(&mut self, mut extent: Extent) -> Result<()> {
        self.steps += 1;
        let mut place = None;
        let before = self.map.extents.range(..extent.at).next_back().map(|(_, placed)| *placed);
        if let Some(before) = before.filter(|before| before.extent.joins(&extent)) {
            extent = Extent { at: before.extent.at, len: before.extent.len + extent.len, ..before.extent };
            place = Some(before.place);
        }
        let behind = self.map.extents.get(&extent.end()).copied();
        if let Some(behind) = behind.filter(|behind| extent.joins(&behind.extent)) {
            extent.len += behind.extent.len;
            self.map.extents.remove(&behind.extent.at);
            if place.is_some() {
                self.put(behind.place, [0, 0])?;
                self.map.free.push(behind.place);
            } else {
                place = Some(behind.place);
            }
        }
        let place = place.or_else(|| self.map.free.pop());
        debug_assert!(place.is_some(), "room was made before");
        let Some(place) = place else { return Ok(()) };
        self.put(place, extent.encode())?;
        self.map.extents.insert(extent.at, Placed { extent, place });
        Ok(())
    }

    /// The file has so many blocks more.
    pub(crate) fn add_blocks(&mut self, blocks: u64) {
        self.inode.blocks = self.inode.blocks.saturating_add(blocks);
    }

    /// The file has so many blocks less.
    pub(crate) fn sub_blocks(&mut self, blocks: u64) {
        self.inode.blocks = self.inode.blocks.saturating_sub(blocks);
    }

    /// Takes blocks `from..to` of the file out, the last extents first, at most `steps` of them; what was taken goes
    /// to `each`. Returns the first block from which on none is left. One place must be free.
    ///
    /// # Errors
    /// A line of extents is damaged.
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
            let mut place = Some(placed.place);
            let rests = [(placed.extent.at, part.at), (part.end(), placed.extent.end())];
            for (at, end) in rests.into_iter().filter(|(at, end)| at < end) {
                let extent = placed.extent.part(at, end);
                let Some(place) = place.take().or_else(|| self.map.free.pop()) else { continue };
                self.put(place, extent.encode())?;
                self.map.extents.insert(at, Placed { extent, place });
            }
            if let Some(place) = place {
                self.put(place, [0, 0])?;
                self.map.free.push(place);
            }
            each(part);
            end = part.at;
        }
        Ok(from)
    }

    fn last_in(&self, from: u64, to: u64) -> Option<Placed> {
        let (_, placed) = self.map.extents.range(..to).next_back()?;
        (placed.extent.end() > from).then_some(*placed)
    }

    /// When no extent is left in a file, gives up the blocks that hold places, at most `most` of them, the last
    /// first. Returns whether none is left.
    ///
    /// # Errors
    /// A line of extents is damaged.
    pub(crate) fn drop_holders(&mut self, txn: &mut Txn, most: usize) -> Result<bool> {
        if !self.map.is_empty() || self.map.blocks.is_empty() {
            return Ok(true);
        }
        let left = self.map.blocks.len().saturating_sub(most);
        for start in self.map.blocks.split_off(left) {
            self.lines.retain(|at, _| at / BLOCK != start);
            txn.free(Run { start, len: 1 });
            self.sub_blocks(1);
        }
        match self.map.blocks.last().copied() {
            Some(last) => self.line(last, 0)?[1] = 0,
            None => self.inode.extents = 0,
        }
        self.map.free = (0..INLINE + left as u32 * PER_BLOCK).rev().collect();
        Ok(left == 0)
    }

    /// Puts the changed lines into the transaction. The inode is the caller's.
    pub(crate) fn finish(mut self, txn: &mut Txn) {
        for (at, (before, now)) in &mut self.lines {
            now[0] = places::check(self.reader.salt, self.reader.ino, *at, now);
            txn.write_changed(*at, before, now);
        }
    }
}

impl Map {
    /// The extents of a new file.
    pub(crate) fn empty() -> Self {
        Self { free: (0..INLINE).rev().collect(), ..Self::default() }
    }
}
