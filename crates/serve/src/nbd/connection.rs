//! One client, without its socket: bytes in, bytes out.
//!
//! The same code serves sockets, tests that script every byte, and fuzzing.

mod pieces;

use super::execute::{Outcome, execute, flush, flushed, slow};
use super::handshake::{Agreed, Haggle, Handshake};
use super::outlet::Outlet;
use super::output::Output;
use super::request::{Command, Limits, Request};
use super::wire::REQUEST_BYTES;
use super::workers::{Job, Workers};
use super::{Export, reply};
use crate::backend::Done;
use crate::device::{Access, Device};
use crate::guard::{Budget, Grant};
use pieces::{Reading, Writing};
use std::sync::Arc;
use std::time::Duration;

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
    /// Payload of a write is taken in pieces.
    Write(Writing),
    /// The reply to a read is sent in pieces.
    Read(Reading),
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

/// The way in which a request was begun.
enum Begun {
    /// It was done, or another thread does it.
    Whole,
    /// There is no room where it has to go.
    Crowded,
    /// It is done piece by piece from now on, or was refused: what follows its head comes next.
    Pieces,
}

/// The lock on the device, taken when it is needed first.
struct Lock<'a> {
    device: &'a Device,
    access: Option<Access<'a>>,
}

impl<'a> Lock<'a> {
    fn take(&mut self) -> &mut Access<'a> {
        let device = self.device;
        self.access.get_or_insert_with(|| device.lock())
    }
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
    /// Memory that replies take of the server's budget; without it they take as much as they need.
    grant: Option<Grant>,
    /// The next request is not held whole.
    in_pieces: bool,
    /// The longest wait for memory.
    memory_wait_max: Duration,
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
            grant: None,
            in_pieces: false,
            memory_wait_max: Duration::ZERO,
        }
    }

    /// Greets a client whose large requests take memory of a budget, for which a read that cannot be
    /// answered in pieces waits so long. With an outlet, slow requests are answered by threads of their own.
    pub(super) fn with_limits(
        export: Arc<Export>,
        budget: &Arc<Budget>,
        memory_wait_max: Duration,
        outlet: Option<Arc<Outlet>>,
    ) -> Connection {
        Connection { outlet, grant: Some(Grant::none(budget)), memory_wait_max, ..Connection::new(export) }
    }

    /// What is to be sent. Clear it when it was.
    pub fn output(&mut self) -> &mut Output {
        &mut self.out
    }

    /// Whether an export was taken and requests follow.
    pub fn is_transmitting(&self) -> bool {
        !matches!(self.phase, Phase::Handshake(_) | Phase::Over)
    }

    /// Returns `true` if the rest of a request is still to come.
    pub(super) fn is_within_request(&self) -> bool {
        matches!(self.phase, Phase::Skip(_) | Phase::Write(_))
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
        self.give_back();
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
            Phase::Write(_) => self.write_piece(input),
            Phase::Read(_) => self.read_piece(),
            Phase::Over => Advance { used: input.len(), next: Next::Close },
        }
    }

    /// Does the complete requests of the input, as many as a batch holds.
    fn requests(&mut self, input: &[u8]) -> Advance {
        if let (Some(workers), Some((command, request))) = (&self.workers, self.crowded.take()) {
            workers.wait_for_room(command, &request);
        }
        let export = Arc::clone(&self.export);
        let device = export.device();
        let limits = Limits {
            bytes: device.bytes(),
            structured: self.agreed.structured,
            contexts: !self.agreed.contexts.is_empty(),
        };
        let mut access = Lock { device, access: None };
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
                if self.in_pieces {
                    self.begin_write(request);
                    return Advance { used: used + REQUEST_BYTES, next: Next::Again };
                }
                return self.pause(used, REQUEST_BYTES + payload);
            };
            match self.begin(&mut access, command, &request, data) {
                Begun::Whole => {}
                Begun::Crowded => return Advance { used, next: Next::Again },
                Begun::Pieces => return Advance { used: used + REQUEST_BYTES, next: Next::Again },
            }
            used += REQUEST_BYTES + payload;
            written += payload;
            count += 1;
        }
    }

    /// Does a request, or hands it over, or begins to do it piece by piece.
    fn begin(&mut self, lock: &mut Lock<'_>, command: Command, request: &Request, data: &[u8]) -> Begun {
        if self.workers.is_some() && slow(lock.take(), command, request) {
            // Whoever carries it out needs the lock.
            lock.access = None;
            match self.hand_over(command, request, data) {
                Some(true) => {}
                Some(false) => return Begun::Crowded,
                None if command == Command::Read => {
                    self.begin_read(request);
                    return Begun::Pieces;
                }
                None => self.execute(lock.take(), command, request, data),
            }
        } else if command == Command::Flush {
            // Without the lock: it covers what is answered, and others that wait may share it.
            self.wait_for_flush(request);
        } else if command == Command::Read && !self.has_room_for(request.len) {
            lock.access = None;
            self.begin_read(request);
            return Begun::Pieces;
        } else {
            self.execute(lock.take(), command, request, data);
        }
        Begun::Whole
    }

    /// Hands a slow request over: `false` when there is no room now, `None` when there is no memory for it
    /// there and it is to be done here.
    fn hand_over(&mut self, command: Command, request: &Request, data: &[u8]) -> Option<bool> {
        let Some(workers) = &mut self.workers else { return Some(false) };
        if !workers.have_room(command, request) {
            self.crowded = Some((command, *request));
            return Some(false);
        }
        let job = match &self.grant {
            None => Job::new(command, request, data, None),
            Some(grant) => {
                Job::new(command, request, data, Some(grant.like(Job::memory_bytes(command, request))?))
            }
        };
        match workers.hand(job) {
            None => {}
            Some(Job { command: Command::Flush, request, .. }) => self.wait_for_flush(&request),
            Some(Job { command, request, payload, .. }) => {
                let export = Arc::clone(&self.export);
                self.execute(&mut export.device().lock(), command, &request, &payload);
            }
        }
        Some(true)
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
