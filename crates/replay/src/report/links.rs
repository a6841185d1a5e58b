//! Requests between the layers of a stack, and to its media.

use super::{CauseCount, LinkLatency, LinkReport};
use frit_core::visible::{LayerView, MediumView};
use frit_core::{Cause, Count, Counts, MediumKind, Op, StackView, Traffic, TrafficKind};
use frit_engine::{DeviceUsage, TimesByKind};
use strum::IntoEnumIterator;

/// Reports what each layer gave to the layers and media below it between two states of a stack. A
/// stack of one layer has no links: its media have all commands. `host` is the number of bytes that
/// the client wrote.
pub(super) fn links(
    before: &StackView,
    after: &StackView,
    host: u64,
    usage: &DeviceUsage,
) -> Vec<LinkReport> {
    if after.layers.len() < 2 {
        return Vec::new();
    }
    let nothing = Traffic::default();
    let traffic = |view: &StackView, name: &str| {
        view.layers.iter().find(|l| l.name == name).and_then(|l| l.traffic.clone())
    };
    let to_layer = |l: &LayerView| {
        let then = traffic(before, &l.name);
        l.traffic.as_ref().map(|now| now.since(then.as_deref().unwrap_or(&nothing)))
    };
    let times = usage.links();
    let mut links = Vec::new();
    for upper in &after.layers {
        // The top layer has the client above it.
        let received = to_layer(upper).map_or(host, |t| t.of(TrafficKind::Write).bytes);
        let per_byte = |bytes: u64| (received > 0).then(|| bytes as f64 / received as f64);
        for (m, then) in after.media.iter().zip(&before.media).filter(|(m, _)| m.layer == upper.name) {
            let latency = latencies(times.and_then(|t| t.device(m.first_unit)));
            let link = medium_link(&upper.name, m, &m.counts.since(&then.counts), per_byte);
            links.push(LinkReport { latency, ..link });
        }
        for lower in after.layers.iter().filter(|l| l.upper == upper.name) {
            let t = to_layer(lower).unwrap_or_default();
            let latency = latencies(times.and_then(|t| t.layer(usize::from(lower.number))));
            links.push(LinkReport { latency, ..layer_link(&upper.name, &lower.name, &t, per_byte) });
        }
    }
    links
}

/// Returns the times of each kind of request that occurred.
fn latencies(times: Option<&TimesByKind>) -> Vec<LinkLatency> {
    let kinds = TrafficKind::iter().filter_map(|kind| {
        let figures = times?.of(kind)?.summary();
        Some(LinkLatency { kind: name(kind), figures })
    });
    kinds.collect()
}

/// Returns the name of a kind of request in a report.
fn name(kind: TrafficKind) -> &'static str {
    match kind {
        TrafficKind::Zero => "discard",
        other => other.into(),
    }
}

fn medium_link(
    from: &str,
    medium: &MediumView,
    counts: &Counts,
    per_byte: impl Fn(u64) -> Option<f64>,
) -> LinkReport {
    let sum = |keep: &dyn Fn(Op, Cause) -> bool| -> Count {
        counts.iter().filter(|&(op, cause, _)| keep(op, cause)).map(|(.., count)| count).sum()
    };
    let writes = sum(&|op, _| op.is_write());
    let by_cause =
        |cause: Cause| CauseCount { cause: cause.into(), count: sum(&|op, c| op.is_write() && c == cause) };
    LinkReport {
        from: from.to_owned(),
        to: medium.name.clone(),
        reads: sum(&|op, _| op.is_read()),
        writes,
        discards: Count::default(),
        flushes: sum(&|op, _| op.is_fence()).commands,
        // Erases of NAND and refreshes of PCM carry no payload.
        written_per_byte: (medium.kind != MediumKind::Dram).then(|| per_byte(writes.bytes)).flatten(),
        causes: Cause::iter().map(by_cause).filter(|c| c.count.commands > 0).collect(),
        latency: Vec::new(),
    }
}

fn layer_link(from: &str, to: &str, t: &Traffic, per_byte: impl Fn(u64) -> Option<f64>) -> LinkReport {
    let writes = t.of(TrafficKind::Write);
    let of_writes = |(kind, cause, count): (TrafficKind, Cause, Count)| {
        (kind == TrafficKind::Write).then(|| CauseCount { cause: cause.into(), count })
    };
    LinkReport {
        from: from.to_owned(),
        to: to.to_owned(),
        reads: t.of(TrafficKind::Read),
        writes,
        discards: t.of(TrafficKind::Zero),
        flushes: t.of(TrafficKind::Flush).commands,
        written_per_byte: per_byte(writes.bytes),
        causes: t.iter().filter_map(of_writes).collect(),
        latency: Vec::new(),
    }
}
