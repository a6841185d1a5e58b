//! FIU traces: `ns pid process sector sectors R-or-W major minor MD5`.
//!
//! Source: the description of the FIU traces at SNIA IOTTA (sets 390 and 391). A process name may
//! contain blanks, so all fields after it are read from the end of the line. Newer sets omit the
//! MD5.

use super::{DecoderOutput, Head, TraceFormat};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::cursor::number;
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{ReqOp, TimeUnit};
use frit_core::Hints;

/// The FIU format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "fiu",
    about: "FIU trace (ns pid process sector sectors op major minor MD5)",
    score: |head| head.share(&mut Fiu::default()),
    open: |_: &Head<'_>, _, reading| {
        reading.fact("time unit", TimeUnit::Ns.name(), FactSource::Fixed);
        reading.fact("size unit", "sectors of 512 B", FactSource::Fixed);
        reading.fact("device", "major,minor", FactSource::Fixed);
        Ok(Box::new(LineDecoder::new(Fiu::default())))
    },
};

#[derive(Default)]
struct Fiu {
    key: Vec<u8>,
}

impl LineParser for Fiu {
    fn line(&mut self, mut c: Cursor<'_>, out: &mut DecoderOutput) -> Result<(), Reason> {
        let mut minor = c.last_word()?;
        // A hash is 32 hexadecimal digits; a minor number is never that long.
        if minor.len() == 32 {
            if !minor.iter().all(u8::is_ascii_hexdigit) {
                return Err("the MD5 is not hexadecimal");
            }
            minor = c.last_word()?;
        }
        let major = c.last_word()?;
        number(minor)?;
        number(major)?;
        let op = match c.last_word()? {
            b"R" | b"r" => ReqOp::Read,
            b"W" | b"w" => ReqOp::Write,
            _ => return Err("operation is neither R nor W"),
        };
        let sectors = number(c.last_word()?)?;
        let sector = number(c.last_word()?)?;
        let at = c.u64()?;
        c.gap()?;
        c.u64()?;
        c.gap()?;
        super::check(sector, sectors)?;
        self.key.clear();
        self.key.extend_from_slice(major);
        self.key.push(b',');
        self.key.extend_from_slice(minor);
        let device = out.names.name(&self.key)?;
        out.push(at, op, sector, sectors, Hints::NONE, device)
    }
}
