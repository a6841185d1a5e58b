//! Counters of requests and connections, and service times.

use hdrhistogram::Histogram;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Request counters by type of request.
#[derive(Clone, Default, Debug)]
pub struct Counters {
    /// Reads.
    pub read: Tally,
    /// Writes.
    pub write: Tally,
    /// Ranges set to zero.
    pub write_zeroes: Tally,
    /// Ranges discarded.
    pub discard: Tally,
    /// Flushes, including those of writes with FUA.
    pub flush: Tally,
    /// Queries for extents.
    pub extents: Tally,
    /// Flushes that were skipped because another flush had begun after their arrival and covered
    /// them.
    pub flushes_shared: u64,
    /// Steps of background work.
    pub steps: u64,
}

impl Counters {
    pub(super) fn of(&mut self, kind: Kind) -> &mut Tally {
        match kind {
            Kind::Read => &mut self.read,
            Kind::Write => &mut self.write,
            Kind::WriteZeroes => &mut self.write_zeroes,
            Kind::Discard => &mut self.discard,
            Kind::Flush => &mut self.flush,
            Kind::Extents => &mut self.extents,
        }
    }

    /// Returns the counters of each type with its name, in the order of tables.
    pub fn by_kind(&self) -> [(&'static str, &Tally); 6] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("write_zeroes", &self.write_zeroes),
            ("discard", &self.discard),
            ("flush", &self.flush),
            ("extents", &self.extents),
        ]
    }
}

/// Type of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    WriteZeroes,
    Discard,
    Flush,
    Extents,
}

/// Counters of one type of request.
#[derive(Clone)]
pub struct Tally {
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

impl Default for Tally {
    fn default() -> Tally {
        Tally { requests: 0, bytes: 0, errors: 0, service_ns: histogram() }
    }
}

#[allow(clippy::expect_used, reason = "bounds and digits are constants that are possible")]
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, SERVICE_NS_MAX, 2).expect("constant bounds")
}

impl Tally {
    /// Counts one request.
    pub(super) fn add(&mut self, bytes: u64, service_ns: u64, failed: bool) {
        self.requests += 1;
        self.bytes += bytes;
        self.errors += u64::from(failed);
        self.service_ns.saturating_record(service_ns.max(1));
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally")
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
pub struct Clients {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
}

impl Clients {
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
    pub(crate) fn came(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a connection.
    pub(crate) fn left(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a connection that the server closed.
    pub(crate) fn was_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that was refused.
    pub(crate) fn turned_away(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}
