//! Random numbers that depend only on the seed, on every machine and in every version.

use frit_core::split_mix;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

/// PCG-64-MCG (O'Neill 2014), seeded through SplitMix64.
pub(super) struct Random(Pcg64Mcg);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        let mut s = seed;
        let (high, low) = (split_mix::next(&mut s), split_mix::next(&mut s));
        Random(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)))
    }

    /// Returns a number in [0, 1) with 53 random bits.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a number below `n` (Lemire 2019 without the rejection: the bias is below n / 2^64).
    #[inline]
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns an exponentially distributed number with mean 1.
    #[inline]
    pub(super) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}
