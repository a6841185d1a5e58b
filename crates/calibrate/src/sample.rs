//! The requests of a trace that a calibration replays, and their measured times.

use crate::error::{Error, Result};
use frit_core::{SECTOR_BYTES, Sector};
use frit_trace::fit::CHUNK_BYTES;
use frit_trace::{MeasuredTrace, ReqOp, Request, WorkloadIdentity};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Least number of requests in the fitted part, and in the part that is held out: a block of the
/// [test of significance](crate::identify) has at least 5.
pub const REQUESTS_MIN: usize = 100;

/// Largest request that is replayed, in sectors: 1 GiB, the limit of a call of a layer.
const SECTORS_MAX: u32 = 1 << 21;

/// Share of the requests, in thousandths, that find at most [`Sample::depth`] requests outstanding,
/// themselves included. The rest are errors of clocks.
const DEPTH_PER_MILLE: usize = 999;

/// Reads and writes with measured service times, on a compact volume.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Identity of the trace.
    pub identity: WorkloadIdentity,
    /// The requests, in order of issue.
    pub requests: Vec<Request>,
    /// Measured service time of each request, in nanoseconds.
    pub measured: Vec<u64>,
    /// Number of requests of the fitted part, which is the first; the rest are held out.
    pub fitted: usize,
    /// Number of requests that the host had outstanding at most.
    pub depth: u32,
    /// Share of the requests that were issued while another one was outstanding.
    pub overlapping: f64,
    /// Size of the volume that the requests need, in bytes.
    pub volume_bytes: u64,
    /// Requests of the trace that are left out: flushes, discards, requests without a measured time.
    pub left_out: u64,
}

impl Sample {
    /// Takes the reads and writes of a trace; `hold_out` is the share of them, the last in time, that is
    /// not used for the fit.
    ///
    /// # Errors
    /// A trace without measured times, with times that are not above zero, or with too few requests.
    pub fn new(trace: &MeasuredTrace, hold_out: f64) -> Result<Sample> {
        let name = || trace.identity.name.clone();
        if trace.requests.is_empty() {
            return Err(Error::NoTimes { trace: name() });
        }
        let usable = |r: &Request| {
            matches!(r.op, ReqOp::Read | ReqOp::Write) && r.sectors <= SECTORS_MAX && r.is_whole()
        };
        let taken: Vec<_> = trace.requests.iter().filter(|r| usable(&r.request)).collect();
        let mut bad = taken.iter().filter(|r| r.service_ns <= 0);
        if let Some(first) = bad.clone().min_by_key(|r| r.number) {
            return Err(Error::BadTime {
                trace: name(),
                count: bad.by_ref().count(),
                all: taken.len(),
                number: first.number,
                ns: first.service_ns,
            });
        }
        let mut requests: Vec<Request> = taken.iter().map(|r| r.request).collect();
        let measured: Vec<u64> = taken.iter().map(|r| r.service_ns.unsigned_abs()).collect();
        let held_out = (requests.len() as f64 * hold_out).round() as usize;
        let fitted = requests.len() - held_out.min(requests.len());
        if fitted < REQUESTS_MIN || held_out < REQUESTS_MIN {
            return Err(Error::TooFew { trace: name(), fitted, held_out, least: REQUESTS_MIN });
        }
        let volume_bytes = pack(&mut requests);
        let (depth, overlapping) = depth(&requests, &measured);
        let left_out = trace.unmeasured + (trace.requests.len() - requests.len()) as u64;
        let identity = trace.identity.clone();
        Ok(Sample { identity, requests, measured, fitted, depth, overlapping, volume_bytes, left_out })
    }
}

/// Moves the touched chunks of 1 MiB together, in order of their addresses, and returns the size of the
/// volume. All chunks of a request are touched and keep their order, so a request stays one range.
fn pack(requests: &mut [Request]) -> u64 {
    let chunk_sectors = CHUNK_BYTES / SECTOR_BYTES;
    let mut chunks = BTreeSet::new();
    for r in requests.iter() {
        chunks.extend(r.sector.0 / chunk_sectors..=(r.end() - 1) / chunk_sectors);
    }
    let chunks: Vec<u64> = chunks.into_iter().collect();
    for r in requests {
        let (chunk, within) = (r.sector.0 / chunk_sectors, r.sector.0 % chunk_sectors);
        let rank = chunks.partition_point(|c| *c < chunk) as u64;
        r.sector = Sector(rank * chunk_sectors + within);
    }
    chunks.len() as u64 * CHUNK_BYTES
}

/// Returns the queue depth of the host, and the share of the requests that overlap another one.
fn depth(requests: &[Request], measured: &[u64]) -> (u32, f64) {
    let mut outstanding: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut depths: Vec<u32> = Vec::with_capacity(requests.len());
    for (r, service) in requests.iter().zip(measured) {
        while outstanding.peek().is_some_and(|Reverse(done)| *done <= r.at.0) {
            outstanding.pop();
        }
        outstanding.push(Reverse(r.at.0.saturating_add(*service)));
        depths.push(outstanding.len() as u32);
    }
    let overlapping = depths.iter().filter(|d| **d > 1).count() as f64 / depths.len().max(1) as f64;
    depths.sort_unstable();
    let at = (depths.len() * DEPTH_PER_MILLE / 1000).min(depths.len().saturating_sub(1));
    (depths.get(at).copied().unwrap_or(1), overlapping)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Hints, Nanos};
    use frit_trace::SectorCut;

    fn request(at: u64, sector: u64, sectors: u32) -> Request {
        Request {
            at: Nanos(at),
            sector: Sector(sector),
            sectors,
            device: 0,
            op: ReqOp::Read,
            hints: Hints::NONE,
            cut: SectorCut::NONE,
        }
    }

    #[test]
    fn touched_chunks_move_together_in_order() {
        // The second request covers the end of a chunk and the next one.
        let mut all = [request(0, 1_000_000, 8), request(0, 4090, 8), request(0, 6, 2)];
        assert_eq!(pack(&mut all), 4 << 20);
        let sectors: Vec<u64> = all.iter().map(|r| r.sector.0).collect();
        assert_eq!(sectors, [3 * 2048 + 1_000_000 % 2048, 2048 + 2042, 6]);
    }

    #[test]
    fn the_depth_is_that_of_almost_all_requests() {
        let serial: Vec<Request> = (0..3000).map(|i| request(i * 100, 0, 8)).collect();
        let mut measured = vec![100; 3000];
        assert_eq!(depth(&serial, &measured), (1, 0.0));
        // One clock error does not make the host a parallel one.
        measured[5] = 150;
        assert_eq!(depth(&serial, &measured).0, 1);
        measured.fill(250);
        let (depth, overlapping) = depth(&serial, &measured);
        assert!(depth == 3 && overlapping > 0.99);
    }
}
