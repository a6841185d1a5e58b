//! frit's own CSV for recorded traces: `time_us,op,sector,sectors,flags`, with that line as the
//! header.
//!
//! op: R read, W write, D discard, F flush, or the name of a command of a device. flags: M metadata or
//! journal, S synchronous, F forced unit access, P preflush, B bytes. A preflush becomes a flush
//! request before the write. With B, address and length of a read or write are in bytes instead of
//! sectors. A sixth column `device` is read if the header has it. Times may have decimals.

use super::{DecoderOutput, Head, TraceFormat};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{ReqOp, TimeUnit};
use frit_core::Hints;

/// Header line of the format.
pub(crate) const HEADER: &[u8] = b"time_us,op,sector,sectors,flags";

/// The recorded CSV format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "recorded",
    about: "recorded CSV (time_us,op,sector,sectors,flags)",
    score: |head| match head.lines().next() {
        // The header decides, even if all lines below it are damaged.
        Some(first) if first.starts_with(HEADER) => head.share(&mut Recorded).max(0.9),
        _ => head.share(&mut Recorded),
    },
    open: |head: &Head<'_>, _, reading| {
        if head.lines().next().is_some_and(|l| l.starts_with(HEADER) && l.ends_with(b",device")) {
            reading.fact("device", "6th column", FactSource::Fixed);
        }
        reading.fact("time unit", TimeUnit::Us.name(), FactSource::Fixed);
        reading.fact("size unit", "sectors of 512 B", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Recorded)))
    },
};

struct Recorded;

impl LineParser for Recorded {
    #[inline]
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        if let [b't', ..] = c.rest
            && c.rest.starts_with(HEADER)
        {
            return Ok(());
        }
        let at = c.decimal(TimeUnit::Us.power())?;
        c.expect(b',')?;
        let op = match c.rest {
            [o, rest @ ..] if rest.first() == Some(&b',') => {
                c.rest = rest;
                super::op_word(&[*o])?
            }
            [_, ..] => command(&mut c)?,
            [] => return Err("too few fields"),
        };
        c.expect(b',')?;
        let sector = c.u64()?;
        c.expect(b',')?;
        let sectors = c.u64()?;
        c.expect(b',')?;
        let Flags { hints, preflush, bytes } = flags(&mut c)?;
        let name: &[u8] = match c.rest {
            [b',', name @ ..] if !name.is_empty() && !name.contains(&b',') => name,
            [] => b"0",
            _ => return Err("too many fields"),
        };
        if op == ReqOp::Flush {
            let device = out.names.name(name)?;
            out.push_flush(at, hints, device);
            return Ok(());
        }
        if bytes {
            match op {
                ReqOp::Discard => return Err("a discard has whole sectors"),
                ReqOp::Command(_) => return Err("a command has whole sectors"),
                ReqOp::Read | ReqOp::Write | ReqOp::Flush => {}
            }
            let device = out.names.name(name)?;
            if preflush {
                out.push_flush(at, Hints::NONE, device);
            }
            return out.push_cut(at, op, sector, sectors, hints, device);
        }
        super::check(sector, sectors)?;
        let device = out.names.name(name)?;
        if preflush {
            out.push_flush(at, Hints::NONE, device);
        }
        out.push(at, op, sector, sectors, hints, device)
    }
}

/// Reads the name of a command. Words for other operations are not of this format.
#[cold]
fn command(c: &mut Cursor<'_>) -> Result<ReqOp, Reason> {
    let end = c.rest.iter().position(|&b| b == b',').ok_or("too few fields")?;
    let (word, rest) = c.rest.split_at(end);
    match super::op_word(word)? {
        op @ ReqOp::Command(_) => {
            c.rest = rest;
            Ok(op)
        }
        _ => Err("unknown operation"),
    }
}

/// Flags of a line.
struct Flags {
    hints: Hints,
    preflush: bool,
    /// Address and length are in bytes.
    bytes: bool,
}

#[inline]
fn flags(c: &mut Cursor<'_>) -> Result<Flags, Reason> {
    let (mut hints, mut preflush, mut bytes) = (Hints::NONE, false, false);
    while let [f, rest @ ..] = c.rest {
        match f {
            b'M' => hints = hints.with(Hints::METADATA),
            b'H' => hints = hints.with(Hints::HOT),
            b'C' => hints = hints.with(Hints::COLD),
            b'S' => hints = hints.with(Hints::SYNC),
            b'F' => hints = hints.with(Hints::FUA),
            b'P' => preflush = true,
            b'B' => bytes = true,
            b' ' => {}
            b',' => break,
            _ => return Err("unknown flag"),
        }
        c.rest = rest;
    }
    Ok(Flags { hints, preflush, bytes })
}
