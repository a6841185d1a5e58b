//! A block request, the output of every decoder and generator.

use crate::DeviceCommand;
use frit_core::{Hints, Nanos, SECTOR_BYTES, Sector, TrafficKind};
use serde::{Serialize, Serializer};

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReqOp {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Discard sectors (trim, unmap).
    Discard,
    /// Make acknowledged data durable; has no sectors.
    Flush,
    /// A command of a device that is more than a block device.
    Command(DeviceCommand),
}

impl ReqOp {
    /// Returns the name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReqOp::Read => "read",
            ReqOp::Write => "write",
            ReqOp::Discard => "discard",
            ReqOp::Flush => "flush",
            ReqOp::Command(command) => command.name(),
        }
    }
}

impl Serialize for ReqOp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl From<TrafficKind> for ReqOp {
    fn from(kind: TrafficKind) -> ReqOp {
        match kind {
            TrafficKind::Read => ReqOp::Read,
            TrafficKind::Write => ReqOp::Write,
            TrafficKind::Zero => ReqOp::Discard,
            TrafficKind::Flush => ReqOp::Flush,
        }
    }
}

/// Bytes of the first and the last sector that a request does not use. It is zero for a request of
/// whole sectors, so such a request needs no other case.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SectorCut {
    /// Number of bytes before the request in its first sector, below 512.
    pub head: u16,
    /// Number of bytes after the request in its last sector, below 512.
    pub tail: u16,
}

impl SectorCut {
    /// The cut of a request of whole sectors.
    pub const NONE: SectorCut = SectorCut { head: 0, tail: 0 };
}

/// A block request: 32 bytes, `Copy`.
///
/// `sector` and `sectors` cover the request. The request itself may begin and end inside a sector,
/// by `cut`; such a request needs a layer with a byte interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Arrival time, relative to the first request of the workload.
    pub at: Nanos,
    /// First sector (0 for a flush).
    pub sector: Sector,
    /// Length in sectors of 512 bytes (0 for a flush, otherwise at least 1).
    pub sectors: u32,
    /// Device of the request, as an index into the workload's device names.
    pub device: u16,
    /// Operation.
    pub op: ReqOp,
    /// Hints from the host.
    pub hints: Hints,
    /// Unused bytes of the first and the last sector.
    pub cut: SectorCut,
}

// The operation and its command share a byte.
const _: () = assert!(size_of::<Request>() == 32 && size_of::<ReqOp>() == 1);

impl Request {
    /// Returns the sector after the last one.
    #[inline]
    #[must_use]
    pub fn end(&self) -> u64 {
        self.sector.0 + u64::from(self.sectors)
    }

    /// Returns the length in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES - u64::from(self.cut.head) - u64::from(self.cut.tail)
    }

    /// Returns the address of the first byte.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.sector.0 * SECTOR_BYTES + u64::from(self.cut.head)
    }

    /// Returns `true` if the request begins and ends at sectors.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.cut == SectorCut::NONE
    }

    /// Returns the request for `bytes` bytes (at least 1) from byte `offset` on. The range must end
    /// before [`SECTOR_LIMIT`] and cover at most `u32::MAX` sectors.
    #[must_use]
    pub fn with_bytes(self, offset: u64, bytes: u64) -> Request {
        let (first, end) = (offset / SECTOR_BYTES, (offset + bytes).div_ceil(SECTOR_BYTES));
        let cut = SectorCut {
            head: (offset - first * SECTOR_BYTES) as u16,
            tail: (end * SECTOR_BYTES - offset - bytes) as u16,
        };
        Request { sector: Sector(first), sectors: (end - first) as u32, cut, ..self }
    }
}

/// Returns the requests of a trace for a range of bytes: one, or several of which each has a length
/// that fits in it. A range that is not of whole sectors has at most `u32::MAX` sectors.
pub fn requests_for(
    at: Nanos,
    op: ReqOp,
    offset: u64,
    len: u64,
    hints: Hints,
) -> impl Iterator<Item = Request> {
    let (mut sector, mut left) = (offset / SECTOR_BYTES, len / SECTOR_BYTES);
    let cut = !(offset | len).is_multiple_of(SECTOR_BYTES);
    let mut first = true;
    std::iter::from_fn(move || {
        // A flush has no sectors, and is one request.
        if left == 0 && !first {
            return None;
        }
        first = false;
        let part = if cut { 0 } else { left.min(u64::from(u32::MAX)) };
        let sectors = part as u32;
        let r = Request { at, sector: Sector(sector), sectors, device: 0, op, hints, cut: SectorCut::NONE };
        sector += part;
        left = if cut { 0 } else { left - part };
        Some(if cut { r.with_bytes(offset, len) } else { r })
    })
}

/// Gives the parts of a request, in order, the unused bytes of the whole request.
pub(crate) fn restore_cut(parts: &mut [Request], cut: SectorCut) {
    parts.iter_mut().for_each(|p| p.cut = SectorCut::NONE);
    if let Some(first) = parts.first_mut() {
        first.cut.head = cut.head;
    }
    if let Some(last) = parts.last_mut() {
        last.cut.tail = cut.tail;
    }
}

/// Limit of the sectors that a decoder accepts (exclusive), so that no address in bytes overflows.
pub const SECTOR_LIMIT: u64 = u64::MAX / SECTOR_BYTES;
