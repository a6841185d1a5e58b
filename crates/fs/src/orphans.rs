//! Inodes that a start has to look after: without names but still open, or being cut in several transactions.

use crate::error::Result;
use crate::format::Geometry;
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::Ino;

/// Words of the list that are read together.
const READ_WORDS: usize = 512;

/// The list of orphans: words on the medium, each an inode's number or 0.
#[derive(Debug)]
pub(crate) struct Orphans {
    at: u64,
    free: Vec<u32>,
}

impl Orphans {
    /// Reads who is on the list, and where.
    pub(crate) fn read<M: Medium>(medium: &M, geometry: &Geometry) -> (Self, Vec<(u32, Ino)>) {
        let mut list = Self { at: geometry.orphans_at, free: Vec::new() };
        let mut found = Vec::new();
        let mut words = [0; READ_WORDS];
        for first in (0..geometry.orphans).step_by(READ_WORDS) {
            let part = &mut words[..(geometry.orphans - first).min(READ_WORDS as u64) as usize];
            medium.read(list.at + first * 8, bytemuck::cast_slice_mut(part));
            for (slot, ino) in (first as u32..).zip(part.iter()) {
                if *ino == 0 {
                    list.free.push(slot);
                } else {
                    found.push((slot, Ino(*ino)));
                }
            }
        }
        // The lowest are taken first.
        list.free.reverse();
        (list, found)
    }

    /// Puts an inode on the list.
    ///
    /// # Errors
    /// The list is full.
    pub(crate) fn add(&mut self, txn: &mut Txn, ino: Ino) -> Result<u32> {
        let slot = self.free.pop().ok_or(crate::error::Error::NoSpace)?;
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
