//! Execution in pieces of requests that do not fit into the available memory, within the buffers
//! that each client has in any case.
//!
//! Clients notice only the lower speed. The protocol allows an unanswered write to be applied in
//! part, and a structured reply to have many chunks. Simple replies are sent while they are read.

use super::super::execute::prefetch;
use super::super::reply;
use super::super::request::{NbdCommand, NbdRequest};
use super::super::wire::{Errno, flag};
use super::{Advance, Connection, ConnectionPhase, Next, PendingFlush};
use crate::backend::ReplyTime;
use crate::device::Failure;
use frit_core::Hints;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum number of bytes of a piece of a write, except for the last piece.
const PIECE_MIN: usize = 32 << 10;
/// Number of bytes of a piece of a read.
const READ_PIECE: u32 = 128 << 10;
/// Length of output that each client may hold in any case: a batch of replies, and one piece of a
/// read.
const OUTPUT_BASE: usize = super::OUTPUT_BATCH + READ_PIECE as usize + 4096;
/// Interval at which a read that cannot be executed in pieces checks for free memory.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// State of a write whose payload is incomplete.
#[derive(Debug)]
pub(super) struct PartialWrite {
    request: NbdRequest,
    at: u64,
    remaining: usize,
    done: ReplyTime,
}

/// State of a read whose reply is incomplete.
#[derive(Debug)]
pub(super) struct PartialRead {
    cookie: u64,
    at: u64,
    remaining: u32,
    /// `true` if each piece is a chunk of its own. Otherwise the header of the only reply has been
    /// sent.
    chunks: bool,
    done: ReplyTime,
}

impl Connection {
    /// Returns `true` if the output can grow by `len` bytes, in the client's own buffer or with
    /// memory of the budget.
    pub(super) fn reserve_output(&mut self, len: u32) -> bool {
        let Some(grant) = &mut self.grant else { return true };
        // 64 bytes are enough for the headers of the reply.
        let whole = self.out.len() + len as usize + 64;
        if whole <= OUTPUT_BASE {
            return true;
        }
        let more = whole.max(self.out.capacity()).saturating_sub(OUTPUT_BASE);
        (more <= grant.bytes() || grant.resize(more)) && self.out.reserve(len as usize + 64)
    }

    /// Returns memory that the empty output no longer needs to the budget.
    pub(super) fn return_memory(&mut self) {
        if let Some(grant) = &mut self.grant
            && grant.bytes() > 0
            && self.out.is_empty()
        {
            let held = self.out.capacity().saturating_sub(OUTPUT_BASE);
            grant.resize(held.min(grant.bytes()));
        }
    }

    /// Frees the output buffer of an idle client.
    pub(in super::super) fn release(&mut self) {
        self.out.release();
        self.return_memory();
    }

    /// Lets the next request be executed in pieces, since it does not fit into memory as a whole.
    pub(in super::super) fn execute_in_pieces(&mut self) {
        self.in_pieces = true;
    }

    /// Begins a write whose header has been consumed and whose payload is received in pieces.
    pub(super) fn begin_write(&mut self, request: NbdRequest) {
        self.in_pieces = false;
        let (at, remaining) = (request.at, request.len as usize);
        self.phase = ConnectionPhase::Write(PartialWrite { request, at, remaining, done: ReplyTime::NOW });
    }

    /// Executes a piece of a write.
    pub(super) fn write_piece(&mut self, input: &[u8]) -> Advance {
        let ConnectionPhase::Write(writing) = &mut self.phase else {
            return Advance { used: 0, next: Next::Again };
        };
        let page = u64::from(self.export.device().page_bytes()).clamp(4096, PIECE_MIN as u64);
        let mut n = writing.remaining.min(input.len());
        if n < writing.remaining {
            // Pieces end at page boundaries, so that each page is either old or new after a power
            // loss.
            let end = (writing.at + n as u64) / page * page;
            n = end.saturating_sub(writing.at) as usize;
            if n == 0 || input.len() < PIECE_MIN {
                return Advance { used: 0, next: Next::More(writing.remaining.min(2 * PIECE_MIN)) };
            }
        }
        let fua = writing.request.has(flag::FUA);
        let hints = if fua { Hints::FUA } else { Hints::NONE };
        let place = self.negotiated.start + writing.at;
        let written = self.export.device().lock().write(place, &input[..n], hints);
        writing.at += n as u64;
        writing.remaining -= n;
        let (remaining, cookie) = (writing.remaining, writing.request.cookie);
        match written {
            Ok(done) => writing.done = writing.done.and(done),
            Err(failure) => {
                self.refuse(cookie, &failure);
                self.phase = if remaining > 0 {
                    ConnectionPhase::Skip(remaining)
                } else {
                    ConnectionPhase::Transmission
                };
                return Advance { used: n, next: Next::Again };
            }
        }
        if remaining == 0 {
            let done = writing.done;
            self.phase = ConnectionPhase::Transmission;
            if fua {
                self.after_flush.push(PendingFlush { cookie, done, is_flush: false });
            } else {
                reply::success(&mut self.out, cookie);
                self.mark(done);
            }
        }
        Advance { used: n, next: Next::Again }
    }

