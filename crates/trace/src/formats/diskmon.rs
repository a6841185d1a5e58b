//! DiskMon for Windows, saved as text: `seq time duration disk Read-or-Write sector sectors`.
//!
//! Source: the columns of Sysinternals DiskMon (#, Time, Duration, Disk, Request, Sector, Length).
//! Times are in seconds since the start of the recording.

use super::{DecoderOutput, Head, TraceFormat};
use crate::measured::ServiceTime;
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{ReqOp, TimeUnit};
use frit_core::Hints;

/// The DiskMon format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "diskmon",
    about: "DiskMon trace (seq time duration disk op sector sectors)",
    score: |head| head.share(&mut DiskMon),
    open: |_: &Head<'_>, _, reading| {
        reading.fact("time unit", TimeUnit::S.name(), FactSource::Fixed);
        reading.fact("size unit", "sectors of 512 B", FactSource::Fixed);
        reading.fact("device", "disk number", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(DiskMon)))
    },
};

struct DiskMon;

impl LineParser for DiskMon {
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        c.blanks();
        c.u64()?;
        c.gap()?;
        let at = c.decimal(TimeUnit::S.power())?;
        c.gap()?;
        let duration = c.decimal(TimeUnit::S.power())?;
        c.gap()?;
        let disk = c.u64()?;
        c.gap()?;
        let op = match c.word()? {
            b"Read" => ReqOp::Read,
            b"Write" => ReqOp::Write,
            _ => return Err("operation is neither Read nor Write"),
        };
        c.gap()?;
        let sector = c.u64()?;
        c.gap()?;
        let sectors = c.u64()?;
        c.done()?;
        super::check(sector, sectors)?;
        let device = out.names.number(disk)?;
        out.push(at, op, sector, sectors, Hints::NONE, device)?;
        out.measure(ServiceTime::of(duration));
        Ok(())
    }
}
