//! Figures of a pattern: latency, traffic, and how busy the parts of the board were.

use crate::area::{Area, AreaCount, Traffic};
use crate::board::Board;
use crate::build::UnitName;
use crate::error::Result;
use frit_core::{Cause, Nanos};
use frit_engine::latency::Summary;
use frit_engine::{Eager, Latency};
use serde::Serialize;

/// How busy a part of the board was.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Busy {
    /// The part: a unit of the memory, the bus of a controller, the link, copying, software.
    pub part: String,
    /// The share of the time in which it was busy, 0 to 1.
    pub share: f64,
}

/// What went to one area.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AreaRow {
    /// The area.
    pub area: Area,
    /// Why its commands were given.
    pub cause: Cause,
    /// Accesses and commands.
    #[serde(flatten)]
    pub count: AreaCount,
}

/// One pattern, measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// What was done: `write`, `rewrite`, `create` …
    pub name: &'static str,
    /// Bytes of a record; none of operations of names.
    pub record: Option<u64>,
    /// Operations.
    pub operations: u64,
    /// Bytes that the program wrote or read.
    pub bytes: u64,
    /// Virtual time from the first operation to the last answer.
    pub nanos: Nanos,
    /// Bytes in a second of it, in millions.
    pub mb_s: f64,
    /// Operations in a second of it.
    pub operations_s: f64,
    /// Latency of operations.
    pub latency: Summary,
    /// Fences.
    pub fences: u64,
    /// What went to the memory.
    pub areas: Vec<AreaRow>,
    /// Bytes of metadata that the memory wrote.
    pub metadata_bytes: u64,
    /// Bytes that the memory wrote for each byte that the program wrote; none where it wrote none.
    pub write_amplification: Option<f64>,
    /// How busy the board was until its last command was done.
    pub busy: Vec<Busy>,
}

/// Measures one pattern after another.
#[derive(Debug)]
pub(super) struct Meter<'b> {
    board: &'b Board<Eager>,
    units: Vec<UnitName>,
    buses: Vec<(usize, String)>,
    latency: Latency,
    began: Nanos,
    before: Traffic,
    pub(super) measured: Vec<Measured>,
}

impl<'b> Meter<'b> {
    pub(super) fn new(board: &'b Board<Eager>, units: Vec<UnitName>, buses: Vec<(usize, String)>) -> Self {
        let (latency, began) = (Latency::new(), Nanos::ZERO);
        Self { board, units, buses, latency, began, before: Traffic::default(), measured: Vec::new() }
    }

    /// A pattern begins.
    pub(super) fn begin(&mut self) {
        self.board.quiet();
        self.latency.reset();
        self.began = self.board.now();
        self.before = self.board.traffic();
        let now = self.began;
        self.board.with_sink(|sink| sink.usage_mut().reset(now));
    }

    /// One operation.
    pub(super) fn operation<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let (answer, took) = self.board.operation(operation);
        self.latency.record(took);
        answer
    }

    /// An operation that is measured alone.
    pub(super) fn once<T>(&mut self, name: &'static str, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        self.begin();
        let answer = self.operation(operation)?;
        self.end(name, None, 0, false);
        Ok(answer)
    }

    /// The pattern is over: `bytes` were read, or written.
    pub(super) fn end(&mut self, name: &'static str, record: Option<u64>, bytes: u64, wrote: bool) {
        let nanos = self.board.now().since(self.began);
        let traffic = self.board.traffic().since(&self.before);
        let latency = self.latency.summary();
        let a_second = |n: u64| if nanos == Nanos::ZERO { 0.0 } else { n as f64 / nanos.as_secs() };
        let written = traffic.medium_bytes(Cause::Host) + traffic.medium_bytes(Cause::Meta);
        self.measured.push(Measured {
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

    fn busy(&self) -> Vec<Busy> {
        self.board.with_sink(|sink| {
            let usage = sink.usage();
            let share = |busy: Nanos| match usage.window() {
                Nanos::ZERO => 0.0,
                window => busy.0 as f64 / window.0 as f64,
            };
            let units = self.units.iter().map(|u| (&u.name, usage.units()[u.unit.idx()]));
            let buses = self.buses.iter().map(|(channel, name)| (name, usage.channels()[*channel]));
            units.chain(buses).map(|(part, busy)| Busy { part: part.clone(), share: share(busy) }).collect()
        })
    }
}
