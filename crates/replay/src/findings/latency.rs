//! Rules about latency: means that stand for few requests.

use super::{Evidence, FindingKind, Rule, share};
use crate::report::Distribution;
use crate::report::show::{count, percent, time};

/// Share of the slowest requests that are compared with all.
const SLOWEST: f64 = 0.01;
/// Smallest share of the total time that makes the mean one of the slowest requests.
const SLOWEST_TIME_MIN: f64 = 0.50;
/// Smallest number of requests: one in a hundred of fewer is a single event.
const REQUESTS_MIN: u64 = 1000;
/// Smallest share of the time of all requests that flushes take to be reported.
const FLUSH_TIME_MIN: f64 = 0.25;
/// Smallest share of the requests that take no time and are counted in requests/s.
const FREE_SHARE_MIN: f64 = 0.10;

pub(super) const TAIL_MEAN: Rule = Rule {
    name: "tail-mean",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "at least {REQUESTS_MIN} reads and writes, of which the slowest {} take at least {} of the time",
            percent(SLOWEST),
            percent(SLOWEST_TIME_MIN)
        )
    },
    reason: "The mean is then that of few requests; percentiles describe the others.",
    find: |r| {
        let d = &r.class("all")?.response;
        let part = slowest_time(d).filter(|p| *p >= SLOWEST_TIME_MIN && d.figures.count >= REQUESTS_MIN)?;
        Some(
            Evidence::new(format!(
                "The mean of {} is that of few requests: the slowest {} take {} of the time; the median is {}.",
                time(d.figures.mean_ns),
                percent(SLOWEST),
                percent(part),
                time(d.figures.p50_ns.0 as f64)
            ))
            .with("mean", d.figures.mean_ns, "ns")
            .with("median", d.figures.p50_ns.0 as f64, "ns")
            .with("time_of_slowest", part, "share"),
        )
    },
};

pub(super) const FLUSH_TIME: Rule = Rule {
    name: "flush-time",
    kind: FindingKind::Explanation,
    condition: || format!("flushes take at least {} of the time of all requests", percent(FLUSH_TIME_MIN)),
    reason: "The throughput is then mostly that of flushes, which the mean of reads and writes leaves out.",
    find: |r| {
        let total = |class: &str| r.class(class).map_or(0.0, |c| total(&c.response));
        let flushes = total("flush");
        let part = flushes / (flushes + total("all") + total("discard")).max(1.0);
        let f = r.class("flush").filter(|_| part >= FLUSH_TIME_MIN)?.response.figures;
        Some(
            Evidence::new(format!(
                "Flushes take {} of the time of all requests: {} of them, {} each.",
                percent(part),
                count(f.count),
                time(f.mean_ns)
            ))
            .with("time_of_flushes", part, "share")
            .with("flushes", f.count as f64, "")
            .with("mean_of_flushes", f.mean_ns, "ns"),
        )
    },
};

pub(super) const FREE_FLUSHES: Rule = Rule {
    name: "free-flushes",
    kind: FindingKind::Explanation,
    condition: || {
        format!(
            "at least {} of the requests are flushes and discards, and all of them took 0 ns",
            percent(FREE_SHARE_MIN)
        )
    },
    reason: "They count in requests/s, and the device does nothing for them.",
    find: |r| {
        let free = r.asked.flushes + r.asked.discards;
        let takes = |class: &str| r.class(class).is_some_and(|c| c.response.figures.max_ns.0 > 0);
        let part = share(free, r.asked.requests);
        (part >= FREE_SHARE_MIN && !takes("flush") && !takes("discard")).then(|| {
            Evidence::new(format!(
                "requests/s counts {} flushes and discards ({} of the requests) that took 0 ns.",
                count(free),
                percent(part)
            ))
            .with("flushes", r.asked.flushes as f64, "")
            .with("discards", r.asked.discards as f64, "")
            .with("requests", r.asked.requests as f64, "")
        })
    },
};

fn total(d: &Distribution) -> f64 {
    d.figures.mean_ns * d.figures.count as f64
}

/// Returns the share of the time that the slowest requests take; the time of a bucket is its upper
/// end, which is at most 12 % too long, so the total is taken from the buckets too.
fn slowest_time(d: &Distribution) -> Option<f64> {
    let all: f64 = d.buckets.iter().map(|b| b.to_ns as f64 * b.count as f64).sum();
    let (mut left, mut slow) = ((d.figures.count as f64 * SLOWEST).ceil(), 0.0);
    for b in d.buckets.iter().rev() {
        let n = left.min(b.count as f64);
        slow += n * b.to_ns as f64;
        left -= n;
    }
    (all > 0.0).then(|| slow / all)
}
