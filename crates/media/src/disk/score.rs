//! Comparison of a drive model with a drive: replays requests with measured service times.
//!
//! A trace has the format of DiskSim's validation, with one request per line: `R` or `W`, the
//! result of the drive's cache, block, number of blocks, measured service time, and time from its
//! completion to the next request, in microseconds. The replay is a closed loop: the next request
//! arrives that time after the modelled completion of the previous one. The score is the
//! root-mean-square horizontal distance of the two cumulative distributions (Ruemmler and Wilkes,
//! "An introduction to disk drive modeling", 1994). It compares all quantiles, not single requests,
//! since the angle of the platter at the start is unknown.

use super::drive::{Drive, DriveRequest, DriveRequestKind};
use super::spec::DiskSpec;
use frit_core::{Error, Nanos, Result, Sector};
use std::collections::BTreeMap;

/// A request with its measured times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredRequest {
    /// The request.
    pub request: DriveRequest,
    /// Service time that was measured.
    pub service: Nanos,
    /// Time from its completion to the next request.
    pub pause: Nanos,
}

/// Parses a validation trace.
///
/// # Errors
/// A line that is not a request, with its number.
pub fn parse(text: &str) -> Result<Vec<MeasuredRequest>> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        out.push(parse_line(line).map_err(|why| Error::param("line", i + 1, why))?);
    }
    if out.is_empty() {
        return Err(Error::param("trace", "empty", "has no requests"));
    }
    Ok(out)
}

fn parse_line(line: &str) -> std::result::Result<MeasuredRequest, String> {
    let bad = || {
        format!(
            "'{}' is not a request; expected R or W, hit or miss, block, blocks, service time (µs), pause (µs)",
            line.chars().take(80).collect::<String>().trim()
        )
    };
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [kind, _, block, blocks, service, pause] = fields[..] else { return Err(bad()) };
    let kind = match kind {
        "R" | "r" => DriveRequestKind::Read,
        "W" | "w" => DriveRequestKind::Write,
        _ => return Err(bad()),
    };
    let number = |t: &str| t.parse::<f64>().ok().filter(|x| (0.0..1e13).contains(x)).ok_or_else(bad);
    let block: u64 = block.parse().map_err(|_| bad())?;
    let blocks: u32 = blocks.parse().ok().filter(|&n| n > 0 && n <= 1 << 24).ok_or_else(bad)?;
    Ok(MeasuredRequest {
        request: DriveRequest { kind, sector: Sector(block), sectors: blocks },
        service: Nanos::from_us(number(service)?),
        pause: Nanos::from_us(number(pause)?),
    })
}

/// Returns the modelled service times of a trace, in its order.
///
/// # Errors
/// Impossible parameters; a request past the end of the drive.
pub fn replay(spec: &DiskSpec, trace: &[MeasuredRequest]) -> Result<Vec<Nanos>> {
    let mut drive = Drive::new(spec)?;
    let capacity = drive.sectors();
    let mut now = Nanos::ZERO;
    let mut out = Vec::with_capacity(trace.len());
    for m in trace {
        let r = m.request;
        if r.sector.0.checked_add(u64::from(r.sectors)).is_none_or(|end| end > capacity) {
            return Err(Error::OutOfRange { at: r.sector.0, sectors: r.sectors.into(), capacity });
        }
        let done = drive.service(&r, now).done;
        out.push(done.since(now));
        now = done + m.pause;
    }
    Ok(out)
}

/// Default bus time of a sector in picoseconds: 10 MB/s, fast SCSI (SCSI-2, 1994).
pub const FAST_SCSI_PS: u64 = 51_200_000;

/// Estimates the bus time of a sector from a trace, in picoseconds: the additional time per
/// additional sector of reads that continue the previous read. Such a read takes only bus time if
/// the cache has its blocks, which holds for at least a quarter of them. The slope is the median
/// over all pairs of sizes (Theil and Sen). Returns `None` if there are too few such reads. Use it
/// for drives whose description does not state the bus.
#[must_use]
pub fn bus_ps(trace: &[MeasuredRequest]) -> Option<u64> {
    const ENOUGH: usize = 8;
    let mut sizes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for w in trace.windows(2) {
        let (a, b) = (w[0].request, w[1].request);
        let follows = b.sector.0 == a.sector.0 + u64::from(a.sectors);
        if follows && a.kind == DriveRequestKind::Read && b.kind == DriveRequestKind::Read {
            sizes.entry(b.sectors).or_default().push(w[1].service.0);
        }
    }
    let quarter = |(n, mut times): (u32, Vec<u64>)| {
        times.sort_unstable();
        (times.len() >= ENOUGH).then(|| (f64::from(n), times[times.len() / 4] as f64))
    };
    let points: Vec<(f64, f64)> = sizes.into_iter().filter_map(quarter).collect();
    let mut slopes: Vec<f64> = Vec::new();
    for (i, a) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().map(|b| (b.1 - a.1) / (b.0 - a.0)));
    }
    slopes.sort_by(f64::total_cmp);
    let median = *slopes.get(slopes.len() / 2)?;
    (median > 0.0).then_some((median * 1000.0).round() as u64)
}

