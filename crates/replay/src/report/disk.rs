//! What a disk had to do: its load, and how far its requests are apart.

use super::MediumReport;
use crate::host::Asked;
use frit_core::{Nanos, UnitId};
use frit_engine::{ArmUse, Usage};
use serde::Serialize;

/// What a disk had to do in the measured part.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DiskReport {
    /// Flushes of its write cache.
    pub flushes: u64,
    /// Time in which it carried out commands that the host waited for, in nanoseconds; what it does behind an
    /// acknowledgement (reading on, writing behind) is not in it.
    pub busy_ns: u64,
    /// Mean time of a read or write, from when the drive took it up; none without any.
    pub served_mean_ns: Option<f64>,
    /// Reads and writes a second of the measured time, to the end of the last command.
    pub requests_per_s: f64,
    /// Megabytes (10^6 bytes) read and written a second of the same time.
    pub mb_per_s: f64,
    /// Sectors that were accessed on it for each sector that the host read or wrote (the HALO paper's traffic rate,
    /// section V); none when the host did neither.
    pub traffic_rate: Option<f64>,
    /// Mean distance from behind a request to the next one served, in sectors of 512 bytes; none without two.
    pub distance_mean_sectors: Option<f64>,
    /// The distances.
    pub distances: Vec<DistanceBucket>,
}

/// Distances that are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DistanceBucket {
    /// The longest, in sectors: 0, 1, 3, 7 and so on.
    pub to_sectors: u64,
    /// How many.
    pub count: u64,
}

impl DiskReport {
    /// The part of its requests that continue the one before, 0 to 1; none without two requests.
    #[must_use]
    pub fn sequential(&self) -> Option<f64> {
        let all = self.distances.iter().map(|b| b.count).sum::<u64>();
        let none = self.distances.iter().filter(|b| b.to_sectors == 0).map(|b| b.count).sum::<u64>();
        (all > 0).then(|| none as f64 / all as f64)
    }
}

/// Of a medium that is a disk, what its arm did.
pub(crate) fn disk(
    medium: &MediumReport,
    flushes: u64,
    unit: UnitId,
    usage: &Usage,
    asked: &Asked,
) -> Option<DiskReport> {
    let arm: &ArmUse = usage.arm_of(unit)?;
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
