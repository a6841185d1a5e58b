//! Differences of operations on contents, if these are on a nameless-write device.

use super::address::page_of;
use super::is_placed;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::journal::{BlockRun, Txn};
use crate::medium::Medium;
use crate::types::{Allocate, Ino, InodeType};

impl<M: Medium> Fs<M> {
    /// Relieves the write buffer after a write, and repeats a write that found no space once.
    ///
    /// # Errors
    /// The error of the write, or of the device if the write found no space.
    pub(crate) fn after_write<T>(&self, written: Result<T>, again: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(placed) = &self.placed else { return written };
        if matches!(written, Err(Error::NoSpace)) {
            self.commit_contents()?;
            return again();
        }
        if placed.is_pressed(self.geometry.data_blocks) {
            // Contents that cannot be placed stay in the buffer, and the next sync returns the error.
            let _ = self.commit_contents();
        }
        let _ = self.relieve_migrations();
        written
    }

    /// Returns a preferred block if it is one of the medium.
    pub(crate) fn goal_in_medium(&self, goal: Option<u64>) -> Option<u64> {
        goal.filter(|start| self.placed.is_none() || !is_placed(*start))
    }

    /// Counts up to `want` new blocks of a file against the capacity. Returns their number.
    ///
    /// # Errors
    /// The device is full.
    pub(crate) fn reserve_contents(&self, ino: Ino, want: u64) -> Result<u64> {
        self.placed.as_ref().map_or(Ok(want), |placed| placed.reserve(ino, want))
    }

    /// Returns blocks that were counted and not used.
    pub(crate) fn unreserve_contents(&self, blocks: u64) {
        if let Some(placed) = self.placed.as_ref().filter(|_| blocks > 0) {
            placed.sub(blocks, false);
        }
    }

    /// Returns the mode of fallocate(2) that contents support. A range of zeros is a hole.
    ///
    /// # Errors
    /// Space cannot be allocated before contents are written.
    pub(crate) fn mode_of_contents(&self, mode: Allocate) -> Result<Allocate> {
        match mode {
            _ if self.placed.is_none() => Ok(mode),
            Allocate::Punch | Allocate::Zero | Allocate::ZeroKeep => Ok(Allocate::Punch),
            Allocate::Extend | Allocate::Keep => {
                Err(Error::Unsupported("the device chooses the place of contents when they are written"))
            }
        }
    }

    /// Returns the number of the first block of an extent, on the medium or on the device.
    pub(crate) fn block_of_start(&self, start: u64) -> u64 {
        match self.placed.is_some() && is_placed(start) {
            true => u64::from(page_of(start)),
            false => start,
        }
    }

    /// Adds a run of an inode that a transaction frees.
    pub(crate) fn free_contents(&self, txn: &mut Txn, ino: Ino, kind: InodeType, run: BlockRun) {
        let Some(placed) = self.placed.as_ref().filter(|_| kind == InodeType::File) else {
            return txn.free(run);
        };
        placed.sub(run.len, is_placed(run.start));
        if is_placed(run.start) {
            txn.unplaced.push((ino, run));
        } else {
            txn.free(run);
        }
    }
}
