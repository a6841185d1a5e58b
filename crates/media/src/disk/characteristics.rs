//! Performance characteristics of a drive: seek times, transfer rates by zone, random IOPS.

use super::drive::{Drive, DriveRequest, DriveRequestKind};
use super::mechanism::{Arm, Mechanism};
use super::queue::DriveQueue;
use super::spec::{DiskSpec, DriveScheduler, WriteBack};
use frit_core::{Nanos, Result, SECTOR_BYTES, Sector, split_mix};

/// Size and sequential transfer rate of a zone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ZoneRate {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors per track.
    pub sectors_per_track: u32,
    /// First sector of the disk in the zone.
    pub first_sector: Sector,
    /// Number of sectors in the zone.
    pub sectors: u64,
    /// Sequential rate in bytes per second, with the head and cylinder switches in between.
    pub bytes_per_second: f64,
}

/// Number of cylinders over which the rate of a zone is measured.
const SAMPLE_CYLINDERS: u64 = 16;

/// Returns the zones with their transfer rates. The bus is not included.
///
/// # Errors
/// Impossible parameters.
pub fn zones(spec: &DiskSpec) -> Result<Vec<ZoneRate>> {
    let m = Mechanism::new(spec)?;
    let zone = |(i, z): (usize, &super::geometry::Zone)| {
        let (first, sectors) = m.layout.zone_blocks(i);
        let per_cylinder = u64::from(z.sectors_per_track) * u64::from(spec.geometry.heads);
        let sample = (per_cylinder * SAMPLE_CYLINDERS).min(sectors);
        let mut arm = Arm::of_location(&m.layout.locate(first));
        let (mut t, mut b, mut begin) = (0, first, None);
        while b < first + sample {
            let p = m.pass(&mut arm, t, b, (first + sample - b).min(1 << 30) as u32, false);
            begin.get_or_insert(p.begin);
            t = p.end;
            b += u64::from(p.sectors);
        }
        let time = Nanos(t - begin.unwrap_or(0)).as_secs();
        ZoneRate {
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

/// Seek times of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeekTimes {
    /// Seek to the next cylinder.
    pub single: Nanos,
    /// Mean over all pairs of cylinders.
    pub average: Nanos,
    /// Seek from the first to the last cylinder.
    pub full: Nanos,
}

/// Returns the seek times of a drive, for reads.
///
/// # Errors
/// A seek curve that is not possible.
pub fn seeks(spec: &DiskSpec) -> Result<SeekTimes> {
    let table = spec.mechanics.seek.table(spec.geometry.cylinders.max(2))?;
    let n = table.len() as f64;
    let weighted = |(d, &t): (usize, &u32)| 2.0 * (n - d as f64) / (n * n) * f64::from(t);
    let average = table.iter().enumerate().map(weighted).sum::<f64>().round() as u64;
    let at = |d: usize| Nanos(table.get(d).copied().unwrap_or(0).into());
    Ok(SeekTimes { single: at(1), average: Nanos(average), full: at(table.len() - 1) })
}

/// A random workload with a constant queue depth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomWorkload {
    /// Direction of all requests.
    pub kind: DriveRequestKind,
    /// Bytes per request, a multiple of 512; requests are aligned to their size.
    pub bytes: u64,
    /// Fraction of the disk that is accessed, from its start on.
    pub span: f64,
    /// Queue depth: the number of requests that wait or are served.
    pub depth: usize,
    /// Order in which they are served.
    pub scheduler: DriveScheduler,
    /// Number of requests that are measured, after an equal number for warm-up. A write-back cache
    /// is filled before.
    pub requests: u64,
}

/// Returns the IOPS of a random workload with full caches.
///
/// # Errors
/// Impossible parameters.
pub fn random_iops(spec: &DiskSpec, w: &RandomWorkload) -> Result<f64> {
    let mut drive = Drive::new(spec)?;
    let sectors = (w.bytes / SECTOR_BYTES).max(1);
    let places = ((drive.sectors() as f64 * w.span.clamp(0.0, 1.0)) as u64 / sectors).max(1);
    let mut queue = DriveQueue::new(w.scheduler);
    let mut state = 1_u64;
    let mut next = || {
        let place = (u128::from(split_mix::next(&mut state)) * u128::from(places)) >> 64;
        DriveRequest { kind: w.kind, sector: Sector(place as u64 * sectors), sectors: sectors as u32 }
    };
    for _ in 0..w.depth.max(1) {
        let r = next();
        queue.push(&drive, r, r);
    }
    let behind = w.kind == DriveRequestKind::Write && spec.cache.write_back == WriteBack::Full;
    // Twice the capacity for dirty data, so that the cache is full before the measurement.
    let fill = if behind { 2 * u64::from(spec.cache.dirty_sectors) / sectors } else { 0 };
    let (mut now, mut begin) = (Nanos::ZERO, Nanos::ZERO);
    for i in 0..fill + 2 * w.requests {
        if i == fill + w.requests {
            begin = now;
        }
        let Some(r) = queue.pop(&drive, now) else { break };
        now = drive.service(&r, now).done;
        let r = next();
        queue.push(&drive, r, r);
    }
    Ok(w.requests as f64 / (now - begin).as_secs().max(1e-9))
}

/// IOPS of random requests to a part of the disk.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpanIops {
    /// Fraction of the disk that is accessed, from its start on.
    pub span: f64,
    /// Reads at queue depth 1.
    pub reads: f64,
    /// Reads at the queue depth of the drive, in the order of its scheduler.
    pub reads_queued: f64,
    /// Writes that are acknowledged from the platters, at queue depth 1.
    pub writes_through: f64,
    /// Writes that are acknowledged from the cache, at queue depth 1.
    pub writes_behind: f64,
}

