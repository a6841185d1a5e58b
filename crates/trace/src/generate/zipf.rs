//! Zipf-distributed ranks for any exponent above 0, in constant time and memory.
//!
//! Method: rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates
//! from monotone discrete distributions", 1996).

use super::random::Random;

pub(super) struct Zipf {
    n: f64,
    theta: f64,
    h_first: f64,
    h_last: f64,
    cut: f64,
}

impl Zipf {
    /// Creates a distribution over the ranks 0…n−1, in which rank k has weight (k+1)^−theta.
    pub(super) fn new(n: u64, theta: f64) -> Zipf {
        let mut z = Zipf { n: n as f64, theta, h_first: 0.0, h_last: 0.0, cut: 0.0 };
        z.h_first = z.integral(1.5) - 1.0;
        z.h_last = z.integral(z.n + 0.5);
        z.cut = 2.0 - z.inverse(z.integral(2.5) - libm::pow(2.0, -theta));
        z
    }

    /// Returns the integral of x^−theta, up to a constant: (x^(1−theta) − 1) / (1 − theta).
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        log * expm1_over(log * (1.0 - self.theta))
    }

    /// Returns the inverse of the integral.
    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0);
        libm::exp(y * log1p_over(t))
    }

    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.h_last + random.unit() * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            // The first condition accepts most draws without evaluating the integral.
            if k - x <= self.cut || u >= self.integral(k + 0.5) - libm::pow(k, -self.theta) {
                return k as u64 - 1;
            }
        }
    }
}

/// Returns (e^x − 1) / x; a series is used near 0, where the quotient is not defined.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

/// Returns ln(1 + x) / x; a series is used near 0, where the quotient is not defined.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        for theta in [0.5, 0.99, 1.0, 1.3] {
            let (n, draws) = (1000u64, 400_000);
            let z = Zipf::new(n, theta);
            let mut r = Random::new(3);
            let mut count = vec![0u32; n as usize];
            (0..draws).for_each(|_| count[z.draw(&mut r) as usize] += 1);
            let norm: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for k in [1usize, 2, 5, 20, 100] {
                let expected = f64::from(draws) * (k as f64).powf(-theta) / norm;
                let off = (f64::from(count[k - 1]) - expected).abs() / expected.sqrt();
                assert!(off < 5.0, "theta {theta}, rank {k}: {} against {expected}", count[k - 1]);
            }
        }
    }

    #[test]
    fn one_place_is_always_the_first() {
        let z = Zipf::new(1, 0.9);
        let mut r = Random::new(1);
        assert!((0..100).all(|_| z.draw(&mut r) == 0));
    }
}
