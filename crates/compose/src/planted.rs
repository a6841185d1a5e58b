//! Bugs of composition that tests plant on purpose, see [`frit_core::planted`].

use frit_core::planted::{Group, PlantedBug};

/// A bug of the composition of layers, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "nest-")]
#[repr(u16)]
pub enum NestBug {
    // Requests.
    /// An upper layer gets the acknowledgement of a request before the layer below gives it.
    AckEarly,
    /// A request to a layer below does not wait for what the upper layer put before it.
    StartEarly,
    /// A write that fails in the layer below is acknowledged.
    WriteErrorDropped,
    /// A request of several parts is acknowledged with its first part.
    FirstPartAcked,
    /// A discard is not passed down.
    ZeroNotPassed,

    // Durability.
    /// A flush is not passed down.
    FlushNotPassed,
    /// A flush reaches the first device only.
    FlushFirstDevice,
    /// The flush of a composer's device does not wait for the writes before it.
    FlushEarly,
    /// The guarantee of a composer is that of its strongest device.
    StrongestGuarantee,

    // Start and end.
    /// Only the first device is formatted.
    FormatFirstDevice,
    /// The layers below are not recovered.
    BelowNotRecovered,
    /// Only the first device is recovered.
    RecoverFirstDevice,
    /// Findings of a layer below are not reported.
    FindingsDropped,
}

impl PlantedBug for NestBug {
    const GROUP: Group = Group::Nest;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of a mirror, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "mirror-")]
#[repr(u16)]
pub enum MirrorBug {
    // Marks.
    /// A write does not wait for the mark of its region.
    DataBeforeMark,
    /// A mark is not flushed.
    MarkNotFlushed,
    /// A mark is cleared before the data of its region is flushed.
    ClearedBeforeFlush,
    /// Marks are cleared although a side is out of service.
    ClearedDegraded,

    // Sides.
    /// The failure of a side is not noted on the others before the acknowledgement.
    FailureNotNoted,
    /// A read error is returned and no other side is tried.
    ReadErrorReturned,

    // Start and copies.
    /// A stale side serves at the next start.
    StaleSideServes,
    /// The bitmap of a stale side is not read at a start.
    StaleBitmapIgnored,
    /// Regions are copied from another side than the one that serves them.
    CopiedFromOtherSide,
}

impl PlantedBug for MirrorBug {
    const GROUP: Group = Group::Mirror;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the table of entries, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "table-")]
#[repr(u16)]
pub enum TableBug {
    /// The changed sectors are written before the data that they name is flushed.
    WrittenBeforeData,
    /// The acknowledgement of a flush does not wait for the changed sectors.
    FlushedBeforeTable,
    /// A sector is taken without its CRC.
    CrcIgnored,
    /// The first copy of a sector is taken also if the second one is newer.
    SequenceIgnored,
}

impl PlantedBug for TableBug {
    const GROUP: Group = Group::ComposedTable;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of thin provisioning, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "thin-")]
#[repr(u16)]
pub enum ThinBug {
    /// A freed chunk is used again before the table that no longer names it is durable.
    ReusedBeforeCommit,
    /// A write to a reused chunk does not wait for the commit that freed it.
    ReuseNotOrdered,
    /// Only the first write to a reused chunk waits for that commit.
    ReuseOrderedOnce,
    /// The rest of a new chunk keeps its former contents.
    NewChunkNotZeroed,
    /// A discard of a whole chunk is not written to the table.
    DiscardForgotten,
}

impl PlantedBug for ThinBug {
    const GROUP: Group = Group::Thin;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of compression, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "compress-")]
#[repr(u16)]
pub enum CompressBug {
    /// The old run of a chunk is used again before the commit that replaces it.
    OldRunFreedEarly,
    /// A write to a free run does not wait for the commit that freed it.
    ReuseNotOrdered,
    /// The digest of a chunk is not verified.
    ChecksumIgnored,
    /// A flush does not write the buffered chunks.
    BufferNotWritten,
    /// A write to a part of a chunk does not keep the rest.
    RestNotMerged,
}

impl PlantedBug for CompressBug {
    const GROUP: Group = Group::Compress;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of a log of segments, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "segments-")]
#[repr(u16)]
pub enum SegmentsBug {
    /// A flush does not put the open segments.
    OpenSegmentNotPut,
    /// The map is written before the store has the objects that it names.
    MapBeforeObjects,
    /// Objects are deleted before the map that no longer names them is durable.
    DeletedBeforeCommit,
    /// The checksum of a chunk is not verified.
    ChecksumIgnored,
    /// A write to a part of a chunk does not keep the rest.
    RestNotMerged,
    /// A discard of a whole chunk is not written to the map.
    DiscardForgotten,
}

impl PlantedBug for SegmentsBug {
    const GROUP: Group = Group::Segments;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
