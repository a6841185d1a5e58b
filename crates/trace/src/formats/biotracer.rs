//! BIOTracer (Nexus 5 eMMC): `sector sectors bytes flags t_generate t_dequeue t_submit t_finish`.
//!
//! Source: Zhou et al., "I/O Characteristics of Smartphone Applications and Their Implications for
//! eMMC Design", IISWC 2015, and its published traces. Times are in seconds; bit 0 of the flags
//! marks a write. The time of generation is the arrival time; the measured service time is that from
//! the submission to the end, and readers of measured times take the time of the submission. Sizes are
//! not always whole pages: the driver added a sector to many requests
//! ([`crate::Options::whole_pages`]).

use super::{DecoderOutput, Head, TraceFormat};
use crate::measured::ServiceTime;
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
        let mut times = [0; 4];
        for (i, time) in times.iter_mut().enumerate() {
            if i > 0 {
                c.gap()?;
            }
            *time = c.decimal(TimeUnit::S.power())?;
        }
        let [generated, _, submitted, finished] = times;
        let at = if out.measured.is_some() { submitted } else { generated };
        c.done()?;
        if sectors.checked_mul(SECTOR_BYTES) != Some(bytes) {
            return Err("sectors and bytes disagree");
        }
        super::check(sector, sectors)?;
        let op = if flags & 1 == 1 { ReqOp::Write } else { ReqOp::Read };
        let device = out.names.number(0)?;
        out.push(at, op, sector, sectors, Hints::NONE, device)?;
        out.measure(ServiceTime::between(submitted, finished));
        Ok(())
    }
}
