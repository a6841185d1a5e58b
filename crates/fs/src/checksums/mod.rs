//! Checksums of file contents, for a file system formatted with them: a word per block of the data
//! space.
//!
//! A word other than 0 is the checksum of its block at any point of a power loss. Before a block
//! changes, its word is cleared, followed by a fence. The new checksum is written after the fence
//! that makes the data durable ([`Fs::write_missing_checksums`]), when the file is synced or closed. Data is
//! therefore overwritten in place as without checksums, and a block being changed has none. Only
//! contents of regular files have checksums. A word that a block had for another file is cleared
//! before the block is written for a new one.

mod ranges;

pub(crate) use ranges::BlockRanges;

use crate::contents::{block_from, block_of};
use crate::error::{Error, Result};
use crate::extents::Extent;
use crate::format::{BLOCK, Geometry, write_words};
use crate::fs::Fs;
use crate::inode::NodeState;
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::planted::{Bug, DamageBug};
use frit_core::planted::is_planted;
use frit_media::checksum::digest;

/// Number of words read at once.
const WORDS: usize = 512;

/// Computes the checksum of a block: CRC-64/NVME, but never 0, as 0 means that there is none.
pub(crate) fn sum(block: &[u8]) -> u64 {
    digest(block).max(1)
}

/// Reads the checksum words of a run of blocks, and passes each to `each` with its block until it
/// fails.
pub(crate) fn words<M: Medium>(
    medium: &M,
    geometry: &Geometry,
    run: BlockRun,
    mut each: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let mut buffer = [0; WORDS];
    let mut at = run.start;
    while at < run.end() {
        let part = &mut buffer[..(run.end() - at).min(WORDS as u64) as usize];
        medium.read(geometry.sum_at(at), bytemuck::cast_slice_mut(part));
        for (block, word) in (at..).zip(part.iter()) {
            each(block, *word)?;
        }
        at += part.len() as u64;
    }
    Ok(())
}

/// Reads a block and verifies it against its checksum word.
///
/// # Errors
/// The checksum does not match.
pub(crate) fn verify_block<M: Medium>(medium: &M, block: u64, word: u64) -> Result<()> {
    if word == 0 {
        return Ok(());
    }
    let mut bytes = [0; BLOCK as usize];
    medium.read(block * BLOCK, &mut bytes);
    compare(block, &bytes, word)
}

fn compare(block: u64, bytes: &[u8], word: u64) -> Result<()> {
    if word == 0 || sum(bytes) == word {
        return Ok(());
    }
    Err(Error::Damaged { what: "contents of a file", at: block * BLOCK })
}

impl<M: Medium> Fs<M> {
    /// Returns `true` if contents have checksums.
    pub(crate) fn has_sums(&self) -> bool {
        self.geometry.has_sums()
    }

    /// Verifies data that was read from byte `at` of a file against the checksums of its blocks.
    ///
    /// # Errors
    /// A checksum does not match.
    pub(crate) fn verify(&self, state: &NodeState, at: u64, read: &[u8]) -> Result<()> {
        let end = at + read.len() as u64;
        for extent in written(state, block_of(at), block_from(end)) {
            words(&self.medium, &self.geometry, extent.run(), |block, word| {
                let from = (extent.at + (block - extent.start)) * BLOCK;
                if from < at || from + BLOCK > end {
                    return verify_block(&self.medium, block, word);
                }
                let from = (from - at) as usize;
                compare(block, &read[from..from + BLOCK as usize], word)
            })?;
        }
        Ok(())
    }

    /// Durably clears the checksums of the written blocks in bytes `at..end`, before they are
    /// overwritten in place.
    ///
    /// # Errors
    /// A block that is overwritten in part does not match its checksum. A new checksum would hide
    /// the damage.
    pub(crate) fn begin_overwrite(&self, state: &mut NodeState, at: u64, end: u64) -> Result<()> {
        if !self.has_sums() || at >= end {
            return Ok(());
        }
        let (first, last) = (block_of(at), block_from(end));
        // Two passes: all blocks are verified before the first checksum is cleared.
        let mut cleared = false;
        for clears in [false, true] {
            for extent in written(state, first, last) {
                words(&self.medium, &self.geometry, extent.run(), |block, word| {
                    let from = (extent.at + (block - extent.start)) * BLOCK;
                    let whole = at <= from && from + BLOCK <= end;
                    if word != 0 && clears {
                        cleared = true;
                        write_words(&self.medium, self.geometry.sum_at(block), &[0]);
                    } else if word != 0 && !whole && !is_planted(DamageBug::PartUnchecked) {
                        verify_block(&self.medium, block, word)?;
                    }
                    Ok(())
                })?;
            }
        }
        if cleared && !is_planted(Bug::SumClearedLate) {
            self.medium.fence();
        }
        if let Some(map) = &mut state.map {
            map.unsummed.add(first, last);
        }
        Ok(())
    }

    /// Clears checksums that blocks had for other files, before they hold new contents that are not
    /// reachable yet. The transaction that makes the contents reachable has a fence, so none is
    /// needed here.
    pub(crate) fn clear_checksums(&self, run: BlockRun) {
        if !self.has_sums() || is_planted(Bug::SumOfOtherStays) {
            return;
        }
        // The callback never fails.
        let _ = words(&self.medium, &self.geometry, run, |block, word| {
            if word != 0 {
                write_words(&self.medium, self.geometry.sum_at(block), &[0]);
            }
            Ok(())
        });
    }

    /// Durably clears the checksums of whole blocks that are reachable, before they are zeroed.
    pub(crate) fn clear_checksums_durably(&self, run: BlockRun) {
        if self.has_sums() {
            self.clear_checksums(run);
            self.medium.fence();
        }
    }

    /// Writes checksums for blocks that have none. No thread writes to the file meanwhile.
    pub(crate) fn write_missing_checksums(&self, state: &mut NodeState) {
        let Some(map) = state.map.as_mut().filter(|map| !map.unsummed.is_empty()) else { return };
        if !self.has_sums() || self.read_only || state.dead {
            return;
        }
        let ranges = map.unsummed.take();
        if !is_planted(Bug::SumBeforeBytes) {
            // A checksum must not become durable before its data.
            self.medium.fence();
        }
        let mut bytes = [0; BLOCK as usize];
        for (from, to) in ranges {
            for extent in written(state, from, to) {
                let _ = words(&self.medium, &self.geometry, extent.run(), |block, word| {
                    if word == 0 {
                        self.medium.read(block * BLOCK, &mut bytes);
                        write_words(&self.medium, self.geometry.sum_at(block), &[sum(&bytes)]);
                    }
                    Ok(())
                });
            }
        }
    }
}

/// Iterates over the written extents among blocks `from..to`, cut to that range.
fn written(state: &NodeState, from: u64, to: u64) -> impl Iterator<Item = Extent> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        loop {
            let extent = state.map.as_ref()?.from(at).filter(|extent| extent.at < to)?;
            at = extent.end();
            if extent.written {
                return Some(extent.part(from, to));
            }
        }
    })
}
