//! Bugs planted on purpose, so that tests can prove that the torture finds them.
//!
//! The feature `planted` is for tests only. Without it [`is`] is constant, and none of this code is
//! compiled in.

/// A bug, named by its effect.
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
    /// A block is erased before the pages that garbage collection moved out of it are durable
    /// elsewhere.
    EraseBeforeMoved = 1,
    /// A block is erased before the map entries that freed its pages are durable.
    EraseBeforeFreed,
    /// After a crash, a free block that may not be completely erased is used without an erase.
    SuspectNotErased,
    /// A partly written block is continued after a page in which a program may have been
    /// interrupted.
    ResumeTornPage,
    /// A sub-page slot is reused before the entry that freed it is durable.
    SlotReuseEarly,
    /// A descriptor is reused before the entry that freed it is durable.
    DescReuseEarly,
    /// A sub-page in PCM is overwritten in place.
    OverwriteInPlace,
    /// An entry does not wait for the data that it refers to.
    EntryBeforeData,
    /// A descriptor and its entry do not wait for each other.
    EntryBeforeDesc,
    /// There is no fence after an entry.
    EntryNotFenced,
    /// A page in NAND is acknowledged when it is programmed, not when it is mapped.
    AckBeforeMap,
    /// Several entries of 4 KiB are written without a redo record.
    NoRedo,
    /// The entries do not wait for the redo record.
    RedoNotFenced,
    /// The redo record is not cleared after its entries are durable.
    RedoNotCleared,
    /// The next change of an entry does not wait for the redo record to be cleared.
    RedoGateOpen,
    /// Recovery does not apply a redo record.
    RedoForgotten,
    /// A discard changes only the table in DRAM.
    DropTrim,
    /// A discard is acknowledged before its entry is durable.
    TrimNotAcked,
    /// A flush does nothing.
    FlushIgnored,
    /// A flush syncs PCM but not NAND.
    FlushOneMedium,
    /// A flush updates the second map before the data is synced.
    FlushMapFirst,
    /// Blocks that were emptied since the last flush are erased at once.
    EraseBeforeFlush,
    /// Slots that were freed since the last flush are reused at once.
    ReuseBeforeFlush,
    /// After a power loss of the machine, recovery takes the current map, which may be newer than
    /// its data.
    FlushedMapIgnored,
    /// Recovery adopts a page regardless of its version.
    AdoptAnyVersion,
    /// The check bits of entries are not verified.
    EntryCheckIgnored,
    /// The checksum of a descriptor is not verified.
    DescCheckIgnored,
    /// Sequence numbers restart after a crash.
    SeqRestarts,
    /// Slots of pages in PCM count as free after a crash.
    SlotsForgotten,
    /// A failed program counts as successful.
    ProgramFailureIgnored,
    /// The data checksum of a NAND page is not verified.
    NandDataUnchecked,
    /// The data checksum of a sub-page in PCM is not verified.
    PcmDataUnchecked,
    /// Logical page and version of a NAND page are not verified.
    OwnerUnchecked,
    /// A check does not search for pages that are newer than the map.
    StaleEntryUnseen,
    /// The head says "halted" while map entries and erases are on their way.
    HaltedBeforeEntries,
    /// The layer is used before the head says so for certain.
    UsedBeforeNoted,
    /// Writes continue after an unexpected error.
    NotPoisoned,
    /// Growing a volume copies zeros for data that cannot be read.
    GrowCopiesZeros,
    /// An export without `rescue` writes zeros for data that cannot be read.
    ExportWritesZeros,
    /// The losses that a search finds are not reported.
    LossesNotTold,
    /// A cached block and its record are acknowledged without a fence.
    RecordNotFenced,
    /// The record of a block's earlier version ends before the later version is durable.
    OldRecordFirst,
    /// The record of a block's earlier version does not end.
    OldRecordStays,
    /// Ends of records are not fenced before later records or writes to the disk.
    RecordNotSettled,
    /// Records of destaged blocks end before the disk is flushed.
    DestageNotFlushed,
    /// Records count as complete before they are fenced.
    MarkTooEarly,
    /// Records that may be torn are accepted without verification.
    TornBlockTaken,
    /// Recovery takes the first version of a block that it finds.
    AnyVersionTaken,
    /// If a part of a block was written again during its writeback, the rest of the block is not
    /// written to the disk.
    RestForgotten,
    /// A clean block is evicted before the disk was flushed after its write.
    CleanLeavesEarly,
    /// Recovery ignores that a version of a block has left the cache, so an earlier one may be
    /// restored.
    GoneForgotten,
    /// Blocks are destaged before they are durable in the cache.
    DestagedEarly,
    /// After a failed flush, data that bypassed the cache counts as durable once another flush
    /// succeeds.
    LostDirectIgnored,
    /// A recovery from a power loss of the machine ignores a clean shutdown before it.
    HaltIgnored,
    /// A recovery does not compare the records with the summary of the clean shutdown.
    SummaryIgnored,
    /// A repair drops a damaged dirty block without the option that permits an older version.
    RepairDiscards,
    /// A slot is written before the header durably states that the cache is in use.
    UseNotedLate,
    /// The header states a clean shutdown before the summary of its records is durable.
    HaltedBeforeSummary,
    /// Wear leveling: a register does not wait for the copy of the stripe.
    WearRegisterEarly,
    /// Wear leveling: there is no fence between the copy of a stripe and the register.
    WearCopyNotFenced,
    /// Wear leveling: there is no fence after a register.
    WearRegisterNotFenced,
    /// Wear leveling: a copy does not wait for earlier writes to the stripe.
    WearCopyEarly,
    /// Wear leveling: a place is overwritten before the register that freed it is durable.
    WearGapEarly,
    /// Wear leveling: a write to a stripe does not wait for the register of its move.
    WearWriteEarly,
    /// Wear leveling: the steps of an exchange through the scratch stripe are not recorded.
    WearSwapNotNoted,
    /// Wear leveling: recovery takes a register for the newest although a newer one is damaged.
    WearDamageUnseen,
    /// Wear leveling: a region moves twice between two flushes.
    WearMovedTwice,
    /// Wear leveling: registers as of the last flush are written before the data is synced.
    WearSyncedFirst,
    /// Wear leveling: after a power loss of the machine, recovery takes registers that are newer
    /// than their data.
    WearSyncedIgnored,
    /// Wear leveling: registers that a power loss of the machine made invalid are not cleared.
    WearVoidKept,
    /// Wear leveling: a recovery from a power loss of the machine is not marked as begun.
    WearRestoreUnmarked,
    /// NTL: a page and its record are acknowledged without a fence.
    NtlNotFenced,
    /// NTL: a page is overwritten at home before its copy in the log is durable.
    NtlHomeEarly,
    /// NTL: log pages are reused before their contents are durable at home.
    NtlReuseEarly,
    /// NTL: the log counts as merged before its pages are durable at home.
    NtlTailEarly,
    /// NTL: records count as complete before they are fenced.
    NtlMarkTooEarly,
    /// NTL: pages that may be torn are accepted without verification.
    NtlTornTaken,
    /// NTL: recovery takes the first version of a page that it finds in the log.
    NtlOldVersionTaken,
    /// NTL: recovery does not clear invalid remains of a record.
    NtlRemainsKept,
    /// NTL: sequence numbers restart after a crash.
    NtlSeqRestarts,
    /// NTL: a discard changes only the tables in DRAM.
    NtlDiscardNotNoted,
    /// NTL: a merge does not carry the discard of a page from the log to its home location.
    NtlDiscardForgotten,
    /// NTL: the digest of a page is not verified on a read.
    NtlDataUnchecked,
    /// NTL: over files, pages are overwritten at home before the log is synced.
    NtlHomeBeforeSync,
    /// NTL: over files, log pages are reused before their contents are synced at home.
    NtlReuseBeforeSync,
    /// NTL: a recovery does not compare the records with the summary of the clean shutdown.
    NtlSummaryIgnored,
    /// NTL: the header states a clean shutdown before the summary of its records is durable.
    NtlHaltedBeforeSummary,
    /// File system: a transaction does not wait for the contents that it makes visible.
    FsDataNotFenced,
    /// File system: changes are applied in place before their journal entry is durable.
    FsApplyBeforeLog,
    /// File system: changes are applied in place without a fence after their journal entry.
    FsLogNotFenced,
    /// File system: replay applies a transaction that does not match its checksum.
    FsTornLogTaken,
    /// File system: replay applies the last transaction but not the one before.
    FsReplayLastOnly,
    /// File system: a mount does not replay the journal.
    FsReplayForgotten,
    /// File system: the parts of a new block that a write does not cover are not zeroed.
    FsEdgesNotZeroed,
    /// File system: bytes after the end of a file are not zeroed before the file grows over them.
    FsTailNotZeroed,
    /// File system: new blocks of a directory are not zeroed.
    FsDirectoryNotZeroed,
    /// File system: when a long name is removed, only its first slot is cleared.
    FsNameHalfCleared,
    /// File system: a removed name stays on the medium.
    FsNameStays,
    /// File system: a freed orphan stays on the list of orphans.
    FsOrphanStays,
    /// File system: an open file without names is not added to the list of orphans.
    FsOrphanNotListed,
    /// File system: a mount does not process the list of orphans.
    FsOrphansForgotten,
    /// File system: a new directory is not counted as a link of its parent.
    FsParentNotCounted,
    /// File system: a moved directory keeps its old parent.
    FsParentStays,
    /// File system: a link is counted in a separate transaction after its name.
    FsLinkCountLater,
    /// File system: a rename adds the new name and removes the old one in two transactions.
    FsRenameTwoSteps,
    /// File system: extended attributes are overwritten in place.
    FsXattrInPlace,
    /// File system: the external contents of a file are removed before its inode is durably free.
    FsBodyBeforeName,
    /// File system: the file name of external contents lacks the generation of the inode.
    FsBodyUnnumbered,
    /// File system: a mount does not remove external contents of inodes that no longer exist.
    FsBodiesNotSwept,
    /// File system: moved blocks are mapped at their new place before the copies are durable.
    FsMovedUnfenced,
    /// File system: bytes are overwritten before the removal of their block's checksum is durable.
    FsSumClearedLate,
    /// File system: a checksum may be durable before the bytes that it covers.
    FsSumBeforeBytes,
    /// File system: a reused block keeps the checksum of its former contents.
    FsSumOfOtherStays,
    /// File system: an overflow of the list of orphans is not noted.
    FsMoreOrphansNotNoted,
    /// File system: a mount frees only the orphans on the list, although the list had overflowed.
    FsMoreOrphansForgotten,
    /// File system: the count of names of a directory is not updated when names change.
    FsNamesNotCounted,
    /// File system: the rest of a block that counts as written after a write into allocated blocks
    /// is not zeroed.
    FsAroundNotZeroed,
    /// File system: a listing omits entries whose inode cannot be read.
    FsUnreadableUnlisted,
    /// File system: a listing of a directory with damaged names ends without an error.
    FsDamagedNamesUntold,
    /// File system: a directory is not compared with the count of its names.
    FsNamesNotCompared,
    /// File system: the target of a symbolic link is not compared with its checksum.
    FsTargetUnchecked,
    /// File system: contents are not compared with their checksums on a read.
    FsContentsUnchecked,
    /// File system: a part of a block is written without verification of the rest of the block.
    FsPartUnchecked,
    /// File system: a repair clears a damaged name without a report.
    FsRepairUntold,
    /// File system: a check does not verify targets of symbolic links.
    FsCheckSkipsTargets,
    /// File system: the extents of a file are not compared with the count of its blocks.
    FsBlocksNotCompared,
    /// Image in an ordinary file: the double-write file is not synced before the image is written.
    FileLogNotSynced,
    /// Image in an ordinary file: the name of a new double-write file is not synced.
    FileNameNotSynced,
    /// Image in an ordinary file: the double-write file is marked as done before the image is
    /// synced.
    FileDoneEarly,
    /// Image in an ordinary file: a double-write file that does not match its checksums is applied.
    FileTornLogTaken,
    /// Image in an ordinary file: a mount does not search for a double-write file.
    FileLogForgotten,
    /// Image in an ordinary file: pages change in place while a sync writes them.
    FileNotFrozen,
    /// Image in an ordinary file: a sync writes pages that were changed after it began.
    FileLaterPages,
    /// Image in an ordinary file: the sync number of the image is not compared.
    FileNumberIgnored,
}

