//! How well a model agrees with a drive: replay of requests with measured service times.
//!
//! A trace is as DiskSim's validation has it, a request a line: `R` or `W`, what the drive's cache did,
//! block, blocks, measured service time and time from its completion to the next request, in microseconds.
//! The replay is a closed loop: the next request comes so long after the modelled completion of the one
//! before. The score is the root-mean-square horizontal distance of the two cumulative distributions
//! (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994): over all quantiles, not request
//! by request, since the angle of the platter at the start is unknown.

use super::drive::{Drive, Kind, Request};
use super::spec::DiskSpec;
use frit_core::{Error, Nanos, Result, Sector};

/// A request with what was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// The request.
    pub request: Request,
    /// Its measured service time.
    pub service: Nanos,
    /// From its completion to the next request.
    pub pause: Nanos,
}

/// Reads a validation trace.
///
/// # Errors
/// A line that is none, with its number.
pub fn parse(text: &str) -> Result<Vec<Measured>> {
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

fn parse_line(line: &str) -> std::result::Result<Measured, String> {
    let bad = || {
        format!(
            "'{}' is no request; it should be R or W, hit or miss, block, blocks, service time (µs), pause (µs)",
            line.chars().take(80).collect::<String>().trim()
        )
    };
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [kind, _, block, blocks, service, pause] = fields[..] else { return Err(bad()) };
    let kind = match kind {
        "R" | "r" => Kind::Read,
        "W" | "w" => Kind::Write,
        _ => return Err(bad()),
    };
    let number = |t: &str| t.parse::<f64>().ok().filter(|x| (0.0..1e13).contains(x)).ok_or_else(bad);
    let block: u64 = block.parse().map_err(|_| bad())?;
    let blocks: u32 = blocks.parse().ok().filter(|&n| n > 0 && n <= 1 << 24).ok_or_else(bad)?;
    Ok(Measured {
        request: Request { kind, sector: Sector(block), sectors: blocks },
        service: Nanos::from_us(number(service)?),
        pause: Nanos::from_us(number(pause)?),
    })
}

/// Modelled service times of a trace, in its order.
///
/// # Errors
/// A drive that cannot be; a request past its end.
pub fn replay(spec: &DiskSpec, trace: &[Measured]) -> Result<Vec<Nanos>> {
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

/// How modelled and measured times compare.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    /// Requests.
    pub requests: usize,
    /// Root-mean-square horizontal distance of the distributions, in ms.
    pub rms_ms: f64,
    /// Mean measured service time, in ms.
    pub measured_ms: f64,
    /// Mean modelled service time, in ms.
    pub modelled_ms: f64,
}

/// Compares two sets of times of the same size.
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
