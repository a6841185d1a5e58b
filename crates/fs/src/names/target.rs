//! Targets of symbolic links that are too long for the inode. Each is in one block, with its
//! checksum in the inode.
//!
//! The checksum is in the second extent slot, as such an inode uses only the first. The word has a
//! length of 0, so programs that do not know it treat the slot as free. Links created before the
//! checksum was introduced have a word of 0.

use crate::error::{Error, Result};
use crate::format::{BLOCK, crc_words};
use crate::inode::Inode;
use crate::medium::Medium;
use crate::planted::DamageBug;
use crate::types::{Ino, TARGET_MAX};
use frit_core::planted::is_planted;

/// Index of the checksum word in the inode's inline area.
pub(crate) const CHECK_WORD: usize = 2;
/// Flag in bit 32 of the word, above the checksum: the checksum is present.
const CHECKED: u64 = 1 << 32;
/// Number of words of the longest target.
const WORDS: usize = TARGET_MAX.div_ceil(8);

/// Computes the checksum word of a target: over the inode number, its generation, the length and
/// the bytes.
pub(crate) fn check(salt: u32, ino: Ino, inode: &Inode, target: &[u8]) -> u64 {
    let mut words = [0; WORDS];
    bytemuck::cast_slice_mut(&mut words)[..target.len()].copy_from_slice(target);
    let place = [ino.0, u64::from(inode.generation) | (target.len() as u64) << 32];
    let words = &words[..target.len().div_ceil(8)];
    CHECKED | u64::from(crc_words(crc_words(salt, &place), words))
}

/// Reads the target in block `block`.
///
/// # Errors
/// The target does not match its checksum.
pub(crate) fn read<M: Medium>(medium: &M, salt: u32, ino: Ino, inode: &Inode, block: u64) -> Result<Vec<u8>> {
    let mut target = vec![0; (inode.size as usize).min(TARGET_MAX)];
    medium.read(block * BLOCK, &mut target);
    let known = inode.inline_area[CHECK_WORD];
    let sound = known & CHECKED == 0 || known == check(salt, ino, inode, &target);
    if sound || is_planted(DamageBug::TargetUnchecked) {
        return Ok(target);
    }
    Err(Error::Damaged { what: "the target of a symbolic link", at: block * BLOCK })
}
