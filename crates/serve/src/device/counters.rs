//! Counters of requests and connections, and service times.

use crate::hints::HintCounters;
use hdrhistogram::Histogram;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Request counters by type of request.
#[derive(Clone, Default, Debug)]
pub struct RequestCounters {
    /// Reads.
    pub read: OpCounters,
    /// Writes.
    pub write: OpCounters,
    /// Ranges set to zero.
    pub write_zeroes: OpCounters,
    /// Ranges discarded.
    pub discard: OpCounters,
    /// Flushes, including those of writes with FUA.
    pub flush: OpCounters,
    /// Queries for extents.
    pub extents: OpCounters,
    /// Reads of the processing engine, in pieces.
    pub isp: OpCounters,
    /// Coalesced flushes: they were skipped, because another flush had begun after their arrival
    /// and covered them.
    pub flushes_coalesced: u64,
    /// Steps of background work.
    pub steps: u64,
    /// Writes with hints.
    pub hints: HintCounters,
}

impl RequestCounters {
    pub(super) fn of(&mut self, kind: ClientRequestKind) -> &mut OpCounters {
        match kind {
            ClientRequestKind::Read => &mut self.read,
            ClientRequestKind::Write => &mut self.write,
            ClientRequestKind::WriteZeroes => &mut self.write_zeroes,
            ClientRequestKind::Discard => &mut self.discard,
            ClientRequestKind::Flush => &mut self.flush,
            ClientRequestKind::Extents => &mut self.extents,
            ClientRequestKind::Isp => &mut self.isp,
        }
    }

    /// Returns the counters of each type with its name, in the order of tables.
    pub fn by_kind(&self) -> [(&'static str, &OpCounters); 7] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("write_zeroes", &self.write_zeroes),
            ("discard", &self.discard),
            ("flush", &self.flush),
            ("extents", &self.extents),
            ("isp", &self.isp),
        ]
    }
}

/// Type of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientRequestKind {
    Read,
    Write,
    WriteZeroes,
    Discard,
    Flush,
    Extents,
    Isp,
}

/// Counters of one type of request.
#[derive(Clone)]
pub struct OpCounters {
    /// Number of requests, including failed ones.
    pub requests: u64,
    /// Total length of the requests in bytes, including failed ones.
    pub bytes: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// Service time in ns: from the time at which the request is first in line under the lock (for
    /// a flush: from its arrival) to the time at which its reply may be sent.
    pub service_ns: Histogram<u64>,
}

/// Upper bound of the histogram of service times, in ns: 1000 s. Longer times are counted as this.
const SERVICE_NS_MAX: u64 = 1_000_000_000_000;

impl Default for OpCounters {
    fn default() -> OpCounters {
        OpCounters { requests: 0, bytes: 0, errors: 0, service_ns: histogram() }
    }
}

#[allow(clippy::expect_used, reason = "bounds and digits are constants that are possible")]
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, SERVICE_NS_MAX, 2).expect("constant bounds")
}

impl OpCounters {
    /// Counts one request.
    pub(super) fn add(&mut self, bytes: u64, service_ns: u64, failed: bool) {
        self.requests += 1;
        self.bytes += bytes;
        self.errors += u64::from(failed);
        self.service_ns.saturating_record(service_ns.max(1));
    }
}

impl fmt::Debug for OpCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpCounters")
            .field("requests", &self.requests)
            .field("bytes", &self.bytes)
            .field("errors", &self.errors)
            .field("p50_ns", &self.service_ns.value_at_quantile(0.5))
            .field("p99_ns", &self.service_ns.value_at_quantile(0.99))
            .finish()
    }
}

/// Connection counters by outcome.
#[derive(Default, Debug)]
pub struct ConnectionCounters {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
}

impl ConnectionCounters {
    /// Returns the number of open connections.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the number of connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns the number of connections refused because too many were open.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that the server closed: too slow to complete a request, or
    /// idle when a new client needed the slot.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counts a new connection.
    pub(crate) fn count_accepted(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a connection.
    pub(crate) fn count_closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a connection that the server closed.
    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that was refused.
    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}
