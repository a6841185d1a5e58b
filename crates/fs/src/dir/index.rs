//! The index of a directory in DRAM.

use super::record::{DirRecord, SLOT, SLOTS, slots_for};
use crate::error::{Error, Result};
use crate::extents::ExtentMap;
use crate::format::BLOCK;
use crate::medium::Medium;
use crate::planted::DamageBug;
use crate::types::{Ino, InodeType};
use frit_core::planted::is_planted;
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// Maximum number of slots that a name takes.
const RUN_MAX: usize = slots_for(crate::types::NAME_MAX) as usize;

/// Maximum number of blocks of a directory: slot numbers have 32 bits.
pub(crate) const BLOCKS_MAX: u64 = (u32::MAX / SLOTS) as u64;

/// Hash and first slot of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct IndexEntry {
    hash: u32,
    slot: u32,
}

/// State of a directory block.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Block number on the medium.
    block: u64,
    /// Bit mask of the free slots.
    free: u128,
    /// Bit mask of the slots in which a name begins.
    heads: u128,
}

/// Maps names to slots.
#[derive(Debug)]
pub(crate) struct DirIndex {
    salt: u32,
    dir: Ino,
    hasher: RandomState,
    table: HashTable<IndexEntry>,
    pages: Vec<Page>,
    /// For each number of slots: no page before this one has as many consecutive free slots.
    fits_from: [u32; RUN_MAX + 1],
    /// Byte position of damage. A lookup that finds nothing then fails, as the name may have been
    /// lost.
    damaged: Option<u64>,
    /// Name count of the inode, if it differs from the number of names found.
    miscounted: Option<u64>,
}

/// Directory to be loaded, as its inode describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DirInode {
    pub(crate) ino: Ino,
    /// Position of the inode.
    pub(crate) at: u64,
    /// Size of the directory, in bytes.
    pub(crate) size: u64,
    /// Number of names, if the inode counts them.
    pub(crate) names: Option<u64>,
}

/// Result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FoundName {
    pub(crate) slot: u32,
    pub(crate) ino: Ino,
    pub(crate) kind: InodeType,
}

/// Expands a hash to 64 bits, because the table uses bits of both ends.
fn spread(hash: u32) -> u64 {
    u64::from(hash) | u64::from(hash.wrapping_mul(0x9E37_79B1)) << 32
}

impl DirIndex {
    /// Creates the index of an empty directory.
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

