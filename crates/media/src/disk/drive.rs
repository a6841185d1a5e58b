//! A drive with its state, and the cost of a request at the time at which its service begins.

use super::cache::Segments;
use super::dirty::Dirty;
use super::mechanism::{Arm, Mechanism, Pass};
use super::spec::{DiskSpec, OverheadAfter, WriteBack};
use frit_core::{Cmd, Nanos, Op, Result, SECTOR_BYTES, Sector};

/// Direction of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DriveRequestKind {
    /// Read.
    Read,
    /// Write.
    Write,
}

/// A request to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DriveRequest {
    /// Direction of the transfer.
    pub kind: DriveRequestKind,
    /// First sector.
    pub sector: Sector,
    /// Number of sectors.
    pub sectors: u32,
}

impl DriveRequest {
    /// Converts a disk command into a request; `None` for a flush.
    #[must_use]
    pub fn of(cmd: &Cmd) -> Option<DriveRequest> {
        let kind = match cmd.op {
            Op::DiskRead => DriveRequestKind::Read,
            Op::DiskWrite => DriveRequestKind::Write,
            _ => return None,
        };
        let sectors = (u64::from(cmd.len) / SECTOR_BYTES) as u32;
        Some(DriveRequest { kind, sector: Sector(cmd.addr / SECTOR_BYTES), sectors })
    }

    fn end(&self) -> u64 {
        self.sector.0 + u64::from(self.sectors)
    }
}

/// Result of the cache lookup of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheResult {
    /// The cache contributed nothing: all sectors were transferred from or to the platters.
    Miss,
    /// The cache had the first sectors of a read.
    Partial,
    /// The cache had all sectors of a read, or acknowledged a write.
    Full,
}

/// Result of the service of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceResult {
    /// Time at which the host has the data or the acknowledgement.
    pub done: Nanos,
    /// Seek time of this request.
    pub seek: Nanos,
    /// Rotational latency of this request up to its first sector, plus the revolutions that were
    /// lost later.
    pub rotation: Nanos,
    /// Result of the cache lookup.
    pub hit: CacheResult,
}

impl ServiceResult {
    /// Creates the result of a request that ends at `done`, with the seek and rotation times of
    /// `moved`.
    pub(super) fn ending_at(done: u64, moved: PositioningTimes, hit: CacheResult) -> ServiceResult {
        ServiceResult { done: Nanos(done), seek: Nanos(moved.seek), rotation: Nanos(moved.rotation), hit }
    }
}

/// A read-ahead in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAheadState {
    pub segment: usize,
    /// The block before which the read-ahead ends.
    pub limit: u64,
    /// The block before which the read-ahead must not be stopped.
    pub least: u64,
    /// Time at which the last block of the segment was read.
    pub at: u64,
    /// Blocks after the requested ones that passed under the head before them and are in the
    /// buffer.
    pub early: (u64, u64),
}

/// Seek and rotation times of accesses to the platters.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PositioningTimes {
    pub seek: u64,
    pub rotation: u64,
}

impl PositioningTimes {
    pub(super) fn add(&mut self, p: &Pass) {
        self.seek += p.seek;
        self.rotation += p.rotation;
    }
}

/// A disk drive in virtual time.
#[derive(Clone, Debug)]
pub struct Drive {
    pub(super) spec: DiskSpec,
    pub(super) mechanism: Mechanism,
    pub(super) segments: Segments,
    pub(super) arm: Arm,
    /// Time at which the arm has finished its work for earlier requests.
    pub(super) free: u64,
    pub(super) read_ahead: Option<ReadAheadState>,
    /// The segment of the last write to the platters, and the block after that write.
    pub(super) wrote: Option<(usize, u64)>,
    pub(super) last: DriveRequestKind,
    pub(super) passes: Vec<Pass>,
    /// Blocks after a read that passed under the head before the read's first block.
    pub(super) early: (u64, u64),
    pub(super) dirty: Dirty,
}

