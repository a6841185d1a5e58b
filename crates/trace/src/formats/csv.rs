//! Generic text with one request per line and columns that the user names.
//!
//! `time=ts:us,op=type,sector=lba,bytes=len` reads the columns with those names in the header.
//! Columns can also be given by number (`time=1:us`, from 1). Each has a unit.

use super::{DecoderOutput, Head, TraceFormat};
use crate::measured::ServiceTime;
pub use crate::options::Columns;
use crate::options::{COLUMNS_MAX, ColumnRef, ReadDigit};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::text::cursor::{OVERFLOW, number};
use crate::text::{Cursor, LineDecoder, LineParser};
use crate::{Error, Options, Reading, ReqOp, Result};
use frit_core::{Hints, SECTOR_BYTES};

/// The generic CSV format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "csv",
    about: "columns as the user names them",
    // The format is never recognised by content: without named columns, nothing is known about it.
    score: |_| 0.0,
    open: |head: &Head<'_>, options: &Options, reading| {
        let Some(columns) = &options.columns else {
            return Err(Error::spec(
                "format csv",
                "name the columns: --columns time=ts:us,op=type,sector=lba,bytes=len",
            ));
        };
        Ok(Box::new(LineDecoder::new(Csv::new(columns, head, reading)?)))
    },
};

struct Csv {
    delimiter: u8,
    header: Option<Vec<u8>>,
    time: Option<(usize, u32)>,
    op: (usize, Option<ReadDigit>),
    place: (usize, u32),
    size: (usize, u32),
    device: Option<usize>,
    flags: Option<usize>,
    service: Option<(usize, u32)>,
    most: usize,
}

impl Csv {
    fn new(columns: &Columns, head: &Head<'_>, reading: &mut Reading) -> Result<Csv> {
        let first = head.lines().next().unwrap_or_default();
        let (delimiter, how) = match columns.delimiter {
            Some(d) => (d, FactSource::Stated),
            None => {
                let found = *b",\t;|".iter().find(|d| first.contains(d)).unwrap_or(&b' ');
                (found, FactSource::Recognised("the first line".into()))
            }
        };
        let mut fields = [&b""[..]; COLUMNS_MAX];
        let n = split(first, delimiter, &mut fields);
        let names: Vec<String> =
            fields[..n].iter().map(|f| String::from_utf8_lossy(f).into_owned()).collect();
        let mut named = false;
        let mut most = 0;
        let mut find = |c: &ColumnRef| -> Result<usize> {
            let i = match c {
                ColumnRef::Number(i) => *i,
                ColumnRef::Name(name) => {
                    named = true;
                    names.iter().position(|n| n.eq_ignore_ascii_case(name)).ok_or_else(|| {
                        let there = names.join(", ");
                        Error::spec(
                            format!("columns '{}'", columns.text),
                            format!("no column '{name}' in the first line, which has: {there}"),
                        )
                    })?
                }
            };
            most = most.max(i + 1);
            Ok(i)
        };
        let time = columns.time.as_ref().map(|(c, u)| Ok((find(c)?, u.power()))).transpose()?;
        let op = (find(&columns.op.0)?, columns.op.1);
        let place = (find(&columns.place.0)?, columns.place.1.0);
        let size = (find(&columns.size.0)?, columns.size.1.0);
        let device = columns.device.as_ref().map(&mut find).transpose()?;
        let flags = columns.flags.as_ref().map(&mut find).transpose()?;
        let service = columns.service.as_ref().map(|(c, u)| Ok((find(c)?, u.power()))).transpose()?;
        if columns.device.is_some() {
            reading.fact("device", "by --columns", FactSource::Stated);
        }
        reading.fact("columns", columns.text.clone(), FactSource::Stated);
        reading.fact("delimiter", delimiter.escape_ascii().to_string(), how);
        let mut csv = Csv { delimiter, header: None, time, op, place, size, device, flags, service, most };
        // If the address in the first line is not a number, the line is a header, even if columns
        // are given by number.
        let header = named
            || csv.line(Cursor::new(first), &mut DecoderOutput::default()).is_err()
                && number(fields[place.0]).is_err();
        csv.header = header.then(|| first.to_vec());
        Ok(csv)
    }
}

