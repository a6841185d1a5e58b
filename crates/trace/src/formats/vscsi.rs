//! CloudPhysics VSCSI traces, versions 1 and 2: little-endian records.
//!
//! Source: the record layout published with the CloudPhysics traces (Waldspurger et al., FAST
//! 2015). Version 1, 32 bytes: `u32 sn, len, nSG; u16 cmd, ver; u64 lbn, ts`; version 2, 40 bytes:
//! `u16 cmd, ver; u32 sn, len, nSG; u64 lbn, ts, rt`. The version is the high byte of `ver`, `cmd`
//! is the SCSI operation code, `len` is in bytes, `ts` in µs.

use super::{Decoder, DecoderOutput, Head, TraceFormat};
use crate::problems::Reason;
use crate::reading::FactSource;
use crate::{ReqOp, TimeUnit};
use frit_core::{Hints, SECTOR_BYTES};

/// The VSCSI format.
pub static FORMAT: TraceFormat = TraceFormat {
    name: "vscsi",
    about: "VSCSI binary trace",
    score: |head| Version::of(head).map_or(0.0, |v| v.share(head)),
    open: |head: &Head<'_>, _, reading| {
        let (version, how) = match Version::of(head) {
            Some(v) => (v, FactSource::Recognised("the version field of the records".into())),
            None => (Version::V1, FactSource::Assumed("the version field is neither 1 nor 2".into())),
        };
        reading.fact("version", if version == Version::V1 { "1" } else { "2" }, how);
        reading.fact("time unit", TimeUnit::Us.name(), FactSource::Fixed);
        reading.fact("size unit", "bytes", FactSource::Fixed);
        Ok(Box::new(Vscsi { version }))
    },
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// A record of the trace.
struct VscsiRecord {
    cmd: u16,
    ver: u16,
    len: u32,
    lbn: u64,
    ts: u64,
}

fn le<const N: usize>(b: &[u8], at: usize) -> [u8; N] {
    let mut a = [0; N];
    a.copy_from_slice(&b[at..at + N]);
    a
}

impl Version {
    fn bytes(self) -> usize {
        match self {
            Version::V1 => 32,
            Version::V2 => 40,
        }
    }

    fn record(self, b: &[u8]) -> VscsiRecord {
        let (cmd, ver, len, lbn, ts) = match self {
            Version::V1 => (12, 14, 4, 16, 24),
            Version::V2 => (0, 2, 8, 16, 24),
        };
        VscsiRecord {
            cmd: u16::from_le_bytes(le(b, cmd)),
            ver: u16::from_le_bytes(le(b, ver)),
            len: u32::from_le_bytes(le(b, len)),
            lbn: u64::from_le_bytes(le(b, lbn)),
            ts: u64::from_le_bytes(le(b, ts)),
        }
    }

    fn number(self) -> u16 {
        match self {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }

    /// Returns the share of the head's records that have this version.
    fn share(self, head: &Head<'_>) -> f32 {
        let records = head.bytes.chunks_exact(self.bytes()).take(64);
        let (n, good) = records.fold((0u32, 0u32), |(n, good), b| {
            (n + 1, good + u32::from(self.record(b).ver >> 8 == self.number()))
        });
        good as f32 / n.max(1) as f32
    }

    fn of(head: &Head<'_>) -> Option<Version> {
        let (one, two) = (Version::V1.share(head), Version::V2.share(head));
        let (best, share) = if one >= two { (Version::V1, one) } else { (Version::V2, two) };
        (share >= 0.5).then_some(best)
    }
}

struct Vscsi {
    version: Version,
}

impl Vscsi {
    fn one(&self, b: &[u8], out: &mut DecoderOutput) -> Result<(), Reason> {
        let r = self.version.record(b);
        if r.ver >> 8 != self.version.number() {
            return Err("record of another version");
        }
        let at = r.ts.checked_mul(1000).ok_or("number too large")?;
        // SCSI operation codes: READ, WRITE and WRITE AND VERIFY with 6, 10, 12 and 16 bytes;
        // SYNCHRONIZE CACHE.
        let op = match r.cmd {
            0x08 | 0x28 | 0xa8 | 0x88 => ReqOp::Read,
            0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => ReqOp::Write,
            0x35 | 0x91 => {
                let device = out.names.number(0)?;
                out.push_flush(at, Hints::NONE, device);
                return Ok(());
            }
            // Other commands transfer no blocks (TEST UNIT READY, RESERVE …).
            0x00..=0xff => return Ok(()),
            _ => return Err("unknown SCSI command"),
        };
        let sectors = u64::from(r.len).div_ceil(SECTOR_BYTES);
        super::check(r.lbn, sectors)?;
        let device = out.names.number(0)?;
        out.problems.widened += u64::from(u64::from(r.len) % SECTOR_BYTES != 0);
        out.push(at, op, r.lbn, sectors, Hints::NONE, device)
    }

    fn reject(b: &[u8], reason: Reason, out: &mut DecoderOutput) {
        let n = out.problems.lines;
        out.problems.malformed(n, b, reason);
        out.stop |= out.strict;
    }
}

impl Decoder for Vscsi {
    fn decode(&mut self, bytes: &[u8], last: bool, out: &mut DecoderOutput) -> usize {
        let size = self.version.bytes();
        let mut at = 0;
        while out.accepts_more() && at < bytes.len() {
            let Some(b) = bytes.get(at..at + size) else {
                if !last {
                    return at;
                }
                out.problems.lines += 1;
                Self::reject(&bytes[at..], "record cut off", out);
                return bytes.len();
            };
            out.problems.lines += 1;
            if let Err(reason) = self.one(b, out) {
                Self::reject(b, reason, out);
            }
            at += size;
        }
        at
    }
}
