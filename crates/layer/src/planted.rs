//! Bugs planted on purpose in the layers, see [`frit_core::planted`]. Each layer has an enum of its
//! own, so that a test selects the bugs of a layer by their type.

use frit_core::planted::{Group, PlantedBug};

/// A bug of the NAND side of a layer, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u16)]
pub enum FlashBug {
    /// A block is erased before the pages that garbage collection moved out of it are durable
    /// elsewhere.
    EraseBeforeMoved,
    /// A block is erased before the map entries that freed its pages are durable.
    EraseBeforeFreed,
    /// Blocks that were emptied since the last flush are erased at once.
    EraseBeforeFlush,
    /// A flush syncs PCM but not NAND.
    FlushOneMedium,
    /// After a crash, a free block that may not be completely erased is used without an erase.
    SuspectNotErased,
    /// A partly written block is continued after a page in which a program may have been
    /// interrupted.
    ResumeTornPage,
    /// Recovery adopts a page regardless of its version.
    AdoptAnyVersion,
    /// A failed program counts as successful.
    ProgramFailureIgnored,
    /// Logical page and version of a NAND page are not verified.
    OwnerUnchecked,
    /// A block of the cache with one bit a cell is erased before the pages that were folded out of it
    /// are durable elsewhere.
    FoldedErasedEarly,
    /// After a crash, the blocks of the cache with one bit a cell count as erased.
    CacheForgotten,
    /// After a crash, blocks with one bit a cell of a dynamic cache count as blocks with all bits.
    ModeForgotten,
}

impl PlantedBug for FlashBug {
    const GROUP: Group = Group::Flash;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the FTL, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "ftl-")]
#[repr(u16)]
pub enum FtlBug {
    /// A write of part of a page does not keep the rest of it.
    PageNotMerged,
    /// The old version of a page may be erased before the new one is programmed.
    OldFreedEarly,
    /// A block is begun before the erases of blocks that were free at that time are durable.
    BegunBeforeErases,
    /// A flush does nothing.
    FlushIgnored,
    /// A mark does not wait for the flush that it states.
    MarkBeforeFlush,
    /// A discard is not recorded in NAND.
    DiscardNotRecorded,
    /// Erases do not wait for the record of discards.
    DiscardNotOrdered,
    /// The record of discards does not wait for newer versions of pages that were discarded before.
    DiscardsBeforeData,
    /// Recovery does not apply the record of discards.
    DiscardsForgotten,
    /// Recovery does not verify the data of pages whose program may have been interrupted.
    TornUnverified,
    /// Recovery leaves interrupted pages with valid records in force.
    TornKept,
    /// Recovery takes a program unit with blank pages for a complete one.
    BlankComplete,
    /// Recovery takes the first copy that it finds of a page that was being moved.
    FirstCopyTaken,
    /// Recovery does not know pages that were lost earlier.
    LostForgotten,
    /// Sequence numbers restart after a crash.
    SeqRestarts,
    /// Writes continue after an unexpected error.
    NotPoisoned,

    /// A flush programs only the merge buffer of the stream that was written last.
    StreamNotFlushed,

    // Mapping schemes.
    /// A merge does not copy the pages that its log block does not have.
    RestNotCopied,
    /// A block may be erased before the pages that a merge copies out of it are programmed.
    MergedErasedEarly,
    /// DFTL evicts a changed entry without a write of its translation page.
    EntryNotWritten,
    /// DFTL does not write the entries of pages that garbage collection moves.
    MovedNotTranslated,
}

impl PlantedBug for FtlBug {
    const GROUP: Group = Group::Ftl;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the solid-state cache, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "ssc-")]
#[repr(u16)]
pub enum SscBug {
    // Writes, evictions and flushes.
    /// A synchronous write is acknowledged before it is programmed.
    AckBeforeProgram,
    /// A read takes the version in NAND although the write buffer has a newer one.
    BufferIgnored,
    /// An eviction changes only the map in DRAM.
    EvictNotLogged,
    /// A synchronous eviction is acknowledged before its record is durable.
    EvictNotDurable,
    /// A block stays removed in memory although its eviction could not be logged.
    EvictNotUndone,
    /// A flush does nothing.
    FlushIgnored,

    // Silent eviction.
    /// Dirty blocks of a victim are dropped, too.
    DirtyEvicted,
    /// A victim is erased before the log states that it is empty.
    EraseBeforeLog,
    /// A block is erased although its log pages are still needed.
    LogErasedEarly,

