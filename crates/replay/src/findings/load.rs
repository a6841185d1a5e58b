//! Rules about the load: what limits the throughput.

use super::{Evidence, FindingKind, Rule, kind_name};
use crate::report::show::{percent, time};
use crate::report::{MediumReport, Report};
use frit_core::MediumKind;

/// Smallest busy share of a unit or channel that limits the throughput.
const BUSY_MIN: f64 = 0.60;
/// Busy share from which no further load fits.
const SATURATED_MIN: f64 = 0.95;
/// Largest busy share at which a device counts as idle for want of requests.
const IDLE_MAX: f64 = 0.50;
/// Smallest share of the run after the last arrival that shows a backlog.
const BACKLOG_SHARE_MIN: f64 = 0.10;
/// Smallest backlog in times of the shortest response.
const BACKLOG_REQUESTS_MIN: f64 = 20.0;
/// Smallest median response, as a share of the backlog, of a queue that grew during the whole run.
const BACKLOG_MEDIAN_MIN: f64 = 0.2;
/// Smallest number of reads and writes that show a queue.
const REQUESTS_MIN: u64 = 100;

pub(super) const BOTTLENECK: Rule = Rule {
    name: "bottleneck",
    kind: FindingKind::Explanation,
    condition: || {
        format!(
            "the busiest unit or channel is busy for at least {} of the time; saturated: {}",
            percent(BUSY_MIN),
            percent(SATURATED_MIN)
        )
    },
    reason: "It limits the throughput, and requests wait for it.",
    find: |r| {
        let b = busiest(r).filter(|b| b.busy >= BUSY_MIN)?;
        let how = if b.busy >= SATURATED_MIN { "saturated" } else { "the bottleneck" };
        let next = r.media.iter().filter(|m| m.name != b.medium.name).filter_map(busiest_of);
        let next = next.max_by(|x, y| x.busy.total_cmp(&y.busy));
        let other = next.as_ref().map_or(String::new(), |n| {
            format!("; {} is {} busy at most", kind_name(n.medium.kind), percent(n.busy))
        });
        let text = format!("{} is {how}: {}{other}.", kind_name(b.medium.kind), b.place());
        Some(Evidence::new(text).with("busy", b.busy, "share").with(
            "next_busy",
            next.map_or(0.0, |n| n.busy),
            "share",
        ))
    },
};

pub(super) const DEPTH_LIMITS: Rule = Rule {
    name: "depth-limits",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "closed loop, queue depth below the number of units of the media in use, and no unit or channel \
             busy for {} of the time",
            percent(IDLE_MAX)
        )
    },
    reason: "Throughput is the reciprocal of the latency then, and not a property of the device.",
    find: |r| {
        let depth = r.run.queue_depth.filter(|_| r.run.mode == "closed")?;
        let b = busiest(r).filter(|b| b.busy < IDLE_MAX)?;
        let units: usize = used(r).map(|m| m.unit_busy.len()).sum();
        (u64::from(depth) < units as u64).then(|| {
            Evidence::new(format!(
                "The queue depth limits the throughput, not the device: depth {depth} on {units} units, of which \
                 the busiest is {}. For throughput use --qd {units} or more.",
                b.place()
            ))
            .with("queue_depth", f64::from(depth), "")
            .with("units", units as f64, "")
            .with("busy", b.busy, "share")
        })
    },
};

pub(super) const IDLE: Rule = Rule {
    name: "idle-device",
    kind: FindingKind::Explanation,
    condition: || {
        format!(
            "open loop that is not overloaded, and no unit or channel busy for {} of the time",
            percent(IDLE_MAX)
        )
    },
    reason: "The arrivals set the throughput. Latencies are those of a device with little load.",
    find: |r| {
        if r.run.mode != "open" || backlog(r).is_some() {
            return None;
        }
        let b = busiest(r).filter(|b| b.busy < IDLE_MAX)?;
        Some(
            Evidence::new(format!(
                "The arrivals limit the throughput, not the device: its busiest part is {}.",
                b.place()
            ))
            .with("busy", b.busy, "share"),
        )
    },
};

