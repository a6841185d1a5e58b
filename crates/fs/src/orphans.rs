//! Inodes that a start has to look after: without names but still open, or being cut in several transactions.

use crate::error::Result;
use crate::format::{Geometry, read_words};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::Ino;

/// The list of orphans: words on the medium, each an inode's number or 0.
#[derive(Debug)]
pub(crate) struct Orphans {
    at: u64,
    free: Vec<u32>,
}

impl Orphans {
    /// An empty list.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { at: geometry.orphans_at, free: (0..geometry.orphans as u32).rev().collect() }
    }

    /// Reads who is on the list, and where.
    pub(crate) fn read<M: Medium>(medium: &M, geometry: &Geometry) -> (Self, Vec<(u32, Ino)>) {
        let mut list = Self::new(geometry);
        let mut found = Vec::new();
        list.free.retain(|slot| {
            let [ino] = read_words(medium, list.at + u64::from(*slot) * 8);
            if ino != 0 {
                found.push((*slot, Ino(ino)));
            }
            ino == 0
        });
        found.reverse();
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
