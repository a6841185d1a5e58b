//! Measurement of the accuracy of paced replies.

use frit_core::Nanos;
use frit_engine::LatencyHistogram;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of outstanding tickets. The oldest are dropped beyond it, if a transport does not
/// report its replies.
const WAITING_MAX: usize = 1 << 16;

/// A request whose reply is not sent yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingReply {
    /// Operation, as an index into [`PaceMeter::OPS`].
    pub op: usize,
    /// Time at which the request was admitted.
    pub admitted: Instant,
    /// Time at which the modelled device completes the request.
    pub due: Instant,
}

/// Achieved and modelled latency of one operation.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PaceStat {
    /// Name of the operation.
    pub op: String,
    /// Number of replies.
    pub replies: u64,
    /// Median of the modelled latency, in nanoseconds.
    pub model_p50_ns: u64,
    /// 99th percentile of the modelled latency, in nanoseconds.
    pub model_p99_ns: u64,
    /// Median of the time from admission to the reply, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile of the time from admission to the reply, in nanoseconds.
    pub p99_ns: u64,
    /// Relative error of the achieved median.
    pub p50_error: f64,
    /// Relative error of the achieved 99th percentile.
    pub p99_error: f64,
}

/// Compares the send times of replies with their due times.
#[derive(Debug, Default)]
pub struct PaceMeter(Mutex<MeterState>);

#[derive(Debug, Default)]
struct MeterState {
    waiting: VecDeque<PendingReply>,
    ops: [OpLatencies; PaceMeter::OPS.len()],
}

#[derive(Debug, Default)]
struct OpLatencies {
    model: LatencyHistogram,
    achieved: LatencyHistogram,
}

impl PaceMeter {
    /// Operations that are measured separately.
    pub const OPS: [&'static str; 5] = ["read", "write", "write_zeroes", "discard", "flush"];

    /// Records the admission of a request whose reply has a due time.
    pub fn admitted(&self, ticket: PendingReply) {
        let mut inner = self.0.lock();
        if inner.waiting.len() >= WAITING_MAX {
            inner.waiting.pop_front();
        }
        inner.waiting.push_back(ticket);
    }

    /// Records the time at which the reply due at `due` was sent.
    pub fn replied(&self, due: Instant, now: Instant) {
        let mut inner = self.0.lock();
        let Some(at) = inner.waiting.iter().position(|t| t.due == due) else { return };
        let Some(t) = inner.waiting.remove(at) else { return };
        let nanos = |d: Duration| Nanos(d.as_nanos() as u64);
        let op = &mut inner.ops[t.op];
        op.model.record(nanos(t.due - t.admitted));
        op.achieved.record(nanos(now.saturating_duration_since(t.admitted)));
    }

    /// Returns the metrics of the operations that occurred.
    pub fn stat(&self) -> Vec<PaceStat> {
        let inner = self.0.lock();
        let named = PaceMeter::OPS.iter().zip(&inner.ops);
        named.filter(|(_, op)| op.model.count() > 0).map(|(name, op)| pace_stat(name, op)).collect()
    }
}

fn pace_stat(name: &str, op: &OpLatencies) -> PaceStat {
    let (model, achieved) = (op.model.summary(), op.achieved.summary());
    let error = |is: Nanos, should: Nanos| is.0 as f64 / (should.0.max(1)) as f64 - 1.0;
    PaceStat {
        op: name.into(),
        replies: model.count,
        model_p50_ns: model.p50_ns.0,
        model_p99_ns: model.p99_ns.0,
        p50_ns: achieved.p50_ns.0,
        p99_ns: achieved.p99_ns.0,
        p50_error: error(achieved.p50_ns, model.p50_ns),
        p99_error: error(achieved.p99_ns, model.p99_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_compared_with_the_model() {
        let meter = PaceMeter::default();
        let start = Instant::now();
        let us = Duration::from_micros;
        for i in 0..100 {
            let admitted = start + us(1_000 * i);
            meter.admitted(PendingReply { op: 0, admitted, due: admitted + us(100) });
        }
        // Replies may come in any order. Two of a hundred are late.
        for i in (0..100).rev() {
            let due = start + us(1_000 * i + 100);
            meter.replied(due, due + us(if i < 2 { 50 } else { 5 }));
        }
        meter.replied(start, start); // unknown: ignored
        let all = meter.stat();
        assert_eq!(all.len(), 1);
        let s = &all[0];
        assert_eq!((s.op.as_str(), s.replies), ("read", 100));
        let near = |a: f64, b: f64| (a - b).abs() < 0.01;
        assert!(near(s.p50_error, 0.05) && near(s.p99_error, 0.5), "{s:?}");
        assert!(s.model_p50_ns.abs_diff(100_000) < 200, "{s:?}");
    }

    #[test]
    fn what_is_never_replied_is_forgotten() {
        let meter = PaceMeter::default();
        let t = Instant::now();
        for _ in 0..WAITING_MAX + 10 {
            meter.admitted(PendingReply { op: 1, admitted: t, due: t });
        }
        assert_eq!(meter.0.lock().waiting.len(), WAITING_MAX);
        assert!(meter.stat().is_empty());
    }
}
