//! Allocation of the blocks of files, directories and extended attributes.
//!
//! Callers use an [`Allocator`]; each implementation has its own file and its own placement policy.
//! Blocks can also move while they are in use: [`relocate`](crate::fs::Fs::relocate) moves a part
//! of a file to blocks of an allocator, in one transaction.

mod bitmap;
pub(crate) mod line;
mod search;

pub(crate) use bitmap::BitmapAllocator;

use crate::error::Result;
use crate::journal::BlockRun;
use crate::types::Ino;
use std::fmt;

/// Allocation request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AllocRequest {
    /// Number of blocks, at least one.
    pub(crate) blocks: u64,
    /// Preferred first block, after those that the file has.
    pub(crate) goal: Option<u64>,
    /// All blocks must be contiguous; otherwise the allocator may return fewer.
    pub(crate) contiguous: bool,
    /// A growing file and the number of additional blocks to reserve for it, until they are needed
    /// elsewhere.
    pub(crate) reserve_ahead: Option<(Ino, u64)>,
}

impl AllocRequest {
    /// Requests up to `blocks` blocks, anywhere.
    pub(crate) fn blocks(blocks: u64) -> Self {
        Self { blocks: blocks.max(1), goal: None, contiguous: false, reserve_ahead: None }
    }

    /// Adds a preferred first block.
    pub(crate) fn at(self, goal: Option<u64>) -> Self {
        Self { goal, ..self }
    }

    /// Requires a contiguous run of all blocks.
    pub(crate) fn contiguous(self) -> Self {
        Self { contiguous: true, ..self }
    }

    /// Requests a reservation of `more` blocks after the run, for a file that grows at its end.
    pub(crate) fn reserve_ahead(self, ino: Ino, more: u64) -> Self {
        Self { reserve_ahead: Some((ino, more)), ..self }
    }
}

/// Allocator for the blocks of a medium `M`. Its state is in DRAM; transactions change the bitmap
/// on the medium. Blocks that are allocated but never committed are therefore free at the next
/// open.
pub(crate) trait Allocator<M>: fmt::Debug + Send + Sync {
    /// Returns the number of free blocks, including reservations.
    fn free(&self) -> u64;

    /// Allocates blocks.
    ///
    /// # Errors
    /// No block is free, or no contiguous run if one is required.
    fn reserve(&self, medium: &M, want: AllocRequest) -> Result<BlockRun>;

    /// Frees blocks: allocated ones that were not used, or ones that a durable transaction freed.
    fn release(&self, run: BlockRun);

    /// Announces that a transaction is about to free blocks in the bitmap. [`Allocator::release`]
    /// follows.
    fn prepare_release(&self, medium: &M, run: BlockRun);

    /// Drops the reservation of a file.
    fn drop_reservation(&self, ino: Ino);
}
