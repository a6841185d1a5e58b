//! Views of whole lines.

use super::{Bytes, Each, View};
use crate::engine::Charge;
use crate::outcome::{Failure, Status};
use std::ops::Range;

/// Treatment of a line that is longer than it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LongLine {
    /// The scan fails.
    Refused,
    /// The scan ends, since the lines may not be what the operation needs undivided.
    Ends,
    /// The line is passed on in pieces.
    Divided,
}

/// Result of adding bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Added {
    Continue,
    /// The operation needs no more bytes.
    Stopped,
    /// A line is too long ([`LongLine::Ends`]).
    TooLong,
}

/// Scans the lines that begin in `part`. A line begins at the start of the range and behind each line
/// feed. Returns `false` if a line was too long, and the scan has ended with it.
pub(super) fn scan(
    bytes: &mut dyn Bytes,
    part: &Range<u64>,
    range: &Range<u64>,
    (record_max, long): (usize, LongLine),
    each: &mut Each<'_>,
) -> Result<bool, Failure> {
    let charge = bytes.charge();
    let mut views = LineViews { carry: Vec::new(), charge, carry_at: 0, record_max, long };
    // The byte before the part decides whether a line begins with the part.
    let first = if part.start > range.start { part.start - 1 } else { part.start };
    let mut skipping = part.start > range.start;
    let mut added = Added::Continue;
    bytes.read(first..part.end, &mut |at, piece| {
        let skip = match memchr::memchr(b'\n', piece) {
            Some(line_feed) if skipping => line_feed + 1,
            None if skipping => return Ok(true),
            _ => 0,
        };
        skipping = false;
        added = views.add(at + skip as u64, &piece[skip..], each)?;
        Ok(added == Added::Continue)
    })?;
    if added != Added::Continue || views.carry.is_empty() {
        return Ok(added != Added::TooLong);
    }
    // The rest of the last line.
    bytes.read(part.end..range.end, &mut |at, piece| {
        let line_end = memchr::memchr(b'\n', piece).map(|line_feed| line_feed + 1);
        added = views.add(at, &piece[..line_end.unwrap_or(piece.len())], each)?;
        Ok(added == Added::Continue && line_end.is_none())
    })?;
    if added == Added::Continue {
        views.end(each)?;
    }
    Ok(added != Added::TooLong)
}

/// Divides consecutive pieces into views of whole lines.
struct LineViews {
    /// Beginning of a line whose line feed has not been seen.
    carry: Vec<u8>,
    charge: Charge,
    carry_at: u64,
    record_max: usize,
    long: LongLine,
}

impl LineViews {
    /// Adds a piece, and passes the lines on that are complete.
    fn add(&mut self, at: u64, piece: &[u8], each: &mut Each<'_>) -> Result<Added, Failure> {
        let mut from = 0;
        if !self.carry.is_empty() {
            let line_end = memchr::memchr(b'\n', piece).map(|line_feed| line_feed + 1);
            from = line_end.unwrap_or(piece.len());
            let kept = self.keep(at, &piece[..from], each)?;
            if kept != Added::Continue {
                return Ok(kept);
            }
            if line_end.is_some() && !self.end(each)? {
                return Ok(Added::Stopped);
            }
        }
        let to = memchr::memrchr(b'\n', &piece[from..]).map_or(from, |line_feed| from + line_feed + 1);
        if to > from && !each(View { at: at + from as u64, bytes: &piece[from..to], starts: to - from })? {
            return Ok(Added::Stopped);
        }
        if to < piece.len() { self.keep(at + to as u64, &piece[to..], each) } else { Ok(Added::Continue) }
    }

    /// Passes the last line on, which may have no line feed. Returns `false` if the scan stops.
    fn end(&mut self, each: &mut Each<'_>) -> Result<bool, Failure> {
        if self.carry.is_empty() {
            return Ok(true);
        }
        let go_on = each(View { at: self.carry_at, bytes: &self.carry, starts: self.carry.len() })?;
        self.carry.clear();
        Ok(go_on)
    }

    /// Keeps the next bytes of a line, at `at`.
    fn keep(&mut self, at: u64, bytes: &[u8], each: &mut Each<'_>) -> Result<Added, Failure> {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let begin = if self.carry.is_empty() { at } else { self.carry_at };
        if self.carry.len() + line.len() <= self.record_max {
            self.carry_at = begin;
            self.charge.cover(self.carry.len() + bytes.len())?;
            self.carry.extend_from_slice(bytes);
            return Ok(Added::Continue);
        }
        match self.long {
            LongLine::Refused => Err(self.too_long(begin)),
            LongLine::Ends => Ok(Added::TooLong),
            LongLine::Divided => {
                let go_on = self.end(each)? && each(View { at, bytes, starts: bytes.len() })?;
                Ok(if go_on { Added::Continue } else { Added::Stopped })
            }
        }
    }

    fn too_long(&self, begin: u64) -> Failure {
        let message = format!(
            "the line at byte {begin} has more than {} bytes; lines of this length are not processed, so restrict \
             the instruction to other bytes with \"offset\" and \"length\"",
            self.record_max
        );
        Failure::new(Status::RecordTooLong, message)
    }
}
