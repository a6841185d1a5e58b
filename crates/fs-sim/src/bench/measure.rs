//! Metrics of a pattern: latency, traffic, and utilization of the parts of the hardware.

use crate::area::{Area, AreaCount, Traffic};
use crate::build::UnitName;
use crate::error::Result;
use crate::sim_medium::SimMedium;
use frit_core::{Cause, Nanos};
use frit_engine::latency::LatencySummary;
use frit_engine::{LatencyHistogram, SinkUsage};
use serde::Serialize;

/// Utilization of a part of the hardware.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Utilization {
    /// Name of the part: a unit of the memory, the bus of a controller, the link, copying,
    /// software.
    pub part: String,
    /// Share of the time in which it was busy, from 0 to 1.
    pub share: f64,
}

/// Traffic to one area.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AreaRow {
    /// Area.
    pub area: Area,
    /// Cause of its commands.
    pub cause: Cause,
    /// Numbers of accesses and commands.
    #[serde(flatten)]
    pub count: AreaCount,
}

/// Metrics of one pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PatternMetrics {
    /// Name of the pattern: `write`, `rewrite`, `create` …
    pub name: &'static str,
    /// Bytes of a record; `None` for operations on names.
    pub record: Option<u64>,
    /// Number of operations.
    pub operations: u64,
    /// Bytes that the program wrote or read.
    pub bytes: u64,
    /// Virtual time from the first operation to the last result.
    pub nanos: Nanos,
    /// Throughput in MB per second of this time (10^6 bytes).
    pub mb_s: f64,
    /// Operations per second of this time.
    pub operations_s: f64,
    /// Latency of operations.
    pub latency: LatencySummary,
    /// Number of fences.
    pub fences: u64,
    /// Traffic to the memory, by area.
    pub areas: Vec<AreaRow>,
    /// Bytes of metadata that the memory wrote.
    pub metadata_bytes: u64,
    /// Bytes that the memory wrote for each byte that the program wrote; `None` if it wrote none.
    pub write_amplification: Option<f64>,
    /// Utilization of the hardware until its last command was complete.
    pub busy: Vec<Utilization>,
}

/// Collects the metrics of one pattern after another.
#[derive(Debug)]
pub(super) struct MetricsRecorder<'b> {
    medium: &'b SimMedium,
    units: Vec<UnitName>,
    buses: Vec<(usize, String)>,
    latency: LatencyHistogram,
    began: Nanos,
    before: Traffic,
    pub(super) measured: Vec<PatternMetrics>,
}

impl<'b> MetricsRecorder<'b> {
    pub(super) fn new(medium: &'b SimMedium, units: Vec<UnitName>, buses: Vec<(usize, String)>) -> Self {
        let (latency, began) = (LatencyHistogram::new(), Nanos::ZERO);
        Self { medium, units, buses, latency, began, before: Traffic::default(), measured: Vec::new() }
    }

    /// Begins a pattern, once the medium is idle.
    pub(super) fn begin(&mut self) {
        self.medium.wait_idle();
        self.latency.reset();
        self.began = self.medium.now();
        self.before = self.medium.traffic();
        let now = self.began;
        self.medium.with_sink(|sink| sink.reset_usage(now));
    }

    /// Runs one operation and records its latency.
    pub(super) fn operation<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let (answer, took) = self.medium.operation(operation);
        self.latency.record(took);
        answer
    }

    /// Runs one operation as a pattern of its own.
    pub(super) fn once<T>(&mut self, name: &'static str, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begin();
        let answer = self.operation(operation)?;
        self.end(name, None, 0, false);
        Ok(answer)
    }

    /// Ends a pattern that read or wrote this many bytes.
    pub(super) fn end(&mut self, name: &'static str, record: Option<u64>, bytes: u64, wrote: bool) {
        let nanos = self.medium.now().since(self.began);
        let traffic = self.medium.traffic().since(&self.before);
        let latency = self.latency.summary();
        let a_second = |n: u64| if nanos == Nanos::ZERO { 0.0 } else { n as f64 / nanos.as_secs() };
        let written = traffic.medium_bytes(Cause::Host) + traffic.medium_bytes(Cause::Meta);
        self.measured.push(PatternMetrics {
            name,
            record,
            operations: latency.count,
            bytes,
            nanos,
            mb_s: a_second(bytes) / 1e6,
            operations_s: a_second(latency.count),
            latency,
            fences: traffic.fences,
            metadata_bytes: traffic.medium_bytes(Cause::Meta),
            write_amplification: (wrote && bytes > 0).then(|| written as f64 / bytes as f64),
            areas: traffic.iter().map(|(area, count)| AreaRow { area, cause: area.cause(), count }).collect(),
            busy: self.busy(),
        });
    }

    fn busy(&self) -> Vec<Utilization> {
        self.medium.with_sink(|sink| {
            let Some(usage) = sink.usage() else { return Vec::new() };
            let share = |busy: Nanos| match usage.window() {
                Nanos::ZERO => 0.0,
                window => busy.0 as f64 / window.0 as f64,
            };
            let units = self.units.iter().map(|u| (&u.name, usage.units()[u.unit.idx()]));
            let buses = self.buses.iter().map(|(channel, name)| (name, usage.channels()[*channel]));
            units
                .chain(buses)
                .map(|(part, busy)| Utilization { part: part.clone(), share: share(busy) })
                .collect()
        })
    }
}
