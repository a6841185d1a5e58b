//! Contents of files: reading, writing, allocation, and relocation.

mod allocate;
pub(crate) mod external;
mod fill;
mod read;
mod relocate;
pub(crate) mod resize;
mod scan;
mod seek;
mod write;

pub(crate) use fill::FILL_BYTES;
pub use scan::FileContents;
pub(crate) use write::FIXED_WORDS;

use crate::format::BLOCK;

/// Returns the block of a file that contains a byte.
#[inline]
pub(crate) fn block_of(at: u64) -> u64 {
    at / BLOCK
}

/// Returns the first block that begins at or after a byte.
#[inline]
pub(crate) fn block_from(at: u64) -> u64 {
    at.div_ceil(BLOCK)
}
