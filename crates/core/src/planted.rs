//! Bugs planted on purpose, so that the torture can prove that it finds them.
//!
//! The feature `planted` is for tests only: without it [`is`] is constant, and nothing of this is
//! compiled in.

/// A bug, named by what it does.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    strum::EnumIter,
    strum::IntoStaticStr,
    strum::FromRepr,
    strum::EnumString,
)]
#[strum(serialize_all = "kebab-case")]
#[repr(u32)]
pub enum Bug {
    /// A block is erased before the pages that cleaning moved out of it are durable elsewhere.
    EraseBeforeMoved = 1,
    /// A block is erased before the entries are durable that gave its pages up.
    EraseBeforeFreed,
    /// A free block that may not be wholly erased is used as it is after a stop.
    SuspectNotErased,
    /// A block that was begun is filled on, over a page in which a program may have been cut off.
    ResumeTornPage,
    /// A sub-page slot is written again before the entry is durable that gave it up.
    SlotReuseEarly,
    /// A descriptor is written again before the entry is durable that gave it up.
    DescReuseEarly,
    /// A sub-page in PCM is overwritten where it is.
    OverwriteInPlace,
    /// An entry does not wait for the data that it names.
    EntryBeforeData,
    /// A descriptor and its entry do not wait for each other.
    EntryBeforeDesc,
    /// There is no fence behind an entry.
    EntryNotFenced,
    /// A page in NAND is acknowledged when it is programmed, not when it is mapped.
    AckBeforeMap,
    /// Several entries of 4 KiB are written without a redo record.
    NoRedo,
    /// The entries do not wait for the redo record.
    RedoNotFenced,
    /// The redo record stays after its entries are durable.
    RedoNotCleared,
    /// The next change of an entry does not wait for the redo record to be cleared.
    RedoGateOpen,
    /// A redo record is not completed after a stop.
    RedoForgotten,
    /// A discard changes the table in DRAM only.
    DropTrim,
    /// A discard is acknowledged before its entry is durable.
    TrimNotAcked,
    /// A flush does nothing.
    FlushIgnored,
    /// A flush syncs PCM and not NAND.
    FlushOneMedium,
    /// A flush brings the second map up to date before the data is synced.
    FlushMapFirst,
    /// Blocks that were emptied since the last flush are erased at once.
    EraseBeforeFlush,
    /// Slots that were given up since the last flush are written at once.
    ReuseBeforeFlush,
    /// After a stop of the machine the map is taken that is ahead of its data.
    FlushedMapIgnored,
    /// A page is taken over after a stop whatever version it is.
    AdoptAnyVersion,
    /// The check bits of entries are not looked at.
    EntryCheckIgnored,
    /// The checksum of a descriptor is not looked at.
    DescCheckIgnored,
    /// Sequence numbers start anew after a stop.
    SeqRestarts,
    /// Slots of pages in PCM are free after a stop.
    SlotsForgotten,
    /// A program that failed is taken for done.
    ProgramFailureIgnored,
    /// The data checksum of a NAND page is not looked at.
    NandDataUnchecked,
    /// The data checksum of a sub-page in PCM is not looked at.
    PcmDataUnchecked,
    /// Which page and version a NAND page is, is not looked at.
    OwnerUnchecked,
    /// A check does not look for pages that are newer than the map says.
    StaleEntryUnseen,
    /// The head says "halted" while map entries and erases are on their way.
    HaltedBeforeEntries,
    /// The layer is used before the head says so for certain.
    UsedBeforeNoted,
    /// After an error that nobody expected, writes go on.
    NotPoisoned,
    /// Growing a volume copies zeros for what cannot be read.
    GrowCopiesZeros,
    /// An export without `rescue` writes zeros for what cannot be read.
    ExportWritesZeros,
    /// The damage that a look for losses finds is not told.
    LossesNotTold,
    /// A cached block and its record are acknowledged without a fence.
    RecordNotFenced,
    /// The record of a block's earlier version goes before the later one is certain.
    OldRecordFirst,
    /// The record of a block's earlier version stays.
    OldRecordStays,
    /// Records that were taken away are not fenced before others, or the disk, go on.
    RecordNotSettled,
    /// Records of destaged blocks go before the disk is flushed.
    DestageNotFlushed,
    /// Records count as whole before they are fenced.
    MarkTooEarly,
    /// Records that may be torn are taken as they are.
    TornBlockTaken,
    /// The first version of a block that is found is taken.
    AnyVersionTaken,
    /// The rest of a block that was leaving when a part of it was written again is not given to the disk.
    RestForgotten,
    /// A clean block leaves before the disk was flushed that has it.
    CleanLeavesEarly,
    /// A version of a block that has left is forgotten: an earlier one may come back.
    GoneForgotten,
    /// Blocks go to the disk before they are certain in the cache.
    DestagedEarly,
    /// After a flush that failed, what was written past the cache counts as there once another succeeds.
    LostDirectIgnored,
    /// A recovery from a stop of the machine does not look whether the cache was halted before.
    HaltIgnored,
    /// A recovery does not compare the records with the summary of the halt.
    SummaryIgnored,
    /// A repair drops a damaged dirty block without being told that an older version may show.
    RepairDiscards,
    /// A slot is written before the head says for certain that the cache is in use.
    UseNotedLate,
    /// The head says that the cache was halted before the summary of its records is certain.
    HaltedBeforeSummary,
    /// Wear leveling: a register does not wait for the copy of the stripe.
    WearRegisterEarly,
    /// Wear leveling: there is no fence between the copy of a stripe and the register.
    WearCopyNotFenced,
    /// Wear leveling: there is no fence behind a register.
    WearRegisterNotFenced,
    /// Wear leveling: a copy does not wait for what was written to the stripe.
    WearCopyEarly,
    /// Wear leveling: a place is overwritten before the register is durable that gave it up.
    WearGapEarly,
    /// Wear leveling: a write to a stripe does not wait for the register of its move.
    WearWriteEarly,
    /// Wear leveling: the steps of an exchange by way of the scratch stripe are not noted.
    WearSwapNotNoted,
    /// Wear leveling: after a stop, a register is taken for the newest though a newer one is damaged.
    WearDamageUnseen,
    /// Wear leveling: a region moves twice between two flushes.
    WearMovedTwice,
    /// Wear leveling: registers as of the last flush are written before the data is synced.
    WearSyncedFirst,
    /// Wear leveling: after a stop of the machine the registers are taken that are ahead of their data.
    WearSyncedIgnored,
    /// Wear leveling: registers that a stop of the machine made void stay.
    WearVoidKept,
    /// Wear leveling: a recovery from a stop of the machine is not marked as begun.
    WearRestoreUnmarked,
    /// NTL: a page and its record are acknowledged without a fence.
    NtlNotFenced,
    /// NTL: a page comes home before its copy in the log is certain.
    NtlHomeEarly,
    /// NTL: log pages are written again before what they held is certain at home.
    NtlReuseEarly,
    /// NTL: the log is taken for merged before its pages are certain at home.
    NtlTailEarly,
    /// NTL: records count as whole before they are fenced.
    NtlMarkTooEarly,
    /// NTL: pages that may be torn are taken as they are.
    NtlTornTaken,
    /// NTL: the first version of a page that is found in the log is taken.
    NtlOldVersionTaken,
    /// NTL: what a stop left of a record stays.
    NtlRemainsKept,
    /// NTL: sequence numbers start anew after a stop.
    NtlSeqRestarts,
    /// NTL: a discard changes the tables in DRAM only.
    NtlDiscardNotNoted,
    /// NTL: when the log is merged, a page that was discarded there stays at home.
    NtlDiscardForgotten,
    /// NTL: the digest of a page is not looked at when it is read.
    NtlDataUnchecked,
    /// NTL: over files, pages come home before the log is synced.
    NtlHomeBeforeSync,
    /// NTL: over files, log pages are written again before what they held is synced at home.
    NtlReuseBeforeSync,
    /// NTL: a recovery does not compare the records with the summary of the halt.
    NtlSummaryIgnored,
    /// NTL: the head says that the layer was halted before the summary of its records is certain.
    NtlHaltedBeforeSummary,
    /// File system: a transaction does not wait for the contents that it makes visible.
    FsDataNotFenced,
    /// File system: changes are carried out in place while their log is still on its way.
    FsApplyBeforeLog,
    /// File system: changes are carried out in place without a fence behind their log.
    FsLogNotFenced,
    /// File system: a start takes a transaction that does not match its check.
    FsTornLogTaken,
    /// File system: a start carries the last transaction out again and not the one before.
    FsReplayLastOnly,
    /// File system: a start carries no transaction out again.
    FsReplayForgotten,
    /// File system: what a write leaves of a new block is not zeroed.
    FsEdgesNotZeroed,
    /// File system: bytes behind the end are not zeroed before the size grows over them.
    FsTailNotZeroed,
    /// File system: new blocks of a directory are not zeroed.
    FsDirectoryNotZeroed,
    /// File system: of a long name that is removed only the first slot is emptied.
    FsNameHalfCleared,
    /// File system: a name that is removed stays on the medium.
    FsNameStays,
    /// File system: an orphan that is freed stays on the list.
    FsOrphanStays,
    /// File system: a file without names that is open is not listed.
    FsOrphanNotListed,
    /// File system: a start does not look after orphans.
    FsOrphansForgotten,
    /// File system: a new directory is not counted as a link of its parent.
    FsParentNotCounted,
    /// File system: a directory that moved keeps its old parent.
    FsParentStays,
    /// File system: a link is counted in a transaction of its own, behind its name.
    FsLinkCountLater,
    /// File system: a move makes the new name and takes the old one away in two transactions.
    FsRenameTwoSteps,
    /// File system: extended attributes are overwritten where they are.
    FsXattrInPlace,
    /// File system: the body of a file goes before its inode is durably free.
    FsBodyBeforeName,
    /// File system: the generation of an inode is left out of the name of its body.
    FsBodyUnnumbered,
    /// File system: a start leaves bodies of inodes that are gone.
    FsBodiesNotSwept,
    /// File system: blocks of a file are said to be where they were copied to before the copies are durable.
    FsMovedUnfenced,
    /// File system: bytes are overwritten before it is durable that their block has no checksum.
    FsSumClearedLate,
    /// File system: a checksum may be durable before the bytes that it is of.
    FsSumBeforeBytes,
    /// File system: a block that is used again keeps the checksum of what it held before.
    FsSumOfOtherStays,
    /// File system: more inodes without names than the list of orphans has room for are not noted.
    FsMoreOrphansNotNoted,
    /// File system: a start frees the orphans on the list alone, where there are more.
    FsMoreOrphansForgotten,
    /// File system: the count of names of a directory stays as it was when names change.
    FsNamesNotCounted,
    /// File system: what counts as written around a write into allocated blocks is not zeroed.
    FsAroundNotZeroed,
    /// File system: a listing leaves out entries whose inode cannot be read.
    FsUnreadableUnlisted,
    /// File system: a listing of a directory with damaged names ends as if these had been all.
    FsDamagedNamesUntold,
    /// File system: a directory is not compared with the count of its names.
    FsNamesNotCompared,
    /// File system: the target of a symbolic link is not compared with its check.
    FsTargetUnchecked,
    /// File system: contents are not compared with their checksums where they are read.
    FsContentsUnchecked,
    /// File system: a part of a block is written without a look at what the rest of it is.
    FsPartUnchecked,
    /// File system: a repair empties a damaged name without a word.
    FsRepairUntold,
    /// File system: a check does not compare targets of symbolic links.
    FsCheckSkipsTargets,
    /// File system: the extents of a file are not compared with the count of its blocks.
    FsBlocksNotCompared,
    /// Image in an ordinary file: the double-write file is not synced before the image is written.
    FileLogNotSynced,
    /// Image in an ordinary file: the name of a new double-write file is not synced.
    FileNameNotSynced,
    /// Image in an ordinary file: the double-write file is marked as done before the image is synced.
    FileDoneEarly,
    /// Image in an ordinary file: a double-write file that does not match its checks is carried out.
    FileTornLogTaken,
    /// Image in an ordinary file: a start does not look for a double-write file.
    FileLogForgotten,
    /// Image in an ordinary file: pages are changed where they are while a sync writes them.
    FileNotFrozen,
    /// Image in an ordinary file: a sync writes pages that were changed since it began.
    FileLaterPages,
    /// Image in an ordinary file: which sync the image is at is not compared.
    FileNumberIgnored,
}

