//! One block request, as every reader and generator delivers it.

use frit_core::{Hints, Nanos, SECTOR_BYTES, Sector};
use serde::Serialize;

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReqOp {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Forget sectors (trim, unmap).
    Discard,
    /// Make durable what was acknowledged; carries no sectors.
    Flush,
}

/// One block request: 24 bytes, `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Arrival, counted from the first request of the workload.
    pub at: Nanos,
    /// First sector (0 for a flush).
    pub sector: Sector,
    /// Length in sectors of 512 bytes (0 for a flush, otherwise at least 1).
    pub sectors: u32,
    /// The device it went to, as an index into the workload's device names.
    pub device: u16,
    /// What it asks for.
    pub op: ReqOp,
    /// What the host said about it.
    pub hints: Hints,
}

const _: () = assert!(size_of::<Request>() == 24);

impl Request {
    /// The sector after its last one.
    #[inline]
    #[must_use]
    pub fn end(&self) -> u64 {
        self.sector.0 + u64::from(self.sectors)
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// One past the highest sector that any reader accepts, so that no address in bytes overflows.
pub const SECTOR_LIMIT: u64 = u64::MAX / SECTOR_BYTES;
