//! One line for each request, in every writable format.

use crate::{Error, ReqOp, Request};
use frit_core::{Hints, Nanos, SECTOR_BYTES};
use std::io::Write;
use std::str::FromStr;

/// A format that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteFormat {
    /// frit's recorded CSV; keeps all properties of a request.
    Recorded,
    /// MSR Cambridge, times in units of 100 ns from 0.
    Msr,
    /// DiskSim ASCII: ms with six decimals, sizes in sectors, 1 = read.
    DiskSim,
    /// DiskSim ASCII for MQSim: times in whole ns.
    MqSim,
    /// SPC, times in seconds with nine decimals.
    Spc,
    /// fio iolog version 2: waits in µs.
    Fio2,
    /// fio iolog version 3: times in µs.
    Fio3,
}

/// All formats that can be written, by name.
pub const WRITABLE: [(&str, WriteFormat); 7] = [
    ("recorded", WriteFormat::Recorded),
    ("msr", WriteFormat::Msr),
    ("disksim", WriteFormat::DiskSim),
    ("mqsim", WriteFormat::MqSim),
    ("spc", WriteFormat::Spc),
    ("fio2", WriteFormat::Fio2),
    ("fio3", WriteFormat::Fio3),
];

impl WriteFormat {
    /// Returns the name of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        WRITABLE.iter().find(|w| w.1 == self).map_or("?", |w| w.0)
    }
}

impl FromStr for WriteFormat {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        WRITABLE
            .iter()
            .find(|w| w.0.eq_ignore_ascii_case(s))
            .map(|w| w.1)
            .ok_or_else(|| Error::UnknownFormat { name: s.into(), known: WRITABLE.map(|w| w.0).join(", ") })
    }
}

/// Writes lines of one format.
pub(super) struct LineWriter {
    format: WriteFormat,
    devices: bool,
    waited_us: u64,
    opened: Vec<bool>,
}

impl LineWriter {
    pub(super) fn new(format: WriteFormat, devices: bool, out: &mut Vec<u8>) -> LineWriter {
        match format {
            WriteFormat::Recorded => {
                out.extend_from_slice(crate::formats::recorded::HEADER);
                out.extend_from_slice(if devices { b",device\n" } else { b"\n" });
            }
            WriteFormat::Fio2 => out.extend_from_slice(b"fio version 2 iolog\n"),
            WriteFormat::Fio3 => out.extend_from_slice(b"fio version 3 iolog\n"),
            _ => {}
        }
        LineWriter { format, devices, waited_us: 0, opened: Vec::new() }
    }

