//! A drive at work: what a request costs when its service begins.

use super::cache::Segments;
use super::mechanism::{Arm, Mechanism, Pass};
use super::spec::{After, DiskSpec, WriteBack};
use frit_core::{Cmd, Nanos, Op, Result, SECTOR_BYTES, Sector};

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Read.
    Read,
    /// Write.
    Write,
}

/// A request to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// What.
    pub kind: Kind,
    /// First sector.
    pub sector: Sector,
    /// Sectors.
    pub sectors: u32,
}

impl Request {
    /// What a command of a disk asks for; none: a flush.
    #[must_use]
    pub fn of(cmd: &Cmd) -> Option<Request> {
        let kind = match cmd.op {
            Op::DiskRead => Kind::Read,
            Op::DiskWrite => Kind::Write,
            _ => return None,
        };
        let sectors = (u64::from(cmd.len) / SECTOR_BYTES) as u32;
        Some(Request { kind, sector: Sector(cmd.addr / SECTOR_BYTES), sectors })
    }

    fn end(&self) -> u64 {
        self.sector.0 + u64::from(self.sectors)
    }
}

/// What the cache did for a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hit {
    /// Nothing: all from or to the media.
    Miss,
    /// It had the first blocks of a read.
    Partial,
    /// It had all of a read, or acknowledged a write.
    Whole,
}

/// How a request went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// When the host has its data or acknowledgement.
    pub done: Nanos,
    /// Arm moving, for this request.
    pub seek: Nanos,
    /// Platter turning to the first sector, for this request; also turns that were lost in between.
    pub rotation: Nanos,
    /// What the cache did.
    pub hit: Hit,
}

impl Service {
    /// Over when `done`, after the media had `moved`.
    pub(super) fn over(done: u64, moved: Moved, hit: Hit) -> Service {
        Service { done: Nanos(done), seek: Nanos(moved.seek), rotation: Nanos(moved.rotation), hit }
    }
}

/// Reading on in the background.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub segment: usize,
    /// Until this block.
    pub limit: u64,
    /// Not to be stopped before this block.
    pub least: u64,
    /// When the last block of the segment was read.
    pub at: u64,
    /// Blocks ahead that passed before those that were asked for, and are in the buffer.
    pub early: (u64, u64),
}

/// Times and counts of one pass over the media.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Moved {
    pub seek: u64,
    pub rotation: u64,
}

impl Moved {
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
    /// When the arm is free of what it does for earlier requests.
    pub(super) free: u64,
    pub(super) ahead: Option<Ahead>,
    /// The segment of the write that went to the media last, and the block behind it.
    pub(super) wrote: Option<(usize, u64)>,
    pub(super) last: Kind,
    pub(super) passes: Vec<Pass>,
    /// Blocks behind a read that passed first.
    pub(super) early: (u64, u64),
    pub(super) dirty: super::destage::Dirty,
}

impl Drive {
    /// A drive whose arm rests at its first cylinder at time zero.
    ///
    /// # Errors
    /// A description that cannot be, with the value and what would be right.
    pub fn new(spec: &DiskSpec) -> Result<Drive> {
        Ok(Drive {
            mechanism: Mechanism::new(spec)?,
            segments: Segments::new(&spec.cache),
            arm: Arm::default(),
            free: 0,
            ahead: None,
            wrote: None,
            last: Kind::Read,
            passes: Vec::with_capacity(16),
            early: (0, 0),
            dirty: super::destage::Dirty::default(),
            spec: spec.clone(),
        })
    }

    /// What it is.
    #[must_use]
    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }

    /// Its size in sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.mechanism.layout.blocks()
    }

    /// The cylinder of a sector, for schedulers.
    #[must_use]
    pub fn cylinder(&self, sector: Sector) -> u32 {
        self.mechanism.layout.locate(sector.0).cylinder
    }

    /// The cylinder where the arm is.
    #[must_use]
    pub fn arm_cylinder(&self) -> u32 {
        self.arm.cylinder
    }

    /// Seek and rotation that a request would take if its service began at `at`: what a scheduler that
    /// knows the drive goes by. Zero for a read that the cache has, and for a write that it has room for.
    #[must_use]
    pub fn positioning(&self, request: &Request, at: Nanos) -> Nanos {
        let o = self.spec.overheads;
        let begin = at.0 + o.command.0;
        let write = request.kind == Kind::Write;
        let (first, end) = (request.sector.0, request.end());
        let growing = self.ahead.map(|a| a.segment);
        let cached = match request.kind {
            Kind::Read => {
                self.dirty.holds(first, end, self.free > begin)
                    || self.segments.find(first, end, growing, false).is_some()
            }
            Kind::Write => self.spec.cache.write_back == WriteBack::Full && self.has_room(request, begin),
        };
        if cached {
            return Nanos::ZERO;
        }
        // The electronics come first, and a sector that passes meanwhile comes again after a turn.
        let start = begin + self.after(if write { o.write_miss } else { o.read_miss });
        let mut arm = self.arm;
        let p = self.mechanism.pass(&mut arm, start.max(self.free), first, 1, write);
        Nanos(p.seek + p.rotation)
    }

    /// Serves a request whose service begins at `begin` (for a request that came to an idle drive, when
    /// it came). Requests are served in the order of these calls; `begin` must not go back. Sectors past
    /// the end of the disk are as the last one.
    pub fn service(&mut self, request: &Request, begin: Nanos) -> Service {
        let at = begin.0 + self.spec.overheads.command.0;
        if let Some(t) = self.mechanism.constant() {
            let start = at.max(self.free);
            self.free = start + t.0;
            self.last = request.kind;
            return Service { done: Nanos(self.free), seek: t, rotation: Nanos::ZERO, hit: Hit::Miss };
        }
        if request.sectors == 0 {
            return Service { done: Nanos(at), seek: Nanos::ZERO, rotation: Nanos::ZERO, hit: Hit::Whole };
        }
        self.advance(at);
        let service = match request.kind {
            Kind::Read => self.read(request, at),
            Kind::Write if self.spec.cache.write_back == WriteBack::Full => self.write_behind(request, at),
            Kind::Write => self.write(request, at),
        };
        self.last = request.kind;
        service
    }

    /// Which of two times counts after the request before this one.
    pub(super) fn after(&self, t: After) -> u64 {
        match self.last {
            Kind::Read => t.read.0,
            Kind::Write => t.write.0,
        }
    }

    /// Lets the background go on until `now`.
    pub(super) fn advance(&mut self, now: u64) {
        self.read_on(now);
        if self.ahead.is_none() {
            self.destage(now);
        }
    }
}
