//! Views of whole lines.

use super::{Bytes, Each, View};
use crate::outcome::{Failure, Status};
use std::ops::Range;

/// Scans the lines that begin in `part`. A line begins at the start of the range and behind each line
/// feed.
pub(super) fn scan(
    bytes: &mut dyn Bytes,
    part: &Range<u64>,
    range: &Range<u64>,
    record_max: usize,
    each: &mut Each<'_>,
) -> Result<(), Failure> {
    let mut views = LineViews::new(record_max);
    // The byte before the part decides whether a line begins with the part.
    let first = if part.start > range.start { part.start - 1 } else { part.start };
    let mut skipping = part.start > range.start;
    let mut stopped = false;
    bytes.read(first..part.end, &mut |at, piece| {
        let skip = match memchr::memchr(b'\n', piece) {
            Some(line_feed) if skipping => line_feed + 1,
            None if skipping => return Ok(true),
            _ => 0,
        };
        skipping = false;
        stopped = !views.add(at + skip as u64, &piece[skip..], each)?;
        Ok(!stopped)
    })?;
    if stopped || views.carry.is_empty() {
        return Ok(());
    }
    // The rest of the last line.
    bytes.read(part.end..range.end, &mut |at, piece| {
        let line_end = memchr::memchr(b'\n', piece).map(|line_feed| line_feed + 1);
        stopped = !views.add(at, &piece[..line_end.unwrap_or(piece.len())], each)?;
        Ok(!stopped && line_end.is_none())
    })?;
    if !stopped {
        views.end(each)?;
    }
    Ok(())
}

/// Divides consecutive pieces into views of whole lines.
struct LineViews {
    /// Beginning of a line whose line feed has not been seen.
    carry: Vec<u8>,
    carry_at: u64,
    record_max: usize,
}

impl LineViews {
    fn new(record_max: usize) -> Self {
        Self { carry: Vec::new(), carry_at: 0, record_max }
    }

    /// Adds a piece, and passes the lines on that are complete. Returns `false` if the scan stops.
    fn add(&mut self, at: u64, piece: &[u8], each: &mut Each<'_>) -> Result<bool, Failure> {
        let mut from = 0;
        if !self.carry.is_empty() {
            let line_end = memchr::memchr(b'\n', piece).map(|line_feed| line_feed + 1);
            from = line_end.unwrap_or(piece.len());
            self.keep(self.carry_at, &piece[..from])?;
            if line_end.is_some() && !self.end(each)? {
                return Ok(false);
            }
        }
        let to = memchr::memrchr(b'\n', &piece[from..]).map_or(from, |line_feed| from + line_feed + 1);
        if to > from && !each(View { at: at + from as u64, bytes: &piece[from..to], starts: to - from })? {
            return Ok(false);
        }
        if to < piece.len() {
            self.keep(at + to as u64, &piece[to..])?;
        }
        Ok(true)
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

    fn keep(&mut self, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if self.carry.len() + line.len() > self.record_max {
            return Err(Failure::new(
                Status::RecordTooLong,
                format!(
                    "the line at byte {at} has more than {} bytes; lines of this length are not processed, so \
                     restrict the instruction to other bytes with \"offset\" and \"length\"",
                    self.record_max
                ),
            ));
        }
        self.carry_at = at;
        self.carry.extend_from_slice(bytes);
        Ok(())
    }
}
