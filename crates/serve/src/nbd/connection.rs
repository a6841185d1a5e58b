//! One client, without its socket: bytes in, bytes out.
//!
//! The same code serves sockets, tests that script every byte, and fuzzing.

use super::execute::{Outcome, execute, flush, flushed, slow};
use super::handshake::{Agreed, Haggle, Handshake};
use super::outlet::Outlet;
use super::output::Output;
use super::request::{Command, Limits, Request};
use super::wire::REQUEST_BYTES;
use super::workers::{Job, Workers};
use super::{Export, reply};
use crate::backend::Done;
use crate::device::Access;
use std::sync::Arc;

/// Replies are sent once so many bytes wait: the client has something to do while the rest is done.
const OUTPUT_BATCH: usize = 128 << 10;
/// Requests that are done under one lock at most.
const REQUESTS_BATCH: usize = 64;
/// Bytes that are written under one lock at most, but for a single larger request.
const WRITE_BATCH: usize = 256 << 10;

/// What is to happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Call again when so many bytes follow those that were used (or the client has hung up).
    More(usize),
    /// There is more to do with the input as it is. Send the output first.
    Again,
    /// Send the output, then hang up.
    Close,
}

/// How far a call came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Advance {
    /// Bytes of the input that were used; the next input begins after them.
    pub used: usize,
    /// What is to happen next.
    pub next: Next,
}

#[derive(Debug)]
enum Phase {
    Handshake(Handshake),
    Transmission,
    /// Payload of a request that was refused is passed over: bytes still to come.
    Skip(usize),
    Over,
}

/// A request whose reply waits for a flush.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    cookie: u64,
    done: Done,
    /// It is a flush itself, not a write with FUA.
    is_flush: bool,
}

/// One client of an export.
#[derive(Debug)]
pub struct Connection {
    export: Arc<Export>,
    phase: Phase,
    agreed: Agreed,
    /// Replies that wait for a flush.
    after_flush: Vec<Waiting>,
    out: Output,
    /// Where threads that carry out slow requests answer, until there are any.
    outlet: Option<Arc<Outlet>>,
    /// Who carries out slow requests, where there are such.
    workers: Option<Workers>,
    /// A request that found no room there: the next to be done.
    crowded: Option<(Command, Request)>,
}

impl Connection {
    /// Greets a client.
    pub fn new(export: Arc<Export>) -> Connection {
        let mut out = Output::default();
        let phase = Phase::Handshake(Handshake::new(&mut out));
        Connection {
            export,
            phase,
            agreed: Agreed::default(),
            after_flush: Vec::new(),
            out,
            outlet: None,
            workers: None,
            crowded: None,
        }
    }

    /// Greets a client whose slow requests are answered by threads of their own.
    pub(super) fn with_outlet(export: Arc<Export>, outlet: Arc<Outlet>) -> Connection {
        Connection { outlet: Some(outlet), ..Connection::new(export) }
    }

    /// What is to be sent. Clear it when it was.
    pub fn output(&mut self) -> &mut Output {
        &mut self.out
    }

    /// Whether an export was taken and requests follow.
    pub fn is_transmitting(&self) -> bool {
        matches!(self.phase, Phase::Transmission | Phase::Skip(_))
    }

    #[cfg(test)]
    pub(super) fn agreed_structured(&self) -> bool {
        self.agreed.structured
    }

    /// Takes what it can from the input, and does it. Under the device's lock are at most so many
    /// requests as a few hundred KiB of data make.
    pub fn advance(&mut self, input: &[u8]) -> Advance {
        if !self.after_flush.is_empty() {
            self.flush();
        }
        match &mut self.phase {
            Phase::Handshake(handshake) => {
                let (used, more, haggle) = handshake.take(&self.export, input, &mut self.out);
                let next = match haggle {
                    Haggle::On if used == 0 => Next::More(more),
                    Haggle::On => Next::Again,
                    Haggle::Taken => {
                        self.agreed = handshake.agreed();
                        self.phase = Phase::Transmission;
                        self.workers = self.outlet.take().map(|outlet| {
                            Workers::new(Arc::clone(&self.export), self.agreed.clone(), outlet)
                        });
                        Next::Again
                    }
                    Haggle::Over => self.end(),
                };
                Advance { used, next }
            }
            Phase::Transmission => self.requests(input),
            Phase::Skip(left) => {
                let used = (*left).min(input.len());
                *left -= used;
                if *left == 0 {
                    self.phase = Phase::Transmission;
                    return Advance { used, next: Next::Again };
                }
                Advance { used, next: Next::More(1) }
            }
            Phase::Over => Advance { used: input.len(), next: Next::Close },
        }
    }

