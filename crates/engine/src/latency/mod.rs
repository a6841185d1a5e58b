//! Request latencies: histograms of bounded size, one pair (response and service time) for each class
//! of requests that the caller defines, and their summaries for reports.

use crate::driver::RequestTimes;
use frit_core::Nanos;
use serde::{Deserialize, Serialize};

mod buckets;

use buckets::Buckets;

/// A latency distribution: quantiles are accurate to 0.1 %, mean and maximum are exact. Times above 4
/// hours have one quantile.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    buckets: Buckets,
    sum: u128,
    max: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram::new()
    }
}

impl LatencyHistogram {
    /// Creates an empty distribution.
    #[must_use]
    pub fn new() -> LatencyHistogram {
        LatencyHistogram { buckets: Buckets::new(), sum: 0, max: 0 }
    }

    /// Records one time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.buckets.record(time.0);
        self.sum += u128::from(time.0);
        self.max = self.max.max(time.0);
    }

    /// Removes all recorded times.
    pub fn reset(&mut self) {
        self.buckets.reset();
        self.sum = 0;
        self.max = 0;
    }

    /// Adds the times of another distribution.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.buckets.merge(&other.buckets);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Number of recorded times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.total()
    }

    /// Returns the `q`-quantile (`q` from 0 to 1): the time that this fraction of all times does
    /// not exceed; zero if nothing was recorded.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Nanos {
        // The upper end of the bucket may exceed the exact maximum.
        Nanos(self.buckets.quantile(q).min(self.max))
    }

    /// Returns the summary for a report.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        let count = self.count();
        let mean_ns = if count == 0 { 0.0 } else { self.sum as f64 / count as f64 };
        LatencySummary {
            count,
            mean_ns,
            p50_ns: self.quantile(0.5),
            p99_ns: self.quantile(0.99),
            p999_ns: self.quantile(0.999),
            max_ns: Nanos(self.max),
        }
    }

    /// Returns the distribution for a plot: for each occupied bucket, in order, its upper end and
    /// its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.buckets.occupied().map(|(end, count)| (Nanos(end.min(self.max)), count))
    }
}

/// The summary of a distribution, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of recorded times.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: Nanos,
    /// 99th percentile.
    pub p99_ns: Nanos,
    /// 99.9th percentile.
    pub p999_ns: Nanos,
    /// Maximum.
    pub max_ns: Nanos,
}

/// Response times and service times of the requests of one class.
#[derive(Clone, Default, Debug)]
pub struct ClassHistograms {
    /// Response time: from arrival to acknowledgement.
    pub response: LatencyHistogram,
    /// Service time: from admission to acknowledgement, without the wait in the host's queue.
    pub service: LatencyHistogram,
}

/// Distributions by class of request; the host defines the classes (read, write, …).
#[derive(Clone, Default, Debug)]
pub struct LatencyByClass {
    classes: Vec<Option<Box<ClassHistograms>>>,
}

impl LatencyByClass {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> LatencyByClass {
        LatencyByClass::default()
    }

    /// Records one request.
    #[inline]
    pub fn record(&mut self, class: u8, times: RequestTimes) {
        if let Some(Some(c)) = self.classes.get_mut(usize::from(class)) {
            c.response.record(times.response());
            c.service.record(times.service());
        } else {
            self.first(class, times);
        }
    }

    #[cold]
    fn first(&mut self, class: u8, times: RequestTimes) {
        let class = usize::from(class);
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, || None);
        }
        let c = self.classes[class].get_or_insert_default();
        c.response.record(times.response());
        c.service.record(times.service());
    }

    /// Distributions of a class, or `None` if it did not occur.
    #[must_use]
    pub fn class(&self, class: u8) -> Option<&ClassHistograms> {
        self.classes.get(usize::from(class))?.as_deref()
    }

    /// Returns the classes that occurred, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &ClassHistograms)> + '_ {
        self.classes.iter().enumerate().filter_map(|(i, c)| Some((i as u8, c.as_deref()?)))
    }

    /// Returns the merged distributions of all classes.
    #[must_use]
    pub fn all(&self) -> ClassHistograms {
        let mut all = ClassHistograms::default();
        for (_, c) in self.iter() {
            all.response.merge(&c.response);
            all.service.merge(&c.service);
        }
        all
    }

    /// Removes all distributions, as at the end of a warm-up.
    pub fn reset(&mut self) {
        self.classes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_sorted_list() {
        let mut l = LatencyHistogram::new();
        let times: Vec<u64> = (1..=10_000).map(|i| i * 1_003).collect();
        for &t in &times {
            l.record(Nanos(t));
        }
        let s = l.summary();
        assert_eq!((s.count, s.max_ns), (10_000, Nanos(10_030_000)));
        assert!((s.mean_ns - 5_000.5 * 1_003.0).abs() < 1e-6);
        for (got, rank) in [(s.p50_ns, 5_000), (s.p99_ns, 9_900), (s.p999_ns, 9_990)] {
            let want = times[rank - 1] as f64;
            assert!((got.0 as f64 - want).abs() <= want * 1e-3, "{got} {want}");
        }
        assert_eq!(l.buckets().map(|b| b.1).sum::<u64>(), 10_000);
        assert!(l.buckets().zip(l.buckets().skip(1)).all(|(a, b)| a.0 < b.0));
    }

    #[test]
    fn extremes_are_kept() {
        let mut l = LatencyHistogram::new();
        assert_eq!(l.summary(), LatencySummary::default());
        l.record(Nanos::ZERO);
        l.record(Nanos(u64::MAX / 2));
        assert_eq!(l.summary().max_ns, Nanos(u64::MAX / 2));
        assert_eq!(l.count(), 2);
        l.reset();
        assert_eq!(l.summary(), LatencySummary::default());
    }

    #[test]
    fn classes_are_kept_apart_and_merge() {
        let t = |arrived, admitted, acknowledged| RequestTimes {
            index: 0,
            arrived: Nanos(arrived),
            admitted: Nanos(admitted),
            acknowledged: Nanos(acknowledged),
        };
        let mut l = LatencyByClass::new();
        l.record(3, t(0, 10, 110));
        l.record(0, t(5, 5, 55));
        l.record(3, t(0, 0, 200));
        assert_eq!(l.iter().map(|(c, x)| (c, x.response.count())).collect::<Vec<_>>(), [(0, 1), (3, 2)]);
        let c = l.class(3).unwrap();
        assert_eq!((c.response.quantile(0.0), c.service.quantile(0.0)), (Nanos(110), Nanos(100)));
        assert!(l.class(1).is_none());
        assert_eq!(l.all().response.count(), 3);
    }
}