    // Log and checkpoints.
    /// A log page does not wait for the data that it names.
    LogBeforeData,
    /// A log page does not wait for the disk to have what it states to be clean.
    LogBeforeDisk,
    /// The blocks of old checkpoints are erased before the next one is durable.
    OldCheckpointErased,
    /// A full block of checkpoints is erased although it has parts of the newest one.
    NewestCheckpointErased,
    /// The second copy of a page of metadata does not wait for the first one.
    CopiesTogether,

    // Media in files.
    /// Blocks are erased before the log that states them to be empty is synced.
    EraseNotSynced,
    /// A checkpoint is written before the data that it names is synced.
    CheckpointNotSynced,
    /// A log page states programs as synced that were not.
    SyncedEarly,

    // Recovery.
    /// Recovery reads one copy of each page of metadata.
    SecondCopyIgnored,
    /// After a power loss of the machine, recovery takes damaged data for data that was not synced.
    SyncedIgnored,
    /// Recovery does not remove the blocks of a victim.
    EmptiedForgotten,
    /// Recovery ignores spare areas that are newer than the log.
    SparesIgnored,
    /// Recovery takes pages whose program may have been interrupted without verification.
    TornUnverified,
    /// Recovery does not write a checkpoint.
    NoCheckpointAtStart,
    /// After a halt, the device is used again without a statement of it.
    UseNotNoted,

    // Repair and errors.
    /// A repair drops a damaged dirty block without the option that permits an older version.
    RepairDiscards,
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for SscBug {
    const GROUP: Group = Group::Ssc;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the manager of a solid-state cache, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "flashtier-")]
#[repr(u16)]
pub enum FlashtierBug {
    // Writes.
    /// A write past the cache drops a dirty block before the disk has the new data.
    DirtyBypassed,
    /// A write past the cache does not wait until the eviction of older versions is durable.
    EvictNotOrdered,
    /// A block is cached as clean although the disk may still lose it.
    VolatileCached,

    // Cleaning and flushes.
    /// A block is written to the disk before the cache has it durably.
    CleanedEarly,
    /// A discard zeros the disk before the cache durably has the dirty blocks in its range.
    ZeroedEarly,
    /// A block becomes clean before the disk was flushed.
    CleanNotFlushed,
    /// A flush does nothing.
    FlushIgnored,
    /// A flush does not flush the disk.
    DiskNotFlushed,
    /// A flush of the disk does not wait for those before it.
    FlushesNotOrdered,

    // Recovery and errors.
    /// After a crash, clean blocks stay although the disk may have newer versions.
    CleanTrusted,
    /// Clean blocks stay if the device refuses to evict them.
    WornTrusted,
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for FlashtierBug {
    const GROUP: Group = Group::Flashtier;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the manager of an ordinary SSD as a cache, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "flashcache-")]
#[repr(u16)]
pub enum FlashcacheBug {
    // Writes.
    /// A write past the cache drops a dirty block before the disk has the new data.
    DirtyBypassed,
    /// A slot is reused before its old block is durably no longer dirty.
    ReusedEarly,
    /// The header does not state that the cache is in use.
    UseNotNoted,

    // Cleaning and flushes.
    /// A block becomes clean before the disk was flushed.
    CleanNotFlushed,
    /// An epoch is committed before its data is durable.
    CommittedEarly,
    /// A flush does nothing.
    FlushIgnored,
    /// A flush does not flush the disk.
    DiskNotFlushed,
    /// A shutdown does not flush the disk.
    HaltNotFlushed,

    // Recovery and errors.
    /// After a crash, clean blocks stay although the disk may have newer versions.
    CleanTrusted,
    /// After a crash, entries of epochs count that were not committed.
    EpochIgnored,
    /// A recovery leaves entries on the SSD that the next commit makes count.
    StaleKept,
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for FlashcacheBug {
    const GROUP: Group = Group::Flashcache;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of HFSL, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u16)]
pub enum HfslBug {
    // Slots and descriptors.
    /// A sub-page slot is reused before the entry that freed it is durable.
    SlotReuseEarly,
    /// A descriptor is reused before the entry that freed it is durable.
    DescReuseEarly,
    /// A sub-page in PCM is overwritten in place.
    OverwriteInPlace,
    /// A write of part of a sub-page does not keep the rest of it.
    SubPageNotMerged,

    // Map entries.
    /// An entry does not wait for the data that it refers to.
    EntryBeforeData,
    /// A descriptor and its entry do not wait for each other.
    EntryBeforeDesc,
    /// There is no fence after an entry.
    EntryNotFenced,
    /// A page in NAND is acknowledged when it is programmed, not when it is mapped.
    AckBeforeMap,

