//! What a file system answers.

use crate::kernel::{Kernel, PollToken};
use crate::protocol::Timestamp;
use crate::reply::{
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyRead, ReplyStatfs, ReplyWrite, ReplyXattr,
};
use crate::request::Request;
use fuser::{Errno, FileHandle, INodeNo, KernelConfig, LockOwner, OpenFlags, RenameFlags, WriteFlags};
use std::ffi::OsStr;
use std::io;

/// A new time of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewTime {
    /// The time when the request is executed.
    Now,
    /// This time.
    At(Timestamp),
}

/// Changes of attributes; `None` leaves one as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SetAttr {
    /// Permissions, with the type of the inode in the upper bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<NewTime>,
    /// Last change of the contents.
    pub mtime: Option<NewTime>,
    /// Last change of the attributes.
    pub ctime: Option<Timestamp>,
}

/// A read of a file.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Handle of the open file.
    pub handle: FileHandle,
    /// Position.
    pub at: u64,
    /// Bytes.
    pub len: u32,
    /// Owner of locks, which reads of programs have that bypass the page cache.
    pub owner: Option<LockOwner>,
}

/// A write to a file.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Handle of the open file.
    pub handle: FileHandle,
    /// Position.
    pub at: u64,
    /// Bytes.
    pub data: &'a [u8],
    /// What the kernel says about the write.
    pub flags: WriteFlags,
    /// Owner of locks, which writes of programs have that bypass the page cache.
    pub owner: Option<LockOwner>,
}

/// A range of a file whose allocation changes.
#[derive(Clone, Copy, Debug)]
pub struct Fallocate {
    /// Position.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// Flags of fallocate(2).
    pub mode: i32,
}

/// A copy between open files, or within one.
#[derive(Clone, Copy, Debug)]
pub struct CopyRange {
    /// File and position to read from.
    pub from: (INodeNo, u64),
    /// File and position to write to.
    pub to: (INodeNo, u64),
    /// Bytes.
    pub len: u64,
}

