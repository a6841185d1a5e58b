//! Inodes that a start has to look after: without names but still open, or being cut in several transactions.
//!
//! Each is in a word of the list. When the list is full, one word says that there may be more inodes without links than
//! it names: the next start then looks for them in the inode table. So the list never refuses an inode without links,
//! and needs no space to grow. An inode that is cut and keeps its name cannot be told from others in the table; an
//! eighth of the list is kept for these, which are on it for the time of one operation alone.

use crate::error::{Error, Result};
use crate::format::Geometry;
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::Ino;

/// Words of the list that are read together.
const READ_WORDS: usize = 512;
/// A word of the list: inodes without links that no word names may be in the table.
pub(crate) const MORE: u64 = u64::MAX;
/// Of how many words one is kept for inodes that are cut, and for [`MORE`].
const KEPT_ONE_IN: u64 = 8;

/// The list of orphans: words on the medium, each an inode's number or 0.
#[derive(Debug)]
pub(crate) struct Orphans {
    at: u64,
    free: Vec<u32>,
    /// Words that inodes without links leave free.
    kept: usize,
    /// Which word says that there may be more.
    more: Option<u32>,
}

impl Orphans {
    /// Reads who is on the list, and where.
    pub(crate) fn read<M: Medium>(medium: &M, geometry: &Geometry) -> (Self, Vec<(u32, Ino)>) {
        let kept = (geometry.orphans / KEPT_ONE_IN).max(2) as usize;
        let mut list = Self { at: geometry.orphans_at, free: Vec::new(), kept, more: None };
        let mut found = Vec::new();
        let mut words = [0; READ_WORDS];
        for first in (0..geometry.orphans).step_by(READ_WORDS) {
            let part = &mut words[..(geometry.orphans - first).min(READ_WORDS as u64) as usize];
            medium.read(list.at + first * 8, bytemuck::cast_slice_mut(part));
            for (slot, ino) in (first as u32..).zip(part.iter()) {
                match *ino {
                    0 => list.free.push(slot),
                    MORE => list.more = Some(slot),
                    ino => found.push((slot, Ino(ino))),
                }
            }
        }
        // The lowest are taken first.
        list.free.reverse();
        (list, found)
    }

    /// Returns `true` if inodes without links may be in the table that the list does not name.
    pub(crate) fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// Returns `true` if an inode without links finds no word any more: it needs [`Orphans::has_more`].
    pub(crate) fn is_full(&self) -> bool {
        self.free.len() <= self.kept
    }

    /// Says in a transaction that there may be more inodes without links than the list names.
    ///
    /// # Errors
    /// Every word names an inode that is being cut, or a damaged one.
    pub(crate) fn say_more(&mut self, txn: &mut Txn) -> Result<()> {
        let slot = self.free.pop().ok_or(Error::NoSpace)?;
        txn.write(self.at + u64::from(slot) * 8, &[MORE]);
        self.more = Some(slot);
        Ok(())
    }

    /// Says in a transaction that the list names all. The word is free for others once [`Orphans::give`] says so.
    pub(crate) fn say_all(&mut self, txn: &mut Txn) -> Option<u32> {
        let slot = self.more.take()?;
        self.remove(txn, slot);
        Some(slot)
    }

    /// Puts an inode on the list.
    ///
    /// # Errors
    /// The list is full.
    pub(crate) fn add(&mut self, txn: &mut Txn, ino: Ino) -> Result<u32> {
        let slot = self.free.pop().ok_or(Error::NoSpace)?;
        txn.write(self.at + u64::from(slot) * 8, &[ino.0]);
        Ok(slot)
    }

    /// Takes one off; its place is free for others once [`Orphans::give`] says so.
    pub(crate) fn remove(&self, txn: &mut Txn, slot: u32) {
        txn.write(self.at + u64::from(slot) * 8, &[0]);
    }

    /// A place can be used again: the transaction that emptied it is durable.
    pub(crate) fn give(&mut self, slot: u32) {
        self.free.push(slot);
    }
}
