//! Execution of validated requests on the device, and their replies.

use super::handshake::Negotiated;
use super::output::Output;
use super::reply;
use super::request::{NbdCommand, NbdRequest};
use super::status;
use super::wire::{Errno, flag};
use crate::backend::ReplyTime;
use crate::device::{Device, DeviceGuard, Failure, FailureKind};
use frit_core::{Hints, RequestIntent};

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
pub(super) enum ReplyOutcome {
    /// The output contains the reply.
    Replied(ReplyTime),
    /// The reply must be sent after a successful flush.
    AfterFlush(ReplyTime),
}

/// Executes a request and appends its reply to the output.
pub(super) fn execute(
    access: &mut DeviceGuard<'_>,
    negotiated: &Negotiated,
    command: NbdCommand,
    request: &NbdRequest,
    payload: &[u8],
    out: &mut Output,
) -> ReplyOutcome {
    let before = out.len();
    match apply(access, negotiated, command, request, payload, out) {
        Ok(outcome) => outcome,
        Err(failure) => {
            out.truncate(before);
            reply::error(out, negotiated.structured, request.cookie, errno(&failure), &failure.to_string());
            ReplyOutcome::Replied(ReplyTime::NOW)
        }
    }
}

fn apply(
    access: &mut DeviceGuard<'_>,
    negotiated: &Negotiated,
    command: NbdCommand,
    request: &NbdRequest,
    payload: &[u8],
    out: &mut Output,
) -> Result<ReplyOutcome, Failure> {
    let NbdRequest { at, len, cookie, .. } = *request;
    // Replies have addresses of the export, and the device has its own.
    let place = negotiated.start + at;
    let done = match command {
        NbdCommand::Read => {
            let into = reply::data(out, negotiated.structured, cookie, at, len);
            return Ok(ReplyOutcome::Replied(access.read(place, into)?));
        }
        NbdCommand::Write => {
            let hints = if request.has(flag::FUA) { Hints::FUA } else { Hints::NONE };
            access.write(place, payload, hints)?
        }
        NbdCommand::WriteZeroes => {
            let keep = request.has(flag::NO_HOLE);
            if keep && request.has(flag::FAST_ZERO) {
                let message = "zeros that stay allocated are written, which is not fast";
                reply::error(out, negotiated.structured, cookie, Errno::NotSup, message);
                return Ok(ReplyOutcome::Replied(ReplyTime::NOW));
            }
            access.write_zeroes(place, u64::from(len), keep)?
        }
        NbdCommand::Trim => access.discard(place, u64::from(len))?,
        NbdCommand::Cache => prefetch(access, place, len, out)?,
        NbdCommand::BlockStatus => {
            let range = place..place + u64::from(len);
            let context_extents =
                status::block_status(access, range, request.has(flag::REQ_ONE), &negotiated.contexts)?;
            for (i, (context_extents, context)) in
                context_extents.iter().zip(&negotiated.contexts).enumerate()
            {
                let last = i + 1 == negotiated.contexts.len();
                reply::extents(out, cookie, *context as u32, &context_extents.extents, last);
            }
            return Ok(ReplyOutcome::Replied(ReplyTime::NOW));
        }
        // The connection handles these commands itself.
        NbdCommand::Flush | NbdCommand::Disc => ReplyTime::NOW,
    };
    let changes = matches!(command, NbdCommand::Write | NbdCommand::WriteZeroes | NbdCommand::Trim);
    if changes && request.has(flag::FUA) {
        return Ok(ReplyOutcome::AfterFlush(done));
    }
    reply::success(out, cookie);
    Ok(ReplyOutcome::Replied(done))
}

/// Flushes the device. `asked_for` is `true` for a FLUSH command, `false` for writes with FUA.
pub(super) fn flush(device: &Device, asked_for: bool) -> Result<ReplyTime, Failure> {
    if asked_for { device.flush() } else { device.flush_for_fua() }
}

/// Appends the reply to a request that waited for a flush.
pub(super) fn reply_after_flush(
    out: &mut Output,
    negotiated: &Negotiated,
    cookie: u64,
    result: &Result<ReplyTime, Failure>,
) {
    let Err(failure) = result else { return reply::success(out, cookie) };
    // A flush is always permitted, so EPERM would be wrong. Here it means that the written data may
    // not be durable, which is EIO.
    let number = match errno(failure) {
        Errno::Perm => Errno::Io,
        number => number,
    };
    reply::error(out, negotiated.structured, cookie, number, &failure.to_string());
}

/// Returns `true` if a request would wait for a slow medium. The result is a hint. The export begins at
/// `start` of the device.
pub(super) fn slow(access: &DeviceGuard<'_>, start: u64, command: NbdCommand, request: &NbdRequest) -> bool {
    let (what, changes) = match command {
        NbdCommand::Read | NbdCommand::Cache => (RequestIntent::Read, false),
        NbdCommand::Write => (RequestIntent::Write, true),
        NbdCommand::WriteZeroes if request.has(flag::NO_HOLE) => (RequestIntent::Write, true),
        NbdCommand::WriteZeroes | NbdCommand::Trim => (RequestIntent::Discard, true),
        NbdCommand::Flush => (RequestIntent::Flush, false),
        NbdCommand::BlockStatus | NbdCommand::Disc => return false,
    };
    access.would_block(what, start + request.at, u64::from(request.len))
        || changes && request.has(flag::FUA) && access.would_block(RequestIntent::Flush, 0, 0)
}

/// Reads a range and discards the data. This loads the range into the host's memory and detects
/// damage.
///
/// # Errors
/// The errors of reading the range.
pub(super) fn prefetch(
    access: &mut DeviceGuard<'_>,
    at: u64,
    len: u32,
    out: &mut Output,
) -> Result<ReplyTime, Failure> {
    let before = out.len();
    let (mut pos, mut left, mut done) = (at, len, ReplyTime::NOW);
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
