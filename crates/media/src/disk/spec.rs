//! All that a disk is: geometry, mechanics, electronics, cache.

use super::geometry::Geometry;
use super::schedule::Scheduler;
use super::seek::SeekCurve;
use frit_core::{Error, Nanos, Result};
use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumString, IntoStaticStr};

/// How much of the mechanics is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Positioning {
    /// Seeks, and where the platter is.
    #[default]
    Full,
    /// Seeks, and half a revolution for each.
    AverageRotation,
    /// The same time for each access, transfer included.
    Constant(Nanos),
}

/// Arm and platter.
#[derive(Clone, PartialEq, Debug)]
pub struct Mechanics {
    /// What is modelled.
    pub positioning: Positioning,
    /// One revolution in picoseconds.
    pub revolution_ps: u64,
    /// The arm.
    pub seek: SeekCurve,
    /// To another head of the cylinder.
    pub head_switch: Nanos,
    /// What a write waits longer than a read after a seek or head switch, in nanoseconds; drives whose
    /// curve was measured with writes have a negative one.
    pub write_settle_ns: i64,
}

/// A time of the electronics that depends on what the request before was.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct After {
    /// When it was a read.
    pub read: Nanos,
    /// When it was a write.
    pub write: Nanos,
}

/// Times of the electronics: from the arrival of a command to the start of the arm or of the transfer, and
/// what disconnecting from a shared bus and reconnecting to it cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Overheads {
    /// Any command, at once on arrival.
    pub command: Nanos,
    /// A read whose first block is in the cache, to the start of its transfer.
    pub read_hit: After,
    /// A read, to the start of the arm.
    pub read_miss: After,
    /// A write that is acknowledged from the cache, to the start of its transfer and of the arm.
    pub write_hit: After,
    /// A write that is acknowledged from the media, to the start of its transfer and of the arm.
    pub write_miss: After,
    /// To end a read.
    pub read_complete: Nanos,
    /// To end a write.
    pub write_complete: Nanos,
    /// Before data moves over the bus.
    pub data_prepare: Nanos,
    /// To take the bus again, the first time.
    pub reselect_first: Nanos,
    /// To take the bus again, later.
    pub reselect_other: Nanos,
    /// To let go of the bus in a read.
    pub read_disconnect: After,
    /// To let go of the bus in a write.
    pub write_disconnect: Nanos,
    /// An extra disconnection of a write before its data, which some drives make.
    pub extra: Option<ExtraDisconnect>,
    /// The least that a write waits between command and media, unless it is sequential.
    pub seek_delay_min: Nanos,
}

/// The times of an extra disconnection (Worthington et al., 1995, saw it in HP drives).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExtraDisconnect {
    /// In place of the write's command overhead.
    pub command: Nanos,
    /// To let go of the bus the first time.
    pub disconnect: Nanos,
    /// Until the drive asks for the bus again.
    pub between: Nanos,
    /// To let go of the bus after the data.
    pub disconnect_again: Nanos,
    /// From the command to the start of the arm.
    pub seek_delta: Nanos,
}

/// The bus between host and drive, and who holds it when.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Bus {
    /// One sector to the host, in picoseconds. 0: not known, the host's bus decides.
    pub read_ps: u64,
    /// One sector from the host, in picoseconds. 0: not known.
    pub write_ps: u64,
    /// The drive keeps the bus from command to completion.
    pub never_disconnects: bool,
    /// The drive keeps the bus from the first to the last sector of a read.
    pub holds_reads: bool,
    /// The drive keeps the bus from the first to the last sector of a write.
    pub holds_writes: bool,
    /// Fraction of a read that is in the buffer before the transfer begins (0: its first sector).
    pub read_watermark: f64,
    /// Whether watermarks are fractions of the request; otherwise of a segment.
    pub watermark_of_request: bool,
}

/// How far a drive reads on after a read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    Off,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track, and of the next one once a stream crossed into this one.
    NextTrack,
}

/// What a drive acknowledges from its cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WriteBack {
    /// Nothing: writes are through.
    #[default]
    Off,
    /// Writes, one stream at a time: what does not continue the dirty blocks waits for them.
    Stream,
    /// As many writes as there is room for, sorted when they go to the media.
    Full,
}

/// The cache on the drive.
#[derive(Clone, PartialEq, Debug)]
pub struct CacheSpec {
    /// Whether data stays after a request. Off, it only matches speeds.
    pub enabled: bool,
    /// Segments.
    pub segments: u32,
    /// Sectors of a segment.
    pub segment_sectors: u32,
    /// One segment is for writes alone.
    pub write_segment: bool,
    /// Reading on.
    pub read_ahead: ReadAhead,
    /// Sectors that it reads on at least before it turns to the next request.
    pub read_ahead_min: u32,
    /// Sectors that it reads on at most (0: as the segment allows).
    pub read_ahead_max: u32,
    /// A read that was served from the cache starts reading on as well.
    pub read_ahead_on_hit: bool,
    /// What passes under the head before the first block wanted is kept.
    pub keeps_passing: bool,
    /// Reads take blocks in the order in which they pass, not in ascending order.
    pub read_on_arrival: bool,
    /// The same for writes.
    pub write_on_arrival: bool,
    /// A read of the very block that is being read ahead is a hit.
    pub almost_hits: bool,
    /// Blocks leave the cache when the host has read them; what was read ahead stays.
    pub forgets_read: bool,
    /// Reads find what was written.
    pub hits_on_writes: bool,
    /// Reading on stops in the middle of a sector.
    pub stops_in_sector: bool,
    /// Acknowledging from the cache.
    pub write_back: WriteBack,
    /// Dirty sectors that it holds at most, for [`WriteBack::Full`].
    pub dirty_sectors: u32,
    /// Writes that continue the dirty blocks join them.
    pub joins_writes: bool,
}

