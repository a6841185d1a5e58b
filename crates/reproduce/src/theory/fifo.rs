//! Model of FIFO (cyclic, least recently written) garbage collection in the limit of many blocks.
//!
//! A page that was valid when its block was sealed is still valid at position x of the queue (0
//! new, 1 next victim) with probability p^x. The mean over the queue is ρ = (p − 1)/ln p, and a
//! victim frees 1 − p of its pages: WA = 1/(1 − p). `docs/results/write-amplification.md` relates
//! this to the literature.

use super::Theory;

/// Number of steps of the integral over the queue.
const STEPS: u32 = 2000;

pub(super) fn theory(rho: f64, b: u32) -> Theory {
    let p = survival(rho);
    let mut shares = vec![0.0; b as usize + 1];
    for n in 0..STEPS {
        // Gauss–Legendre with two points a step: exact to third order.
        for side in [-1.0, 1.0] {
            let x = (f64::from(n) + 0.5 + side * 0.5 / 3f64.sqrt()) / f64::from(STEPS);
            add_binomial(&mut shares, p.powf(x), 0.5 / f64::from(STEPS));
        }
    }
    Theory { write_amplification: 1.0 / (1.0 - p), shares }
}

/// Returns p with (p − 1)/ln p = ρ, by bisection: the left side increases with p.
fn survival(rho: f64) -> f64 {
    let (mut low, mut high) = (1e-300, 1.0 - 1e-15);
    for _ in 0..2000 {
        let p: f64 = 0.5 * (low + high);
        if (p - 1.0) / p.ln() < rho { low = p } else { high = p }
    }
    0.5 * (low + high)
}

/// Adds `weight` times the binomial distribution of valid pages among `shares.len() − 1`, each
/// valid with probability `q`.
fn add_binomial(shares: &mut [f64], q: f64, weight: f64) {
    let n = shares.len() - 1;
    if q >= 1.0 {
        shares[n] += weight;
        return;
    }
    // The recurrence starts at the most likely count, so that a term underflows only where it is
    // negligible.
    let odds = q / (1.0 - q);
    let mode = (((n + 1) as f64 * q) as usize).min(n);
    let mut terms = vec![0.0; n + 1];
    terms[mode] = 1.0;
    for i in mode..n {
        terms[i + 1] = terms[i] * odds * (n - i) as f64 / (i + 1) as f64;
    }
    for i in (0..mode).rev() {
        terms[i] = terms[i + 1] / odds * (i + 1) as f64 / (n - i) as f64;
    }
    let sum: f64 = terms.iter().sum();
    shares.iter_mut().zip(terms).for_each(|(s, t)| *s += weight * t / sum);
}
