//! Options for reading a trace; all have defaults.

use crate::{Error, Result};
use frit_core::Nanos;
use serde::Serialize;
use std::ops::Range;
use std::str::FromStr;

/// Unit of a time column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// Windows FILETIME, in units of 100 ns.
    FileTime,
}

impl TimeUnit {
    /// Returns the power of ten that converts the unit to nanoseconds.
    #[must_use]
    pub fn power(self) -> u32 {
        match self {
            TimeUnit::S => 9,
            TimeUnit::Ms => 6,
            TimeUnit::Us => 3,
            TimeUnit::FileTime => 2,
            TimeUnit::Ns => 0,
        }
    }

    /// Returns the name in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::S => "s",
            TimeUnit::Ms => "ms",
            TimeUnit::Us => "us",
            TimeUnit::Ns => "ns",
            TimeUnit::FileTime => "filetime",
        }
    }
}

impl FromStr for TimeUnit {
    type Err = Error;
    fn from_str(s: &str) -> Result<TimeUnit> {
        match s.to_ascii_lowercase().as_str() {
            "s" | "sec" | "seconds" => Ok(TimeUnit::S),
            "ms" => Ok(TimeUnit::Ms),
            "us" | "µs" => Ok(TimeUnit::Us),
            "ns" => Ok(TimeUnit::Ns),
            "filetime" | "100ns" => Ok(TimeUnit::FileTime),
            _ => Err(Error::spec(format!("time unit '{s}'"), "use s, ms, us, ns or filetime (100 ns)")),
        }
    }
}

/// Unit of a size column, in bytes: 1, 512 or 4096, or any other power of two up to 1 MiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct SizeUnit(pub u32);

impl SizeUnit {
    /// Bytes.
    pub const BYTES: SizeUnit = SizeUnit(1);
    /// Sectors of 512 bytes.
    pub const SECTORS: SizeUnit = SizeUnit(512);
    /// Pages of 4 KiB.
    pub const PAGES: SizeUnit = SizeUnit(4096);

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> String {
        match self.0 {
            1 => "bytes".into(),
            512 => "sectors of 512 B".into(),
            n => format!("units of {}", frit_core::size::format(u64::from(n))),
        }
    }
}

impl FromStr for SizeUnit {
    type Err = Error;
    fn from_str(s: &str) -> Result<SizeUnit> {
        match s.to_ascii_lowercase().as_str() {
            "bytes" | "byte" | "b" => Ok(SizeUnit::BYTES),
            "sectors" | "sector" => Ok(SizeUnit::SECTORS),
            "pages" | "page" => Ok(SizeUnit::PAGES),
            other => match frit_core::size::parse(other) {
                Ok(n) if n.is_power_of_two() && n <= 1 << 20 => Ok(SizeUnit(n as u32)),
                _ => Err(Error::spec(
                    format!("size unit '{s}'"),
                    "use bytes, sectors, pages (4K) or a power of two up to 1M",
                )),
            },
        }
    }
}

/// Digit that means a read, in formats that write operations as 0 and 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum ReadDigit {
    /// 0 = read, 1 = write.
    Zero,
    /// 1 = read, 0 = write, as in DiskSim and MQSim.
    One,
}

impl FromStr for ReadDigit {
    type Err = Error;
    fn from_str(s: &str) -> Result<ReadDigit> {
        match s {
            "0" => Ok(ReadDigit::Zero),
            "1" => Ok(ReadDigit::One),
            _ => Err(Error::spec(format!("read digit '{s}'"), "use 0 or 1")),
        }
    }
}

/// Maximum number of columns of a line.
pub(crate) const COLUMNS_MAX: usize = 64;

/// A column, by its name in the header or by its number from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ColumnRef {
    Name(String),
    Number(usize),
}

/// Assignment of columns to the fields of a request, with units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    pub(crate) time: Option<(ColumnRef, TimeUnit)>,
    pub(crate) op: (ColumnRef, Option<ReadDigit>),
    pub(crate) place: (ColumnRef, SizeUnit),
    pub(crate) size: (ColumnRef, SizeUnit),
    pub(crate) device: Option<ColumnRef>,
    pub(crate) flags: Option<ColumnRef>,
    pub(crate) service: Option<(ColumnRef, TimeUnit)>,
    pub(crate) delimiter: Option<u8>,
    pub(crate) text: String,
}