impl Default for CacheSpec {
    /// One segment of 64 KiB that matches speeds and nothing more.
    fn default() -> CacheSpec {
        CacheSpec {
            enabled: false,
            segments: 1,
            segment_sectors: 128,
            write_segment: false,
            read_ahead: ReadAhead::Off,
            read_ahead_min: 0,
            read_ahead_max: 0,
            read_ahead_on_hit: false,
            keeps_passing: false,
            read_on_arrival: false,
            write_on_arrival: false,
            almost_hits: false,
            forgets_read: false,
            hits_on_writes: false,
            stops_in_sector: true,
            write_back: WriteBack::Off,
            dirty_sectors: 0,
            joins_writes: false,
        }
    }
}

/// How long a drive passes a request over at most: assumed, since no data sheet says it. Long beside a
/// queue of 32 random requests (a quarter of a second), and short beside the time-outs of hosts (30 s in Linux).
pub const MAX_WAIT: Nanos = Nanos(1_000_000_000);

/// What becomes of commands for which no request of the host waits, while others do: destaging, wear
/// leveling, metadata, cleaning.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, EnumIter, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Background {
    /// The drive does not see them then, but for those that waited for too long.
    #[default]
    Yield,
    /// They are as all others.
    Equal,
}

/// A disk drive.
#[derive(Clone, PartialEq, Debug)]
pub struct DiskSpec {
    /// Its name.
    pub name: String,
    /// Zones, tracks, spares.
    pub geometry: Geometry,
    /// Arm and platter.
    pub mechanics: Mechanics,
    /// Times of the electronics.
    pub overheads: Overheads,
    /// The bus.
    pub bus: Bus,
    /// The cache.
    pub cache: CacheSpec,
    /// Requests that the drive takes at a time.
    pub queue_depth: u32,
    /// How it chooses among them.
    pub scheduler: Scheduler,
    /// What could have been chosen for so long goes next.
    pub max_wait: Nanos,
    /// What the host keeps from it.
    pub background: Background,
}

/// Requests that a drive can take at a time, at most. NCQ has 32 tags, drives on SAS take some hundreds: more
/// than this is a mistake.
const QUEUE_DEPTH_MAX: u32 = 1 << 20;

/// The slowest and the fastest revolution that is taken for one: 100 and 1 000 000 a minute.
const REVOLUTION_PS: std::ops::RangeInclusive<u64> = 60_000_000..=600_000_000_000;

impl DiskSpec {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// The first value that is wrong, and what would be right.
    pub fn check(&self) -> Result<()> {
        self.geometry.check()?;
        if !REVOLUTION_PS.contains(&self.mechanics.revolution_ps) {
            let why = "has to be that of 100 to 1000000 revolutions a minute";
            return Err(Error::param("revolution", self.mechanics.revolution_ps, why));
        }
        if self.mechanics.write_settle_ns.unsigned_abs() > 1_000_000_000 {
            return Err(Error::param(
                "write settle",
                self.mechanics.write_settle_ns,
                "is more than a second",
            ));
        }
        if self.cache.segments == 0 || self.cache.segments > 4096 {
            return Err(Error::param("segments", self.cache.segments, "has to be 1 to 4096"));
        }
        if self.queue_depth == 0 || self.queue_depth > QUEUE_DEPTH_MAX {
            return Err(Error::param("queue_depth", self.queue_depth, "has to be 1 to 1048576"));
        }
        if self.cache.segment_sectors == 0 {
            return Err(Error::param("sectors of a segment", 0, "has to be at least 1"));
        }
        if !(0.0..=1.0).contains(&self.bus.read_watermark) {
            return Err(Error::param("read watermark", self.bus.read_watermark, "has to be 0 to 1"));
        }
        if self.bus.read_ps > 1_000_000_000_000 || self.bus.write_ps > 1_000_000_000_000 {
            return Err(Error::param("bus", self.bus.read_ps, "is more than a second for a sector"));
        }
        Ok(())
    }

    /// Checks as well what only building a drive finds out: the layout of the sectors, and the seek curve over all
    /// cylinders.
    ///
    /// # Errors
    /// As for [`DiskSpec::check`]; a drive of a description that passes can be built.
    pub fn check_whole(&self) -> Result<()> {
        super::mechanism::Mechanism::new(self).map(drop)
    }
}