    /// Returns the name of the format.
    pub(super) fn format_name(&self) -> &'static str {
        self.format.name()
    }

    /// Returns `true` if the format has hints.
    pub(super) fn has_hints(&self) -> bool {
        self.format == WriteFormat::Recorded
    }

    /// Returns `true` if addresses and sizes of the format are in bytes, or can be.
    pub(super) fn has_bytes(&self) -> bool {
        !matches!(self.format, WriteFormat::DiskSim | WriteFormat::MqSim | WriteFormat::Spc)
    }

    /// Writes one request; returns `false` if the format cannot represent it.
    pub(super) fn put(&mut self, r: &Request, names: &[String], out: &mut Vec<u8>) -> bool {
        let name = match names.get(usize::from(r.device)) {
            Some(name) if self.devices => name.as_str(),
            _ => "0",
        };
        let moves = matches!(r.op, ReqOp::Read | ReqOp::Write);
        match self.format {
            WriteFormat::Recorded => self.recorded(r, name, out),
            WriteFormat::Fio2 | WriteFormat::Fio3 => return self.fio(r, out),
            _ if !moves => return false,
            WriteFormat::Msr => msr(r, name, out),
            WriteFormat::DiskSim => {
                decimal(r.at, 1_000_000, 6, out);
                disksim(r, name, out);
            }
            WriteFormat::MqSim => {
                let _ = write!(out, "{}", r.at.0);
                disksim(r, name, out);
            }
            WriteFormat::Spc => {
                let op = if r.op == ReqOp::Read { 'r' } else { 'w' };
                let _ = write!(
                    out,
                    "{},{},{},{op},",
                    number(name, r.device),
                    r.sector.0,
                    u64::from(r.sectors) * SECTOR_BYTES
                );
                decimal(r.at, 1_000_000_000, 9, out);
                out.push(b'\n');
            }
        }
        true
    }

    /// Writes the end of the file.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.format == WriteFormat::Fio3 {
            for (i, _) in self.opened.iter().enumerate().filter(|(_, o)| **o) {
                let _ = writeln!(out, "{} {} close", self.waited_us, file(i as u16));
            }
        }
    }

    fn recorded(&self, r: &Request, name: &str, out: &mut Vec<u8>) {
        if r.at.0.is_multiple_of(1000) {
            let _ = write!(out, "{}", r.at.0 / 1000);
        } else {
            decimal(r.at, 1000, 3, out);
        }
        let op = match r.op {
            ReqOp::Read => "R",
            ReqOp::Write => "W",
            ReqOp::Discard => "D",
            ReqOp::Flush => "F",
            ReqOp::Command(command) => command.name(),
        };
        let whole = r.is_whole();
        let (at, len) = if whole { (r.sector.0, u64::from(r.sectors)) } else { (r.offset(), r.bytes()) };
        let _ = write!(out, ",{op},{at},{len},");
        if !whole {
            out.push(b'B');
        }
        let letters = [
            (Hints::METADATA, b'M'),
            (Hints::HOT, b'H'),
            (Hints::COLD, b'C'),
            (Hints::SYNC, b'S'),
            (Hints::FUA, b'F'),
        ];
        for (hint, letter) in letters {
            if r.hints.has(hint) {
                out.push(letter);
            }
        }
        if self.devices {
            out.push(b',');
            // Separators inside a name would add columns.
            out.extend(name.bytes().map(|b| if matches!(b, b',' | b' ' | b'\t') { b'.' } else { b }));
        }
        out.push(b'\n');
    }

    /// Writes a request to an iolog; returns `false` if it has no such operation. Files are named by the
    /// number of the device, because fio interprets names as paths.
    fn fio(&mut self, r: &Request, out: &mut Vec<u8>) -> bool {
        let action = match r.op {
            ReqOp::Read => "read",
            ReqOp::Write => "write",
            ReqOp::Discard => "trim",
            ReqOp::Flush => "sync",
            ReqOp::Command(_) => return false,
        };
        let device = if self.devices { r.device } else { 0 };
        let now = r.at.0 / 1000;
        let timed = self.format == WriteFormat::Fio3;
        let stamp = |out: &mut Vec<u8>| {
            if timed {
                let _ = write!(out, "{now} ");
            }
        };
        let i = usize::from(device);
        if self.opened.len() <= i {
            self.opened.resize(i + 1, false);
        }
        if !std::mem::replace(&mut self.opened[i], true) {
            for action in ["add", "open"] {
                stamp(out);
                let _ = writeln!(out, "{} {action}", file(device));
            }
        }
        if !timed && now > self.waited_us {
            let _ = writeln!(out, "{} wait {} 0", file(device), now - self.waited_us);
        }
        self.waited_us = self.waited_us.max(now);
        stamp(out);
        let _ = writeln!(out, "{} {action} {} {}", file(device), r.offset(), r.bytes());
        true
    }
}

/// Returns the file that represents a device in an iolog.
fn file(device: u16) -> String {
    format!("device{device}")
}

fn msr(r: &Request, name: &str, out: &mut Vec<u8>) {
    // In this format a host is a word and a disk is a number; any other name becomes a host with
    // disk 0.
    let (host, disk) = match name.split_once(',') {
        Some((host, disk)) if !host.is_empty() && disk.parse::<u64>().is_ok() => (host, disk),
        _ if name.parse::<u64>().is_ok() => ("frit", name),
        _ => (name, "0"),
    };
    let host: String = host.chars().map(|c| if c == ',' { '.' } else { c }).collect();
    let op = if r.op == ReqOp::Read { "Read" } else { "Write" };
    let _ = writeln!(out, "{},{host},{disk},{op},{},{},0", r.at.0 / 100, r.offset(), r.bytes());
}

fn disksim(r: &Request, name: &str, out: &mut Vec<u8>) {
    let op = u8::from(r.op == ReqOp::Read);
    let _ = writeln!(out, " {} {} {} {op}", number(name, r.device), r.sector.0, r.sectors);
}

/// Returns a device as a number: its name if that is a number, else its index in order of
/// appearance.
fn number(name: &str, device: u16) -> u64 {
    name.parse().unwrap_or_else(|_| u64::from(device))
}

/// Writes nanoseconds in a larger unit, exactly.
fn decimal(at: Nanos, unit: u64, digits: usize, out: &mut Vec<u8>) {
    let _ = write!(out, "{}.{:0digits$}", at.0 / unit, at.0 % unit);
}
