//! NBD session of one client without its socket: bytes in, bytes out.
//!
//! Sockets, tests that script every byte, and the fuzz target all use this code.

mod pieces;

use super::execute::{ReplyOutcome, execute, flush, reply_after_flush, slow};
use super::handshake::{Handshake, HandshakeState, Negotiated};
use super::output::Output;
use super::reply_writer::ReplyWriter;
use super::request::{Limits, NbdCommand, NbdRequest};
use super::wire::REQUEST_BYTES;
use super::workers::{WorkerJob, Workers};
use super::{Export, Exports, reply};
use crate::backend::ReplyTime;
use crate::device::{Device, DeviceGuard};
use crate::resource_limits::{Grant, Share};
use pieces::{PartialRead, PartialWrite};
use std::sync::Arc;
use std::time::Duration;

/// Number of bytes of replies after which they are sent, so that the client can continue while the
/// server executes the remaining requests.
const OUTPUT_BATCH: usize = 128 << 10;
/// Maximum number of requests executed under one hold of the lock.
const REQUESTS_BATCH: usize = 64;
/// Maximum number of bytes written under one hold of the lock. A single request may be larger.
const WRITE_BATCH: usize = 256 << 10;

/// Next action of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Call again when at least this many bytes follow the used ones, or when the client has
    /// disconnected.
    More(usize),
    /// Send the output, then call again with the remaining input.
    Again,
    /// Send the output, then close the connection.
    Close,
}

/// Progress made by a call of [`Connection::advance`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Advance {
    /// Number of input bytes consumed. The next input starts after them.
    pub used: usize,
    /// Next action of the caller.
    pub next: Next,
}

#[derive(Debug)]
enum ConnectionPhase {
    Handshake(Handshake),
    Transmission,
    /// The payload of a refused request is discarded; the number of bytes still to come.
    Skip(usize),
    /// The payload of a write is received in pieces.
    Write(PartialWrite),
    /// The reply to a read is sent in pieces.
    Read(PartialRead),
    Closed,
}

/// A request whose reply is sent after the next flush.
#[derive(Clone, Copy, Debug)]
struct PendingFlush {
    cookie: u64,
    done: ReplyTime,
    /// `true` for a flush, `false` for a write with FUA.
    is_flush: bool,
}

/// Progress of a request after `Connection::begin`.
enum Started {
    /// The request is executed, or was handed to a worker thread.
    Accepted,
    /// The workers are at their limit; the request must be repeated.
    WorkersBusy,
    /// The request is executed in pieces from now on, or was refused. Only its header is consumed
    /// so far.
    Piecewise,
}

/// The device lock, taken at its first use.
struct LazyDeviceLock<'a> {
    device: &'a Device,
    access: Option<DeviceGuard<'a>>,
}

impl<'a> LazyDeviceLock<'a> {
    fn get(&mut self) -> &mut DeviceGuard<'a> {
        let device = self.device;
        self.access.get_or_insert_with(|| device.lock())
    }
}

/// NBD session of one client.
#[derive(Debug)]
pub struct Connection {
    exports: Arc<Exports>,
    /// The selected export; one without bytes during the handshake.
    export: Arc<Export>,
    phase: ConnectionPhase,
    negotiated: Negotiated,
    /// Requests whose replies are sent after the next flush.
    after_flush: Vec<PendingFlush>,
    out: Output,
    /// Writer for the replies of worker threads. It moves to `workers` at the end of the handshake.
    reply_writer: Option<Arc<ReplyWriter>>,
    /// Threads that execute slow requests, for devices that defer accesses.
    workers: Option<Workers>,
    /// The request that found the workers at their limit. It is executed next.
    blocked_request: Option<(NbdCommand, NbdRequest)>,
    /// Memory of the shared budget that replies use. `None`: replies are not limited.
    grant: Option<Grant>,
    /// The next request does not fit into memory as a whole, and is executed in pieces.
    in_pieces: bool,
    /// Maximum time to wait for memory.
    memory_wait_max: Duration,
}

impl Connection {
    /// Starts the session of a client and writes the server's greeting.
    pub fn new(exports: impl Into<Exports>) -> Connection {
        let exports = Arc::new(exports.into());
        let mut out = Output::default();
        let phase = ConnectionPhase::Handshake(Handshake::new(&mut out));
        Connection {
            export: exports.none(),
            exports,
            phase,
            negotiated: Negotiated::default(),
            after_flush: Vec::new(),
            out,
            reply_writer: None,
            workers: None,
            blocked_request: None,
            grant: None,
            in_pieces: false,
            memory_wait_max: Duration::ZERO,
        }
    }

