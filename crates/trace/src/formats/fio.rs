//! fio's iolog, versions 2 and 3.
//!
//! Source: fio's manual, "Trace file format v2" and "v3". After a line `fio version N iolog`, files
//! are added, opened and closed. A line `[timestamp] filename action offset length` is a request:
//! read, write, trim, sync, datasync. In version 3 each line begins with a time in microseconds.
//! Version 2 has only `wait`, in µs after the previous wait: all requests between two waits arrive
//! together.

use super::{DecoderOutput, Head, TraceFormat};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::cursor::{OVERFLOW, number};
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{ReqOp, TimeUnit};
use frit_core::Hints;

/// fio iolog version 2.
pub static V2: TraceFormat = TraceFormat {
    name: "fio2",
    about: "fio iolog version 2 (file action offset length)",
    score: |head| begins(head, b"fio version 2 iolog"),
    open: |_: &Head<'_>, _, reading| {
        reading.fact(
            "time",
            "only wait, in us; requests between two waits arrive together",
            FactSource::Fixed,
        );
        reading.fact("size unit", "bytes", FactSource::Fixed);
        reading.fact("device", "file", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Fio { timed: false, now: 0 })))
    },
};

/// fio iolog version 3.
pub static V3: TraceFormat = TraceFormat {
    name: "fio3",
    about: "fio iolog version 3 (us file action offset length)",
    score: |head| begins(head, b"fio version 3 iolog"),
    open: |_: &Head<'_>, _, reading| {
        reading.fact("time unit", TimeUnit::Us.name(), FactSource::Fixed);
        reading.fact("size unit", "bytes", FactSource::Fixed);
        reading.fact("device", "file", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Fio { timed: true, now: 0 })))
    },
};

fn begins(head: &Head<'_>, header: &[u8]) -> f32 {
    f32::from(u8::from(head.lines().next().is_some_and(|l| l.starts_with(header))))
}

struct Fio {
    timed: bool,
    now: u64,
}

impl LineParser for Fio {
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        c.blanks();
        if c.rest.starts_with(b"fio version ") {
            return Ok(());
        }
        let at = if self.timed {
            let at = c.decimal(TimeUnit::Us.power())?;
            c.gap()?;
            at
        } else {
            self.now
        };
        let file = c.word()?;
        c.gap()?;
        let op = match c.word()? {
            b"add" | b"open" | b"close" => return c.done(),
            b"read" => ReqOp::Read,
            b"write" => ReqOp::Write,
            b"trim" => ReqOp::Discard,
            b"sync" | b"datasync" => ReqOp::Flush,
            b"wait" if !self.timed => {
                c.gap()?;
                let us = number(c.word()?)?;
                let ns = us.checked_mul(1000).and_then(|ns| self.now.checked_add(ns));
                self.now = ns.ok_or(OVERFLOW)?;
                return Ok(());
            }
            _ => return Err("unknown action"),
        };
        if op == ReqOp::Flush {
            let device = out.names.name(file)?;
            out.push_flush(at, Hints::NONE, device);
            return Ok(());
        }
        c.gap()?;
        let offset = c.u64()?;
        c.gap()?;
        let bytes = c.u64()?;
        c.done()?;
        let (sector, sectors) = super::whole(offset, bytes)?;
        super::check(sector, sectors)?;
        let device = out.names.name(file)?;
        out.push_bytes(at, op, offset, bytes, Hints::NONE, device)
    }
}
