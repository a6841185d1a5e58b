//! Conversion of results of the file system to replies.

use super::convert::{errno, file_attr};
use super::killpriv::has_set_id;
use super::passthrough::Passthrough;
use frit_fs::{Attr, Error, InodeType, Result};
use frit_fuse::{Entry, Errno, FileAttr, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyWrite, ReplyXattr};
use std::time::Duration;

/// Lifetime of entries and attributes in the kernel's cache. It can be long, since all changes are
/// made through the kernel.
pub(super) const TTL: Duration = Duration::from_secs(24 * 3600);

/// Returns the lifetime of an inode's attributes in the kernel's cache.
pub(super) fn ttl(passthrough: &Passthrough, attr: &Attr) -> Duration {
    shorter(if passthrough.changes_unreported(attr) { Duration::ZERO } else { TTL }, attr)
}

/// Returns `ttl`, or zero for a file with set-ID bits, so that the kernel requests its mode before
/// running it, and for a command file, whose mode follows that of its directory.
pub(super) fn shorter(ttl: Duration, attr: &Attr) -> Duration {
    if has_set_id(attr) || attr.kind == InodeType::Command { Duration::ZERO } else { ttl }
}

/// Returns the entry of an inode, with this lifetime of its attributes.
pub(super) fn entry_with(attr: &Attr, attr_ttl: Duration, name_ttl: Duration) -> Entry {
    let node = INodeNo(attr.ino.0);
    Entry { node, attr: file_attr(attr), generation: u64::from(attr.generation), attr_ttl, name_ttl }
}

pub(super) fn entry(reply: ReplyEntry, passthrough: &Passthrough, result: Result<Attr>) {
    match result {
        Ok(attr) => reply.entry(&entry_with(&attr, ttl(passthrough, &attr), TTL)),
        Err(e) => reply.error(errno(&e)),
    }
}

/// Replies like [`entry`], but lets the kernel also cache that a name does not exist. `node` returns the number by which
/// the sender names the inode.
pub(super) fn looked_up(
    reply: ReplyEntry,
    passthrough: &Passthrough,
    result: Result<Attr>,
    node: impl FnOnce(&Attr) -> INodeNo,
) {
    match result {
        // Inode 0 marks a name that does not exist.
        Err(Error::NotFound) => {
            let attr = FileAttr::default();
            reply.entry(&Entry { node: INodeNo(0), attr, generation: 0, attr_ttl: TTL, name_ttl: TTL });
        }
        Ok(attr) => {
            let known = entry_with(&attr, ttl(passthrough, &attr), TTL);
            reply.entry(&Entry { node: node(&attr), ..known });
        }
        Err(e) => reply.error(errno(&e)),
    }
}

pub(super) fn attr(reply: ReplyAttr, passthrough: &Passthrough, result: Result<Attr>) {
    match result {
        Ok(attr) => reply.attr(ttl(passthrough, &attr), &file_attr(&attr)),
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
