//! The trace formats that frit reads. To add a format, add a file here and a line in [`FORMATS`].

pub mod biotracer;
pub mod blkparse;
pub mod csv;
pub mod diskmon;
pub mod disksim;
mod disksim_space;
mod disksim_units;
pub mod fio;
pub mod fiu;
mod head;
pub mod msr;
pub mod recorded;
pub mod spc;
pub mod vscsi;

pub(crate) use head::Head;

use crate::devices::DeviceNames;
use crate::measured::ServiceTime;
use crate::problems::{Problems, Reason};
use crate::request::SECTOR_LIMIT;
use crate::{DeviceCommand, Options, Reading, ReqOp, Request, Result, SectorCut};
use frit_core::{Hints, Nanos, SECTOR_BYTES, Sector};

/// A trace format: name, recognition and decoder.
pub struct TraceFormat {
    /// Name of the format in options and reports.
    pub name: &'static str,
    /// Description of the format.
    pub about: &'static str,
    /// Returns the degree to which the head matches the format, from 0 (not this format) to 1.
    pub(crate) score: fn(&Head<'_>) -> f32,
    /// Creates a decoder for a trace with this head, and records units and conventions in the
    /// reading.
    pub(crate) open: fn(&Head<'_>, &Options, &mut Reading) -> Result<Box<dyn Decoder + Send>>,
}

/// All formats. Among equal scores, the first one wins.
pub static FORMATS: &[&TraceFormat] = &[
    &recorded::FORMAT,
    &fio::V3,
    &fio::V2,
    &vscsi::FORMAT,
    &msr::FORMAT,
    &spc::FORMAT,
    &blkparse::FORMAT,
    &fiu::FORMAT,
    &biotracer::FORMAT,
    &diskmon::FORMAT,
    &disksim::FORMAT,
    &csv::FORMAT,
];

/// Number of requests in a batch.
pub(crate) const BATCH: usize = 4096;

/// Decodes bytes to requests.
pub(crate) trait Decoder {
    /// Consumes complete records from the front of `bytes` while `out` accepts more, and returns
    /// the number of bytes consumed. `last` is `true` if `bytes` is the end of the input.
    fn decode(&mut self, bytes: &[u8], last: bool, out: &mut DecoderOutput) -> usize;
}

/// Output of a decoder.
#[derive(Default)]
pub(crate) struct DecoderOutput {
    /// Requests, with the times of the trace.
    pub(crate) requests: Vec<Request>,
    /// Device names.
    pub(crate) names: DeviceNames,
    /// Problems of the input.
    pub(crate) problems: Problems,
    /// `true` if decoding ends at the first malformed line.
    pub(crate) strict: bool,
    /// Set by a malformed line in strict mode.
    pub(crate) stop: bool,
    /// Measured service times, each with the index of its request; `None` if the caller does not need
    /// them.
    pub(crate) measured: Option<Vec<(usize, ServiceTime)>>,
}

impl DecoderOutput {
    /// Returns `true` if the decoder should continue.
    #[inline]
    pub(crate) fn accepts_more(&self) -> bool {
        self.requests.len() < BATCH && !self.stop
    }

    /// Adds a read, write, discard or command of whole sectors.
    #[inline]
    pub(crate) fn push(
        &mut self,
        at: u64,
        op: ReqOp,
        sector: u64,
        sectors: u64,
        hints: Hints,
        device: u16,
    ) -> std::result::Result<(), Reason> {
        check(sector, sectors)?;
        let sectors = sectors as u32;
        self.requests.push(Request {
            at: Nanos(at),
            sector: Sector(sector),
            sectors,
            device,
            op,
            hints,
            cut: SectorCut::NONE,
        });
        Ok(())
    }

    /// Adds a read, write or discard of bytes, widened to whole sectors.
    #[inline]
    pub(crate) fn push_bytes(
        &mut self,
        at: u64,
        op: ReqOp,
        offset: u64,
        bytes: u64,
        hints: Hints,
        device: u16,
    ) -> std::result::Result<(), Reason> {
        let (sector, sectors) = whole(offset, bytes)?;
        if !(offset | bytes).is_multiple_of(SECTOR_BYTES) {
            self.problems.widened += 1;
        }
        self.push(at, op, sector, sectors, hints, device)
    }

    /// Adds a read or write of exactly these bytes.
    pub(crate) fn push_cut(
        &mut self,
        at: u64,
        op: ReqOp,
        offset: u64,
        bytes: u64,
        hints: Hints,
        device: u16,
    ) -> std::result::Result<(), Reason> {
        let (sector, sectors) = whole(offset, bytes)?;
        self.push(at, op, sector, sectors, hints, device)?;
        if let Some(r) = self.requests.last_mut() {
            *r = r.with_bytes(offset, bytes);
        }
        Ok(())
    }

    /// Adds the measured service time of the request that was added last. Costs a branch if the caller
    /// does not need it.
    #[inline]
    pub(crate) fn measure(&mut self, service: ServiceTime) {
        if let Some(measured) = &mut self.measured {
            measured.push((self.requests.len().saturating_sub(1), service));
        }
    }

    /// Adds a flush.
    pub(crate) fn push_flush(&mut self, at: u64, hints: Hints, device: u16) {
        let at = Nanos(at);
        self.requests.push(Request {
            at,
            sector: Sector(0),
            sectors: 0,
            device,
            op: ReqOp::Flush,
            hints,
            cut: SectorCut::NONE,
        });
    }
}

/// Checks that a request of these sectors is valid.
#[inline]
pub(crate) fn check(sector: u64, sectors: u64) -> std::result::Result<(), Reason> {
    if sectors == 0 {
        return Err("size is zero");
    }
    if sectors > u64::from(u32::MAX) {
        return Err("size is beyond 2 TiB");
    }
    match sector.checked_add(sectors) {
        Some(end) if end <= SECTOR_LIMIT => Ok(()),
        _ => Err("address and size reach past 2^64 bytes"),
    }
}

/// Returns the whole sectors that cover a range of bytes.
#[inline]
pub(crate) fn whole(offset: u64, bytes: u64) -> std::result::Result<(u64, u64), Reason> {
    if bytes == 0 {
        return Err("size is zero");
    }
    let end = offset.checked_add(bytes).ok_or("address and size reach past 2^64 bytes")?;
    let sector = offset / SECTOR_BYTES;
    Ok((sector, end.div_ceil(SECTOR_BYTES) - sector))
}

/// Parses a word for an operation, in any spelling that traces use.
pub(crate) fn op_word(word: &[u8]) -> std::result::Result<ReqOp, Reason> {
    if let [c] = word {
        return match c {
            b'R' | b'r' => Ok(ReqOp::Read),
            b'W' | b'w' => Ok(ReqOp::Write),
            b'D' | b'd' => Ok(ReqOp::Discard),
            b'F' | b'f' => Ok(ReqOp::Flush),
            _ => Err("unknown operation"),
        };
    }
    const WORDS: [(&[u8], ReqOp); 12] = [
        (b"read", ReqOp::Read),
        (b"write", ReqOp::Write),
        (b"rd", ReqOp::Read),
        (b"wr", ReqOp::Write),
        (b"rs", ReqOp::Read),
        (b"ws", ReqOp::Write),
        (b"discard", ReqOp::Discard),
        (b"trim", ReqOp::Discard),
        (b"unmap", ReqOp::Discard),
        (b"flush", ReqOp::Flush),
        (b"sync", ReqOp::Flush),
        (b"fsync", ReqOp::Flush),
    ];
    let found = WORDS.iter().find(|(w, _)| word.eq_ignore_ascii_case(w));
    if let Some(&(_, op)) = found {
        return Ok(op);
    }
    let command = std::str::from_utf8(word).ok().and_then(|word| word.parse::<DeviceCommand>().ok());
    command.map(ReqOp::Command).ok_or("unknown operation")
}