    /// Begins a read whose reply does not fit into memory.
    pub(super) fn begin_read(&mut self, request: &NbdRequest) {
        let NbdRequest { cookie, at, len, .. } = *request;
        let chunks = self.negotiated.structured && !request.has(flag::DF);
        if !chunks && !self.is_only_writer() {
            return self.wait_for_memory(request);
        }
        let mut done = ReplyTime::NOW;
        if !chunks {
            // A simple reply cannot report an error after its header. So the whole range is read
            // once beforehand to find damage.
            let export = Arc::clone(&self.export);
            match prefetch(&mut export.device().lock(), export.start() + at, len, &mut self.out) {
                Ok(ready) => done = ready,
                Err(failure) => return self.refuse(cookie, &failure),
            }
            reply::data_head(&mut self.out, self.negotiated.structured, cookie, at, len);
        }
        self.phase = ConnectionPhase::Read(PartialRead { cookie, at, remaining: len, chunks, done });
    }

    /// Appends a piece of the reply to a read.
    pub(super) fn read_piece(&mut self) -> Advance {
        let ConnectionPhase::Read(reading) = &mut self.phase else {
            return Advance { used: 0, next: Next::Again };
        };
        let n = reading.remaining.min(READ_PIECE);
        let last = n == reading.remaining;
        let before = self.out.len();
        let into = if reading.chunks {
            reply::chunk_of_data(&mut self.out, reading.cookie, reading.at, n, last)
        } else {
            self.out.space(n as usize)
        };
        let (at, chunks, cookie) = (reading.at, reading.chunks, reading.cookie);
        reading.at += u64::from(n);
        reading.remaining -= n;
        // A separate statement, so that the lock is released before the result is handled.
        let read = self.export.device().lock().read(self.negotiated.start + at, into);
        match read {
            Ok(done) => {
                reading.done = reading.done.and(done);
                let done = reading.done;
                if last {
                    self.phase = ConnectionPhase::Transmission;
                }
                self.mark(done);
            }
            Err(failure) if chunks => {
                self.out.truncate(before);
                self.refuse(cookie, &failure);
                self.phase = ConnectionPhase::Transmission;
            }
            Err(failure) => {
                // The header has promised these bytes. Only the end of the session can signal the
                // error.
                self.out.truncate(before);
                let log = self.export.device().log();
                log.write_line(format_args!(
                    "a read failed at {at} during its reply, session closed: {failure}"
                ));
                self.phase = ConnectionPhase::Closed;
            }
        }
        Advance { used: 0, next: Next::Again }
    }

    /// Returns `true` if no other thread sends replies to the client, so that a reply may be sent
    /// in parts.
    fn is_only_writer(&self) -> bool {
        self.workers.is_none() && !self.export.device().paced()
    }

    /// Waits for memory for a read that cannot be executed in pieces. Other requests hold their
    /// memory for a limited time only.
    fn wait_for_memory(&mut self, request: &NbdRequest) {
        let until = Instant::now() + self.memory_wait_max;
        while !self.reserve_output(request.len) {
            if Instant::now() >= until || self.export.device().is_stopping() {
                let message = "not enough memory for a read of this length at present";
                let structured = self.negotiated.structured;
                reply::error(&mut self.out, structured, request.cookie, Errno::NoMem, message);
                return self.mark(ReplyTime::NOW);
            }
            std::thread::sleep(MEMORY_POLL_INTERVAL);
        }
        let export = Arc::clone(&self.export);
        self.execute(&mut export.device().lock(), NbdCommand::Read, request, &[]);
    }

    /// Replies with an error of the device.
    fn refuse(&mut self, cookie: u64, failure: &Failure) {
        let number = super::super::execute::errno(failure);
        reply::error(&mut self.out, self.negotiated.structured, cookie, number, &failure.to_string());
        self.mark(ReplyTime::NOW);
    }
}
