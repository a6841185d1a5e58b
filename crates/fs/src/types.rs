//! Types of the parameters and results of file system operations.

/// Maximum length of a name in a directory, in bytes (NAME_MAX of linux/limits.h).
pub const NAME_MAX: usize = 255;
/// Maximum length of the target of a symbolic link, in bytes (PATH_MAX without its terminating
/// zero).
pub const TARGET_MAX: usize = 4095;
/// Maximum number of hard links to a file, as in ext4.
pub const LINK_MAX: u32 = 65_000;
/// Maximum size of the value of an extended attribute, in bytes (XATTR_SIZE_MAX of linux/limits.h).
pub const XATTR_MAX: usize = 65_536;
/// Maximum file size: 2^40 blocks of 4 KiB, less one byte; 4 PiB.
pub const FILE_MAX: u64 = (1 << 52) - 1;

/// Name of the command file of a directory (ISPFS 3.1), in a file system with command files. It is not
/// listed, and cannot be created, removed, renamed or linked.
pub const COMMAND_NAME: &[u8] = b".isp";

/// Function that returns `true` for the inode numbers that somebody outside of the file system has
/// looked up and may use later: the kernel.
pub type LookedUp = Box<dyn Fn(Ino) -> bool + Send + Sync>;

/// Inode number. The root directory has number 1, as in FUSE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ino(pub u64);

impl Ino {
    /// The root directory.
    pub const ROOT: Self = Self(1);
}

/// Timestamp in nanoseconds since 1970; its range is 1677 to 2262.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Time(pub i64);

impl Time {
    /// Creates a timestamp from seconds and nanoseconds; values out of range saturate.
    #[must_use]
    pub fn new(seconds: i64, nanos: u32) -> Self {
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(nanos)))
    }

    /// Returns seconds, rounded down, and nanoseconds.
    #[must_use]
    pub fn split(self) -> (i64, u32) {
        (self.0.div_euclid(1_000_000_000), self.0.rem_euclid(1_000_000_000) as u32)
    }
}

/// Type of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::FromRepr)]
#[repr(u8)]
pub enum InodeType {
    /// A regular file.
    File = 1,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    Char,
    /// A block device.
    Block,
    /// The command file of a directory, for instructions to the processing engine. It has no data.
    Command,
}

/// Attributes of an inode, as in stat(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attr {
    /// Inode number.
    pub ino: Ino,
    /// Generation: counts the uses of the inode number.
    pub generation: u32,
    /// Type of the inode.
    pub kind: InodeType,
    /// Permission bits with set-user-ID, set-group-ID and sticky: 0o7777.
    pub mode: u16,
    /// Number of hard links; for a directory, 2 plus the number of its subdirectories.
    pub links: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Device number of a device file.
    pub rdev: u32,
    /// Size in bytes.
    pub size: u64,
    /// Allocated space in blocks of 512 bytes.
    pub sectors: u64,
    /// Time of the last access.
    pub atime: Time,
    /// Time of the last change of contents.
    pub mtime: Time,
    /// Time of the last change of the inode.
    pub ctime: Time,
    /// Creation time.
    pub btime: Time,
}

/// Checks of permissions that user ID 0 passes (capabilities(7)). Other users pass none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overrides {
    /// None: a process without capabilities.
    None,
    /// Reads of files, and reads and searches of directories (CAP_DAC_READ_SEARCH).
    ReadSearch,
    /// All (CAP_DAC_OVERRIDE).
    All,
}

/// Identity of the user on whose behalf an operation runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// User ID, which becomes the owner of new inodes.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// `true` if the file system checks permissions. A kernel that mounts with
    /// `default_permissions` has checked them already.
    pub checked: bool,
    /// Checks that user ID 0 passes. Without effect for other users.
    pub overrides: Overrides,
}

impl Caller {
    /// The superuser.
    pub const ROOT: Self =
        Self { uid: 0, gid: 0, groups: Vec::new(), checked: true, overrides: Overrides::All };

