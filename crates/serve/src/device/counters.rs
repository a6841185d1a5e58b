//! What was asked of a device, and how long it took.

use hdrhistogram::Histogram;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests by kind.
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
    /// Flushes, also those that a write with FUA asked for.
    pub flush: Tally,
    /// Questions where a range lies.
    pub extents: Tally,
    /// Flushes that another one, begun later than they were asked for, had already done.
    pub flushes_shared: u64,
    /// Background steps that were taken.
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

    /// Each kind with its name, in the order of tables.
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

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    WriteZeroes,
    Discard,
    Flush,
    Extents,
}

/// Requests of one kind.
#[derive(Clone)]
pub struct Tally {
    /// Requests, also those that failed.
    pub requests: u64,
    /// Bytes that they were about.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Service time in ns: from when the request's turn came under the lock (a flush: from when it was
    /// asked for) to when its reply may go out.
    pub service_ns: Histogram<u64>,
}

/// The longest service time that is told apart, in ns: 1000 s.
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

/// Connections, by what became of them.
#[derive(Default, Debug)]
pub struct Clients {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
}

impl Clients {
    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections that were ever taken.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Connections that were turned away since too many were open.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Connections that the server ended: too slow with what they had begun, or silent when others needed
    /// the place.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// A client came.
    pub(crate) fn came(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// A client left.
    pub(crate) fn left(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// A client was hung up on.
    pub(crate) fn was_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A client was turned away.
    pub(crate) fn turned_away(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}
