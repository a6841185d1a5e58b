//! A recording of the requests that a device receives.

use crate::composed::{Base, Composer};
use crate::devices::Devices;
use frit_core::BlockDevice;
use frit_core::convert::to_f64;
use frit_core::visible::Metric;
use frit_core::{Cause, Nanos, ReadTarget, Result, Sector, Sink, Tok, TrafficKind, WriteData};
use std::fmt;
use std::sync::{Arc, OnceLock};

frit_core::parameters! {
    /// Configuration of a recording.
    pub struct RecordConfig {
        "file" file: String as Text = String::new(), fixed,
            "trace file, relative to the working directory; .zst and .gz compress";
        "limit" limit: u64 as Number = 1_000_000, live, unit "requests", within 1..=1_000_000_000_000u64,
            "requests after the first ones of this number are not recorded (20 to 40 bytes each)";
    }
}

/// A request that a device receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedRequest {
    /// Time at which the request of the client was admitted that caused this one; zero in a sink
    /// without time.
    pub now: Nanos,
    /// Kind of the request.
    pub kind: TrafficKind,
    /// Address of the first byte; 0 for a flush.
    pub at: u64,
    /// Number of bytes; 0 for a flush.
    pub len: u64,
}

/// Takes the requests of a recording.
pub trait RequestSink: Send + Sync {
    /// Takes a request, and returns `false` if it is not recorded. A failure never reaches the
    /// client whose request it is.
    fn record(&self, request: &ReceivedRequest) -> bool;
}

/// The place in a stack where a recording is made.
///
/// The layer records nothing until a sink is attached. So a stack that is only checked,
/// preconditioned, or tortured touches no file.
#[derive(Clone)]
pub struct RecordPort {
    file: String,
    sink: Arc<OnceLock<Arc<dyn RequestSink>>>,
}

impl RecordPort {
    /// Returns the path of the file, relative to the working directory.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Begins the recording. Later calls have no effect.
    pub fn attach(&self, sink: Arc<dyn RequestSink>) {
        // The first sink has the requests so far, and stays.
        let _ = self.sink.set(sink);
    }
}

impl fmt::Debug for RecordPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attached = self.sink.get().is_some();
        f.debug_struct("RecordPort").field("file", &self.file).field("attached", &attached).finish()
    }
}

/// Passes all requests to a device, and records them in the order in which the device receives them.
pub struct Record {
    base: Base<RecordConfig>,
    port: RecordPort,
    recorded: u64,
    unrecorded: u64,
}

impl Record {
    /// Records the requests to a device, the only one of `devices`.
    #[must_use]
    pub fn new(config: RecordConfig, devices: Devices) -> Record {
        let port = RecordPort { file: config.file.clone(), sink: Arc::default() };
        Record { base: Base::new(config, devices), port, recorded: 0, unrecorded: 0 }
    }

    /// Returns the place to which a sink is attached.
    #[must_use]
    pub fn port(&self) -> RecordPort {
        self.port.clone()
    }

    fn record(&mut self, now: Nanos, kind: TrafficKind, at: u64, len: u64) {
        let Some(sink) = self.port.sink.get() else { return };
        if self.recorded < self.base.config.limit && sink.record(&ReceivedRequest { now, kind, at, len }) {
            self.recorded += 1;
        } else {
            self.unrecorded += 1;
        }
    }
}

impl Composer for Record {
    const NAME: &'static str = "record";
    const PASSES_HINTS: bool = true;
    const DEFERS_READS: bool = true;
    const DEFERS_WRITES: bool = true;
    const FORGIVES_SYNCS: bool = true;
    type Config = RecordConfig;

    fn base(&self) -> &Base<RecordConfig> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<RecordConfig> {
        &mut self.base
    }

    fn prefetch(&self, next: &[(Sector, u32)]) {
        self.base.devices.get(0).prefetch(next);
    }

    fn read(&mut self, sink: &mut Sink, at: u64, into: ReadTarget<'_>, after: Tok) -> Result<Tok> {
        self.record(sink.now(), TrafficKind::Read, at, u64::from(into.len()));
        self.base.devices.get_mut(0).read(sink, at, into, Cause::Host, after)
    }

    fn write(&mut self, sink: &mut Sink, at: u64, data: WriteData<'_>, after: Tok) -> Result<Tok> {
        self.record(sink.now(), TrafficKind::Write, at, u64::from(data.len()));
        self.base.devices.get_mut(0).write(sink, at, data, Cause::Host, after)
    }

    fn zero(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        self.record(sink.now(), TrafficKind::Zero, at, len);
        self.base.devices.get_mut(0).zero(sink, at, len, Cause::Host, after)
    }

    fn flush(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        self.record(sink.now(), TrafficKind::Flush, 0, 0);
        self.base.devices.flush(sink, Cause::Host, after)
    }

    fn metrics(&self) -> Vec<Metric> {
        let count = |name, value: u64, help| Metric { name, value: to_f64(value), unit: "", help };
        vec![
            count("recorded_requests", self.recorded, "requests that were recorded"),
            count(
                "unrecorded_requests",
                self.unrecorded,
                "requests that were not recorded: after the limit or a failure of the file",
            ),
        ]
    }
}
