//! The formats that frit reads: one file each, and one line each in [`FORMATS`].

pub mod biotracer;
pub mod blkparse;
pub mod csv;
pub mod diskmon;
pub mod disksim;
mod disksim_units;
pub mod fio;
pub mod fiu;
mod head;
pub mod msr;
pub mod recorded;
pub mod spc;
pub mod vscsi;

pub(crate) use head::Head;

use crate::devices::Names;
use crate::problems::{Problems, Reason};
use crate::request::SECTOR_LIMIT;
use crate::{Options, Reading, ReqOp, Request, Result};
use frit_core::{Hints, Nanos, SECTOR_BYTES, Sector};

/// A format: what it is called, how it is told from the others, and how it is read.
pub struct Format {
    /// Its name in options and reports.
    pub name: &'static str,
    /// What it is, in words.
    pub about: &'static str,
    /// How much of the head it understands, from 0 (not this format) to 1.
    pub(crate) score: fn(&Head<'_>) -> f32,
    /// Makes a reader for a trace with this head and says how it will read it.
    pub(crate) open: fn(&Head<'_>, &Options, &mut Reading) -> Result<Box<dyn Decoder + Send>>,
}

/// All formats. Among equal scores the earlier wins.
pub static FORMATS: &[&Format] = &[
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

/// How many requests a reader delivers at a time.
pub(crate) const BATCH: usize = 4096;

/// Takes bytes and delivers requests.
pub(crate) trait Decoder {
    /// Takes whole records from the front of `bytes` while `out` wants more, and says how many bytes
    /// it took. `last` says that nothing follows `bytes`.
    fn decode(&mut self, bytes: &[u8], last: bool, out: &mut Decoded) -> usize;
}

/// What a reader delivers.
#[derive(Default)]
pub(crate) struct Decoded {
    /// Requests, with times as the trace has them.
    pub(crate) requests: Vec<Request>,
    /// Device names.
    pub(crate) names: Names,
    /// What was wrong.
    pub(crate) problems: Problems,
    /// Whether the first malformed line ends it all.
    pub(crate) strict: bool,
    /// Set by a malformed line in strict mode.
    pub(crate) stop: bool,
}

impl Decoded {
    /// Whether a reader should go on.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.requests.len() < BATCH && !self.stop
    }

    /// Delivers a read, write or discard of whole sectors.
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
        self.requests.push(Request { at: Nanos(at), sector: Sector(sector), sectors, device, op, hints });
        Ok(())
    }

    /// Delivers a read, write or discard of bytes, widened to whole sectors.
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

    /// Delivers a flush.
    pub(crate) fn push_flush(&mut self, at: u64, hints: Hints, device: u16) {
        let at = Nanos(at);
        self.requests.push(Request { at, sector: Sector(0), sectors: 0, device, op: ReqOp::Flush, hints });
    }
}

/// Whether a request of these sectors can be.
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

/// The whole sectors around a range of bytes.
#[inline]
pub(crate) fn whole(offset: u64, bytes: u64) -> std::result::Result<(u64, u64), Reason> {
    if bytes == 0 {
        return Err("size is zero");
    }
    let end = offset.checked_add(bytes).ok_or("address and size reach past 2^64 bytes")?;
    let sector = offset / SECTOR_BYTES;
    Ok((sector, end.div_ceil(SECTOR_BYTES) - sector))
}

/// The operation that a word stands for, in the spellings that traces use.
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
    found.map(|&(_, op)| op).ok_or("unknown operation")
}
