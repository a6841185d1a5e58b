//! Requests that find no memory to be held whole: carried out piece by piece, in the buffers that each
//! client has in any case.
//!
//! A client sees no difference but speed: the protocol lets a write that was not answered be done in
//! part, a reply with chunks may have many, and the other replies are sent as they are read.

use super::super::execute::check;
use super::super::reply;
use super::super::request::{Command, Request};
use super::super::wire::{Errno, flag};
use super::{Advance, Connection, Next, Phase, Waiting};
use crate::backend::Done;
use crate::device::Failure;
use frit_core::Hints;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Least bytes of a write that are done at a time, but for the last of it.
const PIECE_MIN: usize = 32 << 10;
/// Bytes of a read that are done at a time.
const READ_PIECE: u32 = 128 << 10;
/// Bytes of output that each client may hold in any case: a batch of replies, and one read of a piece's
/// length.
const OUTPUT_BASE: usize = super::OUTPUT_BATCH + READ_PIECE as usize + 4096;
/// Time between looks whether there is memory now, where a read cannot be cut into pieces.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A write of which the rest is still to come.
#[derive(Debug)]
pub(super) struct Writing {
    request: Request,
    at: u64,
    left: usize,
    done: Done,
}

/// A read of which the rest is still to be sent.
#[derive(Debug)]
pub(super) struct Reading {
    cookie: u64,
    at: u64,
    left: u32,
    /// Each piece is a chunk of its own; else the head of the only reply is sent already.
    chunks: bool,
    done: Done,
}

impl Connection {
    /// Returns `true` if a reply may hold `len` bytes more: in the client's own buffer, or from the budget.
    pub(super) fn has_room_for(&mut self, len: u32) -> bool {
        let Some(grant) = &mut self.grant else { return true };
        let whole = self.out.len() + len as usize + 64;
        if whole <= OUTPUT_BASE {
            return true;
        }
        let more = whole.max(self.out.capacity()).saturating_sub(OUTPUT_BASE);
        (more <= grant.bytes() || grant.resize(more)) && self.out.reserve(len as usize + 64)
    }

    /// Gives back what the output does not hold any more.
    pub(super) fn give_back(&mut self) {
        if let Some(grant) = &mut self.grant
            && grant.bytes() > 0
            && self.out.is_empty()
        {
            let held = self.out.capacity().saturating_sub(OUTPUT_BASE);
            grant.resize(held.min(grant.bytes()));
        }
    }

    /// The client is silent: memory for replies is given back.
    pub(in super::super) fn rest(&mut self) {
        self.out.rest();
        self.give_back();
    }

    /// There is no memory to hold the next request whole: its payload is taken as it comes.
    pub(in super::super) fn take_in_pieces(&mut self) {
        self.in_pieces = true;
    }

    /// Begins a write whose payload is taken in pieces, after its head.
    pub(super) fn begin_write(&mut self, request: Request) {
        self.in_pieces = false;
        let (at, left) = (request.at, request.len as usize);
        self.phase = Phase::Write(Writing { request, at, left, done: Done::NOW });
    }

    /// Does a piece of a write.
    pub(super) fn write_piece(&mut self, input: &[u8]) -> Advance {
        let Phase::Write(writing) = &mut self.phase else {
            return Advance { used: 0, next: Next::Again };
        };
        let page = u64::from(self.export.device().page_bytes()).clamp(4096, PIECE_MIN as u64);
        let mut n = writing.left.min(input.len());
        if n < writing.left {
            // Whole pages, so that each is old or new after a power cut.
            let end = (writing.at + n as u64) / page * page;
            n = end.saturating_sub(writing.at) as usize;
            if n == 0 || input.len() < PIECE_MIN {
                return Advance { used: 0, next: Next::More(writing.left.min(2 * PIECE_MIN)) };
            }
        }
        let fua = writing.request.has(flag::FUA);
        let hints = if fua { Hints::FUA } else { Hints::NONE };
        let written = self.export.device().lock().write(writing.at, &input[..n], hints);
        writing.at += n as u64;
        writing.left -= n;
        let (left, cookie) = (writing.left, writing.request.cookie);
        match written {
            Ok(done) => writing.done = writing.done.and(done),
            Err(failure) => {
                self.refuse(cookie, &failure);
                self.phase = if left > 0 { Phase::Skip(left) } else { Phase::Transmission };
                return Advance { used: n, next: Next::Again };
            }
        }
        if left == 0 {
            let done = writing.done;
            self.phase = Phase::Transmission;
            if fua {
                self.after_flush.push(Waiting { cookie, done, is_flush: false });
            } else {
                reply::success(&mut self.out, cookie);
                self.mark(done);
            }
        }
        Advance { used: n, next: Next::Again }
    }

