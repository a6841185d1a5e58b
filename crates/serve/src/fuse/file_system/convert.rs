//! Conversions between the types of FUSE and of [`frit_fs::FileSystem`].

use crate::fuse::linux::mode as falloc;
use frit_fs::{Allocate, Attr, Caller, Error, Ino, InodeType, RenameMode, SetTime, Time, XattrMode};
use frit_fuse::{Errno, FileAttr, FileType, INodeNo, NewTime, RenameFlags, Request, Timestamp};

/// Size for efficient I/O, as reported by stat(2) and used by the buffers of stdio. A request of 4
/// KiB spends most of its time on the way through the kernel, a request of 64 KiB on its bytes.
const IO_BYTES: u32 = 64 << 10;

/// Bits of a mode that encode the type of an inode: inode(7).
mod format {
    pub(super) const MASK: u32 = 0o170_000;
    pub(super) const FILE: u32 = 0o100_000;
    pub(super) const DIRECTORY: u32 = 0o040_000;
    pub(super) const SYMLINK: u32 = 0o120_000;
    pub(super) const FIFO: u32 = 0o010_000;
    pub(super) const CHAR: u32 = 0o020_000;
    pub(super) const BLOCK: u32 = 0o060_000;
    pub(super) const SOCKET: u32 = 0o140_000;
}

pub(super) fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno())
}

/// Mark of a number by which one user names a command file. The user is in the bits behind it, and then the inode.
const OF_USER: u64 = 1 << 63;
/// Number of bits of the inode in such a number.
const INO_BITS: u32 = 31;

pub(super) fn ino(number: INodeNo) -> Ino {
    match number.0 & OF_USER {
        0 => Ino(number.0),
        _ => Ino(number.0 & ((1 << INO_BITS) - 1)),
    }
}

/// Returns the number by which the requests of a user name an inode. A command file has one for each user: the kernel
/// lets one write(2) at a time change a file, in the order in which they come, so those of one user's threads would hold
/// up those of another user. A file system of more than 2^31 inodes has command files for which this is so.
pub(super) fn node(attr: &Attr, uid: u32) -> INodeNo {
    let has_users = attr.kind == InodeType::Command && attr.ino.0 >> INO_BITS == 0;
    INodeNo(if has_users { OF_USER | u64::from(uid) << INO_BITS | attr.ino.0 } else { attr.ino.0 })
}

/// Returns `true` for a number by which another user names a command file.
pub(super) fn is_of_another(number: INodeNo, uid: u32) -> bool {
    number.0 & OF_USER != 0 && (number.0 >> INO_BITS) as u32 != uid
}

/// Returns the names of extended attributes that the user may see. Those in `trusted.` are visible
/// to root only (xattr(7)).
pub(super) fn visible(request: &Request, names: Vec<u8>) -> Vec<u8> {
    if request.uid() == 0 {
        return names;
    }
    let seen = names.split_inclusive(|&b| b == 0).filter(|name| !name.starts_with(b"trusted."));
    seen.flatten().copied().collect()
}

/// Returns the caller of a request. The kernel has checked its permissions (default_permissions).
pub(super) fn caller(request: &Request) -> Caller {
    Caller::trusted(request.uid(), request.gid())
}

pub(super) fn file_type(kind: InodeType) -> FileType {
    match kind {
        InodeType::File | InodeType::Command => FileType::RegularFile,
        InodeType::Directory => FileType::Directory,
        InodeType::Symlink => FileType::Symlink,
        InodeType::Fifo => FileType::NamedPipe,
        InodeType::Socket => FileType::Socket,
        InodeType::Char => FileType::CharDevice,
        InodeType::Block => FileType::BlockDevice,
    }
}

/// Returns the type of the inode that mknod(2) creates.
pub(super) fn kind(mode: u32) -> Option<InodeType> {
    Some(match mode & format::MASK {
        0 | format::FILE => InodeType::File,
        format::FIFO => InodeType::Fifo,
        format::CHAR => InodeType::Char,
        format::BLOCK => InodeType::Block,
        format::SOCKET => InodeType::Socket,
        _ => return None,
    })
}

/// Returns the permission bits of a mode.
pub(super) fn permissions(mode: u32) -> u16 {
    (mode & 0o7777) as u16
}

/// Returns the bits of a mode that encode a type.
fn type_bits(kind: InodeType) -> u32 {
    match kind {
        InodeType::File | InodeType::Command => format::FILE,
        InodeType::Directory => format::DIRECTORY,
        InodeType::Symlink => format::SYMLINK,
        InodeType::Fifo => format::FIFO,
        InodeType::Socket => format::SOCKET,
        InodeType::Char => format::CHAR,
        InodeType::Block => format::BLOCK,
    }
}

pub(super) fn file_attr(attr: &Attr) -> FileAttr {
    FileAttr {
        ino: attr.ino.0,
        size: attr.size,
        blocks: attr.sectors,
        atime: timestamp(attr.atime),
        mtime: timestamp(attr.mtime),
        ctime: timestamp(attr.ctime),
        mode: type_bits(attr.kind) | u32::from(attr.mode),
        nlink: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: IO_BYTES,
    }
}