    // Redo records.
    /// Several entries of 4 KiB are written without a redo record.
    NoRedo,
    /// The entries do not wait for the redo record.
    RedoNotFenced,
    /// A redo record stays in force when its entries change, and recovery applies it to newer
    /// versions.
    RedoNotCleared,
    /// The next redo record and the next change of an entry do not wait for the entries of the last
    /// commit.
    RedoGateOpen,
    /// Recovery takes the valid redo record in the last line instead of the latest one.
    RedoByPosition,
    /// Recovery does not apply a redo record.
    RedoForgotten,

    // Discards and flushes.
    /// A discard changes only the table in DRAM.
    DropTrim,
    /// A discard is acknowledged before its entry is durable.
    TrimNotAcked,
    /// A flush does nothing.
    FlushIgnored,
    /// A flush updates the second map before the data is synced.
    FlushMapFirst,
    /// Slots that were freed since the last flush are reused at once.
    ReuseBeforeFlush,

    // Recovery and halts.
    /// After a power loss of the machine, recovery takes the current map, which may be newer than
    /// its data.
    FlushedMapIgnored,
    /// Sequence numbers restart after a crash.
    SeqRestarts,
    /// Slots of pages in PCM count as free after a crash.
    SlotsForgotten,
    /// The head says "halted" while map entries and erases are on their way.
    HaltedBeforeEntries,
    /// The layer is used before the head says so for certain.
    UsedBeforeNoted,