    /// Begins a read whose reply finds no memory.
    pub(super) fn begin_read(&mut self, request: &Request) {
        let Request { cookie, at, len, .. } = *request;
        let chunks = self.agreed.structured && !request.has(flag::DF);
        if !chunks && !self.answers_alone() {
            return self.wait_for_memory(request);
        }
        let mut done = Done::NOW;
        if !chunks {
            // An error cannot be told once the reply has begun: all is read once before.
            let export = Arc::clone(&self.export);
            match check(&mut export.device().lock(), at, len, &mut self.out) {
                Ok(ready) => done = ready,
                Err(failure) => return self.refuse(cookie, &failure),
            }
            reply::data_head(&mut self.out, self.agreed.structured, cookie, at, len);
        }
        self.phase = Phase::Read(Reading { cookie, at, left: len, chunks, done });
    }

    /// Puts a piece of a read.
    pub(super) fn read_piece(&mut self) -> Advance {
        let Phase::Read(reading) = &mut self.phase else {
            return Advance { used: 0, next: Next::Again };
        };
        let n = reading.left.min(READ_PIECE);
        let last = n == reading.left;
        let before = self.out.len();
        let into = if reading.chunks {
            reply::chunk_of_data(&mut self.out, reading.cookie, reading.at, n, last)
        } else {
            self.out.space(n as usize)
        };
        let (at, chunks, cookie) = (reading.at, reading.chunks, reading.cookie);
        reading.at += u64::from(n);
        reading.left -= n;
        // Bound apart from the phase, since the lock is held only for the read itself.
        let read = self.export.device().lock().read(at, into);
        match read {
            Ok(done) => {
                reading.done = reading.done.and(done);
                let done = reading.done;
                if last {
                    self.phase = Phase::Transmission;
                }
                self.mark(done);
            }
            Err(failure) if chunks => {
                self.out.truncate(before);
                self.refuse(cookie, &failure);
                self.phase = Phase::Transmission;
            }
            Err(failure) => {
                // The reply promised these bytes: only the end of the session can tell.
                self.out.truncate(before);
                let log = self.export.device().log();
                log.say(format_args!("a reply to a read ended at {at}, and its session with it: {failure}"));
                self.phase = Phase::Over;
            }
        }
        Advance { used: 0, next: Next::Again }
    }

    /// Returns `true` if only this thread sends replies to the client, so that one may be sent in parts.
    fn answers_alone(&self) -> bool {
        self.workers.is_none() && !self.export.device().paced()
    }

    /// Waits for memory for a read that cannot be cut into pieces; others hold theirs for a limited time.
    fn wait_for_memory(&mut self, request: &Request) {
        let until = Instant::now() + self.memory_wait_max;
        while !self.has_room_for(request.len) {
            if Instant::now() >= until || self.export.device().is_stopping() {
                let words = "there is no memory for so long a read now; shorter ones go on";
                let structured = self.agreed.structured;
                reply::error(&mut self.out, structured, request.cookie, Errno::NoMem, words);
                return self.mark(Done::NOW);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let export = Arc::clone(&self.export);
        self.execute(&mut export.device().lock(), Command::Read, request, &[]);
    }

    /// Replies with an error of the device.
    fn refuse(&mut self, cookie: u64, failure: &Failure) {
        let number = super::super::execute::errno(failure);
        reply::error(&mut self.out, self.agreed.structured, cookie, number, &failure.to_string());
        self.mark(Done::NOW);
    }
}
