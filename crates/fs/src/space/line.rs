//! A line of the block bitmap on the medium: 63 words with a bit for each block, and a checksum
//! word, so that damage is detected when the line is read.

use crate::format::{Geometry, LINE, LINE_BLOCKS, crc_words, read_words, write_words};
use crate::journal::BlockRun;
use crate::medium::Medium;

/// Number of words of bits in a line.
pub(crate) const WORDS: usize = 63;

/// The bits of a line: a set bit is a used block.
pub(crate) type Bits = [u64; WORDS];

/// Returns the number of blocks in a line; the last line may have fewer.
pub(crate) fn blocks_of(geometry: &Geometry, line: u64) -> u64 {
    LINE_BLOCKS.min(geometry.data_blocks - line * LINE_BLOCKS)
}

/// Computes the checksum word.
pub(crate) fn check(salt: u32, line: u64, bits: &Bits) -> u64 {
    u64::from(crc_words(crc_words(salt, &[line]), bits))
}

/// Reads the bits of a line; returns `None` if they do not match their checksum.
pub(crate) fn read<M: Medium>(medium: &M, geometry: &Geometry, salt: u32, line: u64) -> Option<Bits> {
    let (bits, found) = read_raw(medium, geometry, line);
    (found == check(salt, line, &bits)).then_some(bits)
}

fn read_raw<M: Medium>(medium: &M, geometry: &Geometry, line: u64) -> (Bits, u64) {
    let words: [u64; WORDS + 1] = read_words(medium, geometry.bitmap_at + line * LINE);
    let mut bits = [0; WORDS];
    bits.copy_from_slice(&words[..WORDS]);
    (bits, words[WORDS])
}

/// Writes a whole line, for `mkfs` and repair.
pub(crate) fn write<M: Medium>(medium: &M, geometry: &Geometry, salt: u32, line: u64, bits: &Bits) {
    let mut words = [0; WORDS + 1];
    words[..WORDS].copy_from_slice(bits);
    words[WORDS] = check(salt, line, bits);
    write_words(medium, geometry.bitmap_at + line * LINE, &words);
}

/// Iterates over the words of a line that contain bits `from..to`, each with its mask.
pub(crate) fn masks(from: u64, to: u64) -> impl Iterator<Item = (usize, u64)> {
    (from / 64..to.div_ceil(64)).map(move |word| {
        let low = from.saturating_sub(word * 64).min(64);
        let high = (to - word * 64).min(64);
        let below_high = if high == 64 { u64::MAX } else { (1 << high) - 1 };
        (word as usize, below_high & !((1u64 << low) - 1))
    })
}

/// Iterates over the lines of a run, each with its range of bits `from..to`.
pub(crate) fn parts(geometry: &Geometry, run: BlockRun) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
    let first = run.start - geometry.data_first;
    let end = first + run.len;
    (first / LINE_BLOCKS..end.div_ceil(LINE_BLOCKS)).map(move |line| {
        let base = line * LINE_BLOCKS;
        (line, first.max(base) - base, end.min(base + LINE_BLOCKS) - base)
    })
}

/// Sets or clears the bits of a run in place. A line with a wrong checksum keeps a wrong one.
pub(crate) fn change<M: Medium>(medium: &M, geometry: &Geometry, salt: u32, run: BlockRun, set: bool) {
    for (line, from, to) in parts(geometry, run) {
        let (mut bits, found) = read_raw(medium, geometry, line);
        // A damaged line must not become valid by the new checksum.
        let sound = found == check(salt, line, &bits);
        put(&mut bits, from, to, set);
        let at = geometry.bitmap_at + line * LINE;
        let words = from as usize / 64..(to as usize).div_ceil(64);
        write_words(medium, at + words.start as u64 * 8, &bits[words]);
        write_words(medium, at + WORDS as u64 * 8, &[check_or_not(salt, line, &bits, sound)]);
    }
}

/// Bit ranges `from..to` of one line to change, in order; `true` sets the bits.
pub(crate) type BitChanges = Vec<(u64, u64, bool)>;

/// Replays changes that a crash may have interrupted at any point. The stored checksum must match
/// the line before, between or after the changes. Otherwise the line was damaged, and stays marked
/// so.
pub(crate) fn redo<M: Medium>(medium: &M, geometry: &Geometry, salt: u32, line: u64, changes: &BitChanges) {
    let (mut bits, found) = read_raw(medium, geometry, line);
    for (from, to, set) in changes {
        put(&mut bits, *from, *to, *set);
    }
    // Undoes the changes one by one, to compute the checksum of each earlier state.
    let mut earlier = bits;
    let mut sound = found == check(salt, line, &earlier);
    for (from, to, set) in changes.iter().rev() {
        put(&mut earlier, *from, *to, !set);
        sound |= found == check(salt, line, &earlier);
    }
    let mut words = [0; WORDS + 1];
    words[..WORDS].copy_from_slice(&bits);
    words[WORDS] = check_or_not(salt, line, &bits, sound);
    write_words(medium, geometry.bitmap_at + line * LINE, &words);
}

fn put(bits: &mut Bits, from: u64, to: u64, set: bool) {
    for (word, mask) in masks(from, to) {
        if set {
            bits[word] |= mask;
        } else {
            bits[word] &= !mask;
        }
    }
}

/// Returns the checksum word, or a word that never matches if the line is not sound.
fn check_or_not(salt: u32, line: u64, bits: &Bits, sound: bool) -> u64 {
    let right = check(salt, line, bits);
    if sound { right } else { !right }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_exactly_their_bits() {
        for (from, to) in [(0, 1), (0, 64), (3, 64), (63, 65), (5, 200), (64, 128), (0, LINE_BLOCKS)] {
            let mut seen = vec![false; LINE_BLOCKS as usize];
            for (word, mask) in masks(from, to) {
                for bit in 0..64 {
                    if mask >> bit & 1 == 1 {
                        seen[word * 64 + bit] = true;
                    }
                }
            }
            assert!(
                seen.iter().enumerate().all(|(i, s)| *s == (from..to).contains(&(i as u64))),
                "{from}..{to}"
            );
        }
    }
}
