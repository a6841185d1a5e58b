//! Search for free blocks: at the goal, else from the position of the last search. The first run
//! that is long enough in one of a few lines is taken, else the longest run in them.

use super::bitmap::{BitmapAllocator, BitmapState};
use super::line::{self, Bits, WORDS};
use crate::format::LINE_BLOCKS;
use crate::journal::BlockRun;
use crate::medium::Medium;

/// Number of lines with free blocks that a search examines before it takes the longest run found.
const LINES_EXAMINED: u32 = 8;

impl BitmapState {
    pub(super) fn find<M: Medium>(
        &mut self,
        space: &BitmapAllocator,
        medium: &M,
        goal: Option<u64>,
        want: u64,
    ) -> Option<BlockRun> {
        if self.free == 0 {
            return None;
        }
        if let Some(run) = goal.and_then(|goal| self.at_goal(space, medium, goal, want)) {
            return Some(self.mark_used(space, run));
        }
        let lines = space.geometry.lines;
        // Without a goal in the data space, the search continues where the last one ended.
        let first = match goal {
            Some(goal) if space.geometry.holds(goal, 1) => (goal - space.geometry.data_first) / LINE_BLOCKS,
            _ => self.cursor,
        };
        let mut best: Option<(u64, u64, u64)> = None;
        let mut lines_examined = 0;
        for line in (first..lines).chain(0..first) {
            if self.load(space, medium, line) == 0 {
                continue;
            }
            let Some(bits) = self.lines[line as usize].as_deref() else { continue };
            let (from, len) = longest(bits, want);
            if best.is_none_or(|(.., most)| len > most) {
                best = Some((line, from, len));
            }
            // The number of lines is limited to bound the latency on a fragmented medium.
            lines_examined += 1;
            if len >= want || lines_examined >= LINES_EXAMINED {
                break;
            }
        }
        let (line, from, len) = best.filter(|(.., len)| *len > 0)?;
        self.cursor = line;
        let start = space.geometry.data_first + line * LINE_BLOCKS + from;
        Some(self.mark_used(space, BlockRun { start, len: len.min(want) }))
    }

    /// Allocates a run of exactly `want` blocks within one line, anywhere.
    pub(super) fn find_contiguous<M: Medium>(
        &mut self,
        space: &BitmapAllocator,
        medium: &M,
        want: u64,
    ) -> Option<BlockRun> {
        for line in 0..space.geometry.lines {
            if u64::from(self.load(space, medium, line)) < want {
                continue;
            }
            let Some(bits) = self.lines[line as usize].as_deref() else { continue };
            let (from, len) = longest(bits, want);
            if len >= want {
                let start = space.geometry.data_first + line * LINE_BLOCKS + from;
                return Some(self.mark_used(space, BlockRun { start, len: want }));
            }
        }
        None
    }

    /// Returns the free blocks from `goal` within its line.
    fn at_goal<M: Medium>(
        &mut self,
        space: &BitmapAllocator,
        medium: &M,
        goal: u64,
        want: u64,
    ) -> Option<BlockRun> {
        if !space.geometry.holds(goal, 1) {
            return None;
        }
        let (line, from) = (
            (goal - space.geometry.data_first) / LINE_BLOCKS,
            (goal - space.geometry.data_first) % LINE_BLOCKS,
        );
        if self.load(space, medium, line) == 0 {
            return None;
        }
        let bits = self.lines[line as usize].as_deref()?;
        let len = free_from(bits, from, want);
        (len > 0).then_some(BlockRun { start: goal, len })
    }

    fn mark_used(&mut self, space: &BitmapAllocator, run: BlockRun) -> BlockRun {
        for (line, from, to) in line::parts(&space.geometry, run) {
            if let Some(bits) = self.lines[line as usize].as_mut() {
                for (word, mask) in line::masks(from, to) {
                    debug_assert!(bits[word] & mask == 0, "{run:?} was used");
                    bits[word] |= mask;
                }
            }
            self.free_in[line as usize] -= (to - from) as u16;
        }
        self.free = self.free.saturating_sub(run.len);
        run
    }
}

/// Returns the number of consecutive free blocks from `from`, at most `want`.
fn free_from(bits: &Bits, from: u64, want: u64) -> u64 {
    let mut len = 0;
    let mut at = from;
    while at < LINE_BLOCKS && len < want {
        let used = bits[at as usize / 64] >> (at % 64);
        // Free blocks up to the next used one within the word.
        let run = u64::from(used.trailing_zeros()).min(64 - at % 64);
        len += run;
        at += run;
        if used != 0 && run < 64 - (at - run) % 64 {
            break;
        }
    }
    len.min(want)
}

/// Returns position and length of the first free run of `want` blocks in a line, or of the longest
/// run.
fn longest(bits: &Bits, want: u64) -> (u64, u64) {
    let (mut best, mut best_len) = (0, 0);
    let mut at = 0;
    while at < LINE_BLOCKS {
        let word = !bits[at as usize / 64] >> (at % 64);
        if word == 0 {
            at = (at / 64 + 1) * 64;
            continue;
        }
        at += u64::from(word.trailing_zeros());
        let len = free_from(bits, at, want);
        if len > best_len {
            (best, best_len) = (at, len);
        }
        if best_len >= want {
            break;
        }
        at += len.max(1);
    }
    (best, best_len)
}

const _: () = assert!(WORDS as u64 * 64 == LINE_BLOCKS);

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slow(bits: &Bits, from: u64, want: u64) -> u64 {
        (from..LINE_BLOCKS)
            .take_while(|b| bits[*b as usize / 64] >> (b % 64) & 1 == 0)
            .take(want as usize)
            .count() as u64
    }

    proptest! {
        #[test]
        fn runs_are_what_counting_finds(
            used in prop::collection::vec(0..LINE_BLOCKS, 0..300),
            from in 0..LINE_BLOCKS,
            want in 1..LINE_BLOCKS,
        ) {
            let mut bits = [0; WORDS];
            for b in used {
                bits[b as usize / 64] |= 1 << (b % 64);
            }
            prop_assert_eq!(free_from(&bits, from, want), slow(&bits, from, want));
            let most = (0..LINE_BLOCKS).map(|b| slow(&bits, b, want)).max().unwrap();
            let (at, len) = longest(&bits, want);
            prop_assert_eq!(len, most);
            prop_assert_eq!(slow(&bits, at, want), len);
        }
    }
}
