//! Contents that `--verify` writes to a sector: every byte depends on the sector, the version and
//! the run.

use frit_core::SECTOR_BYTES;
use frit_core::split_mix::mix;

/// Size of a sector in bytes.
pub(crate) const SECTOR: usize = SECTOR_BYTES as usize;
const WORDS: usize = SECTOR / 8;
const MAGIC: u64 = u64::from_le_bytes(*b"fritvrfy");

/// Generates and recognises the contents of one run.
///
/// A sector begins with a magic number mixed with the seed, its own number and its version. The
/// rest are words of a SplitMix64 sequence (Steele, Lea & Flood 2014) that starts from all three,
/// so that no two sectors and no two versions share a word at the same position (except by chance),
/// and a shifted or torn sector is detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VerifyPattern {
    seed: u64,
}

/// Contents that were found in a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FoundContent {
    /// All bytes are zero.
    Zeros,
    /// Complete, valid contents, possibly of another sector or version.
    Valid {
        /// Sector for which the contents were written.
        sector: u64,
        /// Version of the contents.
        version: u32,
    },
    /// The sector begins with contents of this run, but differs from them at some byte.
    Torn {
        /// Sector for which the first bytes were written.
        sector: u64,
        /// Version of the first bytes.
        version: u32,
        /// Offset of the first byte that differs.
        byte: usize,
    },
    /// Contents that this run did not write.
    Foreign,
}

impl VerifyPattern {
    pub(crate) fn new(seed: u64) -> VerifyPattern {
        VerifyPattern { seed: mix(seed) }
    }

    fn word(&self, key: u64, sector: u64, version: u32, i: usize) -> u64 {
        match i {
            0 => MAGIC ^ self.seed,
            1 => sector,
            2 => u64::from(version),
            _ => mix(key.wrapping_add(i as u64)),
        }
    }

    fn key(&self, sector: u64, version: u32) -> u64 {
        mix(self.seed ^ mix(sector ^ u64::from(version).rotate_left(40)))
    }

    /// Fills one sector with its contents.
    pub(crate) fn write(&self, sector: u64, version: u32, out: &mut [u8]) {
        let key = self.key(sector, version);
        for (i, w) in out.chunks_exact_mut(8).enumerate() {
            w.copy_from_slice(&self.word(key, sector, version, i).to_le_bytes());
        }
    }

    /// Returns the offset of the first byte that differs from the expected contents.
    fn first_difference(&self, sector: u64, version: u32, data: &[u8]) -> Option<usize> {
        let key = self.key(sector, version);
        for (i, w) in data.chunks_exact(8).enumerate() {
            let want = self.word(key, sector, version, i).to_le_bytes();
            if w != want {
                return Some(8 * i + w.iter().zip(want).position(|(a, b)| *a != b).unwrap_or(0));
            }
        }
        None
    }

    /// Returns `true` if a sector contains this version, to the last byte.
    #[inline]
    pub(crate) fn holds(&self, sector: u64, version: u32, data: &[u8]) -> bool {
        data.len() == SECTOR && self.first_difference(sector, version, data).is_none()
    }

    /// Identifies the contents of a sector.
    pub(crate) fn find(&self, data: &[u8]) -> FoundContent {
        if is_zero(data) {
            return FoundContent::Zeros;
        }
        let word = |i: usize| {
            data.get(8 * i..8 * i + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        // The first bytes identify the contents; `first_difference` then compares all bytes.
        let (Ok(version), true) = (u32::try_from(word(2)), word(0) == MAGIC ^ self.seed) else {
            return FoundContent::Foreign;
        };
        let sector = word(1);
        match self.first_difference(sector, version, data) {
            None => FoundContent::Valid { sector, version },
            Some(byte) => FoundContent::Torn { sector, version, byte },
        }
    }
}

/// Returns `true` if all bytes are zero.
pub(crate) fn is_zero(data: &[u8]) -> bool {
    data.iter().all(|&b| b == 0)
}

const _: () = assert!(WORDS * 8 == SECTOR);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_changed_byte_is_found(sector in 0u64..1 << 40, version in 1u32..1 << 31, at in 0..SECTOR, flip in 1u8..) {
            let c = VerifyPattern::new(7);
            let mut b = [0u8; SECTOR];
            c.write(sector, version, &mut b);
            prop_assert!(c.holds(sector, version, &b));
            prop_assert_eq!(c.find(&b), FoundContent::Valid { sector, version });
            prop_assert!(!c.holds(sector ^ 1, version, &b) && !c.holds(sector, version ^ 1, &b));
            prop_assert!(!VerifyPattern::new(8).holds(sector, version, &b));
            b[at] ^= flip;
            prop_assert!(!c.holds(sector, version, &b));
            if at >= 24 {
                prop_assert_eq!(c.find(&b), FoundContent::Torn { sector, version, byte: at });
            }
        }
    }

    #[test]
    fn zeros_and_foreign_bytes_are_told_apart() {
        let c = VerifyPattern::new(7);
        assert_eq!(c.find(&[0; SECTOR]), FoundContent::Zeros);
        assert_eq!(c.find(&[0xa5; SECTOR]), FoundContent::Foreign);
    }
}