impl Bug {
    /// Returns `true` for a bug of the file system, or of the file that holds its image.
    #[must_use]
    pub fn is_of_fs(self) -> bool {
        self as u32 >= Bug::FsDataNotFenced as u32
    }

    /// Returns `true` for a bug that damage reveals and power loss does not.
    #[must_use]
    pub fn is_of_damaged_fs(self) -> bool {
        // The variants are ordered by layer and test, so that ranges of them select a group.
        (Bug::FsUnreadableUnlisted as u32..Bug::FileLogNotSynced as u32).contains(&(self as u32))
    }

    /// Returns `true` for a bug of the commands on whole volumes, which tests of a single layer
    /// cannot reveal.
    #[must_use]
    pub fn is_of_volume(self) -> bool {
        matches!(self, Bug::GrowCopiesZeros | Bug::ExportWritesZeros | Bug::LossesNotTold)
    }

    /// Returns `true` for a bug of an image in an ordinary file, which other media cannot reveal.
    #[must_use]
    pub fn is_of_file(self) -> bool {
        self as u32 >= Bug::FileLogNotSynced as u32
    }

    /// Returns `true` for a bug of wear leveling, which a stack without it cannot reveal.
    #[must_use]
    pub fn is_of_wear(self) -> bool {
        !self.is_of_fs() && !self.is_of_ntl() && self as u32 >= Bug::WearRegisterEarly as u32
    }

    /// Returns `true` for a bug of NTL, which other stacks cannot reveal.
    #[must_use]
    pub fn is_of_ntl(self) -> bool {
        !self.is_of_fs() && self as u32 >= Bug::NtlNotFenced as u32
    }

    /// Returns `true` for a bug of the disk cache, which other stacks cannot reveal.
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

    /// Plants a bug in the whole process, or removes it.
    pub fn set(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |b| b as u32), Ordering::SeqCst);
    }

    /// Silences panic messages while a bug is planted, because a panic is one way to find it. Other
    /// panics are printed.
    pub fn silence_panics() {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if PLANTED.load(Ordering::SeqCst) == 0 {
                print(info);
            }
        }));
    }

    /// Returns `true` if this bug is planted.
    #[must_use]
    pub fn is(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u32
    }
}

#[cfg(feature = "planted")]
pub use on::{is, set, silence_panics};

/// Returns `false`: without the feature no bug is planted.
#[cfg(not(feature = "planted"))]
#[inline(always)]
#[must_use]
pub const fn is(_: Bug) -> bool {
    false
}