impl SpanIops {
    /// Measures requests of `bytes` to a part of the disk; each value is measured over `requests`
    /// requests.
    ///
    /// # Errors
    /// Impossible parameters.
    pub fn of(spec: &DiskSpec, bytes: u64, span: f64, requests: u64) -> Result<SpanIops> {
        let iops = |kind, depth, write_back| {
            let mut spec = spec.clone();
            spec.cache.write_back = write_back;
            let scheduler = if depth > 1 { spec.scheduler } else { DriveScheduler::Fifo };
            random_iops(&spec, &RandomWorkload { kind, bytes, span, depth, scheduler, requests })
        };
        Ok(SpanIops {
            span,
            reads: iops(DriveRequestKind::Read, 1, WriteBack::Off)?,
            reads_queued: iops(DriveRequestKind::Read, spec.queue_depth as usize, WriteBack::Off)?,
            writes_through: iops(DriveRequestKind::Write, 1, WriteBack::Off)?,
            writes_behind: iops(DriveRequestKind::Write, 1, WriteBack::Full)?,
        })
    }
}

/// Number of bisection steps: the result is exact to a thousandth of the disk.
const HALVINGS: u32 = 10;

/// Returns the fraction of the disk, from its start on, over which a random workload reaches the
/// given IOPS. A smaller fraction yields more IOPS. Returns `None` if the smallest fraction yields
/// fewer, or the whole disk more.
///
/// # Errors
/// Impossible parameters.
pub fn span_for(spec: &DiskSpec, workload: &RandomWorkload, iops: f64) -> Result<Option<f64>> {
    let at = |span| random_iops(spec, &RandomWorkload { span, ..*workload });
    let (mut narrow, mut wide) = (0.5_f64.powi(HALVINGS as i32), 1.0);
    if at(narrow)? < iops || at(wide)? > iops {
        return Ok(None);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(narrow, wide);
        if at(middle)? >= iops { narrow = middle } else { wide = middle }
    }
    Ok(Some(f64::midpoint(narrow, wide)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskProfile;
    use crate::disk::testing::simple;

    fn iops(name: &str, kind: DriveRequestKind, span: f64, depth: usize, scheduler: DriveScheduler) -> f64 {
        let spec = DiskProfile::builtin(name).unwrap().spec().unwrap();
        random_iops(&spec, &RandomWorkload { kind, bytes: 4096, span, depth, scheduler, requests: 2000 })
            .unwrap()
    }

    #[test]
    fn figures_of_a_simple_drive() {
        let s = seeks(&simple()).unwrap();
        assert_eq!((s.single, s.full), (Nanos(1_100_000), Nanos(10_900_000)));
        let z = zones(&simple()).unwrap();
        assert_eq!((z.len(), z[0].sectors), (1, 10_000));
        // 100 sectors in a revolution of 10 ms; each cylinder switch loses a revolution: about half
        // the rate.
        assert!((2.5e6..2.8e6).contains(&z[0].bytes_per_second), "{}", z[0].bytes_per_second);
    }

    /// 0.5 MB/s of 4 KiB is 122 requests per second. The paper wrote 5.9 GB at random ("Randw"):
    /// 1.2 % of the disk.
    #[test]
    fn the_papers_disk_does_what_the_paper_says() {
        let spec = DiskProfile::builtin("st3500320as-2008").unwrap().spec().unwrap();
        let z = zones(&spec).unwrap();
        assert!((100e6..110e6).contains(&z[0].bytes_per_second), "{}", z[0].bytes_per_second);
        let at = |span| SpanIops::of(&spec, 4096, span, 2000).unwrap();
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.05, "{got}, not {want}");
        let (randw, all) = (at(0.0118), at(1.0));
        near(randw.writes_through, 148.0);
        near(randw.writes_behind, 490.0);
        near(all.reads, 78.0);
        near(all.writes_through, 72.0);
        near(all.reads_queued, 207.0);
        near(all.writes_behind, 342.0);
        let span = |kind| {
            let mut spec = spec.clone();
            spec.cache.write_back = WriteBack::Off;
            let scheduler = DriveScheduler::Fifo;
            let w = RandomWorkload { kind, bytes: 4096, span: 1.0, depth: 1, scheduler, requests: 2000 };
            span_for(&spec, &w, 122.0).unwrap().unwrap()
        };
        near(span(DriveRequestKind::Read), 0.28);
        near(span(DriveRequestKind::Write), 0.146);
    }

    /// The data sheet states 170 random reads of 4 KiB per second at queue depth 16.
    #[test]
    fn a_nearline_disk_does_what_its_sheet_says() {
        let reads = iops("exos-x18-2020", DriveRequestKind::Read, 1.0, 16, DriveScheduler::Sptf);
        assert!((160.0..185.0).contains(&reads), "{reads}");
    }

    #[test]
    fn better_schedulers_do_more() {
        let at = |s| iops("st3500320as-2008", DriveRequestKind::Read, 1.0, 16, s);
        let (fifo, sstf, sptf) =
            (at(DriveScheduler::Fifo), at(DriveScheduler::Sstf), at(DriveScheduler::Sptf));
        assert!(fifo < sstf && sstf < sptf, "{fifo} {sstf} {sptf}");
    }
}
