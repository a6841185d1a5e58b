//! Text output of blkparse: `major,minor cpu seq time pid action RWBS sector + sectors [process]`.
//!
//! Source: blkparse(1), default output format, and the kernel's `blk_fill_rwbs`: an F before the
//! operation is a preflush, after it a forced unit access; S is synchronous, M metadata, A
//! read-ahead. One kind of event represents a request: Q (queued) if the head contains any, else D,
//! I, C. All other events and the summary at the end are skipped.

use super::{DecoderOutput, Head, TraceFormat};
use crate::options::{BlktraceEvent, TimeUnit};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{Options, ReqOp};
use frit_core::Hints;

/// The blkparse format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "blkparse",
    about: "blkparse text (major,minor cpu seq time pid action RWBS sector + sectors)",
    score: |head| head.share(&mut Blk { event: present(head).unwrap_or(b'Q') }),
    open: |head: &Head<'_>, options: &Options, reading| {
        let (event, how) = match (options.event, present(head)) {
            (Some(e), _) => (e.letter(), FactSource::Stated),
            (None, Some(b'Q') | None) => (b'Q', FactSource::Fixed),
            (None, Some(e)) => (e, FactSource::Recognised("the head has no Q event".into())),
        };
        reading.fact("event", char::from(event).to_string(), how);
        reading.fact("time unit", TimeUnit::S.name(), FactSource::Fixed);
        reading.fact("size unit", "sectors of 512 B", FactSource::Fixed);
        reading.fact("device", "major,minor", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Blk { event })))
    },
};

/// Returns the preferred event among those in the head.
fn present(head: &Head<'_>) -> Option<u8> {
    let actions: Vec<u8> = head
        .lines()
        .take(4096)
        .filter_map(|l| match l.split(|b| *b == b' ').filter(|w| !w.is_empty()).nth(5) {
            Some([action]) => Some(*action),
            _ => None,
        })
        .collect();
    [BlktraceEvent::Queue, BlktraceEvent::Dispatch, BlktraceEvent::Insert, BlktraceEvent::Complete]
        .into_iter()
        .map(BlktraceEvent::letter)
        .find(|e| actions.contains(e))
}

/// Prefixes of the lines of blkparse's summary, and of other lines that are not events.
const SUMMARY: [&[u8]; 13] = [
    b"CPU",
    b"Total",
    b"Throughput",
    b"Events",
    b"Skips",
    b"Read",
    b"Write",
    b"IO unplugs",
    b"PC ",
    b"Input",
    b"Timer",
    b"Dropped",
    b"blktrace",
];

struct Blk {
    event: u8,
}

impl LineParser for Blk {
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        c.blanks();
        if SUMMARY.iter().any(|s| c.rest.starts_with(s)) {
            return Ok(());
        }
        let device = c.rest;
        c.u64()?;
        c.expect(b',')?;
        c.u64()?;
        let device = &device[..device.len() - c.rest.len()];
        c.gap()?;
        c.u64()?;
        c.gap()?;
        c.u64()?;
        c.gap()?;
        let at = c.decimal(TimeUnit::S.power())?;
        c.gap()?;
        c.u64()?;
        c.gap()?;
        if c.word()? != [self.event] {
            return Ok(());
        }
        c.gap()?;
        let Some(rwbs) = Rwbs::parse(c.word()?)? else { return Ok(()) };
        c.blanks();
        let range = match c.rest {
            // A flush has no sectors.
            [] | [b'[', ..] => None,
            _ => Some(range(&mut c)?).filter(|r| r.1 > 0),
        };
        let Some((sector, sectors)) = range else {
            if !rwbs.preflush && rwbs.op != ReqOp::Flush {
                return Err("size is zero");
            }
            let device = out.names.name(device)?;
            out.push_flush(at, rwbs.hints, device);
            return Ok(());
        };
        super::check(sector, sectors)?;
        let device = out.names.name(device)?;
        // A preflush precedes the data of the request, so it becomes a flush request of its own.
        if rwbs.preflush || rwbs.op == ReqOp::Flush {
            out.push_flush(at, Hints::NONE, device);
        }
        let op = if rwbs.op == ReqOp::Flush { ReqOp::Write } else { rwbs.op };
        out.push(at, op, sector, sectors, rwbs.hints, device)
    }
}

fn range(c: &mut Cursor<'_>) -> Result<(u64, u64), Reason> {
    let sector = c.u64()?;
    c.gap()?;
    c.expect(b'+')?;
    c.blanks();
    let sectors = c.u64()?;
    if !matches!(c.rest, [] | [b' ' | b'\t', ..]) {
        return Err("size is not a number");
    }
    Ok((sector, sectors))
}

/// Contents of the RWBS column.
struct Rwbs {
    op: ReqOp,
    hints: Hints,
    preflush: bool,
}

impl Rwbs {
    /// Parses the column. Returns `None` for a request without sectors (N: pass-through commands).
    fn parse(word: &[u8]) -> Result<Option<Rwbs>, Reason> {
        let (preflush, rest) = match word {
            [b'F', rest @ ..] => (true, rest),
            _ => (false, word),
        };
        let (op, rest) = match rest {
            [b'R', rest @ ..] => (ReqOp::Read, rest),
            [b'W', rest @ ..] => (ReqOp::Write, rest),
            [b'D', b'E', rest @ ..] | [b'D', rest @ ..] => (ReqOp::Discard, rest),
            [b'N', rest @ ..] if preflush => (ReqOp::Flush, rest),
            [b'N', ..] => return Ok(None),
            [b'F', rest @ ..] => (ReqOp::Flush, rest),
            rest if preflush => (ReqOp::Flush, rest),
            _ => return Err("unknown RWBS"),
        };
        let mut hints = Hints::NONE;
        for flag in rest {
            hints = hints.with(match flag {
                b'F' => Hints::FUA,
                b'S' => Hints::SYNC,
                b'M' => Hints::METADATA,
                b'A' | b'B' | b'P' | b'U' | b'E' => Hints::NONE,
                _ => return Err("unknown RWBS"),
            });
        }
        Ok(Some(Rwbs { op, hints, preflush }))
    }
}