pub(super) const OVERLOADED: Rule = Rule {
    name: "overloaded",
    kind: FindingKind::Doubt,
    condition: || {
        format!(
            "open loop with at least {REQUESTS_MIN} reads and writes; the time after the last arrival is at least \
             {} of the run and {BACKLOG_REQUESTS_MIN} times the shortest response, and the median response at \
             least {} of it",
            percent(BACKLOG_SHARE_MIN),
            percent(BACKLOG_MEDIAN_MIN)
        )
    },
    reason: "The queue grows as long as requests arrive, so response times grow with the length of the run.",
    find: |r| {
        let (backlog, arrivals) = backlog(r)?;
        let worst = r.class("all")?.response.figures.max_ns.0 as f64;
        Some(
            Evidence::new(format!(
                "Overloaded: requests arrived for {}, and the device needed {} more for those that waited. \
                 Response times (up to {}) grow with the length of the run; use a smaller --speed.",
                time(arrivals),
                time(backlog),
                time(worst)
            ))
            .with("arrivals", arrivals, "ns")
            .with("backlog", backlog, "ns")
            .with("response_max", worst, "ns"),
        )
    },
};

/// Returns the time that the device works after the last arrival, and the time of the arrivals, if
/// an open loop overloads the device.
fn backlog(r: &Report) -> Option<(f64, f64)> {
    let arrivals = r.throughput.arrivals_ns? as f64;
    let duration = r.throughput.duration_ns as f64;
    let response = &r.class("all")?.response;
    let shortest = response.buckets.iter().find(|b| b.to_ns > 0)?.to_ns as f64;
    let backlog = duration - arrivals;
    // A queue that grows evenly has half of its final length in the middle of the run. One long
    // request at the end of a run, or a burst at its end, leaves the median short.
    let grows = response.figures.p50_ns.0 as f64 >= BACKLOG_MEDIAN_MIN * backlog;
    let long = backlog >= BACKLOG_SHARE_MIN * duration && backlog >= BACKLOG_REQUESTS_MIN * shortest;
    (grows && long && response.figures.count >= REQUESTS_MIN).then_some((backlog, arrivals))
}

/// The busiest part of a medium.
struct Busiest<'a> {
    medium: &'a MediumReport,
    /// `unit` or `channel`.
    part: &'static str,
    number: usize,
    busy: f64,
}

impl Busiest<'_> {
    fn place(&self) -> String {
        let parts = match self.part {
            "unit" => &self.medium.unit_busy,
            _ => &self.medium.channel_busy,
        };
        let what = kind_name(self.medium.kind);
        if let [_] = parts.as_slice() {
            return format!("{what} '{}', {} busy", self.medium.name, percent(self.busy));
        }
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        let (part, number, n) = (self.part, self.number, parts.len());
        format!("{what} {part} {number}, {} busy (mean of {n} {part}s {})", percent(self.busy), percent(mean))
    }
}

/// Returns the media that executed commands. DRAM is never the limit that a user can change.
fn used(r: &Report) -> impl Iterator<Item = &MediumReport> {
    r.media.iter().filter(|m| m.kind != MediumKind::Dram && m.reads.commands + m.writes.commands > 0)
}

fn busiest_of(m: &MediumReport) -> Option<Busiest<'_>> {
    let most = |of: &[f64]| of.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    let (channel, unit) = (most(&m.channel_busy), most(&m.unit_busy)?);
    // Where a unit occupies its channel for the whole command, the channel is what is shared.
    match channel.filter(|c| c.1 >= unit.1) {
        Some((number, busy)) => Some(Busiest { medium: m, part: "channel", number, busy }),
        None => Some(Busiest { medium: m, part: "unit", number: unit.0, busy: unit.1 }),
    }
}

fn busiest(r: &Report) -> Option<Busiest<'_>> {
    used(r).filter_map(busiest_of).max_by(|a, b| a.busy.total_cmp(&b.busy))
}
