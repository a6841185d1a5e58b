//! FUSE adapter of a device: a directory with one file.

use super::file;
use crate::backend::ReplyTime;
use crate::device::Device;
use crate::fuse::capabilities;
use crate::pace::Timer;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Name of the file in the mounted directory.
pub const FILE_NAME: &str = "volume";

const FILE: INodeNo = INodeNo(2);
/// Lifetime of cached attributes. Nothing about the file changes while it is mounted.
const TTL: Duration = Duration::from_secs(3600);

thread_local! {
    /// Read buffer of a thread.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file system with one file.
#[derive(Debug)]
pub(super) struct BlockAdapter {
    device: Arc<Device>,
    timer: Arc<Timer>,
    mounted: SystemTime,
    owner: (u32, u32),
}

impl BlockAdapter {
    pub(super) fn new(device: Arc<Device>, timer: Arc<Timer>) -> BlockAdapter {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        BlockAdapter { device, timer, mounted: SystemTime::now(), owner }
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o555, 0),
            FILE if self.device.read_only().is_some() => (FileType::RegularFile, 0o400, self.device.bytes()),
            FILE => (FileType::RegularFile, 0o600, self.device.bytes()),
            _ => return None,
        };
        Some(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: self.mounted,
            mtime: self.mounted,
            ctime: self.mounted,
            crtime: self.mounted,
            kind,
            perm,
            nlink: if ino == FILE { 1 } else { 2 },
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: self.device.page_bytes(),
            flags: 0,
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

impl Filesystem for BlockAdapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Both capabilities are optional: concurrent requests of one reader or writer, and memory
        // maps of a file that bypasses the page cache.
        let wanted = [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP];
        capabilities::negotiate(config, wanted);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attr(FILE).filter(|_| parent == INodeNo::ROOT && name == FILE_NAME) {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Ignores new times. Size, mode and owner cannot be changed.
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(attr) = self.attr(ino) else { return reply.error(Errno::ENOENT) };
        let changes = mode.is_some() || uid.is_some() || gid.is_some();
        if changes || size.is_some_and(|s| s != attr.size) {
            return reply.error(Errno::EPERM);
        }
        reply.attr(&TTL, &attr);
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
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            match file::read(&self.device, offset, &mut buffer[..size as usize]) {
                Ok((data, ReplyTime::NOW)) => reply.data(data),
                Ok((data, done)) => {
                    let data = data.to_vec();
                    self.reply(done, move || reply.data(&data));
                }
                Err(e) => reply.error(e),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match file::write(&self.device, offset, data, request.pid()) {
            Ok((len, done)) => self.reply(done, move || reply.written(len)),
            Err(e) => reply.error(e),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // close(2) guarantees nothing. Only kernels without FOPEN_NOFLUSH send this request.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.reply_empty(file::sync(&self.device), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.reply_empty(file::allocate(&self.device, offset, length, mode), reply);
    }

    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        match file::seek(&self.device, offset, whence) {
            Ok(at) => reply.offset(at),
            Err(e) => reply.error(e),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (i, (ino, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(ino, i as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A loop device uses the block size as its discard granularity.
        let size = self.device.page_bytes();
        let blocks = self.device.bytes() / u64::from(size);
        reply.statfs(blocks, 0, 0, 1, 0, size, 255, size);
    }

    fn access(&self, _: &Request, _: INodeNo, _: fuser::AccessFlags, reply: ReplyEmpty) {
        // The kernel checks permissions (default_permissions).
        reply.ok();
    }
}
