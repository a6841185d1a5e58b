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

    /// Returns a number with a standard normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Returns a number with a gamma distribution of scale 1 and a shape of at least 1 (Marsaglia
    /// and Tsang, "A simple method for generating gamma variables", 2000).
    pub(super) fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            let u = self.unit();
            if u < 1.0 - 0.0331 * x * x * x * x || libm::log(u) < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
                return d * v;
            }
        }
    }
}