    /// Does the complete requests of the input, as many as a batch holds.
    fn requests(&mut self, input: &[u8]) -> Advance {
        if let (Some(workers), Some((command, request))) = (&self.workers, self.crowded.take()) {
            workers.wait_for_room(command, &request);
        }
        let export = Arc::clone(&self.export);
        let limits = Limits {
            bytes: export.device().bytes(),
            structured: self.agreed.structured,
            contexts: !self.agreed.contexts.is_empty(),
        };
        let mut access = None;
        let (mut used, mut count, mut written) = (0, 0, 0);
        loop {
            let rest = &input[used..];
            let Some(head) = rest.first_chunk::<REQUEST_BYTES>() else {
                return self.pause(used, REQUEST_BYTES);
            };
            if count == REQUESTS_BATCH || self.out.len() >= OUTPUT_BATCH || written >= WRITE_BATCH {
                return Advance { used, next: Next::Again };
            }
            let Some(request) = Request::decode(head) else {
                // Where the next request begins is not known any more.
                let next = self.end();
                return Advance { used, next };
            };
            let payload = request.payload();
            let command = match request.validate(&limits) {
                Ok(command) => command,
                Err(wrong) => {
                    reply::error(&mut self.out, limits.structured, request.cookie, wrong.0, wrong.1);
                    self.mark(Done::NOW);
                    used += REQUEST_BYTES;
                    if payload > 0 {
                        self.phase = Phase::Skip(payload);
                        return Advance { used, next: Next::Again };
                    }
                    count += 1;
                    continue;
                }
            };
            if command == Command::Disc {
                used += REQUEST_BYTES;
                let next = self.end();
                return Advance { used, next };
            }
            let Some(data) = rest[REQUEST_BYTES..].get(..payload) else {
                return self.pause(used, REQUEST_BYTES + payload);
            };
            if self.workers.is_some()
                && slow(access.get_or_insert_with(|| export.device().lock()), command, &request)
            {
                // Whoever carries it out needs the lock.
                access = None;
                if !self.hand_over(command, &request, data) {
                    return Advance { used, next: Next::Again };
                }
            } else if command == Command::Flush {
                // Without the lock: it covers what is answered, and others that wait may share it.
                self.wait_for_flush(&request);
            } else {
                let access = access.get_or_insert_with(|| export.device().lock());
                self.execute(access, command, &request, data);
            }
            used += REQUEST_BYTES + payload;
            written += payload;
            count += 1;
        }
    }

    /// Hands a slow request over; false when there is no room now.
    fn hand_over(&mut self, command: Command, request: &Request, data: &[u8]) -> bool {
        let Some(workers) = &mut self.workers else { return false };
        if !workers.have_room(command, request) {
            self.crowded = Some((command, *request));
            return false;
        }
        let job = Job { command, request: *request, payload: data.to_vec() };
        match workers.hand(job) {
            None => {}
            Some(Job { command: Command::Flush, request, .. }) => self.wait_for_flush(&request),
            Some(Job { command, request, payload }) => {
                let export = Arc::clone(&self.export);
                self.execute(&mut export.device().lock(), command, &request, &payload);
            }
        }
        true
    }

    fn wait_for_flush(&mut self, request: &Request) {
        self.after_flush.push(Waiting { cookie: request.cookie, done: Done::NOW, is_flush: true });
    }

    fn execute(&mut self, access: &mut Access<'_>, command: Command, request: &Request, data: &[u8]) {
        match execute(access, &self.agreed, command, request, data, &mut self.out) {
            Outcome::Replied(done) => self.mark(done),
            Outcome::AfterFlush(done) => {
                self.after_flush.push(Waiting { cookie: request.cookie, done, is_flush: false });
            }
        }
    }

    /// The input ends within a request: what waits for a flush is done first.
    fn pause(&self, used: usize, more: usize) -> Advance {
        let next = if self.after_flush.is_empty() { Next::More(more) } else { Next::Again };
        Advance { used, next }
    }

    /// Ends the session, once what waits for a flush is answered.
    fn end(&mut self) -> Next {
        self.phase = Phase::Over;
        if self.after_flush.is_empty() { Next::Close } else { Next::Again }
    }

    /// One flush for all that wait for one.
    fn flush(&mut self) {
        let asked_for = self.after_flush.iter().any(|w| w.is_flush);
        let result = flush(self.export.device(), asked_for);
        for Waiting { cookie, done, .. } in std::mem::take(&mut self.after_flush) {
            flushed(&mut self.out, &self.agreed, cookie, &result);
            self.mark(result.as_ref().map_or(Done::NOW, |f| done.and(*f)));
        }
    }

    fn mark(&mut self, done: Done) {
        if self.export.device().paced() {
            self.out.mark(done.not_before);
        }
    }
}
