//! Latency in a report.

use crate::host::{class, data_operations, operation};
use crate::options::Percentiles;
use frit_engine::latency::ClassHistograms;
use frit_engine::{LatencyByClass, LatencyHistogram, LatencySummary};
use serde::Serialize;

/// Number of buckets per decade in a report: neighbouring buckets differ by 12 %.
const BUCKETS_A_DECADE: f64 = 20.0;

/// Latency of one class of requests.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClassLatency {
    /// `read`, `write`, `discard`, `flush`, the name of a command, or `all`: reads and writes together,
    /// with the commands that read or write data.
    pub class: &'static str,
    /// Response time, from arrival to acknowledgement, as the user of the device sees it.
    pub response: Distribution,
    /// Service time, from admission to acknowledgement: without the wait in the host's queue.
    pub service: Distribution,
}

/// A latency distribution: summary, and buckets for a plot.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distribution {
    /// Count, mean, p50, p99, p99.9 and maximum, in nanoseconds; quantiles within 0.1 %.
    #[serde(flatten)]
    pub figures: LatencySummary,
    /// The percentiles that the run was asked for, in ascending order, within 0.1 %.
    pub percentiles: Vec<PercentileTime>,
    /// Buckets, twenty per decade; empty buckets are omitted.
    pub buckets: Vec<LatencyBucket>,
}

/// A percentile of a distribution.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PercentileTime {
    /// Percentile, above 0 and below 100.
    pub percentile: f64,
    /// Time that this share of the requests does not exceed, in nanoseconds.
    pub ns: u64,
}

impl PercentileTime {
    /// Returns the heading of the percentile, such as `p99.9`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("p{}", self.percentile)
    }
}

/// A bucket of a distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LatencyBucket {
    /// Upper end of the bucket, in nanoseconds: the upper end of the last histogram bucket that was
    /// merged into it.
    pub to_ns: u64,
    /// Number of times in the bucket.
    pub count: u64,
}

impl Distribution {
    pub(crate) fn of(latency: &LatencyHistogram, percentiles: &Percentiles) -> Distribution {
        let mut buckets: Vec<LatencyBucket> = Vec::new();
        let mut slot = i64::MIN;
        for (to, count) in latency.buckets() {
            let this = ((to.0.max(1) as f64).log10() * BUCKETS_A_DECADE).ceil() as i64;
            match buckets.last_mut() {
                Some(b) if this == slot => {
                    b.to_ns = to.0;
                    b.count += count;
                }
                _ => buckets.push(LatencyBucket { to_ns: to.0, count }),
            }
            slot = this;
        }
        // 99.9 / 100 is above 0.999, and would be the next bucket.
        let quantile = |p: f64| latency.quantile((p * 1e9).round() / 1e11);
        let time = |p: f64| PercentileTime { percentile: p, ns: quantile(p).0 };
        let percentiles = percentiles.values().iter().map(|&p| time(p)).collect();
        Distribution { figures: latency.summary(), percentiles, buckets }
    }
}

/// Returns the latency of all classes that occurred, and of reads and writes together. Flushes and
/// discards have classes of their own only: they often take no time, and would lower every mean.
pub(crate) fn classes(latencies: &LatencyByClass, percentiles: &Percentiles) -> Vec<ClassLatency> {
    let mut all = ClassHistograms::default();
    for l in data_operations().filter_map(|op| latencies.class(class(op))) {
        all.response.merge(&l.response);
        all.service.merge(&l.service);
    }
    let named = latencies.iter().filter_map(|(c, l)| Some((operation(c)?.name(), l)));
    named
        .chain([("all", &all)])
        .map(|(class, l)| ClassLatency {
            class,
            response: Distribution::of(&l.response, percentiles),
            service: Distribution::of(&l.service, percentiles),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::Nanos;

    #[test]
    fn buckets_are_few_and_hold_everything() {
        let mut l = LatencyHistogram::new();
        (0..100_000u64).for_each(|i| l.record(Nanos(i * i)));
        let d = Distribution::of(&l, &Percentiles::default());
        assert_eq!(d.buckets.iter().map(|b| b.count).sum::<u64>(), 100_000);
        assert!(d.buckets.len() < 11 * 20, "{}", d.buckets.len());
        assert!(d.buckets.windows(2).all(|w| w[0].to_ns < w[1].to_ns));
        // All except the shortest times: neighbouring buckets are about 12 % apart.
        let wide = d.buckets.windows(2).filter(|w| w[0].to_ns > 1000);
        assert!(wide.clone().count() > 100);
        assert!(wide.clone().all(|w| (w[1].to_ns as f64) < 1.27 * w[0].to_ns as f64));
    }

    #[test]
    fn a_percentile_has_the_value_of_its_summary() {
        let mut l = LatencyHistogram::new();
        (1..=1000u64).for_each(|i| l.record(Nanos(i * 1000)));
        let d = Distribution::of(&l, &Percentiles::default());
        let [_, p99, p999] = d.percentiles.as_slice() else { panic!("{:?}", d.percentiles) };
        assert_eq!((p99.ns, p999.ns), (d.figures.p99_ns.0, d.figures.p999_ns.0));
        assert!(p999.ns < d.figures.max_ns.0, "the 999th of 1000 is not the longest");
    }
}
