//! Conversion of results of the file system to replies.

use super::convert::{errno, file_attr, file_type, generation};
use super::killpriv::has_set_id;
use super::passthrough::Passthrough;
use frit_fs::{Attr, Error, Ino, InodeType, Result};
use fuser::{
    Errno, FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyWrite, ReplyXattr,
};
use std::time::{Duration, UNIX_EPOCH};

/// Lifetime of entries and attributes in the kernel's cache. It can be long, since all changes are
/// made through the kernel.
pub(super) const TTL: Duration = Duration::from_secs(24 * 3600);

/// Returns the lifetime of an inode's attributes in the kernel's cache.
pub(super) fn ttl(passthrough: &Passthrough, attr: &Attr) -> Duration {
    shorter(if passthrough.changes_unreported(attr) { Duration::ZERO } else { TTL }, attr)
}

/// Returns `ttl`, or zero for a file with set-ID bits, so that the kernel requests its mode before
/// running it.
pub(super) fn shorter(ttl: Duration, attr: &Attr) -> Duration {
    if has_set_id(attr) { Duration::ZERO } else { ttl }
}

pub(super) fn entry(reply: ReplyEntry, passthrough: &Passthrough, result: Result<Attr>) {
    match result {
        Ok(attr) => {
            let ttl = ttl(passthrough, &attr);
            reply.entry_with_ttls(&ttl, &TTL, &file_attr(&attr), generation(&attr));
        }
        Err(e) => reply.error(errno(&e)),
    }
}

/// Replies like [`entry`], but lets the kernel also cache that a name does not exist.
pub(super) fn looked_up(reply: ReplyEntry, passthrough: &Passthrough, result: Result<Attr>) {
    match result {
        Err(Error::NotFound) => reply.entry(&TTL, &NO_INODE, Generation(0)),
        other => entry(reply, passthrough, other),
    }
}

/// Attributes of inode 0, which mark a cacheable negative entry.
const NO_INODE: FileAttr = FileAttr {
    ino: INodeNo(0),
    size: 0,
    blocks: 0,
    atime: UNIX_EPOCH,
    mtime: UNIX_EPOCH,
    ctime: UNIX_EPOCH,
    crtime: UNIX_EPOCH,
    kind: FileType::RegularFile,
    perm: 0,
    nlink: 0,
    uid: 0,
    gid: 0,
    rdev: 0,
    blksize: 0,
    flags: 0,
};

/// Returns attributes for an inode that cannot be read, from its directory entry.
pub(super) fn attr_from_entry(ino: Ino, kind: InodeType) -> FileAttr {
    FileAttr { ino: INodeNo(ino.0), kind: file_type(kind), nlink: 1, ..NO_INODE }
}

pub(super) fn attr(reply: ReplyAttr, passthrough: &Passthrough, result: Result<Attr>) {
    match result {
        Ok(attr) => reply.attr(&ttl(passthrough, &attr), &file_attr(&attr)),
        Err(e) => reply.error(errno(&e)),
    }
}

pub(super) fn empty(reply: ReplyEmpty, result: Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(errno(&e)),
    }
}

pub(super) fn written(reply: ReplyWrite, result: Result<usize>) {
    match result {
        // The length never exceeds that of the request, which is a u32.
        Ok(bytes) => reply.written(bytes as u32),
        Err(e) => reply.error(errno(&e)),
    }
}

/// Replies with a value, or with its length if the caller passes a buffer of size zero.
pub(super) fn xattr(reply: ReplyXattr, room: u32, result: Result<Vec<u8>>) {
    match result {
        Ok(value) if room == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > room as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(errno(&e)),
    }
}
