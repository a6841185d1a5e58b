//! Traces of the requests that layers `record` receive in a run.

use crate::error::Result;
use frit_core::{Hints, Nanos};
use frit_stack::record::{ReceivedRequest, RecordPort, RequestSink};
use frit_trace::write::{WriteFormat, Writer};
use frit_trace::{Request, requests_for};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of requests that are written together.
const BATCH: usize = 1 << 12;

/// Result of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RecordReport {
    /// Path of the trace.
    pub file: String,
    /// Number of requests in the trace.
    pub requests: u64,
    /// Error of the file. There is no trace then.
    pub error: Option<String>,
}

/// The traces of a run, which exist under their names once they are complete.
#[derive(Default)]
pub(crate) struct LayerTraces(Vec<(RecordPort, Arc<LayerTrace>)>);

impl LayerTraces {
    /// Creates the files.
    ///
    /// # Errors
    /// A file cannot be created.
    pub(crate) fn create(ports: &[RecordPort]) -> Result<LayerTraces> {
        let one = |port: &RecordPort| Ok((port.clone(), Arc::new(LayerTrace::create(port.file())?)));
        ports.iter().map(one).collect::<Result<_>>().map(LayerTraces)
    }

    /// Begins the recordings. Times count from `base`.
    pub(crate) fn begin(&self, base: Nanos) {
        for (port, trace) in &self.0 {
            trace.lock().base = base;
            port.attach(Arc::<LayerTrace>::clone(trace));
        }
    }

    /// Ends the recordings, and completes the files.
    pub(crate) fn finish(&self) -> Vec<RecordReport> {
        self.0.iter().map(|(port, trace)| trace.finish(port.file())).collect()
    }
}

/// The trace of one layer.
struct LayerTrace(Mutex<TraceState>);

struct TraceState {
    /// `None` after an error, and after the end of the recording.
    writer: Option<Writer>,
    error: Option<String>,
    waiting: Vec<Request>,
    base: Nanos,
    /// Time of the last request. Those of background work may be earlier than that of the request
    /// before them, and times of a trace do not decrease.
    last: Nanos,
    /// Number of requests that the layer received.
    received: u64,
}

impl LayerTrace {
    fn create(path: &str) -> Result<LayerTrace> {
        Ok(LayerTrace(Mutex::new(TraceState {
            writer: Some(Writer::create(path, WriteFormat::Recorded, false)?),
            error: None,
            waiting: Vec::with_capacity(BATCH),
            base: Nanos::ZERO,
            last: Nanos::ZERO,
            received: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, TraceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, file: &str) -> RecordReport {
        let mut state = self.lock();
        state.drain();
        if let Some(Err(e)) = state.writer.take().map(Writer::finish) {
            state.error = Some(e.to_string());
        }
        let requests = if state.error.is_none() { state.received } else { 0 };
        RecordReport { file: file.into(), requests, error: state.error.clone() }
    }
}

impl TraceState {
    /// Writes the waiting requests. An error ends the recording.
    fn drain(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if let Some(writer) = &mut self.writer
            && let Err(e) = writer.write(&waiting, &[])
        {
            self.error = Some(e.to_string());
            self.writer = None;
        }
        self.waiting = waiting;
        self.waiting.clear();
    }
}

impl RequestSink for LayerTrace {
    fn record(&self, request: &ReceivedRequest) -> bool {
        let mut state = self.lock();
        if state.writer.is_none() {
            return false;
        }
        state.last = state.last.max(request.now.since(state.base));
        let at = state.last;
        let requests = requests_for(at, request.kind.into(), request.at, request.len, Hints::NONE);
        state.waiting.extend(requests);
        state.received += 1;
        if state.waiting.len() >= BATCH {
            state.drain();
        }
        true
    }
}
