//! All parameters of a disk: geometry, mechanics, electronics, cache.

use super::geometry::DiskGeometry;
use super::seek::SeekCurve;
use frit_core::{Error, Nanos, Result};
use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumString, IntoStaticStr};

/// Level of detail of the positioning model.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Positioning {
    /// Seeks, and the angle of the platter.
    #[default]
    Full,
    /// Seeks, and half a revolution for each.
    AverageRotation,
    /// The same time for every access, transfer included.
    Constant(Nanos),
}

/// Parameters of the arm and the platter.
#[derive(Clone, PartialEq, Debug)]
pub struct Mechanics {
    /// Level of detail of the positioning model.
    pub positioning: Positioning,
    /// Duration of a revolution in picoseconds.
    pub revolution_ps: u64,
    /// Seek curve of the arm.
    pub seek: SeekCurve,
    /// Time of a switch to another head of the cylinder.
    pub head_switch: Nanos,
    /// Additional time of a write after a seek or head switch, in nanoseconds; negative for drives
    /// whose seek curve was measured with writes.
    pub write_settle_ns: i64,
}

/// A time of the electronics that depends on the kind of the previous request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OverheadAfter {
    /// Time after a read.
    pub read: Nanos,
    /// Time after a write.
    pub write: Nanos,
}

/// Overheads of the electronics: from the arrival of a command to the start of the arm or of the
/// transfer, and for disconnecting from a shared bus and reconnecting to it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Overheads {
    /// Overhead of any command on arrival.
    pub command: Nanos,
    /// Read whose first block is in the cache: time to the start of its transfer.
    pub read_hit: OverheadAfter,
    /// Other reads: time to the start of the arm.
    pub read_miss: OverheadAfter,
    /// Write that is acknowledged from the cache: time to the start of its transfer and of the arm.
    pub write_hit: OverheadAfter,
    /// Write that is acknowledged from the platters: time to the start of its transfer and of the
    /// arm.
    pub write_miss: OverheadAfter,
    /// Completion of a read.
    pub read_complete: Nanos,
    /// Completion of a write.
    pub write_complete: Nanos,
    /// Preparation of a data transfer over the bus.
    pub data_prepare: Nanos,
    /// First reselection: time to take the bus again.
    pub reselect_first: Nanos,
    /// Later reselections.
    pub reselect_other: Nanos,
    /// Disconnection in a read: time to release the bus.
    pub read_disconnect: OverheadAfter,
    /// Disconnection in a write: time to release the bus.
    pub write_disconnect: Nanos,
    /// An additional disconnection of a write before its data, which some drives make.
    pub extra: Option<ExtraDisconnect>,
    /// Minimum time between command and platter access of a write that is not sequential.
    pub seek_delay_min: Nanos,
}

/// Times of an additional disconnection (Worthington et al., 1995, observed it in HP drives).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExtraDisconnect {
    /// Command overhead, in place of that of the write.
    pub command: Nanos,
    /// First disconnection: time to release the bus.
    pub disconnect: Nanos,
    /// Time until the drive requests the bus again.
    pub between: Nanos,
    /// Disconnection after the data: time to release the bus.
    pub disconnect_again: Nanos,
    /// Time from the command to the start of the arm.
    pub seek_delta: Nanos,
}

/// The bus between host and drive, and the rules by which the drive holds it.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Bus {
    /// Transfer time of a sector to the host, in picoseconds. 0 if unknown: the host's bus decides.
    pub read_ps: u64,
    /// Transfer time of a sector from the host, in picoseconds. 0 if unknown.
    pub write_ps: u64,
    /// The drive holds the bus from command to completion.
    pub never_disconnects: bool,
    /// The drive holds the bus from the first to the last sector of a read.
    pub holds_reads: bool,
    /// The drive holds the bus from the first to the last sector of a write.
    pub holds_writes: bool,
    /// Fraction of a read that is in the buffer before the transfer begins (0: its first sector).
    pub read_watermark: f64,
    /// `true` if the watermark is a fraction of the request; otherwise it is a fraction of a
    /// segment.
    pub watermark_of_request: bool,
}

/// Extent of the read-ahead after a read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReadAhead {
    /// No read-ahead.
    #[default]
    Off,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track; to the end of the next track if the stream has crossed into this
    /// one.
    NextTrack,
}

/// Writes that a drive acknowledges from its cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WriteBack {
    /// No writes: the cache is write-through.
    #[default]
    Off,
    /// Writes of one stream at a time; a write that does not continue the dirty blocks waits for
    /// them.
    Stream,
    /// All writes for which the cache has space; the drive sorts them when it destages them.
    Full,
}

