//! Permutation of any number of addresses, determined by a seed.
//!
//! A Feistel network permutes 2^k addresses. Randomized start-gap puts one in front of its regions
//! (Qureshi et al., MICRO 2009, section 5.1: three stages). For a number that is not a power of
//! two, the network is applied until the result is in range (cycle walking: Black and Rogaway,
//! "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). Since 2^k is less than twice the number,
//! that takes fewer than two rounds on average. For odd k the halves differ by one bit and are not
//! swapped between stages.

use frit_core::convert::{low_u32, to_u64};
use frit_core::split_mix::mix;

/// Number of stages, as in the paper.
const STAGES: usize = 3;

/// Permutation of `0..n`.
#[derive(Clone, Debug)]
pub struct Feistel {
    n: u32,
    low_bits: u32,
    low_mask: u32,
    high_mask: u32,
    keys: [u32; STAGES],
}

/// Round function of a stage. Any function gives a permutation; this one mixes all bits (the
/// multipliers are those of MurmurHash3's 32-bit finaliser).
#[inline]
fn round(half: u32, key: u32) -> u32 {
    let x = (half ^ key).wrapping_mul(0x85EB_CA6B);
    let x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

impl Feistel {
    /// Creates the permutation of `0..n` for a seed. `n` is at most 2^31.
    #[must_use]
    pub fn new(n: u32, seed: u64) -> Feistel {
        let bits = n.max(2).next_power_of_two().trailing_zeros();
        let low_bits = bits / 2;
        let mut keys = [0; STAGES];
        for (i, k) in keys.iter_mut().enumerate() {
            *k = low_u32(mix(seed ^ mix(to_u64(i))));
        }
        Feistel { n, low_bits, low_mask: (1 << low_bits) - 1, high_mask: (1 << (bits - low_bits)) - 1, keys }
    }

    #[inline]
    fn once(&self, x: u32) -> u32 {
        let (mut low, mut high) = (x & self.low_mask, x >> self.low_bits);
        for (i, &key) in self.keys.iter().enumerate() {
            if i % 2 == 0 {
                high ^= round(low, key) & self.high_mask;
            } else {
                low ^= round(high, key) & self.low_mask;
            }
        }
        high << self.low_bits | low
    }

    /// Permuted address of `x`, which must be below `n`.
    #[inline]
    #[must_use]
    pub fn map(&self, x: u32) -> u32 {
        let mut y = self.once(x);
        while y >= self.n {
            y = self.once(y);
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::convert::to_usize;

    #[test]
    fn it_is_a_permutation_of_any_size() {
        for n in (1..200).chain([511, 512, 513, 65_472, 65_537]) {
            let f = Feistel::new(n, u64::from(n) * 7);
            let mut seen = vec![false; to_usize(n)];
            for x in 0..n {
                let y = f.map(x);
                assert!(!std::mem::replace(&mut seen[to_usize(y)], true), "{n}: twice {y}");
            }
        }
    }

    #[test]
    fn neighbours_part_and_seeds_differ() {
        let n = 65_000;
        let (f, g) = (Feistel::new(n, 1), Feistel::new(n, 2));
        let near = (1..n).filter(|&x| f.map(x).abs_diff(f.map(x - 1)) < 1000).count();
        // By chance about 2000 of 65 000 addresses are near on either side: one in 32.
        assert!(near < to_usize(n) / 16, "{near} neighbours stay near");
        assert!((0..n).filter(|&x| f.map(x) == g.map(x)).count() < 50);
    }
}
