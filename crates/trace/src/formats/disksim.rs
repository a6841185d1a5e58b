//! DiskSim ASCII, which MQSim, FlashSim and SSDsim also read: `time device sector size op`.
//!
//! Source: the DiskSim 4.0 reference manual, section "Traces" (ASCII: arrival time in ms, device,
//! block, size in blocks, flags with bit 0 set for a read). Files in circulation differ: time in s,
//! ms, µs or ns, size in sectors or in 4 KiB pages. The user gives both units, or they are
//! recognised (see `disksim_units`) and reported.

use super::disksim_units as units;
use super::{DecoderOutput, Head, TraceFormat};
use crate::ReqOp;
use crate::options::{ReadDigit, SizeUnit};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::{Cursor, LineDecoder, LineParser};
use frit_core::{Hints, SECTOR_BYTES};

/// The DiskSim ASCII format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "disksim",
    about: "DiskSim ASCII trace (time device sector size op)",
    score: |head| head.share(&mut DiskSim::default()),
    open: |head: &Head<'_>, options, reading| {
        let (time, how) = match options.time_unit {
            Some(u) => (u, FactSource::Stated),
            None => units::time(head),
        };
        reading.fact("time unit", time.name(), how);
        let (size, how) = match options.size_unit {
            Some(u) => (u, FactSource::Stated),
            None => units::size(head),
        };
        reading.fact("size unit", size.name(), how);
        reading.fact("address unit", "sectors of 512 B", FactSource::Fixed);
        reading.fact("device", "2nd column", FactSource::Fixed);
        let (read, how) = match options.read_digit {
            Some(d) => (d, FactSource::Stated),
            None => (ReadDigit::One, FactSource::Assumed("DiskSim's convention".into())),
        };
        reading.fact("op", if read == ReadDigit::One { "1 = read" } else { "0 = read" }, how);
        let parser = DiskSim { power: time.power(), unit: size.0, read };
        Ok(Box::new(LineDecoder::new(parser)))
    },
};

pub(super) struct DiskSim {
    power: u32,
    unit: u32,
    read: ReadDigit,
}

impl Default for DiskSim {
    fn default() -> Self {
        DiskSim { power: 0, unit: SizeUnit::SECTORS.0, read: ReadDigit::One }
    }
}

impl LineParser for DiskSim {
    #[inline]
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        c.blanks();
        let at = c.decimal(self.power)?;
        c.gap()?;
        let dev = c.u64()?;
        c.gap()?;
        let sector = c.u64()?;
        c.gap()?;
        let size = c.u64()?;
        c.gap()?;
        let op = match c.word()? {
            b"0" if self.read == ReadDigit::Zero => ReqOp::Read,
            b"1" if self.read == ReadDigit::One => ReqOp::Read,
            b"0" | b"1" => ReqOp::Write,
            _ => return Err("operation is neither 0 nor 1"),
        };
        c.done()?;
        let bytes = size.checked_mul(u64::from(self.unit)).ok_or("number too large")?;
        let sectors = bytes.div_ceil(SECTOR_BYTES);
        super::check(sector, sectors)?;
        let device = out.names.number(dev)?;
        out.problems.widened += u64::from(bytes % SECTOR_BYTES != 0);
        out.push(at, op, sector, sectors, Hints::NONE, device)
    }
}
