//! Execution of validated requests on the device, and their replies.

use super::handshake::Agreed;
use super::output::Output;
use super::reply;
use super::request::{Command, Request};
use super::status;
use super::wire::{Errno, flag};
use crate::backend::Done;
use crate::device::{Access, Device, Failure, FailureKind};
use frit_core::{Hints, Intent};

/// Number of bytes that CACHE reads at a time.
const CACHE_PIECE: u32 = 128 << 10;

/// Returns the NBD error number of a failure.
pub(super) fn errno(failure: &Failure) -> Errno {
    match failure.kind() {
        FailureKind::Stopping => Errno::Shutdown,
        FailureKind::ReadOnly => Errno::Perm,
        FailureKind::NoSpace => Errno::NoSpc,
        FailureKind::Invalid => Errno::Inval,
        FailureKind::Media => Errno::Io,
    }
}

/// Result of the execution of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The output contains the reply.
    Replied(Done),
    /// The reply must be sent after a successful flush.
    AfterFlush(Done),
}

/// Executes a request and appends its reply to the output.
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
        // The connection handles these commands itself.
        Command::Flush | Command::Disc => Done::NOW,
    };
    let changes = matches!(command, Command::Write | Command::WriteZeroes | Command::Trim);
    if changes && request.has(flag::FUA) {
        return Ok(Outcome::AfterFlush(done));
    }
    reply::success(out, cookie);
    Ok(Outcome::Replied(done))
}

/// Flushes the device. `asked_for` is `true` for a FLUSH command, `false` for writes with FUA.
pub(super) fn flush(device: &Device, asked_for: bool) -> Result<Done, Failure> {
    if asked_for { device.flush() } else { device.flush_for_fua() }
}

/// Appends the reply to a request that waited for a flush.
pub(super) fn flushed(out: &mut Output, agreed: &Agreed, cookie: u64, result: &Result<Done, Failure>) {
    let Err(failure) = result else { return reply::success(out, cookie) };
    // A flush is always permitted, so EPERM would be wrong. Here it means that the written data may
    // not be durable, which is EIO.
    let number = match errno(failure) {
        Errno::Perm => Errno::Io,
        number => number,
    };
    reply::error(out, agreed.structured, cookie, number, &failure.to_string());
}

/// Returns `true` if a request would wait for a slow medium. The result is a hint.
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

/// Reads a range and discards the data. This loads the range into the host's memory and detects
/// damage.
///
/// # Errors
/// The errors of reading the range.
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