/// Syntax of `--columns`, for error messages.
const COLUMNS_HELP: &str = "write KEY=COLUMN[:UNIT],…: time=COLUMN:s|ms|us|ns|filetime; op=COLUMN[:0|1, the digit of a read]; \
    sector=COLUMN[:UNIT] or offset=COLUMN (bytes); sectors=COLUMN[:UNIT] or bytes=COLUMN; device=COLUMN; \
    flags=COLUMN (letters M, S, F, P); service=COLUMN:UNIT (measured service time); delimiter=comma|tab|semicolon|pipe|space. A column is a name in the header or a number from 1";

impl FromStr for Columns {
    type Err = Error;

    fn from_str(text: &str) -> Result<Columns> {
        let bad = |why: String| Error::spec(format!("columns '{text}'"), format!("{why}; {COLUMNS_HELP}"));
        let (mut time, mut op, mut place, mut size, mut device, mut flags, mut service, mut delimiter) =
            (None, None, None, None, None, None, None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(|| bad(format!("'{part}' has no =")))?;
            let (name, unit) = match value.split_once(':') {
                Some((n, u)) => (n, Some(u)),
                None => (value, None),
            };
            if name.is_empty() {
                return Err(bad(format!("'{part}' names no column")));
            }
            let column = match name.parse() {
                Ok(0) => return Err(bad("columns count from 1".into())),
                Ok(n) if n <= COLUMNS_MAX => ColumnRef::Number(n - 1),
                Ok(_) => return Err(bad(format!("at most {COLUMNS_MAX} columns"))),
                Err(_) => ColumnRef::Name(name.into()),
            };
            match key.trim() {
                "time" => {
                    let unit = unit.ok_or_else(|| bad("time has no unit".into()))?;
                    time = Some((column, unit.parse()?));
                }
                "op" => op = Some((column, unit.map(str::parse).transpose()?)),
                "sector" => place = Some((column, unit.map_or(Ok(SizeUnit::SECTORS), str::parse)?)),
                "offset" => place = Some((column, unit.map_or(Ok(SizeUnit::BYTES), str::parse)?)),
                "sectors" => size = Some((column, unit.map_or(Ok(SizeUnit::SECTORS), str::parse)?)),
                "bytes" => size = Some((column, unit.map_or(Ok(SizeUnit::BYTES), str::parse)?)),
                "device" => device = Some(column),
                "flags" => flags = Some(column),
                "service" => {
                    let unit = unit.ok_or_else(|| bad("service has no unit".into()))?;
                    service = Some((column, unit.parse()?));
                }
                "delimiter" => {
                    delimiter =
                        Some(delimiter_byte(value).ok_or_else(|| bad(format!("delimiter '{value}'")))?);
                }
                other => return Err(bad(format!("unknown key '{other}'"))),
            }
        }
        Ok(Columns {
            time,
            op: op.ok_or_else(|| bad("op is missing".into()))?,
            place: place.ok_or_else(|| bad("sector or offset is missing".into()))?,
            size: size.ok_or_else(|| bad("sectors or bytes is missing".into()))?,
            device,
            flags,
            service,
            delimiter,
            text: text.into(),
        })
    }
}

fn delimiter_byte(name: &str) -> Option<u8> {
    Some(match name {
        "comma" => b',',
        "tab" => b'\t',
        "semicolon" => b';',
        "pipe" => b'|',
        "space" | "blank" => b' ',
        _ => return None,
    })
}

/// blktrace event that represents a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum BlktraceEvent {
    /// Q, queued: the request of the file system or program, before merges.
    Queue,
    /// I, inserted into the scheduler.
    Insert,
    /// D, dispatched to the driver, after merges.
    Dispatch,
    /// C, completed.
    Complete,
}

impl BlktraceEvent {
    /// Returns the letter that blkparse prints.
    #[must_use]
    pub fn letter(self) -> u8 {
        match self {
            BlktraceEvent::Queue => b'Q',
            BlktraceEvent::Insert => b'I',
            BlktraceEvent::Dispatch => b'D',
            BlktraceEvent::Complete => b'C',
        }
    }
}

impl FromStr for BlktraceEvent {
    type Err = Error;
    fn from_str(s: &str) -> Result<BlktraceEvent> {
        match s {
            "Q" | "q" => Ok(BlktraceEvent::Queue),
            "I" | "i" => Ok(BlktraceEvent::Insert),
            "D" | "d" => Ok(BlktraceEvent::Dispatch),
            "C" | "c" => Ok(BlktraceEvent::Complete),
            _ => Err(Error::spec(format!("event '{s}'"), "use Q, I, D or C")),
        }
    }
}

