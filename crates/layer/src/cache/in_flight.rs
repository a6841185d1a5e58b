//! Blocks in flight: blocks that the disk has acknowledged, or that are evicted clean, stay until the
//! disk is flushed.

use super::policy::Victim;
use frit_core::Tok;
use frit_core::convert::count_u32;

/// Flag: the block leaves the cache when its writeback completes.
pub(super) const EVICT: u8 = 4;
/// Flag: the block is damaged and stays until it is overwritten.
pub(super) const DAMAGED: u8 = 8;

/// Blocks in flight.
#[derive(Default, Debug)]
pub(super) struct InFlight {
    pub(super) blocks: Vec<Victim>,
    /// Completion of the writes to the disk.
    pub(super) written: Option<Tok>,
    /// `true` if a flush is necessary because data was written to the disk.
    pub(super) flush: bool,
    /// Number of blocks in the directory that leave when their writeback completes.
    pub(super) evicting: u32,
}

impl InFlight {
    pub(super) fn len(&self) -> u32 {
        count_u32(self.blocks.len())
    }

    /// Adds a block that was written to the disk, or is clean.
    pub(super) fn add(&mut self, v: Victim) {
        self.blocks.push(v);
    }

    /// Takes all blocks, which complete together.
    pub(super) fn take(&mut self) -> Vec<Victim> {
        self.flush = false;
        self.written = None;
        std::mem::take(&mut self.blocks)
    }
}

impl InFlight {
    /// Returns the completion of the writes to the disk, if there were any.
    pub(super) fn until(&self) -> Option<Tok> {
        self.written
    }
}
