//! Figures of a drive: seeks, transfer rates by zone, random requests a second.

use super::drive::{Drive, Kind, Request};
use super::mechanism::{Arm, Mechanism};
use super::schedule::{Queue, Scheduler};
use super::spec::DiskSpec;
use frit_core::{Nanos, Result, SECTOR_BYTES, Sector};

/// A zone as it reads sequentially.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ZoneFigures {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors on a track.
    pub sectors_per_track: u32,
    /// First sector of the disk that lies in it.
    pub first_sector: Sector,
    /// Sectors that it holds.
    pub sectors: u64,
    /// Bytes a second that pass under the heads, switching heads and cylinders as the blocks run.
    pub bytes_per_second: f64,
}

/// Cylinders over which a zone's rate is measured.
const SAMPLE_CYLINDERS: u64 = 16;

/// The zones, with what each transfers. The bus is not in it.
///
/// # Errors
/// A drive that cannot be.
pub fn zones(spec: &DiskSpec) -> Result<Vec<ZoneFigures>> {
    let m = Mechanism::new(spec)?;
    let zone = |(i, z): (usize, &super::geometry::Zone)| {
        let (first, sectors) = m.layout.zone_blocks(i);
        let per_cylinder = u64::from(z.sectors_per_track) * u64::from(spec.geometry.heads);
        let sample = (per_cylinder * SAMPLE_CYLINDERS).min(sectors);
        let mut arm = Arm::at(&m.layout.locate(first));
        let (mut t, mut b, mut begin) = (0, first, None);
        while b < first + sample {
            let p = m.pass(&mut arm, t, b, (first + sample - b).min(1 << 30) as u32, false);
            begin.get_or_insert(p.begin);
            t = p.end;
            b += u64::from(p.sectors);
        }
        let time = Nanos(t - begin.unwrap_or(0)).as_secs();
        ZoneFigures {
            first_cylinder: z.first_cylinder,
            last_cylinder: z.last_cylinder,
            sectors_per_track: z.sectors_per_track,
            first_sector: Sector(first),
            sectors,
            bytes_per_second: (sample * SECTOR_BYTES) as f64 / time.max(1e-9),
        }
    };
    Ok(spec.geometry.zones.iter().enumerate().map(zone).collect())
}

/// Mean, longest and shortest seek of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeekFigures {
    /// To the next cylinder.
    pub single: Nanos,
    /// Mean over all pairs of cylinders.
    pub average: Nanos,
    /// From the first to the last cylinder.
    pub full: Nanos,
}

/// What seeks of a drive take, for reads.
///
/// # Errors
/// A drive that cannot be.
pub fn seeks(spec: &DiskSpec) -> Result<SeekFigures> {
    let table = spec.mechanics.seek.table(spec.geometry.cylinders.max(2))?;
    let n = table.len() as f64;
    let weighted = |(d, &t): (usize, &u32)| 2.0 * (n - d as f64) / (n * n) * f64::from(t);
    let average = table.iter().enumerate().map(weighted).sum::<f64>().round() as u64;
    let at = |d: usize| Nanos(table.get(d).copied().unwrap_or(0).into());
    Ok(SeekFigures { single: at(1), average: Nanos(average), full: at(table.len() - 1) })
}

/// A random workload: requests that are always `depth` deep in the drive's queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Random {
    /// Reads or writes.
    pub kind: Kind,
    /// Bytes of a request, a multiple of 512; requests are aligned to their size.
    pub bytes: u64,
    /// Fraction of the disk that they go to, from its start.
    pub span: f64,
    /// Requests that wait or are served.
    pub depth: usize,
    /// The order in which they are served.
    pub scheduler: Scheduler,
    /// Requests in all.
    pub requests: u64,
}

/// Requests a second of a random workload, from the second half of its requests on: a cache that has to
/// fill has done so by then.
///
/// # Errors
/// A drive that cannot be.
pub fn random_iops(spec: &DiskSpec, w: &Random) -> Result<f64> {
    let mut drive = Drive::new(spec)?;
    let sectors = (w.bytes / SECTOR_BYTES).max(1);
    let places = ((drive.sectors() as f64 * w.span.clamp(0.0, 1.0)) as u64 / sectors).max(1);
    let mut queue = Queue::new(w.scheduler);
    let mut state = 1_u64;
    let mut next = || {
        // SplitMix64 (Steele et al., 2014): the same requests every time.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let place = (u128::from(z ^ (z >> 31)) * u128::from(places)) >> 64;
        Request { kind: w.kind, sector: Sector(place as u64 * sectors), sectors: sectors as u32 }
    };
    for _ in 0..w.depth.max(1) {
        queue.push(&drive, next(), ());
    }
    let (mut now, mut half) = (Nanos::ZERO, Nanos::ZERO);
    for i in 0..w.requests {
        if i == w.requests / 2 {
            half = now;
        }
        let Some((r, ())) = queue.pop(&drive, now) else { break };
        now = drive.service(&r, now).done;
        queue.push(&drive, next(), ());
    }
    Ok((w.requests - w.requests / 2) as f64 / (now - half).as_secs().max(1e-9))
}
