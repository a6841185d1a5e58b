//! MSR Cambridge traces: `FILETIME,host,disk,Read or Write,byte offset,bytes,response time`.
//!
//! Source: the README of the traces at SNIA IOTTA (set 388). FILETIME and response time are in
//! units of 100 ns.

use super::{DecoderOutput, Head, TraceFormat};
use crate::measured::ServiceTime;
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{ReqOp, TimeUnit};
use frit_core::Hints;

/// The MSR Cambridge format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "msr",
    about: "MSR Cambridge trace (FILETIME,host,disk,op,byte offset,bytes,response)",
    score: |head| head.share(&mut Msr),
    open: |_: &Head<'_>, _, reading| {
        reading.fact("time unit", "100 ns (FILETIME)", FactSource::Fixed);
        reading.fact("size unit", "bytes", FactSource::Fixed);
        reading.fact("device", "host.disk", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Msr)))
    },
};

/// Nanoseconds in a unit of FILETIME.
const FILETIME_NS: u64 = 100;

struct Msr;

impl LineParser for Msr {
    #[inline]
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        let at = c.decimal(TimeUnit::FileTime.power())?;
        c.expect(b',')?;
        let from = c.rest;
        let host = c.field(b',')?;
        c.expect(b',')?;
        c.u64()?;
        // The text "host,disk" is the key of the device, so that no string is built per line.
        let key = &from[..from.len() - c.rest.len()];
        c.expect(b',')?;
        let op = match c.field(b',')? {
            b"Read" | b"read" | b"R" => ReqOp::Read,
            b"Write" | b"write" | b"W" => ReqOp::Write,
            _ => return Err("operation is neither Read nor Write"),
        };
        c.expect(b',')?;
        let offset = c.u64()?;
        c.expect(b',')?;
        let bytes = c.u64()?;
        // The response time is optional, but must be a number if present.
        let mut response = None;
        if !c.rest.is_empty() {
            c.expect(b',')?;
            response = Some(c.u64()?);
            c.done()?;
        }
        if host.is_empty() {
            return Err("host is missing");
        }
        let (sector, sectors) = super::whole(offset, bytes)?;
        super::check(sector, sectors)?;
        let device = out.names.name(key)?;
        out.push_bytes(at, op, offset, bytes, Hints::NONE, device)?;
        if let Some(response) = response {
            out.measure(ServiceTime::of(response.saturating_mul(FILETIME_NS)));
        }
        Ok(())
    }
}
