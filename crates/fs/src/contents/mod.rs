//! The bytes of files.

mod allocate;
mod outside;
mod read;
mod relocate;
pub(crate) mod resize;
mod seek;
mod write;

use crate::format::BLOCK;

/// The block of a file that a byte is in.
#[inline]
pub(crate) fn block_of(at: u64) -> u64 {
    at / BLOCK
}

/// The first block that begins at or behind a byte.
#[inline]
pub(crate) fn block_from(at: u64) -> u64 {
    at.div_ceil(BLOCK)
}