/// Answers requests of the kernel, in several threads at a time. Each has a reply, which may be sent
/// later and by another thread. A function that is not implemented answers with ENOSYS; the kernel
/// then sends no more requests of most of these kinds.
///
/// A thread that answers must not wait for notifications of the kernel, nor for other requests.
pub trait Server: Send + Sync + 'static {
    /// Requests capabilities when the connection begins.
    ///
    /// # Errors
    /// The kernel lacks something; the file system is not mounted then.
    fn negotiate(&self, config: &mut KernelConfig) -> io::Result<()>;

    /// Takes the kernel's side of the connection, before the first request.
    fn connected(&self, kernel: Kernel) {
        drop(kernel);
    }

    /// Finds a name.
    fn lookup(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _ = (request, dir, name);
        reply.error(Errno::ENOSYS);
    }

    /// The kernel no longer uses an inode, which it has looked up `lookups` times.
    fn forget(&self, ino: INodeNo, lookups: u64) {
        let _ = (ino, lookups);
    }

    /// A program that waits for the reply to a request got a signal. The reply may be EINTR.
    fn interrupt(&self, unique: u64) {
        let _ = unique;
    }

    /// Returns attributes.
    fn getattr(&self, request: &Request, ino: INodeNo, reply: ReplyAttr) {
        let _ = (request, ino);
        reply.error(Errno::ENOSYS);
    }

    /// Changes attributes.
    fn setattr(&self, request: &Request, ino: INodeNo, changes: &SetAttr, reply: ReplyAttr) {
        let _ = (request, ino, changes);
        reply.error(Errno::ENOSYS);
    }

    /// Returns the target of a symbolic link.
    fn readlink(&self, request: &Request, ino: INodeNo, reply: ReplyData) {
        let _ = (request, ino);
        reply.error(Errno::ENOSYS);
    }

    /// Creates an inode. `rdev` has the numbers of a device file.
    fn mknod(&self, request: &Request, dir: INodeNo, name: &OsStr, mode: u32, rdev: u32, reply: ReplyEntry) {
        let _ = (request, dir, name, mode, rdev);
        reply.error(Errno::ENOSYS);
    }

    /// Creates a directory.
    fn mkdir(&self, request: &Request, dir: INodeNo, name: &OsStr, mode: u32, reply: ReplyEntry) {
        let _ = (request, dir, name, mode);
        reply.error(Errno::ENOSYS);
    }

    /// Creates a symbolic link.
    fn symlink(&self, request: &Request, dir: INodeNo, name: &OsStr, target: &OsStr, reply: ReplyEntry) {
        let _ = (request, dir, name, target);
        reply.error(Errno::ENOSYS);
    }

    /// Removes a name of a file.
    fn unlink(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _ = (request, dir, name);
        reply.error(Errno::ENOSYS);
    }

    /// Removes a directory.
    fn rmdir(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _ = (request, dir, name);
        reply.error(Errno::ENOSYS);
    }

    /// Renames.
    fn rename(
        &self,
        request: &Request,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _ = (request, from, to, flags);
        reply.error(Errno::ENOSYS);
    }

    /// Adds a name to an inode.
    fn link(&self, request: &Request, ino: INodeNo, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _ = (request, ino, dir, name);
        reply.error(Errno::ENOSYS);
    }

    /// Opens a file.
    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let _ = (request, ino, flags);
        reply.error(Errno::ENOSYS);
    }

    /// Creates a file, and opens it.
    fn create(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: OpenFlags,
        reply: ReplyCreate,
    ) {
        let _ = (request, dir, name, mode, flags);
        reply.error(Errno::ENOSYS);
    }

    /// Reads a file.
    fn read(&self, request: &Request, ino: INodeNo, read: &Read, reply: ReplyRead) {
        let _ = (request, ino, read);
        reply.error(Errno::ENOSYS);
    }

    /// Writes a file.
    fn write(&self, request: &Request, ino: INodeNo, write: &Write<'_>, reply: ReplyWrite) {
        let _ = (request, ino, write);
        reply.error(Errno::ENOSYS);
    }

    /// A descriptor of an open file is closed.
    fn flush(&self, request: &Request, ino: INodeNo, reply: ReplyEmpty) {
        let _ = (request, ino);
        reply.error(Errno::ENOSYS);
    }

    /// The last descriptor of an open file is closed.
    fn release(&self, request: &Request, ino: INodeNo, handle: FileHandle, reply: ReplyEmpty) {
        let _ = (request, ino, handle);
        reply.ok();
    }

    /// Makes an inode durable.
    fn fsync(&self, request: &Request, ino: INodeNo, data_only: bool, reply: ReplyEmpty) {
        let _ = (request, ino, data_only);
        reply.error(Errno::ENOSYS);
    }

    /// Opens a directory.
    fn opendir(&self, request: &Request, ino: INodeNo, reply: ReplyOpen) {
        let _ = (request, ino);
        reply.error(Errno::ENOSYS);
    }

    /// Lists names from a position on.
    fn readdir(&self, request: &Request, ino: INodeNo, from: u64, reply: ReplyDirectory) {
        let _ = (request, ino, from);
        reply.error(Errno::ENOSYS);
    }

    /// Lists names and attributes from a position on.
    fn readdirplus(&self, request: &Request, ino: INodeNo, from: u64, reply: ReplyDirectoryPlus) {
        let _ = (request, ino, from);
        reply.error(Errno::ENOSYS);
    }

    /// A directory is closed.
    fn releasedir(&self, request: &Request, ino: INodeNo, reply: ReplyEmpty) {
        let _ = (request, ino);
        reply.ok();
    }

    /// Makes a directory durable.
    fn fsyncdir(&self, request: &Request, ino: INodeNo, data_only: bool, reply: ReplyEmpty) {
        let _ = (request, ino, data_only);
        reply.error(Errno::ENOSYS);
    }

    /// Returns the usage of the file system.
    fn statfs(&self, request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        let _ = (request, ino);
        reply.error(Errno::ENOSYS);
    }

    /// Sets an extended attribute, with the flags of setxattr(2).
    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        reply: ReplyEmpty,
    ) {
        let _ = (request, ino, name, value, flags);
        reply.error(Errno::ENOSYS);
    }

    /// Returns an extended attribute. With `room` 0, its size is returned.
    fn getxattr(&self, request: &Request, ino: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        let _ = (request, ino, name, room);
        reply.error(Errno::ENOSYS);
    }

    /// Returns the names of extended attributes. With `room` 0, their size is returned.
    fn listxattr(&self, request: &Request, ino: INodeNo, room: u32, reply: ReplyXattr) {
        let _ = (request, ino, room);
        reply.error(Errno::ENOSYS);
    }

    /// Removes an extended attribute.
    fn removexattr(&self, request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _ = (request, ino, name);
        reply.error(Errno::ENOSYS);
    }

    /// Checks permissions. Not called if the kernel checks them (default_permissions).
    fn access(&self, request: &Request, ino: INodeNo, mask: u32, reply: ReplyEmpty) {
        let _ = (request, ino, mask);
        reply.error(Errno::ENOSYS);
    }

    /// Changes the allocation of a file.
    fn fallocate(&self, request: &Request, ino: INodeNo, range: &Fallocate, reply: ReplyEmpty) {
        let _ = (request, ino, range);
        reply.error(Errno::ENOSYS);
    }

    /// Searches for data or a hole.
    fn lseek(&self, request: &Request, ino: INodeNo, at: i64, whence: i32, reply: ReplyLseek) {
        let _ = (request, ino, at, whence);
        reply.error(Errno::ENOSYS);
    }

    /// Executes a command of ioctl(2) that encodes the size of its argument, with the handle of the open file.
    fn ioctl(
        &self,
        request: &Request,
        of: (INodeNo, FileHandle),
        command: u32,
        argument: &[u8],
        reply: ReplyIoctl,
    ) {
        let _ = (request, of, command, argument);
        reply.error(Errno::ENOSYS);
    }

    /// Returns events that have occurred. For others, the kernel waits for a notification with
    /// `token`, which is the same for all requests of an open file. It is `None` if no program waits.
    fn poll(&self, request: &Request, handle: FileHandle, token: Option<PollToken>, reply: ReplyPoll) {
        let _ = (request, handle, token);
        reply.error(Errno::ENOSYS);
    }

    /// Copies a range.
    fn copy_file_range(&self, request: &Request, range: &CopyRange, reply: ReplyWrite) {
        let _ = (request, range);
        reply.error(Errno::ENOSYS);
    }
}
