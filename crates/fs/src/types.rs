//! What callers of a file system and the file system say to each other.

/// Longest name in a directory, in bytes (NAME_MAX of linux/limits.h).
pub const NAME_MAX: usize = 255;
/// Longest target of a symbolic link, in bytes (PATH_MAX without its zero).
pub const TARGET_MAX: usize = 4095;
/// Most hard links to one file; ext4 has the same.
pub const LINK_MAX: u32 = 65_000;
/// Largest value of one extended attribute, in bytes (XATTR_SIZE_MAX of linux/limits.h).
pub const XATTR_MAX: usize = 65_536;
/// Largest size of a file: 2^40 blocks of 4 KiB, less one byte; 4 PiB.
pub const FILE_MAX: u64 = (1 << 52) - 1;

/// The number of an inode. The root directory is 1, as FUSE has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ino(pub u64);

impl Ino {
    /// The root directory.
    pub const ROOT: Self = Self(1);
}

/// A time: nanoseconds since 1970, from 1677 to 2262.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Time(pub i64);

impl Time {
    /// From seconds and nanoseconds; times that do not fit become the nearest that does.
    #[must_use]
    pub fn new(seconds: i64, nanos: u32) -> Self {
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(nanos)))
    }

    /// Seconds, rounded down, and nanoseconds.
    #[must_use]
    pub fn split(self) -> (i64, u32) {
        (self.0.div_euclid(1_000_000_000), self.0.rem_euclid(1_000_000_000) as u32)
    }
}

/// What an inode is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::FromRepr)]
#[repr(u8)]
pub enum Kind {
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
}

/// What is known of an inode: stat(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attr {
    /// Its number.
    pub ino: Ino,
    /// Which use of the number this is.
    pub generation: u32,
    /// What it is.
    pub kind: Kind,
    /// Permission bits with set-user-ID, set-group-ID and sticky: 0o7777.
    pub mode: u16,
    /// Hard links; of a directory, 2 and its sub-directories.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The device's number, of device files.
    pub rdev: u32,
    /// Size in bytes.
    pub size: u64,
    /// Blocks of 512 bytes that it takes.
    pub sectors: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of contents.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
    /// When it was made.
    pub btime: Time,
}

/// On whose behalf an operation is.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user; what is made belongs to it.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Other groups.
    pub groups: Vec<u32>,
    /// Whether permissions are checked here. A kernel that mounts with `default_permissions` has checked them.
    pub checked: bool,
}

impl Caller {
    /// The superuser.
    pub const ROOT: Self = Self { uid: 0, gid: 0, groups: Vec::new(), checked: true };

    /// A user whose permissions somebody else has checked.
    #[must_use]
    pub const fn trusted(uid: u32, gid: u32) -> Self {
        Self { uid, gid, groups: Vec::new(), checked: false }
    }
}

/// What a new inode is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct New<'a> {
    /// What it is.
    pub kind: Kind,
    /// Permission bits, the umask taken off already.
    pub mode: u16,
    /// The device's number, of device files.
    pub rdev: u32,
    /// Where a symbolic link points.
    pub target: &'a [u8],
}

impl<'a> New<'a> {
    /// A regular file.
    #[must_use]
    pub const fn file(mode: u16) -> Self {
        Self { kind: Kind::File, mode, rdev: 0, target: &[] }
    }

    /// A directory.
    #[must_use]
    pub const fn directory(mode: u16) -> Self {
        Self { kind: Kind::Directory, mode, rdev: 0, target: &[] }
    }

    /// A symbolic link.
    #[must_use]
    pub const fn symlink(target: &'a [u8]) -> Self {
        Self { kind: Kind::Symlink, mode: 0o777, rdev: 0, target }
    }
}

/// A time to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTime {
    /// The time of the call.
    Now,
    /// This time.
    To(Time),
}

/// What `set_attr` changes; `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Changes {
    /// Permission bits: 0o7777.
    pub mode: Option<u16>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The size: truncate(2).
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last change of contents.
    pub mtime: Option<SetTime>,
    /// Last change of the inode, as kernels that keep times themselves set it.
    pub ctime: Option<Time>,
}

/// How rename treats what has the new name already: renameat2(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenameMode {
    /// It is replaced.
    Replace,
    /// The call fails.
    NoReplace,
    /// Both names change places.
    Exchange,
}

/// What fallocate(2) does with a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Blocks are allocated; a size below the range's end grows to it.
    Extend,
    /// Blocks are allocated, also beyond the size, which stays.
    Keep,
    /// The range becomes a hole.
    Punch,
    /// The range becomes zeros; a size below its end grows to it.
    Zero,
    /// The range becomes zeros; the size stays.
    ZeroKeep,
}

/// What lseek(2) looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek {
    /// Data.
    Data,
    /// A hole; the end of the file is one.
    Hole,
}

/// How setxattr(2) treats what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XattrMode {
    /// Made or replaced.
    Any,
    /// It must not exist.
    Create,
    /// It must exist.
    Replace,
}

/// One name of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The inode it names.
    pub ino: Ino,
    /// What that is.
    pub kind: Kind,
    /// Where to go on after this entry.
    pub next: u64,
}

/// How full a file system is: statfs(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks for data and metadata of files.
    pub blocks: u64,
    /// Those that are free.
    pub blocks_free: u64,
    /// Inodes that there can be.
    pub inodes: u64,
    /// Those that are free.
    pub inodes_free: u64,
    /// Longest name in bytes.
    pub name_max: u32,
}

/// What putting the pieces of a file together came to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Gathered {
    /// In how many pieces it was.
    pub before: u64,
    /// In how many it is.
    pub after: u64,
}

/// A part of a file that lies in one piece on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where in the file, in bytes.
    pub at: u64,
    /// How long, in bytes.
    pub len: u64,
    /// Where on the medium, in bytes.
    pub medium: u64,
    /// Whether it was ever written; else it reads as zeros.
    pub written: bool,
}
