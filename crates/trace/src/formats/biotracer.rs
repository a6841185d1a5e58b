//! BIOTracer (Nexus 5 eMMC): `sector sectors bytes flags t_generate t_dequeue t_submit t_finish`.
//!
//! Source: Zhou et al., "I/O Characteristics of Smartphone Applications and Their Implications for
//! eMMC Design", IISWC 2015, and its published traces. Times are in seconds; bit 0 of the flags
//! marks a write. The time of generation is the arrival time. Sizes are not always whole pages: the
//! driver added a sector to many requests ([`crate::Options::whole_pages`]).

use super::{DecoderOutput, Head, TraceFormat};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{ReqOp, TimeUnit};
use frit_core::{Hints, SECTOR_BYTES};

/// The BIOTracer format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "biotracer",
    about: "BIOTracer trace (sector sectors bytes flags and four times)",
    score: |head| head.share(&mut Bio),
    open: |_: &Head<'_>, _, reading| {
        reading.fact("time unit", TimeUnit::S.name(), FactSource::Fixed);
        reading.fact("arrival", "the time of generation (5th column)", FactSource::Fixed);
        reading.fact("size unit", "sectors of 512 B", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Bio)))
    },
};

struct Bio;

impl LineParser for Bio {
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        c.blanks();
        let sector = c.u64()?;
        c.gap()?;
        let sectors = c.u64()?;
        c.gap()?;
        let bytes = c.u64()?;
        c.gap()?;
        let flags = c.u64()?;
        c.gap()?;
        let at = c.decimal(TimeUnit::S.power())?;
        for _ in 0..3 {
            c.gap()?;
            c.decimal(TimeUnit::S.power())?;
        }
        c.done()?;
        if sectors.checked_mul(SECTOR_BYTES) != Some(bytes) {
            return Err("sectors and bytes disagree");
        }
        super::check(sector, sectors)?;
        let op = if flags & 1 == 1 { ReqOp::Write } else { ReqOp::Read };
        let device = out.names.number(0)?;
        out.push(at, op, sector, sectors, Hints::NONE, device)
    }
}
