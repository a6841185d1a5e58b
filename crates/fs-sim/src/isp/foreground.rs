//! Reads of the host beside the engine: arrivals at random times, one program that serves them.

use super::IspMedium;
use crate::error::{Error, Result};
use frit_core::Tag;
use frit_core::{Nanos, size};
use frit_fs::File;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use std::collections::VecDeque;

/// Tag of an arrival.
pub(super) const ARRIVAL: Tag = 1;
/// Tag of the end of a read.
pub(super) const READ: Tag = 2;
/// Largest rate in reads per second.
const RATE_MAX: u64 = 100_000_000;

/// Reads of the host at random places of a file of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ForegroundLoad {
    /// Bytes of a read.
    pub read_bytes: u64,
    /// Mean number of reads per second; the times between arrivals are exponentially distributed.
    pub reads_per_second: u64,
}

impl ForegroundLoad {
    /// Parses a load: `4K@10000`, the size of a read and reads per second.
    ///
    /// # Errors
    /// An invalid size or rate.
    pub fn parse(text: &str) -> std::result::Result<ForegroundLoad, String> {
        let why = || format!("'{text}' is not SIZE@RATE, for example 4K@10000");
        let (bytes, rate) = text.split_once('@').ok_or_else(why)?;
        let (read_bytes, reads_per_second) = (size::parse(bytes)?, rate.trim().parse().map_err(|_| why())?);
        if !(1..=1 << 20).contains(&read_bytes) || !(1..=RATE_MAX).contains(&reads_per_second) {
            return Err(format!("{text}: has to be reads of 1 byte to 1 MiB, 1 to {RATE_MAX} a second"));
        }
        Ok(ForegroundLoad { read_bytes, reads_per_second })
    }
}

/// Response times of reads, from arrival to result.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ForegroundLatency {
    /// Number of reads.
    pub reads: u64,
    /// Mean in nanoseconds.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl ForegroundLatency {
    /// Returns the summary of response times in nanoseconds.
    fn of(mut times: Vec<u64>) -> Option<ForegroundLatency> {
        times.sort_unstable();
        let reads = times.len() as u64;
        // The nearest rank: the smallest value that is not exceeded by this share of the reads.
        let rank = |per_mille: u64| times.get(((reads * per_mille).div_ceil(1000).max(1) - 1) as usize);
        Some(ForegroundLatency {
            reads,
            mean_ns: times.iter().sum::<u64>() as f64 / reads.max(1) as f64,
            p50_ns: *rank(500)?,
            p99_ns: *rank(990)?,
            p999_ns: *rank(999)?,
            max_ns: *times.last()?,
        })
    }
}

/// The program that reads.
pub(super) struct Foreground<'s, 'm> {
    medium: &'m IspMedium,
    file: File<'s, &'m IspMedium>,
    load: ForegroundLoad,
    places: u64,
    /// Times between arrivals, and places, independently: the n-th read has the same of both in every
    /// run, in whatever order reads end.
    arrivals: SmallRng,
    reads: SmallRng,
    /// Arrivals that wait, by time.
    waiting: VecDeque<Nanos>,
    /// Arrival of the read that is served.
    served: Option<Nanos>,
    /// Number of further arrivals; `None`: until the load is stopped.
    left: Option<u64>,
    times: Vec<u64>,
}

impl<'s, 'm> Foreground<'s, 'm> {
    pub(super) fn new(
        medium: &'m IspMedium,
        file: File<'s, &'m IspMedium>,
        load: ForegroundLoad,
        seed: u64,
        reads: Option<u64>,
    ) -> Result<Self> {
        let bytes = file.attr().map_err(Error::fs("stat"))?.size;
        Ok(Foreground {
            medium,
            file,
            load,
            places: (bytes / load.read_bytes).max(1),
            arrivals: SmallRng::seed_from_u64(seed),
            reads: SmallRng::seed_from_u64(seed.wrapping_add(1)),
            waiting: VecDeque::new(),
            served: None,
            left: reads,
            times: Vec::new(),
        })
    }

    /// Starts the load.
    pub(super) fn start(&mut self) {
        self.next_arrival();
    }

    /// Ends the load: what has arrived is still served.
    pub(super) fn stop(&mut self) {
        self.left = Some(0);
    }

    /// Returns `true` if nothing is left to serve.
    pub(super) fn is_idle(&self) -> bool {
        self.left == Some(0) && self.waiting.is_empty() && self.served.is_none()
    }

    fn next_arrival(&mut self) {
        if self.left == Some(0) {
            return;
        }
        let share: f64 = self.arrivals.random_range(f64::EPSILON..1.0);
        let mean = 1e9 / self.load.reads_per_second as f64;
        self.medium.wake_after(Nanos((-share.ln() * mean).round().max(1.0) as u64), ARRIVAL);
    }

    /// Handles an arrival, or the end of a read.
    pub(super) fn continue_after(&mut self, tag: Tag, at: Nanos) -> Result<()> {
        if tag == ARRIVAL {
            if self.left == Some(0) {
                return Ok(());
            }
            self.left = self.left.map(|n| n - 1);
            self.waiting.push_back(at);
            self.next_arrival();
        } else if let Some(arrival) = self.served.take() {
            self.times.push(at.since(arrival).0);
        }
        while self.served.is_none() {
            let Some(arrival) = self.waiting.pop_front() else { break };
            let place = self.reads.random_range(0..self.places) * self.load.read_bytes;
            let mut buffer = vec![0; self.load.read_bytes as usize];
            let read = self.medium.start(READ, || self.file.read_at(place, &mut buffer));
            read.answer.map_err(Error::fs("read"))?;
            match read.is_reported {
                true => self.served = Some(arrival),
                false => self.times.push(at.since(arrival).0),
            }
        }
        Ok(())
    }

    /// Serves the load without the engine, and returns the response times.
    pub(super) fn run_alone(mut self) -> Result<Option<ForegroundLatency>> {
        self.start();
        while !self.is_idle() {
            let Some(done) = self.medium.next_done() else { break };
            if matches!(done.tag, ARRIVAL | READ) {
                self.continue_after(done.tag, done.at)?;
            }
        }
        Ok(self.finish())
    }

    /// Returns the response times.
    pub(super) fn finish(self) -> Option<ForegroundLatency> {
        ForegroundLatency::of(self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let l = ForegroundLatency::of((1..=1000).rev().collect()).unwrap();
        assert_eq!((l.p50_ns, l.p99_ns, l.p999_ns, l.max_ns, l.reads), (500, 990, 999, 1000, 1000));
        let l = ForegroundLatency::of(vec![7]).unwrap();
        assert_eq!((l.p50_ns, l.p999_ns, l.mean_ns), (7, 7, 7.0));
        assert_eq!(ForegroundLatency::of(Vec::new()), None);
    }

    #[test]
    fn loads_are_read_as_size_and_rate() {
        let load = ForegroundLoad { read_bytes: 4096, reads_per_second: 10_000 };
        assert_eq!(ForegroundLoad::parse("4K@10000"), Ok(load));
        for bad in ["4K", "4K@", "x@5", "0@5", "4K@0", "2M@1"] {
            assert!(ForegroundLoad::parse(bad).is_err(), "{bad}");
        }
    }
}
