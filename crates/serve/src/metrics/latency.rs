//! Conversion of latency histograms to metrics.

use super::LatencyStat;
use hdrhistogram::Histogram;

/// Upper bounds of the buckets in nanoseconds: 1, 2 and 5 per decade, from 1 µs, the latency of a
/// request in memory, to 10 s, after which clients time out.
const BOUNDS: [u64; 22] = {
    let mut bounds = [0; 22];
    let mut decade = 1_000;
    let mut i = 0;
    while i < 21 {
        bounds[i] = decade;
        bounds[i + 1] = 2 * decade;
        bounds[i + 2] = 5 * decade;
        decade *= 10;
        i += 3;
    }
    bounds[21] = decade;
    bounds
};

impl From<&Histogram<u64>> for LatencyStat {
    fn from(h: &Histogram<u64>) -> LatencyStat {
        if h.is_empty() {
            return LatencyStat::default();
        }
        let mut buckets: Vec<(u64, u64)> = BOUNDS.iter().map(|&b| (b, 0)).collect();
        buckets.push((u64::MAX, 0));
        let mut sum = 0.0;
        for value in h.iter_recorded() {
            let (time, count) = (value.value_iterated_to(), value.count_since_last_iteration());
            // The histogram stores ranges of values, so the sum uses the middle of each range.
            sum += h.median_equivalent(time) as f64 * count as f64;
            let at = BOUNDS.partition_point(|&bound| bound < time);
            buckets[at].1 += count;
        }
        LatencyStat {
            sum_s: sum / 1e9,
            p50_ns: h.value_at_quantile(0.5),
            p99_ns: h.value_at_quantile(0.99),
            max_ns: h.max(),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_one_bucket() {
        let mut h = Histogram::<u64>::new_with_bounds(1, 1_000_000_000_000, 2).unwrap();
        for ns in [400, 1_500, 1_600, 30_000_000, 60_000_000_000] {
            h.record(ns).unwrap();
        }
        let s = LatencyStat::from(&h);
        let full: Vec<_> = s.buckets.iter().filter(|b| b.1 > 0).copied().collect();
        assert_eq!(full, [(1_000, 1), (2_000, 2), (50_000_000, 1), (u64::MAX, 1)]);
        assert!((s.sum_s - 60.03).abs() < 0.5, "{}", s.sum_s);
        assert!(s.p50_ns >= 1_500 && s.p50_ns < 1_700);
        assert_eq!(LatencyStat::from(&Histogram::<u64>::new(2).unwrap()), LatencyStat::default());
    }
}
