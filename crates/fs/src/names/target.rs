//! Targets of symbolic links that are too long for the inode: a block each, whose check is in the inode.
//!
//! The check is in the second place for extents, of which such an inode uses the first alone. Its word has no length, so
//! a program that does not know it takes the place for a free one. Links made before there was a check have a word of 0.

use crate::error::{Error, Result};
use crate::format::{BLOCK, crc_words};
use crate::inode::Inode;
use crate::medium::Medium;
use crate::types::{Ino, TARGET_MAX};
use frit_core::planted::{Bug, is};

/// The word of the inode's area with the check.
pub(crate) const CHECK_WORD: usize = 2;
/// The bit of it that says that there is one: 32, behind the checksum.
const CHECKED: u64 = 1 << 32;
/// Words of the longest target.
const WORDS: usize = TARGET_MAX.div_ceil(8);

/// The word of check of a target: over the inode's number, its generation, the length and the bytes.
pub(crate) fn check(salt: u32, ino: Ino, inode: &Inode, target: &[u8]) -> u64 {
    let mut words = [0; WORDS];
    bytemuck::cast_slice_mut(&mut words)[..target.len()].copy_from_slice(target);
    let place = [ino.0, u64::from(inode.generation) | (target.len() as u64) << 32];
    let words = &words[..target.len().div_ceil(8)];
    CHECKED | u64::from(crc_words(crc_words(salt, &place), words))
}

/// Reads the target that is in block `block`.
///
/// # Errors
/// It does not match its check.
pub(crate) fn read<M: Medium>(medium: &M, salt: u32, ino: Ino, inode: &Inode, block: u64) -> Result<Vec<u8>> {
    let mut target = vec![0; (inode.size as usize).min(TARGET_MAX)];
    medium.read(block * BLOCK, &mut target);
    let known = inode.area[CHECK_WORD];
    let sound = known & CHECKED == 0 || known == check(salt, ino, inode, &target);
    if sound || is(Bug::FsTargetUnchecked) {
        return Ok(target);
    }
    Err(Error::Damaged { what: "the target of a symbolic link", at: block * BLOCK })
}
