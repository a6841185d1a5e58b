//! Checksums of what files hold, for a file system that was made with them: a word for each block of the data space.
//!
//! A word that is not 0 is the sum of its block, whenever power is cut: before a block changes its word is 0, behind
//! a fence, and gets the new sum behind the fence that makes the bytes durable ([`Fs::settle`]), when the file is
//! synced or closed. So bytes are overwritten where they are as without sums, and a block in flux has none. Only
//! contents of regular files have sums; a word that a block had for another file is cleared before this one's bytes.

mod ranges;

pub(crate) use ranges::Ranges;

use crate::contents::{block_from, block_of};
use crate::error::{Error, Result};
use crate::extents::Extent;
use crate::format::{BLOCK, Geometry, write_words};
use crate::fs::Fs;
use crate::inode::State;
use crate::journal::Run;
use crate::medium::Medium;
use frit_core::planted::{Bug, is};
use frit_media::checksum::digest;

/// Words that are read together.
const WORDS: usize = 512;

/// The sum of a block: CRC-64/NVME, and never 0.
pub(crate) fn sum(block: &[u8]) -> u64 {
    digest(block).max(1)
}

/// The words of a run of blocks, told to `each` with their blocks until it fails.
pub(crate) fn words<M: Medium>(
    medium: &M,
    geometry: &Geometry,
    run: Run,
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

/// Reads a block and compares it with its word.
///
/// # Errors
/// They differ.
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
    /// Whether contents have checksums.
    pub(crate) fn has_sums(&self) -> bool {
        self.geometry.has_sums()
    }

    /// Compares what was read from byte `at` of a file with the sums of its blocks.
    ///
    /// # Errors
    /// A block is not what was written.
    pub(crate) fn verify(&self, state: &State, at: u64, read: &[u8]) -> Result<()> {
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

    /// Whatever of bytes `at..end` of a file was written will be overwritten where it is: takes its sums away, durably.
    ///
    /// # Errors
    /// A block of which a part stays is not what was written: a new sum would hide that.
    pub(crate) fn open_sums(&self, state: &mut State, at: u64, end: u64) -> Result<()> {
        if !self.has_sums() || at >= end {
            return Ok(());
        }
        let (first, last) = (block_of(at), block_from(end));
        let mut cleared = false;
        for clears in [false, true] {
            for extent in written(state, first, last) {
                words(&self.medium, &self.geometry, extent.run(), |block, word| {
                    let from = (extent.at + (block - extent.start)) * BLOCK;
                    let whole = at <= from && from + BLOCK <= end;
                    if word != 0 && clears {
                        cleared = true;
                        write_words(&self.medium, self.geometry.sum_at(block), &[0]);
                    } else if word != 0 && !whole && !is(Bug::FsPartUnchecked) {
                        verify_block(&self.medium, block, word)?;
                    }
                    Ok(())
                })?;
            }
        }
        if cleared && !is(Bug::FsSumClearedLate) {
            self.medium.fence();
        }
        if let Some(map) = &mut state.map {
            map.unsummed.add(first, last);
        }
        Ok(())
    }

    /// Blocks that nobody can read yet will hold contents: whatever sums they had for others go. The transaction that
    /// makes them readable is behind a fence.
    pub(crate) fn forget_sums(&self, run: Run) {
        if !self.has_sums() || is(Bug::FsSumOfOtherStays) {
            return;
        }
        // Reading words fails nowhere.
        let _ = words(&self.medium, &self.geometry, run, |block, word| {
            if word != 0 {
                write_words(&self.medium, self.geometry.sum_at(block), &[0]);
            }
            Ok(())
        });
    }

    /// Whole blocks that can be read will hold zeros.
    pub(crate) fn forget_sums_durably(&self, run: Run) {
        if self.has_sums() {
            self.forget_sums(run);
            self.medium.fence();
        }
    }

    /// Gives blocks that have none their sums. Nobody writes the file meanwhile.
    pub(crate) fn settle_sums(&self, state: &mut State) {
        let Some(map) = state.map.as_mut().filter(|map| !map.unsummed.is_empty()) else { return };
        if !self.has_sums() || self.read_only || state.dead {
            return;
        }
        let ranges = map.unsummed.take();
        if !is(Bug::FsSumBeforeBytes) {
            // A sum must not be durable before its bytes are.
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

/// The parts of a file's extents among blocks `from..to` that were written.
fn written(state: &State, from: u64, to: u64) -> impl Iterator<Item = Extent> + '_ {
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