    /// Starts the session of a client whose large requests take memory from a share of the budget. A read that
    /// cannot be answered in pieces waits up to `memory_wait_max` for memory. If `reply_writer` is
    /// given, slow requests are executed and answered by worker threads.
    pub(super) fn with_limits(
        exports: impl Into<Exports>,
        share: &Share,
        memory_wait_max: Duration,
        reply_writer: Option<Arc<ReplyWriter>>,
    ) -> Connection {
        Connection {
            reply_writer,
            grant: Some(Grant::none(share)),
            memory_wait_max,
            ..Connection::new(exports)
        }
    }

    /// Returns the output to be sent. The caller clears it after sending.
    pub fn output(&mut self) -> &mut Output {
        &mut self.out
    }

    /// Returns `true` if the handshake is complete and the session has not ended.
    pub fn is_transmitting(&self) -> bool {
        !matches!(self.phase, ConnectionPhase::Handshake(_) | ConnectionPhase::Closed)
    }

    /// Returns `true` if the payload of a request is still incomplete.
    pub(super) fn is_within_request(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Skip(_) | ConnectionPhase::Write(_))
    }

    #[cfg(test)]
    pub(super) fn agreed_structured(&self) -> bool {
        self.negotiated.structured
    }

    /// Consumes complete messages from the input and executes them. One call holds the device lock
    /// for a bounded number of requests and bytes of data.
    pub fn advance(&mut self, input: &[u8]) -> Advance {
        if !self.after_flush.is_empty() {
            self.flush();
        }
        self.return_memory();
        match &mut self.phase {
            ConnectionPhase::Handshake(handshake) => {
                let (used, more, state) = handshake.process(&self.exports, input, &mut self.out);
                let next = match state {
                    HandshakeState::Negotiating if used == 0 => Next::More(more),
                    HandshakeState::Negotiating => Next::Again,
                    HandshakeState::ExportSelected(export) => {
                        self.export = export;
                        self.negotiated = handshake.negotiated();
                        self.phase = ConnectionPhase::Transmission;
                        self.workers = self.reply_writer.take().map(|reply_writer| {
                            Workers::new(Arc::clone(&self.export), self.negotiated.clone(), reply_writer)
                        });
                        Next::Again
                    }
                    HandshakeState::Closed => self.end(),
                };
                Advance { used, next }
            }
            ConnectionPhase::Transmission => self.requests(input),
            ConnectionPhase::Skip(left) => {
                let used = (*left).min(input.len());
                *left -= used;
                if *left == 0 {
                    self.phase = ConnectionPhase::Transmission;
                    return Advance { used, next: Next::Again };
                }
                Advance { used, next: Next::More(1) }
            }
            ConnectionPhase::Write(_) => self.write_piece(input),
            ConnectionPhase::Read(_) => self.read_piece(),
            ConnectionPhase::Closed => Advance { used: input.len(), next: Next::Close },
        }
    }

    /// Executes the complete requests of the input, up to the limits of a batch.
    fn requests(&mut self, input: &[u8]) -> Advance {
        // The request is still in the input and is decoded again below. The wait takes place here,
        // rather than in `submit_to_worker`, which lets the session send the earlier replies first.
        if let (Some(workers), Some((command, request))) = (&self.workers, self.blocked_request.take()) {
            workers.wait_until_accepted(command, &request);
        }
        let export = Arc::clone(&self.export);
        let device = export.device();
        let limits = Limits {
            bytes: export.bytes(),
            structured: self.negotiated.structured,
            contexts: !self.negotiated.contexts.is_empty(),
        };
        let mut access = LazyDeviceLock { device, access: None };
        let (mut used, mut count, mut written) = (0, 0, 0);
        loop {
            let rest = &input[used..];
            let Some(head) = rest.first_chunk::<REQUEST_BYTES>() else {
                return self.pause(used, REQUEST_BYTES);
            };
            // The batch is full. Returning releases the lock and sends the output.
            if count == REQUESTS_BATCH || self.out.len() >= OUTPUT_BATCH || written >= WRITE_BATCH {
                return Advance { used, next: Next::Again };
            }
            let Some(request) = NbdRequest::decode(head) else {
                // Without the magic number the start of the next request is unknown.
                let next = self.end();
                return Advance { used, next };
            };
            let payload = request.payload();
            let command = match request.validate(&limits) {
                Ok(command) => command,
                Err(wrong) => {
                    reply::error(&mut self.out, limits.structured, request.cookie, wrong.0, wrong.1);
                    self.mark(ReplyTime::NOW);
                    used += REQUEST_BYTES;
                    if payload > 0 {
                        self.phase = ConnectionPhase::Skip(payload);
                        return Advance { used, next: Next::Again };
                    }
                    count += 1;
                    continue;
                }
            };
            if command == NbdCommand::Disc {
                used += REQUEST_BYTES;
                let next = self.end();
                return Advance { used, next };
            }
            let Some(data) = rest[REQUEST_BYTES..].get(..payload) else {
                if self.in_pieces {
                    self.begin_write(request);
                    return Advance { used: used + REQUEST_BYTES, next: Next::Again };
                }
                return self.pause(used, REQUEST_BYTES + payload);
            };
            match self.begin(&mut access, command, &request, data) {
                Started::Accepted => {}
                Started::WorkersBusy => return Advance { used, next: Next::Again },
                Started::Piecewise => return Advance { used: used + REQUEST_BYTES, next: Next::Again },
            }
            used += REQUEST_BYTES + payload;
            written += payload;
            count += 1;
        }
    }

    /// Starts a request: executes it, hands it to a worker thread, or begins to execute it in
    /// pieces.
    fn begin(
        &mut self,
        lock: &mut LazyDeviceLock<'_>,
        command: NbdCommand,
        request: &NbdRequest,
        data: &[u8],
    ) -> Started {
        if self.workers.is_some() && slow(lock.get(), self.negotiated.start, command, request) {
            // The thread that executes the request needs the lock.
            lock.access = None;
            match self.submit_to_worker(command, request, data) {
                Some(true) => {}
                Some(false) => return Started::WorkersBusy,
                None if command == NbdCommand::Read => {
                    self.begin_read(request);
                    return Started::Piecewise;
                }
                None => self.execute(lock.get(), command, request, data),
            }
        } else if command == NbdCommand::Flush {
            // The lock is not needed yet. The flush is delayed to the end of the batch, so that it
            // covers all requests before it and is shared by the flushes that follow.
            self.wait_for_flush(request);
        } else if command == NbdCommand::Read && !self.reserve_output(request.len) {
            lock.access = None;
            self.begin_read(request);
            return Started::Piecewise;
        } else {
            self.execute(lock.get(), command, request, data);
        }
        Started::Accepted
    }

    /// Hands a slow request to a worker thread. Returns `Some(false)` if the workers are at their
    /// limit, and `None` if the budget has no memory for it, so that this thread must execute it.
    fn submit_to_worker(&mut self, command: NbdCommand, request: &NbdRequest, data: &[u8]) -> Option<bool> {
        let Some(workers) = &mut self.workers else { return Some(false) };
        if !workers.can_submit(command, request) {
            self.blocked_request = Some((command, *request));
            return Some(false);
        }
        let job = match &self.grant {
            None => WorkerJob::new(command, request, data, None),
            Some(grant) => WorkerJob::new(
                command,
                request,
                data,
                Some(grant.like(WorkerJob::memory_bytes(command, request))?),
            ),
        };
        match workers.submit(job) {
            None => {}
            // No thread could be started, so this thread executes the request.
            Some(WorkerJob { command: NbdCommand::Flush, request, .. }) => self.wait_for_flush(&request),
            Some(WorkerJob { command, request, payload, .. }) => {
                let export = Arc::clone(&self.export);
                self.execute(&mut export.device().lock(), command, &request, &payload);
            }
        }
        Some(true)
    }

    fn wait_for_flush(&mut self, request: &NbdRequest) {
        self.after_flush.push(PendingFlush { cookie: request.cookie, done: ReplyTime::NOW, is_flush: true });
    }

    fn execute(
        &mut self,
        access: &mut DeviceGuard<'_>,
        command: NbdCommand,
        request: &NbdRequest,
        data: &[u8],
    ) {
        match execute(access, &self.negotiated, command, request, data, &mut self.out) {
            ReplyOutcome::Replied(done) => self.mark(done),
            ReplyOutcome::AfterFlush(done) => {
                self.after_flush.push(PendingFlush { cookie: request.cookie, done, is_flush: false });
            }
        }
    }

    /// Ends a batch because the input is incomplete. Pending flushes are executed before more input
    /// is awaited.
    fn pause(&self, used: usize, more: usize) -> Advance {
        let next = if self.after_flush.is_empty() { Next::More(more) } else { Next::Again };
        Advance { used, next }
    }

    /// Ends the session after pending flushes have been answered.
    fn end(&mut self) -> Next {
        self.phase = ConnectionPhase::Closed;
        if self.after_flush.is_empty() { Next::Close } else { Next::Again }
    }

    /// Executes one flush for all requests that wait for one, and replies to them.
    fn flush(&mut self) {
        let asked_for = self.after_flush.iter().any(|w| w.is_flush);
        let result = flush(self.export.device(), asked_for);
        for PendingFlush { cookie, done, .. } in std::mem::take(&mut self.after_flush) {
            reply_after_flush(&mut self.out, &self.negotiated, cookie, &result);
            self.mark(result.as_ref().map_or(ReplyTime::NOW, |f| done.and(*f)));
        }
    }

    fn mark(&mut self, done: ReplyTime) {
        if self.export.device().paced() {
            self.out.mark(done.not_before);
        }
    }
}