    /// Returns a caller whose permissions were checked before, for example by the kernel.
    #[must_use]
    pub const fn trusted(uid: u32, gid: u32) -> Self {
        Self { uid, gid, groups: Vec::new(), checked: false, overrides: Overrides::All }
    }
}

/// Attributes of an inode to be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewInode<'a> {
    /// Type of the inode.
    pub kind: InodeType,
    /// Permission bits, with the umask applied.
    pub mode: u16,
    /// Device number of a device file.
    pub rdev: u32,
    /// Target of a symbolic link.
    pub target: &'a [u8],
}

impl<'a> NewInode<'a> {
    /// A regular file.
    #[must_use]
    pub const fn file(mode: u16) -> Self {
        Self { kind: InodeType::File, mode, rdev: 0, target: &[] }
    }

    /// A directory.
    #[must_use]
    pub const fn directory(mode: u16) -> Self {
        Self { kind: InodeType::Directory, mode, rdev: 0, target: &[] }
    }

    /// A symbolic link.
    #[must_use]
    pub const fn symlink(target: &'a [u8]) -> Self {
        Self { kind: InodeType::Symlink, mode: 0o777, rdev: 0, target }
    }
}

/// Timestamp for `set_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTime {
    /// The time of the call.
    Now,
    /// An explicit time.
    To(Time),
}

/// Attributes for `set_attr` to change; those with `None` stay unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AttrChanges {
    /// Permission bits, masked with 0o7777.
    pub mode: Option<u16>,
    /// User ID of the owner.
    pub uid: Option<u32>,
    /// Group ID.
    pub gid: Option<u32>,
    /// File size, as in truncate(2).
    pub size: Option<u64>,
    /// Time of the last access.
    pub atime: Option<SetTime>,
    /// Time of the last change of contents.
    pub mtime: Option<SetTime>,
    /// Time of the last change of the inode, set by kernels that maintain timestamps themselves.
    pub ctime: Option<Time>,
}

/// Treatment of an existing new name by rename, as in renameat2(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenameMode {
    /// The existing inode is replaced.
    Replace,
    /// The call fails if the new name exists.
    NoReplace,
    /// The two names are exchanged.
    Exchange,
}

/// Operation of fallocate(2) on a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Allocates blocks; the file grows to the end of the range if it is shorter.
    Extend,
    /// Allocates blocks, also beyond the end of the file; the size stays unchanged.
    Keep,
    /// Turns the range into a hole.
    Punch,
    /// Zeroes the range; the file grows to the end of the range if it is shorter.
    Zero,
    /// Zeroes the range; the size stays unchanged.
    ZeroKeep,
}

/// Target of a search with lseek(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek {
    /// Data.
    Data,
    /// A hole; the end of the file counts as one.
    Hole,
}

/// Treatment of an existing attribute by setxattr(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XattrMode {
    /// The attribute is created or replaced.
    Any,
    /// The call fails if the attribute exists.
    Create,
    /// The call fails if the attribute does not exist.
    Replace,
}

/// Directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirEntry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// Inode number.
    pub ino: Ino,
    /// Type of the inode.
    pub kind: InodeType,
    /// Position of the following entry, for the next call of `read_dir`.
    pub next: u64,
}

/// Space usage of a file system, as in statfs(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Number of blocks for data and metadata of files.
    pub blocks: u64,
    /// Number of free blocks.
    pub blocks_free: u64,
    /// Maximum number of inodes.
    pub inodes: u64,
    /// Number of free inodes.
    pub inodes_free: u64,
    /// Maximum length of a name in bytes.
    pub name_max: u32,
}

/// Result of defragmenting a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DefragResult {
    /// Number of contiguous pieces before.
    pub before: u64,
    /// Number of contiguous pieces after.
    pub after: u64,
}

/// Part of a file that is contiguous on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Byte position in the file.
    pub at: u64,
    /// Length in bytes.
    pub len: u64,
    /// Byte position on the medium.
    pub medium: u64,
    /// `true` if it has been written; a part that is only allocated reads as zeros.
    pub written: bool,
}
