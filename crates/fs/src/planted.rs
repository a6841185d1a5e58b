//! Bugs planted on purpose in the file system, see [`frit_core::planted`]. Each enum has the bugs
//! that one kind of test finds.

use frit_core::planted::{Group, PlantedBug};

/// A bug of a file system on a nameless-write device, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "fs-nameless-")]
#[repr(u16)]
pub enum NamelessBug {
    /// A sync does not flush the device.
    CommitNotFlushed,
    /// Contents are freed before the metadata that refers to them is replaced.
    FreedBeforeCommit,
    /// The addresses of two request queues are exchanged.
    AddressesSwapped,
    /// Moves of blocks are acknowledged and not applied.
    MigrationIgnored,
    /// Addresses of freed blocks are not changed when the device moves these blocks.
    HeldNotMoved,
    /// A recovery keeps old addresses of blocks that have moved.
    ClaimNotApplied,
    /// A sync forgets changed blocks that were free when it began.
    FreeBlocksForgotten,
    /// Blocks that a write fetches and does not overwrite as a whole are not read.
    EdgesNotFetched,
}

impl PlantedBug for NamelessBug {
    const GROUP: Group = Group::FsNameless;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the file system that power cuts reveal, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "fs-")]
#[repr(u16)]
pub enum Bug {
    // Transactions and their replay.
    /// A transaction does not wait for the contents that it makes visible.
    DataNotFenced,
    /// Changes are applied in place before their journal entry is durable.
    ApplyBeforeLog,
    /// Changes are applied in place without a fence after their journal entry.
    LogNotFenced,
    /// Replay applies a transaction that does not match its checksum.
    TornLogTaken,
    /// Replay applies the last transaction but not the one before.
    ReplayLastOnly,
    /// A mount does not replay the journal.
    ReplayForgotten,

    // New blocks and bytes.
    /// The parts of a new block that a write does not cover are not zeroed.
    EdgesNotZeroed,
    /// Bytes after the end of a file are not zeroed before the file grows over them.
    TailNotZeroed,
    /// New blocks of a directory are not zeroed.
    DirectoryNotZeroed,
    /// The rest of a block that counts as written after a write into allocated blocks is not
    /// zeroed.
    AroundNotZeroed,

    // Names and links.
    /// When a long name is removed, only its first slot is cleared.
    NameHalfCleared,
    /// A removed name stays on the medium.
    NameStays,
    /// The count of names of a directory is not updated when names change.
    NamesNotCounted,
    /// The command file of a removed directory is not freed.
    CommandStays,
    /// A new directory refers to its command file before the inode of the file is written.
    CommandLater,
    /// A recovery does not free the command file of a removed directory that was open.
    CommandOrphanStays,
    /// A new directory is not counted as a link of its parent.
    ParentNotCounted,
    /// A moved directory keeps its old parent.
    ParentStays,
    /// A link is counted in a separate transaction after its name.
    LinkCountLater,
    /// A rename adds the new name and removes the old one in two transactions.
    RenameTwoSteps,

    // Orphans.
    /// A freed orphan stays on the list of orphans.
    OrphanStays,
    /// An open file without names is not added to the list of orphans.
    OrphanNotListed,
    /// A mount does not process the list of orphans.
    OrphansForgotten,
    /// An overflow of the list of orphans is not noted.
    MoreOrphansNotNoted,
    /// A mount frees only the orphans on the list, although the list had overflowed.
    MoreOrphansForgotten,

    // Registers.
    /// A mount clears the registers while the file system still counts as closed.
    RegistersClearedEarly,
    /// A check reports registers that a power loss left between two words as damage.
    RegistersTornReported,

    // Attributes and blocks.
    /// Extended attributes are overwritten in place.
    XattrInPlace,
    /// Moved blocks are mapped at their new place before the copies are durable.
    MovedUnfenced,

    // External contents.
    /// The external contents of a file are removed before its inode is durably free.
    BodyBeforeName,
    /// The file name of external contents lacks the generation of the inode.
    BodyUnnumbered,
    /// A mount does not remove external contents of inodes that no longer exist.
    BodiesNotSwept,

    // Checksums of contents.
    /// Bytes are overwritten before the removal of their block's checksum is durable.
    SumClearedLate,
    /// A checksum may be durable before the bytes that it covers.
    SumBeforeBytes,
    /// A reused block keeps the checksum of its former contents.
    SumOfOtherStays,
}

impl PlantedBug for Bug {
    const GROUP: Group = Group::Fs;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the file system that damage reveals and power cuts do not, named by its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "fs-")]
#[repr(u16)]
pub enum DamageBug {
    /// A listing of a directory with damaged names ends without an error.
    DamagedNamesUntold,
    /// A directory is not compared with the count of its names.
    NamesNotCompared,
    /// The target of a symbolic link is not compared with its checksum.
    TargetUnchecked,
    /// Contents are not compared with their checksums on a read.
    ContentsUnchecked,
    /// A part of a block is written without verification of the rest of the block.
    PartUnchecked,
    /// A repair clears a damaged name without a report.
    RepairUntold,
    /// A check does not verify targets of symbolic links.
    CheckSkipsTargets,
    /// The extents of a file are not compared with the count of its blocks.
    BlocksNotCompared,
    /// A check ignores a directory without a command file.
    MissingCommandIgnored,
    /// A repair does not free a command file that no directory refers to.
    StrayCommandKept,
}

impl PlantedBug for DamageBug {
    const GROUP: Group = Group::FsDamage;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of the sync of an image in an ordinary file, named by its effect. Other media cannot
/// reveal it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "file-")]
#[repr(u16)]
pub enum ImageFileBug {
    /// The double-write file is not synced before the image is written.
    LogNotSynced,
    /// The name of a new double-write file is not synced.
    NameNotSynced,
    /// The double-write file is marked as done before the image is synced.
    DoneEarly,
    /// A double-write file that does not match its checksums is applied.
    TornLogTaken,
    /// A mount does not search for a double-write file.
    LogForgotten,
    /// Pages change in place while a sync writes them.
    NotFrozen,
    /// A sync writes pages that were changed after it began.
    LaterPages,
    /// The sync number of the image is not compared.
    NumberIgnored,
}

impl PlantedBug for ImageFileBug {
    const GROUP: Group = Group::ImageFile;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}

/// A bug of direct access of programs, named by its effect. Only programs with direct access reveal it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "direct-")]
#[repr(u16)]
pub enum DirectBug {
    /// A size that programs wrote is not compared with the append space of the file.
    SizeUnchecked,
    /// The size of a file whose lease has ended can still be changed by a stopped program.
    SizeNotFixed,
    /// Append space is returned although a program may be writing to it.
    RetractedInUse,
    /// Growth is taken over before its bytes are durable.
    GrowthNotWrittenBack,
    /// Sizes that an earlier boot of the machine left are taken over.
    BootIgnored,
    /// Blocks that a killed mount left as append space are taken without a look whether they are free.
    LeftBlocksUnchecked,
}

impl PlantedBug for DirectBug {
    const GROUP: Group = Group::Direct;

    #[inline]
    fn discriminant(self) -> u16 {
        self as u16
    }
}
