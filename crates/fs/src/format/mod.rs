//! Layout of the medium: Fig. 2 of the paper, with counters, an orphan list and a journal in
//! addition to its regions. `docs/reference/format.md` describes every byte.

mod geometry;
mod region;
mod superblock;

use crate::medium::Medium;
pub(crate) use geometry::BYTES_PER_INODE;
pub use geometry::Geometry;
pub use region::Region;
pub(crate) use superblock::{Superblock, fresh_uuid, present, uuid_in};

/// Block size in bytes.
pub(crate) const BLOCK: u64 = 4096;
/// Inode size in bytes.
pub(crate) const INODE: u64 = 256;
/// Size of a line of the block bitmap in bytes: 63 words of bits and a checksum word.
pub(crate) const LINE: u64 = 512;
/// Number of blocks that a line of the bitmap covers.
pub(crate) const LINE_BLOCKS: u64 = 63 * 64;

#[cfg(target_endian = "big")]
compile_error!("words on the medium are little-endian, and are read without a conversion");

/// Extends a CRC32C over words.
#[inline]
pub(crate) fn crc_words(crc: u32, words: &[u64]) -> u32 {
    frit_media::checksum::crc32c_append(crc, bytemuck::cast_slice(words))
}

#[inline]
pub(crate) fn read_words<M: Medium, const N: usize>(medium: &M, at: u64) -> [u64; N] {
    let mut words = [0; N];
    medium.read(at, bytemuck::cast_slice_mut(&mut words));
    words
}

#[inline]
pub(crate) fn write_words<M: Medium>(medium: &M, at: u64, words: &[u64]) {
    medium.write(at, bytemuck::cast_slice(words));
}
