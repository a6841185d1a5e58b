//! Distances between modelled and measured service times.

use crate::sample::Sample;
use frit_core::{Nanos, SECTOR_BYTES};
use frit_media::disk::score::compare;
use frit_trace::ReqOp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bound of the quadratic part of the loss, on the natural logarithm of the ratio (assumed): a factor of
/// 1.65.
const HUBER: f64 = 0.5;
/// Shortest modelled time in the loss, in nanoseconds: stacks have whole microseconds outside the NAND.
const SHORTEST_NS: f64 = 1000.0;

/// Returns the loss of one request: Huber's function (Annals of Mathematical Statistics 35, 1964) of the
/// logarithm of the ratio between modelled and measured time. Twice and half the time are equally wrong,
/// and a single outlier has a bounded influence.
pub(crate) fn loss(modelled_ns: u64, measured_ns: u64) -> f64 {
    let x = residual(modelled_ns, measured_ns).abs();
    if x <= HUBER { x * x / 2.0 } else { HUBER * (x - HUBER / 2.0) }
}

/// Returns the logarithm of the ratio between modelled and measured time.
pub(crate) fn residual(modelled_ns: u64, measured_ns: u64) -> f64 {
    ((modelled_ns as f64).max(SHORTEST_NS) / (measured_ns as f64).max(1.0)).ln()
}

/// Returns the weight of a residual in least squares that makes them minimize [`loss`].
pub(crate) fn weight(residual: f64) -> f64 {
    if residual.abs() <= HUBER { 1.0 } else { HUBER / residual.abs() }
}

/// Weight in [`Loss::Delays`] of a request that takes longer than its modelled time (assumed).
const DELAYED_WEIGHT: f64 = 0.1;
/// Share of the loss by which a fit may be worse in [`Loss::Delays`] (assumed). Most of the loss is that
/// of the delays, and a wrong fit can have a part of them by chance. True values were worse by 0.02 to 0.03.
const DELAYED_MARGIN: f64 = 0.05;

/// Loss that a fit minimizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// [`loss`]: too long and too short modelled times count alike.
    Symmetric,
    /// Too short modelled times count a tenth of too long ones. Delays only make requests longer, so the
    /// values are those of the fastest requests of each kind: an asymmetric loss as in the regression of
    /// quantiles (Koenker and Bassett, Econometrica 46, 1978).
    Delays,
}

impl Loss {
    /// Returns the loss of one request.
    pub(crate) fn of(self, modelled_ns: u64, measured_ns: u64) -> f64 {
        self.side(residual(modelled_ns, measured_ns)) * loss(modelled_ns, measured_ns)
    }

    /// Returns the weight of a residual in least squares that makes them minimize the loss.
    pub(crate) fn weight(self, residual: f64) -> f64 {
        self.side(residual) * weight(residual)
    }

    /// Returns the share of the loss by which a value may be worse without being excluded.
    pub(crate) fn margin(self) -> f64 {
        match self {
            Loss::Symmetric => 0.0,
            Loss::Delays => DELAYED_MARGIN,
        }
    }

    fn side(self, residual: f64) -> f64 {
        if self == Loss::Delays && residual < 0.0 { DELAYED_WEIGHT } else { 1.0 }
    }
}

/// Returns `true` if the modelled time is longer than the measured one by more than noise: by
/// [Huber's bound](HUBER).
pub(crate) fn is_too_long(modelled_ns: u64, measured_ns: u64) -> bool {
    residual(modelled_ns, measured_ns) > HUBER
}

/// Returns `true` if the measured time is longer than the modelled one by more than noise.
pub(crate) fn is_delayed(modelled_ns: u64, measured_ns: u64) -> bool {
    residual(modelled_ns, measured_ns) < -HUBER
}

/// A predictor of service times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Predictor {
    /// The calibrated drive.
    Calibrated,
    /// The drive of the profile.
    Profile,
    /// One time for all reads and one for all writes: the means of the fitted part.
    Constant,
}