/// Comparison of modelled and measured service times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    /// Number of requests.
    pub requests: usize,
    /// Root-mean-square horizontal distance of the distributions, in ms.
    pub rms_ms: f64,
    /// Mean measured service time, in ms.
    pub measured_ms: f64,
    /// Mean modelled service time, in ms.
    pub modelled_ms: f64,
}

/// Compares two lists of times of the same length.
#[must_use]
pub fn compare(measured: &[Nanos], modelled: &[Nanos]) -> Score {
    let sorted = |v: &[Nanos]| {
        let mut v: Vec<f64> = v.iter().map(|t| t.0 as f64 / 1e6).collect();
        v.sort_by(f64::total_cmp);
        v
    };
    let (a, b) = (sorted(measured), sorted(modelled));
    let n = a.len().min(b.len()).max(1) as f64;
    let square: f64 = a.iter().zip(&b).map(|(x, y)| (x - y) * (x - y)).sum();
    Score {
        requests: a.len(),
        rms_ms: (square / n).sqrt(),
        measured_ms: a.iter().sum::<f64>() / n,
        modelled_ms: b.iter().sum::<f64>() / n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(x: f64) -> Nanos {
        Nanos::from_us(x * 1e3)
    }

    #[test]
    fn the_distance_is_between_distributions() {
        let a = [ms(1.0), ms(2.0), ms(3.0)];
        let s = compare(&a, &[ms(3.0), ms(1.0), ms(2.0)]);
        assert_eq!((s.rms_ms, s.requests), (0.0, 3));
        let s = compare(&a, &[ms(1.0), ms(2.0), ms(6.0)]);
        assert!((s.rms_ms - 3.0_f64.sqrt()).abs() < 1e-9, "{s:?}");
        assert!((s.measured_ms - 2.0).abs() < 1e-9 && (s.modelled_ms - 3.0).abs() < 1e-9);
    }

    #[test]
    fn traces_parse_and_say_where_they_do_not() {
        let t = parse("W Hit    4583176   4    663.00000  45422.00000\n\nR Miss 7 1 12.5 0\n").unwrap();
        assert_eq!((t.len(), t[0].request.kind, t[0].service), (2, DriveRequestKind::Write, Nanos(663_000)));
        assert_eq!((t[1].request.sector, t[1].pause), (Sector(7), Nanos::ZERO));
        for (text, words) in [
            ("", "no requests"),
            ("R Hit 1 1 1", "line = 1"),
            ("R Hit 1 1 1 1\nX Hit 1 1 1 1", "line = 2"),
            ("R Hit -1 1 1 1", "is not a request"),
            ("R Hit 1 0 1 1", "is not a request"),
            ("R Hit 1 1 nan 1", "is not a request"),
        ] {
            let told = parse(text).unwrap_err().to_string();
            assert!(told.contains(words), "{text}: {told}");
        }
    }

    #[test]
    fn a_trace_shows_its_bus() {
        let mut trace = String::new();
        let mut block = 0;
        for i in 0..200 {
            let n = 1 + i % 7;
            // Every third read misses.
            let extra = if i % 3 == 0 { 8_000 } else { 0 };
            trace += &format!("R Hit {block} {n} {} 1000\n", 900 + 150 * n + extra);
            block += n;
        }
        assert_eq!(bus_ps(&parse(&trace).unwrap()), Some(150_000_000));
        assert_eq!(bus_ps(&parse("R Hit 1 1 1 1").unwrap()), None);
    }

    #[test]
    fn requests_past_the_end_are_refused() {
        let trace = parse("R Hit 9999 2 1 1").unwrap();
        assert!(replay(&crate::disk::testing::simple(), &trace).is_err());
    }
}
