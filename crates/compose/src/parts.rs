//! Division of a request into parts, each of which lies on one device.

use crate::devices::Devices;
use crate::planted::NestBug;
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, Cause, MediumKind, PREFETCH_REQUESTS, ReadTarget, Result, SECTOR_BYTES, Sector, Sink, Tok,
    WriteData,
};
use std::ops::Range;

/// A run of bytes on one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Index of the device.
    pub(crate) device: usize,
    /// Address of the first byte on the device.
    pub(crate) at: u64,
    /// Number of bytes until the end of the run.
    pub(crate) len: u64,
}

/// Announces the next requests to the devices, each by the part at its start. Requests at `end` or
/// behind it will be refused.
pub(crate) fn prefetch_parts(
    devices: &Devices,
    end: u64,
    next: &[(Sector, u32)],
    part: impl Fn(u64) -> Part,
) {
    for next in next.chunks(PREFETCH_REQUESTS) {
        let mut parts = [(usize::MAX, (Sector(0), 0)); PREFETCH_REQUESTS];
        for (of, &(at, sectors)) in parts.iter_mut().zip(next) {
            let at = at.0.saturating_mul(SECTOR_BYTES);
            if at < end {
                let p = part(at);
                let sectors = u64::from(sectors).min(p.len / SECTOR_BYTES) as u32;
                *of = (p.device, (Sector(p.at / SECTOR_BYTES), sectors));
            }
        }
        for (i, device) in devices.iter().enumerate() {
            let mut own = [(Sector(0), 0); PREFETCH_REQUESTS];
            let mut n = 0;
            for (_, range) in parts.iter().filter(|(device, _)| *device == i) {
                own[n] = *range;
                n += 1;
            }
            if n > 0 {
                device.prefetch(&own[..n]);
            }
        }
    }
}

/// Reads a range. `part` returns the run that begins at an address. The parts are independent of
/// each other.
pub(crate) fn read_parts(
    devices: &mut Devices,
    sink: &mut Sink,
    at: u64,
    mut into: ReadTarget<'_>,
    after: Tok,
    part: impl Fn(u64) -> Part,
) -> Result<Tok> {
    let (mut done, mut from, len) = (after, 0, into.len());
    while from < len {
        let p = part(at + u64::from(from));
        let n = p.len.min(u64::from(len - from)) as u32;
        let tok = devices.get_mut(p.device).read(sink, p.at, into.part(from, n), Cause::Host, after)?;
        done = sink.join(done, tok);
        from += n;
    }
    Ok(done)
}

/// Writes a range in parts, which are independent of each other.
pub(crate) fn write_parts(
    devices: &mut Devices,
    sink: &mut Sink,
    at: u64,
    data: WriteData<'_>,
    after: Tok,
    part: impl Fn(u64) -> Part,
) -> Result<Tok> {
    let (mut done, mut from, len) = (after, 0, data.len());
    while from < len {
        let p = part(at + u64::from(from));
        let n = p.len.min(u64::from(len - from)) as u32;
        let tok = devices.get_mut(p.device).write(sink, p.at, data.part(from, n), Cause::Host, after)?;
        if from == 0 || !is_planted(NestBug::FirstPartAcked) {
            done = sink.join(done, tok);
        }
        from += n;
    }
    Ok(done)
}

/// Makes a range read as zeros, in parts that are independent of each other.
pub(crate) fn zero_parts(
    devices: &mut Devices,
    sink: &mut Sink,
    range: Range<u64>,
    after: Tok,
    part: impl Fn(u64) -> Part,
) -> Result<Tok> {
    let (mut done, mut at) = (after, range.start);
    while at < range.end {
        let p = part(at);
        let n = p.len.min(range.end - at);
        let tok = devices.get_mut(p.device).zero(sink, p.at, n, Cause::Host, after)?;
        done = sink.join(done, tok);
        at += n;
    }
    Ok(done)
}

/// Returns the end of the run from `at` on that lies on one medium, and this medium. `part` is the
/// part that begins at `at`.
pub(crate) fn place_in_part(devices: &Devices, at: u64, part: Part) -> (u64, Option<MediumKind>) {
    let (end, place) = devices.get(part.device).place(part.at);
    (at + part.len.min(end - part.at), place)
}
