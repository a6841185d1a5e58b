//! Commands of a solid-state cache for clients of a complete stack, beside its block interface.

use crate::{BlockState, Result, Sink};
use std::ops::Range;

/// Sizes and state of a solid-state cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheInfo {
    /// Size of a block, in bytes.
    pub block_bytes: u32,
    /// Number of addresses: blocks have the numbers below it.
    pub addresses: u32,
    /// Largest number of blocks that are present together.
    pub blocks: u64,
    /// Number of dirty blocks up to which dirty writes find space.
    pub dirty_limit: u64,
    /// Number of dirty blocks.
    pub dirty_blocks: u64,
    /// `true` if dirty writes and evictions are durable when they are acknowledged, and not only after
    /// a flush.
    pub durable_on_ack: bool,
}

/// A command. Blocks are numbers of blocks of the disk that is cached.
#[derive(Debug)]
pub enum CacheCommand<'a> {
    /// Reads a whole block.
    Read {
        /// The block.
        block: u32,
        /// Buffer of one block.
        into: &'a mut [u8],
    },
    /// Writes whole blocks that the disk does not have.
    WriteDirty {
        /// First block.
        first: u32,
        /// Contents, a multiple of the block size.
        data: &'a [u8],
    },
    /// Writes whole blocks that the disk has as well. The device may drop them at any time.
    WriteClean {
        /// First block.
        first: u32,
        /// Contents, a multiple of the block size.
        data: &'a [u8],
    },
    /// Removes blocks.
    Evict(Range<u32>),
    /// Makes blocks clean: the disk durably has their contents.
    Clean(Range<u32>),
    /// Lists the blocks of a range that are present, in ascending order.
    Exists {
        /// The range.
        blocks: Range<u32>,
        /// Receives each block.
        found: &'a mut Vec<(u32, BlockState)>,
    },
}

/// Result of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheReply {
    /// The command was executed.
    Done,
    /// The block of a read is not present.
    Miss,
}

/// The commands of a solid-state cache ([`crate::CacheDevice`] states the guarantees).
pub trait CacheAccess {
    /// Returns the sizes and the state of the cache.
    fn cache_info(&self) -> CacheInfo;

    /// Executes a command.
    ///
    /// # Errors
    /// `OutOfRange` for blocks outside of [`CacheInfo::addresses`]; a parameter error for data that are
    /// not whole blocks; `NoSpace` for more dirty blocks than [`CacheInfo::dirty_limit`]; `Corrupt` for
    /// a damaged dirty block; `ReadOnly`; an error of the medium.
    fn execute(&mut self, sink: &mut Sink, command: CacheCommand<'_>) -> Result<CacheReply>;
}
