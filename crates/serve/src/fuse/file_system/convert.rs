//! Conversions between the types of FUSE and of [`frit_fs::FileSystem`].

use crate::fuse::linux::mode as falloc;
use frit_fs::{Allocate, Attr, Caller, Error, Ino, InodeType, RenameMode, SetTime, Time, XattrMode};
use fuser::{Errno, FileAttr, FileType, Generation, INodeNo, RenameFlags, Request, TimeOrNow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Size for efficient I/O, as reported by stat(2) and used by the buffers of stdio. A request of 4
/// KiB spends most of its time on the way through the kernel, a request of 64 KiB on its bytes.
const IO_BYTES: u32 = 64 << 10;

/// Bits of a mode that encode the type of an inode: inode(7).
mod format {
    pub(super) const MASK: u32 = 0o170_000;
    pub(super) const FILE: u32 = 0o100_000;
    pub(super) const FIFO: u32 = 0o010_000;
    pub(super) const CHAR: u32 = 0o020_000;
    pub(super) const BLOCK: u32 = 0o060_000;
    pub(super) const SOCKET: u32 = 0o140_000;
}

pub(super) fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno())
}

pub(super) fn ino(number: INodeNo) -> Ino {
    Ino(number.0)
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

pub(super) fn file_attr(attr: &Attr) -> FileAttr {
    FileAttr {
        ino: INodeNo(attr.ino.0),
        size: attr.size,
        blocks: attr.sectors,
        atime: system_time(attr.atime),
        mtime: system_time(attr.mtime),
        ctime: system_time(attr.ctime),
        crtime: system_time(attr.btime),
        kind: file_type(attr.kind),
        perm: attr.mode,
        nlink: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: IO_BYTES,
        flags: 0,
    }
}

pub(super) fn generation(attr: &Attr) -> Generation {
    Generation(u64::from(attr.generation))
}

fn system_time(time: Time) -> SystemTime {
    let since = Duration::from_nanos(time.0.unsigned_abs());
    if time.0 < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since }
}

/// Converts a time from the kernel. For times before 1970 fuser 0.18 subtracts the nanoseconds
/// instead of adding them: the kernel's seconds are rounded down, and its nanoseconds are the
/// positive remainder.
pub(super) fn time(time: SystemTime) -> Time {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Time::new(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let seconds = 0i64.checked_sub_unsigned(before.as_secs()).unwrap_or(i64::MIN);
            Time::new(seconds, before.subsec_nanos())
        }
    }
}

pub(super) fn set_time(time_or_now: TimeOrNow) -> SetTime {
    match time_or_now {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(to) => SetTime::To(time(to)),
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
        // This is fuser's result for -2 s and 300 ms, which is 1.7 s before 1970.
        let told = UNIX_EPOCH - Duration::new(2, 300_000_000);
        assert_eq!(time(told), Time(-1_700_000_000));
        assert_eq!(system_time(Time(-1_700_000_000)), UNIX_EPOCH - Duration::from_millis(1_700));
        for nanos in [0, 1, 1_999_999_999, i64::MAX] {
            assert_eq!(time(system_time(Time(nanos))), Time(nanos));
        }
        let far = UNIX_EPOCH - Duration::from_secs(1 << 62);
        assert_eq!(time(far), Time(i64::MIN));
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
}