/// Returns attributes for an inode that cannot be read, from its directory entry.
pub(super) fn attr_from_entry(ino: Ino, kind: InodeType) -> FileAttr {
    FileAttr { ino: ino.0, mode: type_bits(kind), nlink: 1, ..FileAttr::default() }
}

fn timestamp(time: Time) -> Timestamp {
    let (seconds, nanoseconds) = time.split();
    Timestamp { seconds, nanoseconds }
}

pub(super) fn time(time: Timestamp) -> Time {
    Time::new(time.seconds, time.nanoseconds)
}

pub(super) fn set_time(new: NewTime) -> SetTime {
    match new {
        NewTime::Now => SetTime::Now,
        NewTime::At(to) => SetTime::To(time(to)),
    }
}

/// Returns `None` for flags that are unknown or contradict each other.
pub(super) fn rename_mode(flags: RenameFlags) -> Option<RenameMode> {
    match flags {
        f if f.is_empty() => Some(RenameMode::Replace),
        RenameFlags::RENAME_NOREPLACE => Some(RenameMode::NoReplace),
        RenameFlags::RENAME_EXCHANGE => Some(RenameMode::Exchange),
        _ => None,
    }
}

/// Returns `None` for a mode of fallocate(2) that is not supported.
pub(super) fn allocate(mode: i32) -> Option<Allocate> {
    const PUNCH: i32 = falloc::PUNCH_HOLE | falloc::KEEP_SIZE;
    const ZERO_KEEP: i32 = falloc::ZERO_RANGE | falloc::KEEP_SIZE;
    match mode {
        0 => Some(Allocate::Extend),
        falloc::KEEP_SIZE => Some(Allocate::Keep),
        PUNCH => Some(Allocate::Punch),
        falloc::ZERO_RANGE => Some(Allocate::Zero),
        ZERO_KEEP => Some(Allocate::ZeroKeep),
        _ => None,
    }
}

/// Converts the flags of setxattr(2): XATTR_CREATE and XATTR_REPLACE of linux/xattr.h.
pub(super) fn xattr_mode(flags: i32) -> Option<XattrMode> {
    match flags {
        0 => Some(XattrMode::Any),
        1 => Some(XattrMode::Create),
        2 => Some(XattrMode::Replace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_keep_their_nanoseconds() {
        // 1.7 s before 1970, as the kernel encodes it.
        let told = Timestamp { seconds: -2, nanoseconds: 300_000_000 };
        assert_eq!(time(told), Time(-1_700_000_000));
        assert_eq!(timestamp(Time(-1_700_000_000)), told);
        for nanos in [0, 1, -1, 1_999_999_999, i64::MAX] {
            assert_eq!(time(timestamp(Time(nanos))), Time(nanos));
        }
        assert_eq!(time(Timestamp { seconds: -(1 << 62), nanoseconds: 0 }), Time(i64::MIN));
        assert_eq!(time(Timestamp { seconds: 1 << 62, nanoseconds: 0 }), Time(i64::MAX));
    }

    #[test]
    fn flags_that_are_not_done_are_none() {
        assert_eq!(rename_mode(RenameFlags::RENAME_EXCHANGE), Some(RenameMode::Exchange));
        assert_eq!(rename_mode(RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_NOREPLACE), None);
        assert_eq!(rename_mode(RenameFlags::RENAME_WHITEOUT), None);
        assert_eq!(allocate(0x03), Some(Allocate::Punch));
        assert_eq!(allocate(0x02), None, "a hole never changes the size");
        assert_eq!(allocate(0x08), None, "collapse");
        assert_eq!(xattr_mode(3), None);
        assert_eq!(kind(0o040_755), None, "mkdir makes directories");
        assert_eq!(kind(0o140_644), Some(InodeType::Socket));
    }

    #[test]
    fn users_name_a_command_file_by_numbers_of_their_own() {
        let t = Time(0);
        let attr = |ino, kind| Attr {
            ino: Ino(ino),
            generation: 0,
            kind,
            mode: 0,
            links: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            sectors: 0,
            atime: t,
            mtime: t,
            ctime: t,
            btime: t,
        };
        for (inode, uid) in [(1, 0), (7, 1000), ((1 << INO_BITS) - 1, u32::MAX)] {
            let command = attr(inode, InodeType::Command);
            let number = node(&command, uid);
            assert_eq!(ino(number), command.ino);
            assert!(!is_of_another(number, uid) && is_of_another(number, uid ^ 1));
            // All others are the same for everybody.
            let file = node(&attr(inode, InodeType::File), uid);
            assert!(file == INodeNo(inode) && ino(file) == Ino(inode) && !is_of_another(file, 5));
        }
        let beyond = attr(1 << INO_BITS, InodeType::Command);
        assert_eq!(node(&beyond, 7), INodeNo(1 << INO_BITS));
    }
}
