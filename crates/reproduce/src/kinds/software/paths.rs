//! The paths of a request, and their measured times.

use super::{PathTime, SoftwarePlan};
use crate::kinds::this_machine::Spread;
use crate::{Error, Result};
use frit_core::{Hints, ReadTarget, Sector, Sink, StackDevice, WriteData};
use frit_stack::{Bytes, Stack};
use std::time::Instant;

/// Access to a request path.
pub(super) trait RequestPath {
    fn read(&mut self, at: u64) -> Result<()>;
    fn write(&mut self, at: u64) -> Result<()>;
}

/// A layer over a sink that takes no time.
pub(super) struct LayerPath {
    top: Box<dyn StackDevice>,
    buffer: Vec<u8>,
    bytes: bool,
}

impl LayerPath {
    pub(super) fn new(stack: &Stack, plan: &SoftwarePlan, bytes: &Bytes) -> Result<LayerPath> {
        let holds = !matches!(bytes, Bytes::None);
        let top = stack.build(bytes).map_err(Box::new)?.layer;
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
        let into = if self.bytes { ReadTarget::Bytes(&mut self.buffer) } else { ReadTarget::Len(len) };
        Ok(self.top.read(&mut Sink::untimed(), Sector(at / frit_core::SECTOR_BYTES), into, Hints::NONE)?)
    }

    fn write(&mut self, at: u64) -> Result<()> {
        let len = self.buffer.len() as u32;
        let data = if self.bytes { WriteData::Bytes(&self.buffer) } else { WriteData::Len(len) };
        Ok(self.top.write(&mut Sink::untimed(), Sector(at / frit_core::SECTOR_BYTES), data, Hints::NONE)?)
    }
}

/// A request path with its measured times.
pub(super) struct MeasuredPath {
    pub(super) name: &'static str,
    contains: &'static str,
    kernel: bool,
    way: Box<dyn RequestPath>,
    reads: Vec<f64>,
    writes: Vec<f64>,
}

impl MeasuredPath {
    pub(super) fn new(
        name: &'static str,
        contains: &'static str,
        kernel: bool,
        way: Box<dyn RequestPath>,
    ) -> MeasuredPath {
        MeasuredPath { name, contains, kernel, way, reads: Vec::new(), writes: Vec::new() }
    }

    /// Writes all of the span once.
    pub(super) fn fill(&mut self, plan: &SoftwarePlan) -> Result<()> {
        (0..plan.span / plan.request).try_for_each(|i| self.way.write(i * plan.request))
    }

    pub(super) fn round(&mut self, places: &[u64]) -> Result<()> {
        let each = |start: Instant| start.elapsed().as_nanos() as f64 / places.len() as f64;
        let start = Instant::now();
        places.iter().try_for_each(|&at| self.way.read(at))?;
        self.reads.push(each(start));
        let start = Instant::now();
        places.iter().try_for_each(|&at| self.way.write(at))?;
        self.writes.push(each(start));
        Ok(())
    }

    pub(super) fn time(self) -> PathTime {
        let (reads, writes) = (Spread::of(self.reads), Spread::of(self.writes));
        PathTime {
            name: self.name,
            contains: self.contains,
            read_ns: reads.median,
            write_ns: writes.median,
            read_range_ns: (reads.least, reads.most),
            write_range_ns: (writes.least, writes.most),
            kernel: self.kernel,
        }
    }
}
