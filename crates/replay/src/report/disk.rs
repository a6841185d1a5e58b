//! Metrics of a disk: load, and distances between requests.

use super::MediumReport;
use crate::host::WorkloadCounts;
use frit_core::{Nanos, UnitId};
use frit_engine::{ArmStats, DeviceUsage};
use serde::Serialize;

/// Metrics of a disk in the measured part.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DiskReport {
    /// Number of flushes of the write cache.
    pub flushes: u64,
    /// Time spent in commands that the host waited for, in nanoseconds. Work after an
    /// acknowledgement (read-ahead, writing behind) is not included.
    pub busy_ns: u64,
    /// Mean time of a read or write, from the time at which the drive accepted it; `None` if there
    /// are none.
    pub served_mean_ns: Option<f64>,
    /// Reads and writes per second of the measured time, which ends with the last command.
    pub requests_per_s: f64,
    /// Megabytes (10^6 bytes) read and written per second of the same time.
    pub mb_per_s: f64,
    /// Number of sectors accessed on the disk for each sector that the host read or wrote (the HALO
    /// paper's traffic rate, section V); `None` if the host did neither.
    pub traffic_rate: Option<f64>,
    /// Mean distance from the end of a request to the start of the next one served, in sectors of
    /// 512 bytes; `None` if there are fewer than two requests.
    pub distance_mean_sectors: Option<f64>,
    /// Histogram of the distances.
    pub distances: Vec<DistanceBucket>,
}

/// A bucket of the histogram of distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DistanceBucket {
    /// Largest distance of the bucket, in sectors: 0, 1, 3, 7 and so on.
    pub to_sectors: u64,
    /// Number of distances in the bucket.
    pub count: u64,
}

impl DiskReport {
    /// Returns the share of requests that continue the previous one, 0 to 1; `None` if there are
    /// fewer than two requests.
    #[must_use]
    pub fn sequential(&self) -> Option<f64> {
        let all = self.distances.iter().map(|b| b.count).sum::<u64>();
        let none = self.distances.iter().filter(|b| b.to_sectors == 0).map(|b| b.count).sum::<u64>();
        (all > 0).then(|| none as f64 / all as f64)
    }
}

/// Returns the metrics of a medium that is a disk.
pub(crate) fn disk(
    medium: &MediumReport,
    flushes: u64,
    unit: UnitId,
    usage: &DeviceUsage,
    asked: &WorkloadCounts,
) -> Option<DiskReport> {
    let arm: &ArmStats = usage.arm_of(unit)?;
    let bytes = medium.reads.bytes + medium.writes.bytes;
    let host = asked.read_bytes + asked.written_bytes;
    let seconds = usage.window().as_secs();
    let rate = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
    let bucket = |(to_sectors, count)| DistanceBucket { to_sectors, count };
    Some(DiskReport {
        flushes,
        busy_ns: usage.units().get(unit.idx()).map_or(0, |&Nanos(n)| n),
        served_mean_ns: arm.served_mean(),
        requests_per_s: rate(arm.accesses() as f64),
        mb_per_s: rate(bytes as f64 / 1e6),
        traffic_rate: (host > 0).then(|| bytes as f64 / host as f64),
        distance_mean_sectors: arm.distance_mean(),
        distances: arm.distances().map(bucket).collect(),
    })
}