/// Cache of the drive.
#[derive(Clone, PartialEq, Debug)]
pub struct CacheSpec {
    /// The cache keeps data after a request. If `false`, it is only a speed-matching buffer.
    pub enabled: bool,
    /// Number of segments.
    pub segments: u32,
    /// Sectors per segment.
    pub segment_sectors: u32,
    /// One segment is reserved for writes.
    pub write_segment: bool,
    /// Extent of the read-ahead.
    pub read_ahead: ReadAhead,
    /// Minimum read-ahead in sectors before the drive serves the next request.
    pub read_ahead_min: u32,
    /// Maximum read-ahead in sectors (0: limited by the segment).
    pub read_ahead_max: u32,
    /// A read that is served from the cache starts a read-ahead as well.
    pub read_ahead_on_hit: bool,
    /// The cache keeps blocks that pass under the head before the first requested block.
    pub read_free_blocks: bool,
    /// Reads transfer blocks in the order in which they pass, not in ascending order.
    pub read_on_arrival: bool,
    /// Writes transfer blocks in the order in which they pass, not in ascending order.
    pub write_on_arrival: bool,
    /// A read of the block that is being read ahead is a hit.
    pub almost_hits: bool,
    /// Blocks are dropped from the cache when the host has read them; blocks that were read ahead
    /// stay.
    pub discards_read: bool,
    /// Reads can hit written data.
    pub hits_on_writes: bool,
    /// A read-ahead can be stopped within a sector.
    pub stops_in_sector: bool,
    /// Writes that are acknowledged from the cache.
    pub write_back: WriteBack,
    /// Maximum number of dirty sectors, for [`WriteBack::Full`].
    pub dirty_sectors: u32,
    /// A write that continues the dirty blocks joins them.
    pub combines_writes: bool,
}

impl Default for CacheSpec {
    /// One segment of 64 KiB that is only a speed-matching buffer.
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
            read_free_blocks: false,
            read_on_arrival: false,
            write_on_arrival: false,
            almost_hits: false,
            discards_read: false,
            hits_on_writes: false,
            stops_in_sector: true,
            write_back: WriteBack::Off,
            dirty_sectors: 0,
            combines_writes: false,
        }
    }
}

/// Default of the longest time for which a drive passes over a request. The value is assumed, since
/// no data sheet states one: it is long compared with a queue of 32 random requests (a quarter of a
/// second), and short compared with the time-outs of hosts (30 s in Linux).
pub const MAX_WAIT: Nanos = Nanos(1_000_000_000);

/// Order in which a drive serves the requests in its queue.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Debug,
    Serialize,
    Deserialize,
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DriveScheduler {
    /// First come, first served.
    #[default]
    Fifo,
    /// Shortest seek time first: the nearest cylinder.
    Sstf,
    /// Elevator: the nearest cylinder ahead; the direction reverses when no request is ahead
    /// (LOOK).
    Scan,
    /// Ascending cylinders only, then back to the lowest one.
    CLook,
    /// Shortest positioning time first: seek and rotation together.
    Sptf,
}

/// Treatment of commands for which no request of the host waits (destaging, wear leveling,
/// metadata, cleaning) while other commands wait.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, EnumIter, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Background {
    /// The drive does not see them, except for those that have waited too long.
    #[default]
    Yield,
    /// They are treated like all others.
    Equal,
}

/// Parameters of a disk drive.
#[derive(Clone, PartialEq, Debug)]
pub struct DiskSpec {
    /// Name of the drive.
    pub name: String,
    /// Zones, tracks, spares.
    pub geometry: DiskGeometry,
    /// Arm and platter.
    pub mechanics: Mechanics,
    /// Overheads of the electronics.
    pub overheads: Overheads,
    /// Bus to the host.
    pub bus: Bus,
    /// Cache of the drive.
    pub cache: CacheSpec,
    /// Maximum number of requests that the drive accepts at a time.
    pub queue_depth: u32,
    /// Order in which the drive serves them.
    pub scheduler: DriveScheduler,
    /// Longest time for which a request that could be served is passed over.
    pub max_wait: Nanos,
    /// Treatment of background commands.
    pub background: Background,
}

/// Upper limit of the queue depth. NCQ has 32 tags and SAS drives accept some hundreds of requests:
/// a larger value is an error.
const QUEUE_DEPTH_MAX: u32 = 1 << 20;

/// Accepted durations of a revolution: those of 100 to 1 000 000 revolutions per minute.
const REVOLUTION_PS: std::ops::RangeInclusive<u64> = 60_000_000..=600_000_000_000;

impl DiskSpec {
    /// Checks the values one by one.
    ///
    /// # Errors
    /// The first value that is wrong, and the values that are allowed.
    pub fn check(&self) -> Result<()> {
        self.geometry.check()?;
        if !REVOLUTION_PS.contains(&self.mechanics.revolution_ps) {
            let why = "has to be that of 100 to 1000000 revolutions per minute";
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
        let slower_ps = self.bus.read_ps.max(self.bus.write_ps);
        if slower_ps > 1_000_000_000_000 {
            return Err(Error::param("bus", slower_ps, "is more than a second for a sector"));
        }
        Ok(())
    }
}