/// Distances of a predictor on a part of the trace.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Score {
    /// The predictor.
    pub predictor: Predictor,
    /// Mean loss of the requests.
    pub loss: f64,
    /// Root mean square of the differences of single requests, in µs.
    pub rms_us: f64,
    /// Root-mean-square horizontal distance of the distributions, in µs: the demerit figure of Ruemmler
    /// and Wilkes.
    pub demerit_us: f64,
    /// Mean of the modelled times, in µs.
    pub mean_us: f64,
}

/// Scores of all predictors on a part of the trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PartScores {
    /// Number of requests.
    pub requests: usize,
    /// Mean of the measured times, in µs.
    pub measured_mean_us: f64,
    /// The scores.
    pub scores: Vec<Score>,
}

/// A quantile of measured and modelled times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct QuantileRow {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// Measured time in µs.
    pub measured_us: f64,
    /// Times of the predictors in µs: calibrated, profile, constant.
    pub modelled_us: [f64; 3],
}

/// Times of the requests of one operation and size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SizeRow {
    /// Operation: `read` or `write`.
    pub op: &'static str,
    /// Size of the requests in bytes.
    pub bytes: u64,
    /// Number of requests.
    pub requests: usize,
    /// Median of the measured times in µs.
    pub measured_us: f64,
    /// Median of the times of the calibrated drive in µs.
    pub calibrated_us: f64,
}

/// Modelled times of the three predictors, for all requests of a sample.
pub(crate) struct Predictions<'a> {
    pub(crate) sample: &'a Sample,
    pub(crate) calibrated: Vec<u64>,
    pub(crate) profile: Vec<u64>,
    pub(crate) constant: Vec<u64>,
}

/// Returns the times of the constant predictor.
pub(crate) fn constant(sample: &Sample) -> Vec<u64> {
    let mean = |op: ReqOp| {
        let fitted = sample.requests.iter().zip(&sample.measured).take(sample.fitted);
        let times: Vec<u64> = fitted.filter(|(r, _)| r.op == op).map(|(_, t)| *t).collect();
        let all = &sample.measured[..sample.fitted];
        // Without a read in the fitted part, reads take the mean of all requests.
        let of = if times.is_empty() { all } else { &times };
        (of.iter().map(|t| *t as f64).sum::<f64>() / of.len().max(1) as f64).round() as u64
    };
    let (read, write) = (mean(ReqOp::Read), mean(ReqOp::Write));
    sample.requests.iter().map(|r| if r.op == ReqOp::Read { read } else { write }).collect()
}

const QUANTILES: [f64; 9] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

