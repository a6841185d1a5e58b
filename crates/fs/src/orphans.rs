//! The list of orphans: inodes that recovery has to complete. An orphan has no links but is still
//! open, or is being truncated in several transactions.
//!
//! Each orphan takes one word of the list. When the list is full, one word marks that the inode
//! table may hold further inodes without links, and recovery then scans the table for them. The
//! list therefore never refuses an inode without links and never grows. An inode that is truncated
//! but keeps its name cannot be recognized in the table; an eighth of the list is reserved for such
//! inodes, which are on it only for the duration of one operation.

use crate::error::{Error, Result};
use crate::format::Geometry;
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::Ino;

/// Number of words of the list that are read at once.
const READ_WORDS: usize = 512;
/// Value of a word: the inode table may hold inodes without links that are not on the list.
pub(crate) const OVERFLOW: u64 = u64::MAX;
/// One word of this many is reserved for inodes that are truncated, and for [`OVERFLOW`].
const RESERVED_ONE_IN: u64 = 8;

/// The list of orphans: words on the medium, each an inode number or 0.
#[derive(Debug)]
pub(crate) struct Orphans {
    at: u64,
    free: Vec<u32>,
    /// Number of words that are reserved, which inodes without links do not use.
    reserved: usize,
    /// The slot that holds [`OVERFLOW`], if there is one.
    overflow_slot: Option<u32>,
}

impl Orphans {
    /// Reads the list; returns it with the orphans and their slots.
    pub(crate) fn read<M: Medium>(medium: &M, geometry: &Geometry) -> (Self, Vec<(u32, Ino)>) {
        let reserved = (geometry.orphans / RESERVED_ONE_IN).max(2) as usize;
        let mut list = Self { at: geometry.orphans_at, free: Vec::new(), reserved, overflow_slot: None };
        let mut found = Vec::new();
        let mut words = [0; READ_WORDS];
        for first in (0..geometry.orphans).step_by(READ_WORDS) {
            let part = &mut words[..(geometry.orphans - first).min(READ_WORDS as u64) as usize];
            medium.read(list.at + first * 8, bytemuck::cast_slice_mut(part));
            for (slot, ino) in (first as u32..).zip(part.iter()) {
                match *ino {
                    0 => list.free.push(slot),
                    OVERFLOW => list.overflow_slot = Some(slot),
                    ino => found.push((slot, Ino(ino))),
                }
            }
        }
        // `pop` takes from the end, so the lowest slots are used first.
        list.free.reverse();
        (list, found)
    }

    /// Returns `true` if the inode table may hold inodes without links that are not on the list.
    pub(crate) fn has_overflow(&self) -> bool {
        self.overflow_slot.is_some()
    }

    /// Returns `true` if no word is left for an inode without links, so that
    /// [`Orphans::has_overflow`] is needed.
    pub(crate) fn is_full(&self) -> bool {
        self.free.len() <= self.reserved
    }

    /// Adds the [`OVERFLOW`] mark to a transaction.
    ///
    /// # Errors
    /// Every word is taken, by inodes that are being truncated or are damaged.
    pub(crate) fn mark_overflow(&mut self, txn: &mut Txn) -> Result<()> {
        let slot = self.free.pop().ok_or(Error::NoSpace)?;
        txn.write(self.at + u64::from(slot) * 8, &[OVERFLOW]);
        self.overflow_slot = Some(slot);
        Ok(())
    }

    /// Clears the [`OVERFLOW`] mark in a transaction. The slot is reusable after
    /// [`Orphans::release_slot`].
    pub(crate) fn clear_overflow(&mut self, txn: &mut Txn) -> Option<u32> {
        let slot = self.overflow_slot.take()?;
        self.remove(txn, slot);
        Some(slot)
    }

    /// Adds an inode to the list and returns its slot.
    ///
    /// # Errors
    /// The list is full.
    pub(crate) fn add(&mut self, txn: &mut Txn, ino: Ino) -> Result<u32> {
        let slot = self.free.pop().ok_or(Error::NoSpace)?;
        txn.write(self.at + u64::from(slot) * 8, &[ino.0]);
        Ok(slot)
    }

    /// Removes an inode from the list. The slot is reusable after [`Orphans::release_slot`].
    pub(crate) fn remove(&self, txn: &mut Txn, slot: u32) {
        txn.write(self.at + u64::from(slot) * 8, &[0]);
    }

    /// Makes a slot reusable. The transaction that cleared it is durable.
    pub(crate) fn release_slot(&mut self, slot: u32) {
        self.free.push(slot);
    }
}