/// Mapping of the devices of a trace to one address space.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub enum DeviceMapping {
    /// One after another in order of first appearance. Each starts at the next MiB after the end of
    /// the device before it. A trace with one device is not changed.
    #[default]
    Concat,
    /// All devices share one address space: sector 0 of each is sector 0.
    Merge,
    /// Only the requests to one device, given by its name in the trace.
    Only(String),
    /// Each device in a range of its own, such as a name space. Other devices are an error.
    Ranges(Vec<DeviceRange>),
}

/// A device of a trace, and the range of the address space that it is mapped to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceRange {
    /// Name of the device in the trace.
    pub name: String,
    /// Its sectors.
    pub sectors: Range<u64>,
}

impl FromStr for DeviceMapping {
    type Err = Error;
    fn from_str(s: &str) -> Result<DeviceMapping> {
        match s {
            "concat" | "separate" => Ok(DeviceMapping::Concat),
            "merge" => Ok(DeviceMapping::Merge),
            _ => match s.strip_prefix("only:").or_else(|| s.strip_prefix("only=")) {
                Some(name) if !name.is_empty() => Ok(DeviceMapping::Only(name.into())),
                _ => Err(Error::spec(format!("devices '{s}'"), "use concat, merge or only:NAME")),
            },
        }
    }
}

/// Options for reading a trace.
#[derive(Clone, Default, Debug)]
pub struct Options {
    /// Name of the format. Default: recognised from the content.
    pub format: Option<String>,
    /// Time unit, for formats that do not fix it (DiskSim ASCII).
    pub time_unit: Option<TimeUnit>,
    /// Size unit, for formats that do not fix it (DiskSim ASCII).
    pub size_unit: Option<SizeUnit>,
    /// Address unit, for formats that do not fix it (DiskSim ASCII).
    pub address_unit: Option<SizeUnit>,
    /// Digit that means a read (DiskSim ASCII; default 1).
    pub read_digit: Option<ReadDigit>,
    /// Columns of a generic CSV; implies that format.
    pub columns: Option<Columns>,
    /// blktrace event that represents a request (default: Q if the trace has one, else D, I, C).
    pub event: Option<BlktraceEvent>,
    /// Mapping of devices to one address space.
    pub devices: DeviceMapping,
    /// Part of the name of a file inside a tar archive (default: the first file).
    pub member: Option<String>,
    /// Stop at the first malformed line, and at a truncated input.
    pub strict: bool,
    /// Maximum number of requests to deliver.
    pub limit: Option<u64>,
    /// Maximum pause between requests; longer ones are shortened to this.
    pub max_gap: Option<Nanos>,
    /// Convert sizes to whole pages of 4 KiB: a request of more than a page that starts at a page
    /// boundary and has one sector more than whole pages loses that sector; any other request is
    /// widened.
    pub whole_pages: bool,
    /// Widen requests that begin or end inside a sector to whole sectors, for layers without a byte
    /// interface.
    pub whole_sectors: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_parse_as_people_write_them() {
        assert_eq!("µs".parse::<TimeUnit>().unwrap(), TimeUnit::Us);
        assert_eq!("4K".parse::<SizeUnit>().unwrap(), SizeUnit::PAGES);
        assert_eq!("sectors".parse::<SizeUnit>().unwrap(), SizeUnit::SECTORS);
        assert_eq!("only:sda".parse::<DeviceMapping>().unwrap(), DeviceMapping::Only("sda".into()));
        for bad in ["", "3K", "fortnight"] {
            assert!(bad.parse::<SizeUnit>().is_err() && bad.parse::<TimeUnit>().is_err(), "{bad}");
        }
        assert!("only:".parse::<DeviceMapping>().is_err());
    }

    #[test]
    fn columns_say_what_is_wrong() {
        assert!("time=ts:us,op=type,sector=lba,bytes=len".parse::<Columns>().is_ok());
        for (text, why) in [
            ("time=ts", "no unit"),
            ("op=x,sector=y", "sectors or bytes"),
            ("op=0,sector=1,bytes=2", "from 1"),
            ("colour=red", "unknown key"),
            ("time", "no ="),
            ("op=99,offset=1,bytes=2", "at most"),
        ] {
            let e = text.parse::<Columns>().unwrap_err().to_string();
            assert!(e.contains(why), "{text}: {e}");
        }
    }
}
