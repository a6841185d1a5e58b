//! Software time of a request: frit's path and the kernel's block path, measured in turns in one
//! run.

mod kernel;

use crate::describe::SoftwarePlan;
use crate::outcome::{PathTime, SoftwareOutcome};
use crate::{Error, Result};
use frit_core::{Hints, Null, Sector, Source, StackDevice, Target};
use frit_stack::{Bytes, Stack};
use kernel::TempLoopDevice;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Instant;

/// Seed of the request addresses.
const SEED: u64 = 1;
/// Numbers of rounds and requests with `--quick`.
const QUICK: (u32, u32) = (3, 1000);

/// Access to a request path.
trait RequestPath {
    fn read(&mut self, at: u64) -> Result<()>;
    fn write(&mut self, at: u64) -> Result<()>;
}

/// A layer over a sink that takes no time.
struct LayerPath {
    top: Box<dyn StackDevice<Null>>,
    buffer: Vec<u8>,
    bytes: bool,
}

impl LayerPath {
    fn new(stack: &Stack, plan: &SoftwarePlan, bytes: &Bytes) -> Result<LayerPath> {
        let holds = !matches!(bytes, Bytes::None);
        let top = stack.build::<Null>(bytes).map_err(Box::new)?.layer;
        let size = top.info().sectors * frit_core::SECTOR_BYTES;
        if size < plan.span {
            let why = format!("the volume of {size} bytes is smaller than the span of {}", plan.span);
            return Err(Error::Description { name: plan.stack.clone(), why });
        }
        Ok(LayerPath { top, buffer: vec![0xa5; plan.request as usize], bytes: holds })
    }
}

impl RequestPath for LayerPath {
    fn read(&mut self, at: u64) -> Result<()> {
        let len = self.buffer.len() as u32;
        let into = if self.bytes { Target::Bytes(&mut self.buffer) } else { Target::Len(len) };
        Ok(self.top.read(&mut Null, Sector(at / frit_core::SECTOR_BYTES), into, Hints::NONE)?)
    }

    fn write(&mut self, at: u64) -> Result<()> {
        let len = self.buffer.len() as u32;
        let data = if self.bytes { Source::Bytes(&self.buffer) } else { Source::Len(len) };
        Ok(self.top.write(&mut Null, Sector(at / frit_core::SECTOR_BYTES), data, Hints::NONE)?)
    }
}

/// A request path with its measured times.
struct MeasuredPath {
    name: &'static str,
    contains: &'static str,
    kernel: bool,
    way: Box<dyn RequestPath>,
    reads: Vec<f64>,
    writes: Vec<f64>,
}

impl MeasuredPath {
    fn new(
        name: &'static str,
        contains: &'static str,
        kernel: bool,
        way: Box<dyn RequestPath>,
    ) -> MeasuredPath {
        MeasuredPath { name, contains, kernel, way, reads: Vec::new(), writes: Vec::new() }
    }

    /// Writes all of the span once.
    fn fill(&mut self, plan: &SoftwarePlan) -> Result<()> {
        (0..plan.span / plan.request).try_for_each(|i| self.way.write(i * plan.request))
    }

    fn round(&mut self, places: &[u64]) -> Result<()> {
        let each = |start: Instant| start.elapsed().as_nanos() as f64 / places.len() as f64;
        let start = Instant::now();
        places.iter().try_for_each(|&at| self.way.read(at))?;
        self.reads.push(each(start));
        let start = Instant::now();
        places.iter().try_for_each(|&at| self.way.write(at))?;
        self.writes.push(each(start));
        Ok(())
    }

    fn time(mut self) -> PathTime {
        let (read_ns, read_range_ns) = median(&mut self.reads);
        let (write_ns, write_range_ns) = median(&mut self.writes);
        PathTime {
            name: self.name,
            contains: self.contains,
            read_ns,
            write_ns,
            read_range_ns,
            write_range_ns,
            kernel: self.kernel,
        }
    }
}

/// Returns the median, and the range.
fn median(times: &mut [f64]) -> (f64, (f64, f64)) {
    times.sort_by(f64::total_cmp);
    let (first, last) = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(0.0));
    let n = times.len();
    let middle = match n {
        0 => 0.0,
        _ if n % 2 == 1 => times[n / 2],
        _ => (times[n / 2 - 1] + times[n / 2]) / 2.0,
    };
    (middle, (first, last))
}

/// Measures all paths in turns, so that disturbances of the machine affect all of them alike.
///
/// # Errors
/// The stack is invalid, or a path fails after it has started.
pub(crate) fn software(
    plan: &SoftwarePlan,
    quick: bool,
    note: &mut dyn FnMut(&str),
) -> Result<SoftwareOutcome> {
    let (rounds, requests) = if quick { QUICK } else { (plan.rounds, plan.requests) };
    let stack = Stack::load(&plan.stack, &plan.set).map_err(Box::new)?;
    let mut paths = vec![
        MeasuredPath::new(
            "frit, with bytes",
            "map, policies, media rules, checksums, copies to and from memory, garbage collection",
            false,
            Box::new(LayerPath::new(&stack, plan, &Bytes::Memory)?),
        ),
        MeasuredPath::new(
            "frit, without bytes",
            "map, policies, media rules, garbage collection",
            false,
            Box::new(LayerPath::new(&stack, plan, &Bytes::None)?),
        ),
    ];
    let mut skipped = None;
    match TempLoopDevice::new(plan.span, plan.request as usize) {
        Ok(device) => paths.push(MeasuredPath::new(
            "kernel",
            "system call (O_DIRECT pread or pwrite), block layer, loop driver with its worker, copy to or from a file in tmpfs",
            true,
            Box::new(device),
        )),
        Err(why) => skipped = Some(why),
    }
    for p in &mut paths {
        note(&format!("filling: {}", p.name));
        // Filled before the measurement, so that measured reads and writes meet mapped blocks on
        // every path.
        p.fill(plan)?;
    }
    let mut rng = SmallRng::seed_from_u64(SEED);
    for round in 0..rounds {
        note(&format!("round {} of {rounds}", round + 1));
        let place = |_| rng.random_range(0..plan.span / plan.request) * plan.request;
        let places: Vec<u64> = (0..requests).map(place).collect();
        for p in &mut paths {
            p.round(&places)?;
        }
    }
    let paths = paths.into_iter().map(MeasuredPath::time).collect();
    Ok(SoftwareOutcome { request_bytes: plan.request, requests, rounds, paths, skipped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ranges() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), (2.0, (1.0, 3.0)));
        assert_eq!(median(&mut [4.0, 1.0]), (2.5, (1.0, 4.0)));
        assert_eq!(median(&mut []), (0.0, (0.0, 0.0)));
    }
}