impl Drive {
    /// Creates a drive whose arm is at the first cylinder at time zero.
    ///
    /// # Errors
    /// Impossible parameters, with the value and the values that are allowed.
    pub fn new(spec: &DiskSpec) -> Result<Drive> {
        Ok(Drive {
            mechanism: Mechanism::new(spec)?,
            segments: Segments::new(&spec.cache),
            arm: Arm::default(),
            free: 0,
            read_ahead: None,
            wrote: None,
            last: DriveRequestKind::Read,
            passes: Vec::with_capacity(16),
            early: (0, 0),
            dirty: Dirty::default(),
            spec: spec.clone(),
        })
    }

    /// Parameters of the drive.
    #[must_use]
    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }

    /// Size in sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.mechanism.layout.blocks()
    }

    /// Returns the cylinder of a sector, for schedulers.
    #[must_use]
    pub fn cylinder(&self, sector: Sector) -> u32 {
        self.mechanism.layout.locate(sector.0).cylinder
    }

    /// Returns the current cylinder of the arm.
    #[must_use]
    pub fn arm_cylinder(&self) -> u32 {
        self.arm.cylinder
    }

    /// Returns the positioning time (seek and rotation) of a request whose service begins at `at`,
    /// for schedulers that know the drive. It is zero for a read that the cache has, and for a
    /// write for which the cache has space.
    #[must_use]
    pub fn positioning(&self, request: &DriveRequest, at: Nanos) -> Nanos {
        let o = self.spec.overheads;
        let begin = at.0 + o.command.0;
        let write = request.kind == DriveRequestKind::Write;
        let (first, end) = (request.sector.0, request.end());
        let growing = self.read_ahead.map(|a| a.segment);
        let cached = match request.kind {
            DriveRequestKind::Read => {
                self.dirty.holds(first, end, self.free > begin)
                    || self.segments.find(first, end, growing, false).is_some()
            }
            DriveRequestKind::Write => {
                self.spec.cache.write_back == WriteBack::Full && self.has_space(request, begin)
            }
        };
        if cached {
            return Nanos::ZERO;
        }
        // The command overhead comes first: a sector that passes during it is reached one
        // revolution later.
        let start = begin + self.after(if write { o.write_miss } else { o.read_miss });
        let mut arm = self.arm;
        let p = self.mechanism.pass(&mut arm, start.max(self.free), first, 1, write);
        Nanos(p.seek + p.rotation)
    }

    /// Serves a request whose service begins at `begin` (for a request that arrives at an idle
    /// drive, its arrival). Requests are served in the order of these calls; `begin` must not
    /// decrease. Sectors past the end of the disk are treated as the last one.
    pub fn service(&mut self, request: &DriveRequest, begin: Nanos) -> ServiceResult {
        let at = begin.0 + self.spec.overheads.command.0;
        if let Some(t) = self.mechanism.constant() {
            let start = at.max(self.free);
            self.free = start + t.0;
            self.last = request.kind;
            return ServiceResult {
                done: Nanos(self.free),
                seek: t,
                rotation: Nanos::ZERO,
                hit: CacheResult::Miss,
            };
        }
        if request.sectors == 0 {
            return ServiceResult {
                done: Nanos(at),
                seek: Nanos::ZERO,
                rotation: Nanos::ZERO,
                hit: CacheResult::Full,
            };
        }
        self.advance(at);
        let service = match request.kind {
            DriveRequestKind::Read => self.read(request, at),
            DriveRequestKind::Write if self.spec.cache.write_back == WriteBack::Full => {
                self.write_to_cache(request, at)
            }
            DriveRequestKind::Write => self.write(request, at),
        };
        self.last = request.kind;
        service
    }

    /// Selects the one of two times that applies after the kind of the previous request.
    pub(super) fn after(&self, t: OverheadAfter) -> u64 {
        match self.last {
            DriveRequestKind::Read => t.read.0,
            DriveRequestKind::Write => t.write.0,
        }
    }

    /// Advances the background work (read-ahead, then destaging) to `now`.
    pub(super) fn advance(&mut self, now: u64) {
        self.advance_read_ahead(now);
        if self.read_ahead.is_none() {
            self.destage(now);
        }
    }
}
