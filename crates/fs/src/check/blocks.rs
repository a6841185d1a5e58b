//! Blocks in use, as found by a check.

use super::CheckContext;
use crate::format::{Geometry, LINE_BLOCKS};
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::nameless::PLACED;
use crate::space::line;

/// Returns the pages of placed blocks.
fn pages(run: BlockRun) -> std::ops::Range<u64> {
    let first = run.start & (PLACED - 1);
    first..first + run.len
}

/// Blocks that belong to an inode, in the form of the bitmap.
#[derive(Debug)]
pub(super) struct Blocks {
    lines: Vec<line::Bits>,
    /// Pages of the nameless-write device, a bit each.
    pages: Vec<u64>,
}

impl Blocks {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let pages = vec![0; geometry.device_pages.div_ceil(64) as usize];
        Self { lines: vec![[0; line::WORDS]; geometry.lines as usize], pages }
    }

    /// Marks blocks as used; returns the first one that was marked before.
    pub(super) fn mark(&mut self, geometry: &Geometry, run: BlockRun) -> Option<u64> {
        let mut twice = None;
        if geometry.places(run.start, run.len) {
            for page in pages(run) {
                let (word, bit) = (&mut self.pages[(page / 64) as usize], 1 << (page % 64));
                if *word & bit != 0 {
                    twice = twice.or(Some(page));
                }
                *word |= bit;
            }
            return twice;
        }
        for (number, from, to) in line::parts(geometry, run) {
            for (word, mask) in line::masks(from, to) {
                let bits = &mut self.lines[number as usize][word];
                if *bits & mask != 0 && twice.is_none() {
                    let bit = u64::from((*bits & mask).trailing_zeros());
                    twice = Some(geometry.data_first + number * LINE_BLOCKS + word as u64 * 64 + bit);
                }
                *bits |= mask;
            }
        }
        twice
    }

    /// Marks blocks as used if all of them are in the data space and unmarked. Returns `true` if
    /// they were; else no block is marked.
    pub(super) fn claim(&mut self, geometry: &Geometry, run: BlockRun) -> bool {
        if geometry.places(run.start, run.len) {
            let free = pages(run).all(|page| self.pages[(page / 64) as usize] >> (page % 64) & 1 == 0);
            return free && self.mark(geometry, run).is_none();
        }
        let free = geometry.holds(run.start, run.len)
            && line::parts(geometry, run).all(|(number, from, to)| {
                let bits = &self.lines[number as usize];
                line::masks(from, to).all(|(word, mask)| bits[word] & mask == 0)
            });
        free && self.mark(geometry, run).is_none()
    }

    /// Removes the marks of blocks.
    pub(super) fn release(&mut self, geometry: &Geometry, run: BlockRun) {
        if geometry.places(run.start, run.len) {
            for page in pages(run) {
                self.pages[(page / 64) as usize] &= !(1 << (page % 64));
            }
            return;
        }
        for (number, from, to) in line::parts(geometry, run) {
            for (word, mask) in line::masks(from, to) {
                self.lines[number as usize][word] &= !mask;
            }
        }
    }

    /// Returns the marks, one line after the other.
    pub(super) fn lines(&self) -> impl Iterator<Item = &line::Bits> {
        self.lines.iter()
    }

    /// Compares the marks with the bitmap on the medium; returns the number of used blocks.
    pub(super) fn match_bitmap<M: Medium>(&self, checked: &mut CheckContext<'_, M>) -> u64 {
        let geometry = checked.geometry;
        let mut used = 0;
        for (number, found) in self.lines.iter().enumerate() {
            let number = number as u64;
            used += found.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            let first = geometry.data_first + number * LINE_BLOCKS;
            let Some(bits) = line::read(checked.medium, &geometry, checked.salt, number) else {
                checked.report.add_message(format_args!(
                    "the line of the bitmap for blocks from {first} on does not match its checksum"
                ));
                continue;
            };
            let count = |a: &line::Bits, b: &line::Bits| {
                a.iter().zip(b).map(|(a, b)| u64::from((a & !b).count_ones())).sum::<u64>()
            };
            let (lost, unmarked) = (count(&bits, found), count(found, &bits));
            if lost + unmarked > 0 {
                checked.report.add_message(format_args!(
                    "among the {LINE_BLOCKS} blocks from {first} on, {lost} are marked as used but belong to no inode, \
                     {unmarked} belong to an inode but are marked as free"
                ));
            }
        }
        used
    }
}
