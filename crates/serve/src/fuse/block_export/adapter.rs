//! FUSE adapter of a device: a directory with one file.

use super::file;
use crate::backend::ReplyTime;
use crate::device::Device;
use crate::pace::Timer;
use frit_fuse::{
    Entry, Errno, Fallocate, FileAttr, FileHandle, FileType, FopenFlags, INodeNo, InitFlags, KernelConfig,
    OpenAccMode, OpenFlags, Opened, Read, ReplyAttr, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyRead, ReplyStatfs, ReplyWrite, Request, Server, SetAttr, Timestamp, Usage, Write,
    request_capabilities,
};
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Name of the file in the mounted directory.
pub const FILE_NAME: &str = "volume";

const FILE: INodeNo = INodeNo(2);
/// Lifetime of cached attributes. Nothing about the file changes while it is mounted.
const TTL: Duration = Duration::from_secs(3600);

/// Types of the directory and of the file in their modes (inode(7)).
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// A file system with one file.
#[derive(Debug)]
pub(super) struct BlockAdapter {
    device: Arc<Device>,
    timer: Arc<Timer>,
    mounted: Timestamp,
    owner: (u32, u32),
}

impl BlockAdapter {
    pub(super) fn new(device: Arc<Device>, timer: Arc<Timer>) -> BlockAdapter {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mounted = Timestamp { seconds: now.as_secs() as i64, nanoseconds: now.subsec_nanos() };
        BlockAdapter { device, timer, mounted, owner }
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let (mode, size) = match ino {
            INodeNo::ROOT => (DIRECTORY | 0o555, 0),
            FILE if self.device.read_only().is_some() => (REGULAR | 0o400, self.device.bytes()),
            FILE => (REGULAR | 0o600, self.device.bytes()),
            _ => return None,
        };
        Some(FileAttr {
            ino: ino.0,
            size,
            blocks: size / 512,
            atime: self.mounted,
            mtime: self.mounted,
            ctime: self.mounted,
            mode,
            nlink: if ino == FILE { 1 } else { 2 },
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: self.device.page_bytes(),
        })
    }

    /// Sends a reply when it is due.
    fn reply(&self, done: ReplyTime, send: impl FnOnce() + Send + 'static) {
        match done.not_before {
            None => send(),
            Some(due) => {
                let device = Arc::clone(&self.device);
                self.timer.at(due, move || {
                    send();
                    device.replied(due);
                });
            }
        }
    }

    fn reply_empty(&self, result: Result<ReplyTime, Errno>, reply: ReplyEmpty) {
        match result {
            Ok(done) => self.reply(done, move || reply.ok()),
            Err(e) => reply.error(e),
        }
    }
}

impl Server for BlockAdapter {
    fn negotiate(&self, config: &mut KernelConfig) -> io::Result<()> {
        // Both capabilities are optional: concurrent requests of one reader or writer, and memory
        // maps of a file that bypasses the page cache.
        let wishes = [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP];
        request_capabilities(config, wishes);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attr(FILE).filter(|_| parent == INodeNo::ROOT && name == FILE_NAME) {
            Some(attr) => {
                let node = INodeNo(attr.ino);
                reply.entry(&Entry { node, attr, generation: 0, attr_ttl: TTL, name_ttl: TTL });
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, reply: ReplyAttr) {
        match self.attr(ino) {
            Some(attr) => reply.attr(TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Ignores new times. Size, mode and owner cannot be changed.
    fn setattr(&self, _: &Request, ino: INodeNo, new: &SetAttr, reply: ReplyAttr) {
        let Some(attr) = self.attr(ino) else { return reply.error(Errno::ENOENT) };
        let changes = new.mode.is_some() || new.uid.is_some() || new.gid.is_some();
        if changes || new.size.is_some_and(|s| s != attr.size) {
            return reply.error(Errno::EPERM);
        }
        reply.attr(TTL, &attr);
    }

    fn open(&self, _: &Request, _: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY && self.device.read_only().is_some() {
            return reply.error(Errno::EROFS);
        }
        // Each request is sent to this adapter and answered when it is complete. So acknowledged
        // writes do not depend on the host's page cache, and no data is cached twice.
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(Opened::Requests(FileHandle(0), flags));
    }

    fn read(&self, _: &Request, _: INodeNo, read: &Read, reply: ReplyRead) {
        let mut late = None;
        let rest = reply.try_fill(|buffer| match file::read(&self.device, read.at, buffer)? {
            (data, ReplyTime::NOW) => Ok(Some(data.len())),
            (data, done) => {
                late = Some((data.to_vec(), done));
                Ok(None)
            }
        });
        if let (Some(reply), Some((data, done))) = (rest, late) {
            self.reply(done, move || reply.data(&data));
        }
    }

    fn write(&self, request: &Request, _: INodeNo, write: &Write<'_>, reply: ReplyWrite) {
        match file::write(&self.device, write.at, write.data, request.pid()) {
            Ok((len, done)) => self.reply(done, move || reply.written(len)),
            Err(e) => reply.error(e),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, reply: ReplyEmpty) {
        // close(2) guarantees nothing. Only kernels without FOPEN_NOFLUSH send this request.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: bool, reply: ReplyEmpty) {
        self.reply_empty(file::sync(&self.device), reply);
    }

    fn fallocate(&self, _: &Request, _: INodeNo, range: &Fallocate, reply: ReplyEmpty) {
        self.reply_empty(file::allocate(&self.device, range.at, range.len, range.mode), reply);
    }

    fn lseek(&self, _: &Request, _: INodeNo, offset: i64, whence: i32, reply: ReplyLseek) {
        match file::seek(&self.device, offset, whence) {
            Ok(at) => reply.offset(at),
            Err(e) => reply.error(e),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        if ino != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (i, (ino, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(ino.0, i as u64 + 1, kind, name.as_bytes()) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A loop device uses the block size as its discard granularity.
        let block_bytes = self.device.page_bytes();
        let blocks = self.device.bytes() / u64::from(block_bytes);
        let (files, files_free, blocks_free) = (1, 0, 0);
        reply.statfs(&Usage { blocks, blocks_free, files, files_free, block_bytes, name_max: 255 });
    }

    fn access(&self, _: &Request, _: INodeNo, _: u32, reply: ReplyEmpty) {
        // The kernel checks permissions (default_permissions).
        reply.ok();
    }
}