/// Splits a line into fields and returns their number. A blank as delimiter matches any run of
/// blanks.
fn split<'a>(line: &'a [u8], delimiter: u8, fields: &mut [&'a [u8]; COLUMNS_MAX]) -> usize {
    let mut n = 0;
    let mut put = |f: &'a [u8]| {
        if let Some(slot) = fields.get_mut(n) {
            let f = f.trim_ascii();
            *slot = f.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(f);
            n += 1;
        }
    };
    if delimiter == b' ' {
        line.split(|b| matches!(b, b' ' | b'\t')).filter(|f| !f.is_empty()).for_each(&mut put);
    } else {
        line.split(|&b| b == delimiter).for_each(&mut put);
    }
    n
}

impl LineParser for Csv {
    fn line(&mut self, c: Cursor<'_>, out: &mut DecoderOutput) -> std::result::Result<(), Reason> {
        // Only the first line can be the header; a later line with the same text is parsed as data.
        if out.problems.lines <= 1 && self.header.as_deref() == Some(c.rest) {
            return Ok(());
        }
        let mut fields = [&b""[..]; COLUMNS_MAX];
        if split(c.rest, self.delimiter, &mut fields) < self.most {
            return Err("too few fields");
        }
        let at = match self.time {
            None => 0,
            Some(column) => decimal(&fields, column)?,
        };
        let service = self.service.map(|column| decimal(&fields, column)).transpose()?;
        let op = op(fields[self.op.0], self.op.1)?;
        let (hints, preflush) = match self.flags {
            Some(i) => flags(fields[i])?,
            None => (Hints::NONE, false),
        };
        let name = self.device.map_or(&b"0"[..], |i| fields[i]);
        if op == ReqOp::Flush {
            let device = out.names.name(name)?;
            out.push_flush(at, hints, device);
            return Ok(());
        }
        let bytes = |(i, unit): (usize, u32)| number(fields[i])?.checked_mul(u64::from(unit)).ok_or(OVERFLOW);
        let (offset, size) = (bytes(self.place)?, bytes(self.size)?);
        let (sector, sectors) = super::whole(offset, size)?;
        super::check(sector, sectors)?;
        let device = out.names.name(name)?;
        if preflush {
            out.push_flush(at, Hints::NONE, device);
        }
        out.problems.widened += u64::from((offset | size) % SECTOR_BYTES != 0);
        out.push(at, op, sector, sectors, hints, device)?;
        if let Some(service) = service {
            out.measure(ServiceTime::of(service));
        }
        Ok(())
    }
}

/// Parses a field that is a time, in units of a power of ten of nanoseconds.
fn decimal(fields: &[&[u8]; COLUMNS_MAX], (column, power): (usize, u32)) -> std::result::Result<u64, Reason> {
    let mut cursor = Cursor::new(fields[column]);
    let time = cursor.decimal(power)?;
    cursor.done()?;
    Ok(time)
}

fn op(field: &[u8], read: Option<ReadDigit>) -> std::result::Result<ReqOp, Reason> {
    match (field, read) {
        (b"0", Some(ReadDigit::Zero)) | (b"1", Some(ReadDigit::One)) => Ok(ReqOp::Read),
        (b"0" | b"1", Some(_)) => Ok(ReqOp::Write),
        (b"0" | b"1", None) => Err("operation is a digit; say which is a read: op=COLUMN:0 or op=COLUMN:1"),
        _ => super::op_word(field),
    }
}

fn flags(field: &[u8]) -> std::result::Result<(Hints, bool), Reason> {
    let (mut hints, mut preflush) = (Hints::NONE, false);
    for f in field {
        match f {
            b'M' | b'm' => hints = hints.with(Hints::METADATA),
            b'H' | b'h' => hints = hints.with(Hints::HOT),
            b'C' | b'c' => hints = hints.with(Hints::COLD),
            b'S' | b's' => hints = hints.with(Hints::SYNC),
            b'F' | b'f' => hints = hints.with(Hints::FUA),
            b'P' | b'p' => preflush = true,
            _ => return Err("unknown flag"),
        }
    }
    Ok((hints, preflush))
}