impl Bug {
    /// Whether it is one of the file system, or of the file that it is in.
    #[must_use]
    pub fn is_of_fs(self) -> bool {
        self as u32 >= Bug::FsDataNotFenced as u32
    }

    /// Returns `true` if damage shows it, and power cuts do not.
    #[must_use]
    pub fn is_of_damaged_fs(self) -> bool {
        (Bug::FsUnreadableUnlisted as u32..Bug::FileLogNotSynced as u32).contains(&(self as u32))
    }

    /// Returns `true` for a bug of the commands on whole volumes, which a layer alone cannot show.
    #[must_use]
    pub fn is_of_volume(self) -> bool {
        matches!(self, Bug::GrowCopiesZeros | Bug::ExportWritesZeros | Bug::LossesNotTold)
    }

    /// Whether it is one of an image in an ordinary file, which other media cannot show.
    #[must_use]
    pub fn is_of_file(self) -> bool {
        self as u32 >= Bug::FileLogNotSynced as u32
    }

    /// Whether it is one of wear leveling, which a stack without it cannot show.
    #[must_use]
    pub fn is_of_wear(self) -> bool {
        !self.is_of_fs() && !self.is_of_ntl() && self as u32 >= Bug::WearRegisterEarly as u32
    }

    /// Whether it is one of address mapping on byte-addressable memory, which other stacks cannot show.
    #[must_use]
    pub fn is_of_ntl(self) -> bool {
        !self.is_of_fs() && self as u32 >= Bug::NtlNotFenced as u32
    }

    /// Whether it is one of the cache of a disk, which other stacks cannot show.
    #[must_use]
    pub fn is_of_cache(self) -> bool {
        !self.is_of_fs()
            && !self.is_of_wear()
            && !self.is_of_ntl()
            && self as u32 >= Bug::RecordNotFenced as u32
    }
}

#[cfg(feature = "planted")]
mod on {
    use super::Bug;
    use std::sync::atomic::{AtomicU32, Ordering};

    static PLANTED: AtomicU32 = AtomicU32::new(0);

    /// Plants a bug in the whole process, or none.
    pub fn set(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |b| b as u32), Ordering::SeqCst);
    }

    /// Silences messages of panics while a bug is planted: a panic is one way to be found. Others print.
    pub fn silence_panics() {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if PLANTED.load(Ordering::SeqCst) == 0 {
                print(info);
            }
        }));
    }

    /// Whether a bug is planted.
    #[must_use]
    pub fn is(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u32
    }
}

#[cfg(feature = "planted")]
pub use on::{is, set, silence_panics};

/// Whether a bug is planted: never, without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
#[must_use]
pub const fn is(_: Bug) -> bool {
    false
}
