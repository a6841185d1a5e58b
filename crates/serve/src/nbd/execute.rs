//! Requests, done: what a checked command asks of the device, and its reply.

use super::handshake::Agreed;
use super::output::Output;
use super::reply;
use super::request::{Command, Request};
use super::status;
use super::wire::{Errno, flag};
use crate::backend::Done;
use crate::device::{Access, Device, Failure, FailureKind};
use frit_core::{Hints, Intent};

/// Bytes that CACHE reads at a time.
const CACHE_PIECE: u32 = 128 << 10;

/// The error number of a failure.
pub(super) fn errno(failure: &Failure) -> Errno {
    match failure.kind() {
        FailureKind::Stopping => Errno::Shutdown,
        FailureKind::ReadOnly => Errno::Perm,
        FailureKind::NoSpace => Errno::NoSpc,
        FailureKind::Invalid => Errno::Inval,
        FailureKind::Media => Errno::Io,
    }
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Its reply is in the output.
    Replied(Done),
    /// It is to be answered once a flush has succeeded.
    AfterFlush(Done),
}

/// Does a request and puts its reply.
pub(super) fn execute(
    access: &mut Access<'_>,
    agreed: &Agreed,
    command: Command,
    request: &Request,
    payload: &[u8],
    out: &mut Output,
) -> Outcome {
    let before = out.len();
    match apply(access, agreed, command, request, payload, out) {
        Ok(outcome) => outcome,
        Err(failure) => {
            out.truncate(before);
            reply::error(out, agreed.structured, request.cookie, errno(&failure), &failure.to_string());
            Outcome::Replied(Done::NOW)
        }
    }
}

fn apply(
    access: &mut Access<'_>,
    agreed: &Agreed,
    command: Command,
    request: &Request,
    payload: &[u8],
    out: &mut Output,
) -> Result<Outcome, Failure> {
    let Request { at, len, cookie, .. } = *request;
    let done = match command {
        Command::Read => {
            let into = reply::data(out, agreed.structured, cookie, at, len);
            return Ok(Outcome::Replied(access.read(at, into)?));
        }
        Command::Write => {
            let hints = if request.has(flag::FUA) { Hints::FUA } else { Hints::NONE };
            access.write(at, payload, hints)?
        }
        Command::WriteZeroes => {
            let keep = request.has(flag::NO_HOLE);
            if keep && request.has(flag::FAST_ZERO) {
                let words = "zeros that stay allocated are written, which is not fast";
                reply::error(out, agreed.structured, cookie, Errno::NotSup, words);
                return Ok(Outcome::Replied(Done::NOW));
            }
            access.write_zeroes(at, u64::from(len), keep)?
        }
        Command::Trim => access.discard(at, u64::from(len))?,
        Command::Cache => check(access, at, len, out)?,
        Command::BlockStatus => {
            let told = status::look(access, (at, len), request.has(flag::REQ_ONE), &agreed.contexts)?;
            for (i, (told, context)) in told.iter().zip(&agreed.contexts).enumerate() {
                let last = i + 1 == agreed.contexts.len();
                reply::extents(out, cookie, *context as u32, &told.extents, last);
            }
            return Ok(Outcome::Replied(Done::NOW));
        }
        // The session takes these before anybody asks for them to be done.
        Command::Flush | Command::Disc => Done::NOW,
    };
    let changes = matches!(command, Command::Write | Command::WriteZeroes | Command::Trim);
    if changes && request.has(flag::FUA) {
        return Ok(Outcome::AfterFlush(done));
    }
    reply::success(out, cookie);
    Ok(Outcome::Replied(done))
}

/// A flush: asked for, or for writes with FUA.
pub(super) fn flush(device: &Device, asked_for: bool) -> Result<Done, Failure> {
    if asked_for { device.flush() } else { device.flush_for_fua() }
}

/// Puts the reply to a request that waited for a flush.
pub(super) fn flushed(out: &mut Output, agreed: &Agreed, cookie: u64, result: &Result<Done, Failure>) {
    let Err(failure) = result else { return reply::success(out, cookie) };
    // To flush is permitted always; here what was written is not kept.
    let number = match errno(failure) {
        Errno::Perm => Errno::Io,
        number => number,
    };
    reply::error(out, agreed.structured, cookie, number, &failure.to_string());
}

/// Whether a request would wait for a slow medium: a hint.
pub(super) fn slow(access: &Access<'_>, command: Command, request: &Request) -> bool {
    let (what, changes) = match command {
        Command::Read | Command::Cache => (Intent::Read, false),
        Command::Write => (Intent::Write, true),
        Command::WriteZeroes if request.has(flag::NO_HOLE) => (Intent::Write, true),
        Command::WriteZeroes | Command::Trim => (Intent::Discard, true),
        Command::Flush => (Intent::Flush, false),
        Command::BlockStatus | Command::Disc => return false,
    };
    access.slow(what, request.at, u64::from(request.len))
        || changes && request.has(flag::FUA) && access.slow(Intent::Flush, 0, 0)
}

/// Reads a range for its effect on the machine's memory; damage is found as well.
///
/// # Errors
/// As for reading it.
pub(super) fn check(access: &mut Access<'_>, at: u64, len: u32, out: &mut Output) -> Result<Done, Failure> {
    let before = out.len();
    let (mut pos, mut left, mut done) = (at, len, Done::NOW);
    while left > 0 {
        let part = left.min(CACHE_PIECE);
        let result = access.read(pos, out.space(part as usize));
        out.truncate(before);
        done = done.and(result?);
        access.yield_to_others();
        pos += u64::from(part);
        left -= part;
    }
    Ok(done)
}
