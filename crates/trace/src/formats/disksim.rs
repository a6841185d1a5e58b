//! DiskSim ASCII, which MQSim, FlashSim and SSDsim also read: `time device sector size op`.
//!
//! Source: the DiskSim 4.0 reference manual, section "Traces" (ASCII: arrival time in ms, device,
//! block, size in blocks, flags with bit 0 set for a read). Files in circulation differ: time in s,
//! ms, µs or ns, size in sectors or in 4 KiB pages, or size and address in bytes. The user gives the
//! units, or they are recognised (see `disksim_space` and `disksim_units`) and reported.

use super::disksim_space;
use super::disksim_units as units;
use super::{DecoderOutput, Head, TraceFormat};
use crate::ReqOp;
use crate::options::{ReadDigit, SizeUnit};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::cursor::OVERFLOW;
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
        let space = disksim_space::space(head, options.size_unit, options.address_unit)?;
        reading.fact("size unit", space.size.name(), space.size_source);
        reading.fact("address unit", space.address.name(), space.address_source);
        reading.fact("device", "2nd column", FactSource::Fixed);
        let (read, how) = match options.read_digit {
            Some(d) => (d, FactSource::Stated),
            None => (ReadDigit::One, FactSource::Assumed("DiskSim's convention".into())),
        };
        reading.fact("op", if read == ReadDigit::One { "1 = read" } else { "0 = read" }, how);
        let parser = DiskSim { power: time.power(), size: space.size.0, address: space.address.0, read };
        Ok(Box::new(LineDecoder::new(parser)))
    },
};

pub(super) struct DiskSim {
    power: u32,
    size: u32,
    address: u32,
    read: ReadDigit,
}

impl Default for DiskSim {
    fn default() -> Self {
        let sectors = SizeUnit::SECTORS.0;
        DiskSim { power: 0, size: sectors, address: sectors, read: ReadDigit::One }
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
        let address = c.u64()?;
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
        let bytes = size.checked_mul(u64::from(self.size)).ok_or(OVERFLOW)?;
        let (sector, sectors, whole) = if self.address == SizeUnit::SECTORS.0 {
            (address, bytes.div_ceil(SECTOR_BYTES), bytes.is_multiple_of(SECTOR_BYTES))
        } else {
            let offset = address.checked_mul(u64::from(self.address)).ok_or(OVERFLOW)?;
            let (sector, sectors) = super::whole(offset, bytes)?;
            (sector, sectors, (offset | bytes).is_multiple_of(SECTOR_BYTES))
        };
        super::check(sector, sectors)?;
        let device = out.names.number(dev)?;
        out.problems.widened += u64::from(!whole);
        out.push(at, op, sector, sectors, Hints::NONE, device)
    }
}