    // Verification and errors.
    /// The check bits of entries are not verified.
    EntryCheckIgnored,
    /// The checksum of a descriptor is not verified.
    DescCheckIgnored,
    /// The data checksum of a sub-page in PCM is not verified.
    PcmDataUnchecked,
    /// A check does not search for pages that are newer than the map.
    StaleEntryUnseen,
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for HfslBug {
    const GROUP: Group = Group::Hfsl;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the cache of a disk, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[repr(u16)]
pub enum CacheBug {
    // Slots and records.
    /// A cached block and its record are acknowledged without a fence.
    RecordNotFenced,
    /// Ends of records are not fenced before later records or writes to the disk.
    RecordNotSettled,
    /// The record of a block's earlier version ends before the later version is durable.
    OldRecordFirst,
    /// The record of a block's earlier version does not end.
    OldRecordStays,
    /// Records count as complete before they are fenced.
    MarkTooEarly,
    /// A slot is reused before the end of its earlier record is durable.
    SlotReuseEarly,
    /// Slots that were freed since the last flush are reused at once.
    ReuseBeforeFlush,

    // Writeback and eviction.
    /// Blocks are destaged before they are durable in the cache.
    DestagedEarly,
    /// Records of destaged blocks end before the disk is flushed.
    DestageNotFlushed,
    /// If a part of a block was written again during its writeback, recovery does not keep the rest
    /// of the block.
    RestForgotten,
    /// A clean block is evicted before the disk was flushed after its write.
    CleanLeavesEarly,

    // Discards and flushes.
    /// A discard is acknowledged before the ends of its records are durable.
    TrimNotAcked,
    /// A flush does nothing.
    FlushIgnored,
    /// A flush syncs the disk but not PCM.
    FlushOneMedium,

    // Recovery, halts and repair.
    /// Records that may be torn are accepted without verification.
    TornBlockTaken,
    /// Recovery takes the first version of a block that it finds.
    AnyVersionTaken,
    /// Recovery ignores that a version of a block has left the cache, so an earlier one may be
    /// restored.
    GoneForgotten,
    /// Recovery replaces all copies of the record of a merged block at once, so that a power loss
    /// may tear all of them.
    MergedAtOnce,
    /// A recovery from a power loss of the machine ignores a clean shutdown before it.
    HaltIgnored,
    /// A recovery does not compare the records with the summary of the clean shutdown.
    SummaryIgnored,
    /// A slot is written before the header durably states that the cache is in use.
    UseNotedLate,
    /// The header states a clean shutdown before the summary of its records is durable.
    HaltedBeforeSummary,
    /// A repair drops a damaged dirty block without the option that permits an older version.
    RepairDiscards,

    // Verification and errors.
    /// The digest of a cached block is not verified.
    PcmDataUnchecked,
    /// After a failed flush, data that bypassed the cache counts as durable once another flush
    /// succeeds.
    LostDirectIgnored,
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for CacheBug {
    const GROUP: Group = Group::Cache;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of NTL, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "ntl-")]
#[repr(u16)]
pub enum NtlBug {
    // Writes and merges.
    /// A page and its record are acknowledged without a fence.
    NotFenced,
    /// Records count as complete before they are fenced.
    MarkTooEarly,
    /// A page is overwritten at home before its copy in the log is durable.
    HomeEarly,
    /// Log pages are reused before their contents are durable at home.
    ReuseEarly,
    /// The log counts as merged before its pages are durable at home.
    TailEarly,
    /// Over files, pages are overwritten at home before the log is synced.
    HomeBeforeSync,
    /// Over files, log pages are reused before their contents are synced at home.
    ReuseBeforeSync,

    // Discards.
    /// A discard changes only the tables in DRAM.
    DiscardNotNoted,
    /// A merge does not carry the discard of a page from the log to its home location.
    DiscardForgotten,

    // Recovery and halts.
    /// Pages that may be torn are accepted without verification.
    TornTaken,
    /// Recovery takes the first version of a page that it finds in the log.
    OldVersionTaken,
    /// Recovery does not clear invalid remains of a record.
    RemainsKept,
    /// Sequence numbers restart after a crash.
    SeqRestarts,
    /// A recovery does not compare the records with the summary of the clean shutdown.
    SummaryIgnored,
    /// The header states a clean shutdown before the summary of its records is durable.
    HaltedBeforeSummary,

    // Verification and errors.
    /// The digest of a page is not verified on a read.
    DataUnchecked,
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for NtlBug {
    const GROUP: Group = Group::Ntl;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the nameless-write device or of the volume over it, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "nameless-")]
#[repr(u16)]
pub enum NamelessBug {
    // The owner of the blocks.
    /// A write of part of a block does not keep the rest of it.
    BlockNotMerged,
    /// The map of the owner does not wait for the contents that it refers to.
    MapBeforeContents,
    /// A block that the durable map refers to is freed before the new map is durable.
    FreedEarly,
    /// A block that was moved counts as one that the durable map does not refer to.
    MovedCountsAsNew,
    /// A flush does nothing.
    FlushIgnored,
    /// Over files, the map of the owner is written before the contents are synced.
    MapBeforeSync,
    /// The owner ignores migrations.
    MigrationIgnored,

    // The device.
    /// The old version of a virtual block may be erased before the new one is programmed.
    VirtualFreedEarly,
    /// A checkpoint does not wait for the virtual blocks that it states.
    CheckpointEarly,
    /// With atomic flushes, a version that the last checkpoint names may be erased before the next
    /// checkpoint is durable.
    SavedFreedEarly,
    /// With atomic flushes, a checkpoint does not wait for the virtual blocks and the parts of the map that
    /// it stands for.
    CheckpointUnordered,
    /// With atomic flushes, over files, a checkpoint is written before the parts of the map are synced.
    CheckpointBeforeSync,

    // Recovery.
    /// Recovery finds a block only at the address that its owner knows: the race of the prototype.
    MovedNotFound,
    /// Recovery takes the first copy of a block that was being moved.
    AnyCopyTaken,
    /// Recovery takes the newest version of a virtual block without verification.
    TornTaken,
    /// With atomic flushes, recovery takes versions that are newer than the last flush.
    NewerCounts,
    /// With atomic flushes, recovery reads the first copy of a checkpoint only.
    SecondCopyIgnored,
    /// Recovery does not write a checkpoint at its end.
    NoCheckpointAtStart,
    /// Sequence numbers restart after a crash.
    SeqRestarts,

    // Errors.
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for NamelessBug {
    const GROUP: Group = Group::Nameless;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the zoned device, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "zns-")]
#[repr(u16)]
pub enum ZnsBug {
    // Writes and flushes.
    /// A flush does nothing.
    FlushIgnored,
    /// A flush does not save program units that are not full.
    PartialNotSaved,
    /// The table of zones does not wait for the data that it states.
    TableBeforeData,
    /// Over files, the table of zones is written before the data is synced.
    TableBeforeSync,

    // Resets and erases.
    /// A block may be erased before what took the place of its data is durable.
    ErasedEarly,
    /// The blocks of a zone may be erased before its reset is durable.
    ErasedBeforeReset,
    /// A zone is written again before its reset is durable.
    WrittenBeforeReset,
    /// A reset does not change the epoch of the zone.
    EpochKept,

    // Recovery.
    /// Recovery takes pages after the last flush without verification.
    TornTaken,
    /// Data behind a gap stays in its blocks, and can come back later.
    JunkKept,
    /// A block in which a program may have been interrupted is written on.
    SuspectContinued,
    /// Recovery ignores saved parts of program units.
    SavedIgnored,
    /// Free blocks are not erased again after a crash.
    SuspectNotErased,

    // Errors.
    /// Writes continue after an unexpected error.
    NotPoisoned,
}

impl PlantedBug for ZnsBug {
    const GROUP: Group = Group::Zns;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
