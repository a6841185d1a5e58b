//! SPC traces (UMass Financial, WebSearch): `ASU,LBA,bytes,opcode,seconds[,…]`.
//!
//! Source: "SPC Trace File Format Specification", revision 1.0.1, Storage Performance Council. LBA
//! is in sectors of 512 bytes, size in bytes, opcode R or W in either case. Fields after the fifth
//! are allowed and ignored.

use super::{DecoderOutput, Head, TraceFormat};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{ReqOp, TimeUnit};
use frit_core::{Hints, SECTOR_BYTES};

/// The SPC format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "spc",
    about: "SPC trace (ASU,LBA,bytes,op,seconds)",
    score: |head| head.share(&mut Spc),
    open: |_: &Head<'_>, _, reading| {
        reading.fact("time unit", TimeUnit::S.name(), FactSource::Fixed);
        reading.fact("size unit", "bytes", FactSource::Fixed);
        reading.fact("device", "ASU", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Spc)))
    },
};

struct Spc;

impl LineParser for Spc {
    #[inline]
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        c.blanks();
        let asu = c.u64()?;
        c.expect(b',')?;
        let sector = c.u64()?;
        c.expect(b',')?;
        let bytes = c.u64()?;
        c.expect(b',')?;
        let op = match c.field(b',')? {
            [b'r' | b'R'] => ReqOp::Read,
            [b'w' | b'W'] => ReqOp::Write,
            _ => return Err("operation is neither R nor W"),
        };
        c.expect(b',')?;
        let at = c.decimal(TimeUnit::S.power())?;
        c.blanks();
        if !matches!(c.rest, [] | [b',', ..]) {
            return Err("time is not a number");
        }
        let sectors = bytes.div_ceil(SECTOR_BYTES);
        super::check(sector, sectors)?;
        let device = out.names.number(asu)?;
        out.problems.widened += u64::from(bytes % SECTOR_BYTES != 0);
        out.push(at, op, sector, sectors, Hints::NONE, device)
    }
}
