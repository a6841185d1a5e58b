//! What is known of a directory in DRAM.

use super::record::{Record, SLOT, SLOTS, slots_for};
use crate::error::{Error, Result};
use crate::extents::Map;
use crate::format::BLOCK;
use crate::medium::Medium;
use crate::types::{Ino, Kind};
use frit_core::planted::{Bug, is};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// Slots of names that a block can have at most run together.
const RUN_MAX: usize = slots_for(crate::types::NAME_MAX) as usize;

/// Most blocks of a directory: slots are numbered by 32 bits.
pub(crate) const BLOCKS_MAX: u64 = (u32::MAX / SLOTS) as u64;

/// A name's hash and its first slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    hash: u32,
    slot: u32,
}

/// A block of a directory.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Where it is, in blocks of the medium.
    block: u64,
    /// Slots that are free.
    free: u128,
    /// Slots that a name begins in.
    heads: u128,
}

/// Where every name is.
#[derive(Debug)]
pub(crate) struct Index {
    salt: u32,
    dir: Ino,
    hasher: RandomState,
    table: HashTable<Known>,
    pages: Vec<Page>,
    /// For each length of a name in slots: no block before this one has as many free slots together.
    fits_from: [u32; RUN_MAX + 1],
    /// The position of a name that does not match its check. No name can be said to be missing then.
    damaged: Option<u64>,
    /// The number of names that the inode counts, where there are others.
    miscounted: Option<u64>,
}

/// A name that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) slot: u32,
    pub(crate) ino: Ino,
    pub(crate) kind: Kind,
}

/// A table's place for a hash: the table takes bits from both ends.
fn spread(hash: u32) -> u64 {
    u64::from(hash) | u64::from(hash.wrapping_mul(0x9E37_79B1)) << 32
}

impl Index {
    /// Of an empty directory.
    pub(crate) fn new(salt: u32, dir: Ino) -> Self {
        Self {
            salt,
            dir,
            hasher: RandomState::new(),
            table: HashTable::new(),
            pages: Vec::new(),
            fits_from: [0; RUN_MAX + 1],
            damaged: None,
            miscounted: None,
        }
    }

    /// Reads a directory. `at` is the position of its inode, which is damaged where its blocks are not those that
    /// its size says, or its names are not as many as it has: a piece that reads as zeros has no name that could be
    /// damaged.
    pub(crate) fn load<M: Medium>(
        medium: &M,
        (salt, at): (u32, u64),
        dir: Ino,
        map: &Map,
        (size, names): (u64, Option<u64>),
    ) -> Self {
        let mut index = Self::new(salt, dir);
        let mut blocks = 0;
        for extent in map.iter() {
            let whole = extent.at == blocks && extent.written && extent.end() <= BLOCKS_MAX;
            if !whole {
                index.damaged = Some(at);
                return index;
            }
            blocks += extent.len;
        }
        if size != blocks * BLOCK {
            index.damaged = Some(at);
        }
        index.table.reserve(blocks as usize * SLOTS as usize / 3, |known| spread(known.hash));
        for extent in map.iter() {
            for i in 0..extent.len {
                index.load_page(medium, extent.start + i);
            }
        }
        index.miscounted = names.filter(|names| *names != index.table.len() as u64);
        if index.miscounted.is_some() && !is(Bug::FsNamesNotCompared) {
            index.damaged = index.damaged.or(Some(at));
        }
        index
    }

    fn load_page<M: Medium>(&mut self, medium: &M, block: u64) {
        let page = self.pages.len() as u32;
        let mut found = Page { block, free: 0, heads: 0 };
        self.pages.push(found);
        let mut at = 0;
        while at < SLOTS {
            let slot = page * SLOTS + at;
            let record = self.read(medium, slot);
            if record.is_free() {
                found.free |= 1 << at;
                at += 1;
            } else if at + record.slots() <= SLOTS && record.sound(self.salt, self.dir, slot) {
                found.heads |= 1 << at;
                self.learn(record.name(), slot);
                at += record.slots();
            } else {
                self.damaged = Some(self.at(slot));
                at += 1;
            }
        }
        self.pages[page as usize] = found;
    }

    /// The position of a slot in bytes.
    pub(crate) fn at(&self, slot: u32) -> u64 {
        self.pages[(slot / SLOTS) as usize].block * BLOCK + u64::from(slot % SLOTS) * SLOT
    }

    /// The record that begins at a slot, unchecked; one that would leave its block is cut.
    fn read<M: Medium>(&self, medium: &M, slot: u32) -> Record {
        let mut record = Record::blank();
        let at = self.at(slot);
        medium.read(at, record.first());
        if slot % SLOTS + record.slots() <= SLOTS {
            medium.read(at + SLOT, record.others());
        }
        record
    }