    /// Reads a directory. Its inode is reported as damaged if the blocks do not match the size, or
    /// the names do not match the count: a block that was lost to zeros contains no name whose
    /// checksum could fail.
    pub(crate) fn load<M: Medium>(medium: &M, salt: u32, dir: &DirInode, map: &ExtentMap) -> Self {
        let DirInode { ino: dir, at, size, names } = *dir;
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
        // An estimate of the number of names, to avoid rehashing during the load.
        index.table.reserve(blocks as usize * SLOTS as usize / 3, |known| spread(known.hash));
        for extent in map.iter() {
            for i in 0..extent.len {
                index.load_page(medium, extent.start + i);
            }
        }
        index.miscounted = names.filter(|names| *names != index.table.len() as u64);
        if index.miscounted.is_some() && !is_planted(DamageBug::NamesNotCompared) {
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
                // The length of a damaged record is unreliable, so the scan continues at the next
                // slot.
                self.damaged = Some(self.at(slot));
                at += 1;
            }
        }
        self.pages[page as usize] = found;
    }

    /// Returns the byte position of a slot.
    pub(crate) fn at(&self, slot: u32) -> u64 {
        self.pages[(slot / SLOTS) as usize].block * BLOCK + u64::from(slot % SLOTS) * SLOT
    }

    /// Reads the record that begins at a slot, without verification. The part outside its block is
    /// not read.
    fn read<M: Medium>(&self, medium: &M, slot: u32) -> DirRecord {
        let mut record = DirRecord::blank();
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
    /// The name is not found and the directory is damaged, or was damaged since it was loaded.
    pub(crate) fn find<M: Medium>(&self, medium: &M, name: &[u8]) -> Result<Option<FoundName>> {
        let hash = self.hash(name);
        let mut found = None;
        let mut damaged = self.damaged;
        let same = |known: &IndexEntry| {
            if known.hash != hash {
                return false;
            }
            let record = self.read(medium, known.slot);
            // Records are verified at each access, because the medium may be damaged after the
            // load.
            if !record.sound(self.salt, self.dir, known.slot) {
                damaged = Some(self.at(known.slot));
                return false;
            }
            if record.name() != name {
                return false;
            }
            found = record.kind().map(|kind| FoundName { slot: known.slot, ino: record.ino(), kind });
            true
        };
        self.table.find(spread(hash), same);
        match (found, damaged) {
            (None, Some(at)) => Err(Error::Damaged { what: "a name in a directory", at }),
            _ => Ok(found),
        }
    }

    /// Returns the record at a slot, or `None` if it was damaged since the directory was loaded.
    pub(crate) fn record<M: Medium>(&self, medium: &M, slot: u32) -> Option<DirRecord> {
        Some(self.read(medium, slot)).filter(|record| record.sound(self.salt, self.dir, slot))
    }

    /// Returns the first of `slots` consecutive free slots, or `None` if the directory has to grow.
    pub(crate) fn place(&mut self, slots: u32) -> Option<u32> {
        let first = self.fits_from[slots as usize];
        for page in first..self.pages.len() as u32 {
            let free = self.pages[page as usize].free;
            let mut fits = free;
            // A bit stays set where a run of `slots` free slots begins.
            for i in 1..slots {
                fits &= free >> i;
            }
            if fits != 0 {
                self.fits_from[slots as usize] = page;
                return Some(page * SLOTS + fits.trailing_zeros());
            }
        }
        // No page fits: the next search starts with pages that are added later.
        self.fits_from[slots as usize] = self.pages.len() as u32;
        None
    }

    /// Adds a block at the end.
    pub(crate) fn grow(&mut self, block: u64) {
        self.pages.push(Page { block, free: u128::MAX, heads: 0 });
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns the position of damage, if there is any.
    pub(crate) fn damage(&self) -> Option<u64> {
        self.damaged
    }

    /// Returns the name count of the inode, if it differs from the number of names found.
    pub(crate) fn miscounted(&self) -> Option<u64> {
        self.miscounted
    }

    fn learn(&mut self, name: &[u8], slot: u32) {
        let hash = self.hash(name);
        self.table.insert_unique(spread(hash), IndexEntry { hash, slot }, |known| spread(known.hash));
    }

    /// Records a name at a slot.
    pub(crate) fn insert(&mut self, name: &[u8], slot: u32) {
        let page = &mut self.pages[(slot / SLOTS) as usize];
        page.free &= !mask(slot, slots_for(name.len()));
        page.heads |= 1 << (slot % SLOTS);
        self.learn(name, slot);
    }

    /// Removes a name from a slot.
    pub(crate) fn remove(&mut self, name: &[u8], slot: u32) {
        let slots = slots_for(name.len());
        let page = &mut self.pages[(slot / SLOTS) as usize];
        page.free |= mask(slot, slots);
        page.heads &= !(1 << (slot % SLOTS));
        // The freed slots may extend a free run of any length.
        for from in &mut self.fits_from {
            *from = (*from).min(slot / SLOTS);
        }
        let hash = self.hash(name);
        if let Ok(table_entry) = self.table.find_entry(spread(hash), |known| known.slot == slot) {
            table_entry.remove();
        }
    }

    /// Iterates over all names with their slots.
    pub(crate) fn records<'a, M: Medium>(
        &'a self,
        medium: &'a M,
    ) -> impl Iterator<Item = (u32, DirRecord)> + 'a {
        let mut next = 0;
        std::iter::from_fn(move || {
            let head = self.next_head(next)?;
            let record = self.read(medium, head);
            next = head + record.slots();
            Some((head, record))
        })
    }

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the first slot at or after `from` in which a name begins.
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

/// Returns the mask of `slots` slots from `slot` within its block.
fn mask(slot: u32, slots: u32) -> u128 {
    ((1 << slots) - 1) << (slot % SLOTS)
}