impl Predictions<'_> {
    fn each(&self) -> [(Predictor, &[u64]); 3] {
        [
            (Predictor::Calibrated, &self.calibrated),
            (Predictor::Profile, &self.profile),
            (Predictor::Constant, &self.constant),
        ]
    }

    /// Returns the scores on a part of the trace.
    pub(crate) fn scores(&self, part: Range<usize>) -> PartScores {
        let measured = &self.sample.measured[part.clone()];
        let n = measured.len().max(1) as f64;
        let nanos = |times: &[u64]| times.iter().map(|t| Nanos(*t)).collect::<Vec<_>>();
        let score = |(predictor, times): (Predictor, &[u64])| {
            let modelled = &times[part.clone()];
            let pairs = || modelled.iter().zip(measured);
            let square: f64 = pairs().map(|(a, b)| (*a as f64 - *b as f64).powi(2)).sum();
            let demerit = compare(&nanos(measured), &nanos(modelled));
            Score {
                predictor,
                loss: pairs().map(|(a, b)| loss(*a, *b)).sum::<f64>() / n,
                rms_us: (square / n).sqrt() / 1e3,
                demerit_us: demerit.rms_ms * 1e3,
                mean_us: demerit.modelled_ms * 1e3,
            }
        };
        PartScores {
            requests: measured.len(),
            measured_mean_us: measured.iter().map(|t| *t as f64).sum::<f64>() / n / 1e3,
            scores: self.each().into_iter().map(score).collect(),
        }
    }

    /// Returns the quantiles on a part of the trace.
    pub(crate) fn quantiles(&self, part: Range<usize>) -> Vec<QuantileRow> {
        let sorted = |times: &[u64]| {
            let mut times = times[part.clone()].to_vec();
            times.sort_unstable();
            times
        };
        let measured = sorted(&self.sample.measured);
        let modelled = self.each().map(|(_, times)| sorted(times));
        let row = |quantile: f64| QuantileRow {
            quantile,
            measured_us: quantile_us(&measured, quantile),
            modelled_us: [0, 1, 2].map(|i| quantile_us(&modelled[i], quantile)),
        };
        QUANTILES.into_iter().map(row).collect()
    }

    /// Returns the medians of the fitted part by operation and size, for sizes with at least `least`
    /// requests.
    pub(crate) fn sizes(&self, least: usize) -> Vec<SizeRow> {
        let mut by_size: BTreeMap<(bool, u64), [Vec<u64>; 2]> = BTreeMap::new();
        for (i, r) in self.sample.requests.iter().enumerate().take(self.sample.fitted) {
            let key = (r.op == ReqOp::Write, u64::from(r.sectors) * SECTOR_BYTES);
            let [measured, calibrated] = by_size.entry(key).or_default();
            measured.push(self.sample.measured[i]);
            calibrated.push(self.calibrated[i]);
        }
        let row = |((write, bytes), times): ((bool, u64), [Vec<u64>; 2])| {
            let requests = times[0].len();
            let [measured_us, calibrated_us] = times.map(|mut t| {
                t.sort_unstable();
                quantile_us(&t, 0.5)
            });
            let op = if write { "write" } else { "read" };
            SizeRow { op, bytes, requests, measured_us, calibrated_us }
        };
        by_size.into_iter().filter(|(_, t)| t[0].len() >= least).map(row).collect()
    }
}

/// Returns a quantile of sorted times in nanoseconds, as µs: the time of rank ⌊q·n⌋.
pub(crate) fn quantile_us(sorted: &[u64], q: f64) -> f64 {
    let rank = ((sorted.len() as f64 * q) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(rank).map_or(0.0, |t| *t as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_symmetric_and_its_slope_is_bounded() {
        assert_eq!(loss(5_000, 5_000), 0.0);
        assert!((loss(20_000, 10_000) - loss(10_000, 20_000)).abs() < 1e-12);
        // Quadratic for small ratios, with the slope 0.5 of the logarithm for large ones.
        assert!((loss(110_000, 100_000) - 1.1f64.ln().powi(2) / 2.0).abs() < 1e-12);
        let step = loss(8_000_000, 100_000) - loss(4_000_000, 100_000);
        assert!((step - 0.5 * 2.0f64.ln()).abs() < 1e-12);
        // A modelled time of zero has a finite loss.
        assert_eq!(loss(0, 100_000), loss(1000, 100_000));
    }

    #[test]
    fn delays_count_a_tenth() {
        let (short, long) = (Loss::Delays.of(50_000, 100_000), Loss::Delays.of(200_000, 100_000));
        assert_eq!(long, Loss::Symmetric.of(200_000, 100_000));
        assert!((short * 10.0 - long).abs() < 1e-12, "{short} {long}");
        assert_eq!(Loss::Symmetric.of(50_000, 100_000), loss(50_000, 100_000));
        assert!(is_too_long(170_000, 100_000) && !is_too_long(160_000, 100_000));
        assert!(is_delayed(100_000, 170_000) && !is_delayed(100_000, 160_000));
    }

    #[test]
    fn quantiles_are_times_of_the_sample() {
        let sorted: Vec<u64> = (1..=100).map(|i| i * 1000).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|q| quantile_us(&sorted, q)), [1.0, 51.0, 100.0, 100.0]);
        assert_eq!(quantile_us(&[], 0.5), 0.0);
    }
}