    fn hash(&self, name: &[u8]) -> u32 {
        self.hasher.hash_one(name) as u32
    }

    /// Finds a name.
    ///
    /// # Errors
    /// It is not there, but part of the directory is damaged; or it was damaged since the directory was read.
    pub(crate) fn find<M: Medium>(&self, medium: &M, name: &[u8]) -> Result<Option<Found>> {
        let hash = self.hash(name);
        let mut found = None;
        let mut damaged = self.damaged;
        let same = |known: &Known| {
            if known.hash != hash {
                return false;
            }
            let record = self.read(medium, known.slot);
            if !record.sound(self.salt, self.dir, known.slot) {
                damaged = Some(self.at(known.slot));
                return false;
            }
            if record.name() != name {
                return false;
            }
            found = record.kind().map(|kind| Found { slot: known.slot, ino: record.ino(), kind });
            true
        };
        self.table.find(spread(hash), same);
        match (found, damaged) {
            (None, Some(at)) => Err(Error::Damaged { what: "a name in a directory", at }),
            _ => Ok(found),
        }
    }

    /// The record that begins at a slot where a name is; nothing where it was damaged since the directory was read.
    pub(crate) fn record<M: Medium>(&self, medium: &M, slot: u32) -> Option<Record> {
        Some(self.read(medium, slot)).filter(|record| record.sound(self.salt, self.dir, slot))
    }

    /// Where a name of so many slots fits; nothing where the directory has to grow.
    pub(crate) fn place(&mut self, slots: u32) -> Option<u32> {
        let first = self.fits_from[slots as usize];
        for page in first..self.pages.len() as u32 {
            let free = self.pages[page as usize].free;
            let mut fits = free;
            for i in 1..slots {
                fits &= free >> i;
            }
            if fits != 0 {
                self.fits_from[slots as usize] = page;
                return Some(page * SLOTS + fits.trailing_zeros());
            }
        }
        self.fits_from[slots as usize] = self.pages.len() as u32;
        None
    }

    /// A block that was added at the end.
    pub(crate) fn grow(&mut self, block: u64) {
        self.pages.push(Page { block, free: u128::MAX, heads: 0 });
    }

    /// How many blocks there are.
    pub(crate) fn blocks(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Whether part of it cannot be read.
    pub(crate) fn damage(&self) -> Option<u64> {
        self.damaged
    }

    /// The number of names that the inode counts, where there are others.
    pub(crate) fn miscounted(&self) -> Option<u64> {
        self.miscounted
    }

    fn learn(&mut self, name: &[u8], slot: u32) {
        let hash = self.hash(name);
        self.table.insert_unique(spread(hash), Known { hash, slot }, |known| spread(known.hash));
    }

    /// A name is at a slot now.
    pub(crate) fn insert(&mut self, name: &[u8], slot: u32) {
        let page = &mut self.pages[(slot / SLOTS) as usize];
        page.free &= !mask(slot, slots_for(name.len()));
        page.heads |= 1 << (slot % SLOTS);
        self.learn(name, slot);
    }

    /// A name is at a slot no longer.
    pub(crate) fn remove(&mut self, name: &[u8], slot: u32) {
        let slots = slots_for(name.len());
        let page = &mut self.pages[(slot / SLOTS) as usize];
        page.free |= mask(slot, slots);
        page.heads &= !(1 << (slot % SLOTS));
        for from in &mut self.fits_from {
            *from = (*from).min(slot / SLOTS);
        }
        let hash = self.hash(name);
        if let Ok(there) = self.table.find_entry(spread(hash), |known| known.slot == slot) {
            there.remove();
        }
    }

    /// All names, with their slots.
    pub(crate) fn records<'a, M: Medium>(
        &'a self,
        medium: &'a M,
    ) -> impl Iterator<Item = (u32, Record)> + 'a {
        let mut next = 0;
        std::iter::from_fn(move || {
            let head = self.next_head(next)?;
            let record = self.read(medium, head);
            next = head + record.slots();
            Some((head, record))
        })
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// The first slot from `from` on that a name begins in.
    pub(crate) fn next_head(&self, from: u32) -> Option<u32> {
        let mut at = from;
        while let Some(page) = self.pages.get((at / SLOTS) as usize) {
            let heads = page.heads >> (at % SLOTS);
            if heads != 0 {
                return Some(at + heads.trailing_zeros());
            }
            at = (at / SLOTS + 1) * SLOTS;
        }
        None
    }
}

/// The bits of so many slots from a slot on in its block.
fn mask(slot: u32, slots: u32) -> u128 {
    ((1 << slots) - 1) << (slot % SLOTS)
}
