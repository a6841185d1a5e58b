//! A block request, the output of every decoder and generator.

use frit_core::{Hints, Nanos, SECTOR_BYTES, Sector};
use serde::Serialize;

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReqOp {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Discard sectors (trim, unmap).
    Discard,
    /// Make acknowledged data durable; has no sectors.
    Flush,
}

/// A block request: 24 bytes, `Copy`.
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
}

const _: () = assert!(size_of::<Request>() == 24);

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
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// Limit of the sectors that a decoder accepts (exclusive), so that no address in bytes overflows.
pub const SECTOR_LIMIT: u64 = u64::MAX / SECTOR_BYTES;
