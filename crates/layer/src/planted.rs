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
}

impl PlantedBug for FlashBug {
    const GROUP: Group = Group::Flash;

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
    /// If a part of a block was written again during its writeback, the rest of the block is not
    /// written to the disk.
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
