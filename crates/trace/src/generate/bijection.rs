//! A permutation of 0…n−1 without a table. It scatters popular slots over the address space.
//!
//! Four Feistel rounds over the next even power of two, with cycle walking until the value is below
//! n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). The domain is less than 4
//! n, so a walk is short.

use frit_core::split_mix;

pub(super) struct Bijection {
    n: u64,
    half: u32,
    keys: [u64; 4],
}

impl Bijection {
    pub(super) fn new(n: u64, seed: u64) -> Bijection {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(2);
        let mut s = seed ^ 0x5ca7_7e2d;
        // The number of bits is rounded up to an even one, because a Feistel network splits a value
        // in halves.
        Bijection { n, half: bits.div_ceil(2), keys: [0; 4].map(|_| split_mix::next(&mut s)) }
    }

    #[inline]
    pub(super) fn map(&self, value: u64) -> u64 {
        let mut v = value;
        loop {
            v = self.round(v);
            if v < self.n {
                return v;
            }
        }
    }

    #[inline]
    fn round(&self, v: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (v >> self.half, v & mask);
        for key in self.keys {
            let mut mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^= mixed >> 32;
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_once() {
        for n in [1, 2, 3, 5, 100, 1000, 4096, 4097] {
            let b = Bijection::new(n, 7);
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|i| seen[b.map(i) as usize] = true);
            assert!(seen.iter().all(|&s| s), "{n}");
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        let b = Bijection::new(1 << 20, 1);
        let near = (0..1000u64).filter(|&i| b.map(i).abs_diff(b.map(i + 1)) < 1024).count();
        assert!(near < 20, "{near}");
    }
}
