//! FUSE adapter of a file system: each request of the kernel is passed to [`FileSystem`]. Longer
//! operations are in the neighboring modules.

use super::contents;
use super::convert::{
    allocate, caller, errno, ino, is_of_another, kind, node, permissions, rename_mode, set_time, time,
    visible, xattr_mode,
};
use super::direct_access::DirectAccess;
use super::in_storage::CommandFiles;
use super::killpriv::{CAPABILITY, KillprivCache, PrivilegeLoss, Writer};
use super::lookups::Lookups;
use super::options::MountOptions;
use super::page_invalidation::PageInvalidator;
use super::passthrough::Passthrough;
use super::reply::{self, TTL};
use super::requester;
use super::setup;
use super::unreported::UnreportedChanges;
use super::unsent_writes::UnsentWrites;
use frit_direct::messages::{BEGIN, PREPARE_AT, PREPARE_WHENCE};
use frit_fs::{Attr, AttrChanges, DirectFiles, FileSystem, InStorage, Ino, InodeType, NewInode, Result};
use frit_fuse::{
    CopyRange, Entry, Errno, Fallocate, FileHandle, FopenFlags, INodeNo, InitFlags, Kernel, KernelConfig,
    OpenFlags, Opened, PollToken, Read, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyRead,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, Server, SetAttr, Usage, Write,
};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A file system, as served to FUSE.
#[derive(Debug)]
pub(super) struct FsAdapter<F> {
    pub(super) files: Arc<F>,
    pub(super) killpriv: Arc<KillprivCache>,
    pub(super) passthrough: Passthrough,
    page_invalidation: PageInvalidator,
    pub(super) lookups: Lookups,
    pub(super) commands: Arc<CommandFiles>,
    pub(super) direct: DirectAccess,
    writeback: bool,
    unsent: UnsentWrites,
    /// `true` if the kernel opens directories without a request.
    free_opendir: AtomicBool,
    /// The kernel's side of the connection, for all parts.
    kernel: Arc<OnceLock<Kernel>>,
}

impl<F: FileSystem + DirectFiles + 'static> FsAdapter<F> {
    /// Creates the adapter of a file system.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(super) fn new(files: Arc<F>, options: &MountOptions) -> io::Result<FsAdapter<F>> {
        let unreported = Arc::new(UnreportedChanges::new(&*files));
        let passthrough = Passthrough::new(options.passthrough, options.writeback, Arc::clone(&unreported));
        let kernel = passthrough.kernel();
        let lookups = Lookups::new(&*files);
        let direct = DirectAccess::start(&files, Arc::clone(&kernel), unreported, options.writeback)?;
        let killpriv = Arc::new(KillprivCache::new());
        let engine_kernel = Arc::clone(&kernel);
        let commands = CommandFiles::new(engine_kernel, Arc::clone(&killpriv), options);
        let unsent = UnsentWrites::start(options.writeback, Arc::clone(&kernel))?;
        let page_invalidation = PageInvalidator::start(&*files, Arc::clone(&kernel))?;
        Ok(FsAdapter {
            files,
            killpriv,
            passthrough,
            page_invalidation,
            lookups,
            commands: Arc::new(commands),
            direct,
            writeback: options.writeback,
            unsent,
            free_opendir: AtomicBool::new(false),
            kernel,
        })
    }
}

impl<F: InStorage + DirectFiles + 'static> FsAdapter<F> {
    /// Counts the lookup that a reply with these attributes is.
    fn counted(&self, result: Result<Attr>) -> Result<Attr> {
        result.map(|attr| self.shown(attr)).inspect(|attr| self.lookups.add(attr.ino))
    }

    /// Returns `true` if a file ends before a position for the server, and the kernel may know a later end.
    fn ends_before(&self, ino: Ino, end: u64) -> bool {
        self.unsent.may_have(ino) && self.files.attr(ino).is_ok_and(|attr| attr.size < end)
    }

    /// Returns the attributes as programs see them: a command file has the owner of its directory, and no
    /// permission that its directory does not have.
    fn shown(&self, attr: Attr) -> Attr {
        if attr.kind != InodeType::Command {
            return self.unsent.shown(attr);
        }
        let directory = self.files.command_directory(attr.ino).and_then(|of| self.files.attr(of));
        match directory {
            Ok(of) => Attr { mode: self.commands.mode(&attr, &of), uid: of.uid, gid: of.gid, ..attr },
            Err(_) => Attr { mode: 0, ..attr },
        }
    }

    /// Returns the attributes of a file, or fails if the sender may neither write it nor change its owner, and so
    /// takes no privileges away. The kernel does not check it for a change of owner that changes nothing.
    fn check_remover(&self, request: &Request, ino: Ino) -> Result<Attr> {
        let attr = self.files.attr(ino)?;
        if attr.kind == InodeType::File && attr.uid != request.uid() {
            let writer = self.files.check_writer(&requester::caller_with_groups(request), ino);
            writer.map_err(|_| frit_fs::Error::NotPermitted)?;
        }
        Ok(attr)
    }

    /// Opens a pinned inode for the kernel, and passes what the kernel has to know to `reply`. If that fails,
    /// the inode is released.
    fn with_opened(
        &self,
        request: &Request,
        ino: Ino,
        flags: OpenFlags,
        reply: impl FnOnce(Result<Opened<'_>>),
    ) {
        match self.commands.open(&*self.files, request, ino, flags) {
            Ok(None) => {}
            Ok(Some((handle, open_flags))) => return reply(Ok(Opened::Requests(handle, open_flags))),
            Err(e) => return reply(Err(self.files.unpin(ino).err().unwrap_or(e))),
        }
        self.unsent.opened(ino);
        match self.backing(ino, flags).as_deref() {
            Some(id) => reply(Ok(Opened::Passthrough(FileHandle(0), FopenFlags::FOPEN_NOFLUSH, id))),
            None => {
                let (handle, open_flags) = self.open_flags(ino, flags);
                reply(Ok(Opened::Requests(handle, open_flags)));
            }
        }
    }
}

impl<F: InStorage + DirectFiles + 'static> Server for FsAdapter<F> {
    fn negotiate(&self, config: &mut KernelConfig) -> io::Result<()> {
        setup::negotiate(config, self.writeback)?;
        self.passthrough.negotiate(config);
        let free = config.capabilities().contains(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
        self.free_opendir.store(free, Ordering::Relaxed);
        Ok(())
    }

    fn connected(&self, kernel: Kernel) {
        let _ = self.kernel.set(kernel);
    }

    fn lookup(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        // The kernel resolves a file handle by the name ".", also for files that are not
        // directories.
        let found = match name.as_bytes() {
            b"." => self.files.attr(ino(dir)),
            name => self.files.lookup(&caller(request), ino(dir), name),
        };
        // A file handle has the number that its user has looked up.
        let is_handle = name.as_bytes() == b".";
        reply::looked_up(reply, &self.passthrough, self.counted(found), |attr| {
            if is_handle { dir } else { node(attr, request.uid()) }
        });
    }

    fn forget(&self, number: INodeNo, lookups: u64) {
        self.lookups.forget(&*self.files, ino(number), lookups);
    }

    fn interrupt(&self, unique: u64) {
        self.commands.interrupt(unique);
    }

    fn getattr(&self, _: &Request, number: INodeNo, reply: ReplyAttr) {
        let attr = self.files.attr(ino(number)).map(|attr| self.shown(attr));
        reply::attr(reply, &self.passthrough, attr);
    }

    fn setattr(&self, request: &Request, number: INodeNo, new: &SetAttr, reply: ReplyAttr) {
        let mut changes = AttrChanges {
            mode: new.mode.map(permissions),
            uid: new.uid,
            gid: new.gid,
            size: new.size,
            atime: new.atime.map(set_time),
            mtime: new.mtime.map(set_time),
            ctime: new.ctime.map(time),
        };
        let who = caller(request);
        if changes == AttrChanges::default() {
            // SETATTR without attributes precedes a write, or a change of owner that changes
            // nothing. It asks to remove set-ID bits and capabilities.
            let removed = self
                .check_remover(request, ino(number))
                .and_then(|attr| self.killpriv.remove_on_request(&*self.files, &attr, request));
            let attr = removed.and_then(|()| self.files.attr(ino(number))).map(|attr| self.shown(attr));
            return reply::attr(reply, &self.passthrough, attr);
        }
        let writer = Writer::Sender(request);
        let removed = KillprivCache::extend_changes(&*self.files, writer, ino(number), &mut changes);
        let attr = removed.and_then(|()| self.files.set_attr(&who, ino(number), &changes));
        let attr = attr.map(|attr| self.shown(attr));
        if changes.mode.is_some() {
            self.killpriv.forget(ino(number));
        }
        reply::attr(reply, &self.passthrough, attr);
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.files.read_link(ino(number)) {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn mknod(&self, request: &Request, dir: INodeNo, name: &OsStr, mode: u32, rdev: u32, reply: ReplyEntry) {
        let Some(kind) = kind(mode) else { return reply.error(Errno::EINVAL) };
        let new = NewInode { kind, mode: permissions(mode), rdev, target: &[] };
        reply::entry(reply, &self.passthrough, self.counted(self.make(request, dir, name, new)));
    }

    fn mkdir(&self, request: &Request, dir: INodeNo, name: &OsStr, mode: u32, reply: ReplyEntry) {
        let new = NewInode::directory(permissions(mode));
        reply::entry(reply, &self.passthrough, self.counted(self.make(request, dir, name, new)));
    }

    fn symlink(&self, request: &Request, dir: INodeNo, name: &OsStr, target: &OsStr, reply: ReplyEntry) {
        let new = NewInode::symlink(target.as_bytes());
        reply::entry(reply, &self.passthrough, self.counted(self.make(request, dir, name, new)));
    }

    fn unlink(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply::empty(reply, self.files.unlink(&caller(request), ino(dir), name.as_bytes()));
    }

    fn rmdir(&self, request: &Request, dir: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply::empty(reply, self.files.rmdir(&caller(request), ino(dir), name.as_bytes()));
    }

    fn rename(
        &self,
        request: &Request,
        (dir, name): (INodeNo, &OsStr),
        (new_dir, new_name): (INodeNo, &OsStr),
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let Some(mode) = rename_mode(flags) else { return reply.error(Errno::EINVAL) };
        let (from, to) = ((ino(dir), name.as_bytes()), (ino(new_dir), new_name.as_bytes()));
        let rename = || self.files.rename(&caller(request), from, to, mode);
        self.commands.renames().during(request.pid(), [from, to], rename, |done| reply::empty(reply, done));
    }

    fn link(&self, request: &Request, number: INodeNo, dir: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.files.link(&caller(request), ino(number), ino(dir), name.as_bytes());
        reply::entry(reply, &self.passthrough, self.counted(linked));
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if is_of_another(number, request.uid()) {
            // The kernel looks the name up again, and opens what it finds for this user.
            return reply.error(Errno::ESTALE);
        }
        let opened = self.open_file(request, ino(number), flags);
        match opened.and_then(|()| self.check_size_known(ino(number))) {
            Ok(()) => self.with_opened(request, ino(number), flags, |opened| match opened {
                Ok(opened) => reply.opened(opened),
                Err(e) => reply.error(errno(&e)),
            }),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn create(
        &self,
        request: &Request,
        dir: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: OpenFlags,
        reply: ReplyCreate,
    ) {
        match self.counted(self.make_open(request, dir, name, mode, flags)) {
            Ok(attr) => {
                let ttl = reply::ttl(&self.passthrough, &attr);
                // A new file cannot have been written through a memory map yet.
                let ttl = if attr.size == 0 && !self.writeback { reply::shorter(TTL, &attr) } else { ttl };
                let entry = reply::entry_with(&attr, ttl, ttl);
                let entry = Entry { node: node(&attr, request.uid()), ..entry };
                self.with_opened(request, attr.ino, flags, |opened| match opened {
                    Ok(opened) => reply.created(&entry, opened),
                    Err(e) => reply.error(errno(&e)),
                });
            }
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn read(&self, request: &Request, number: INodeNo, read: &Read, reply: ReplyRead) {
        if self.commands.is_command(read.handle) {
            return self.commands.read(request, read.handle, read.len, reply);
        }
        let _foreground = self.commands.foreground();
        self.page_invalidation.fill(ino(number), read.owner);
        // A read past the page cache.
        if read.owner.is_some() && self.ends_before(ino(number), read.at + u64::from(read.len)) {
            let (files, at) = (Arc::clone(&self.files), read.at);
            return self
                .unsent
                .ask(ino(number), move || contents::read_into(&*files, ino(number), at, reply));
        }
        contents::read_into(&*self.files, ino(number), read.at, reply);
    }

    fn write(&self, request: &Request, number: INodeNo, write: &Write<'_>, reply: ReplyWrite) {
        if self.commands.is_command(write.handle) {
            return self.commands.write(&self.files, request, write, reply);
        }
        let _foreground = self.commands.foreground();
        self.page_invalidation.fill(ino(number), write.owner);
        // With O_APPEND the kernel determines the offset. It lets only one writer at a time extend
        // a file, and its page cache holds the bytes for that offset.
        let loss = PrivilegeLoss::by(write.flags, write.handle);
        let removed = self.killpriv.remove(&*self.files, ino(number), loss, Writer::Sender(request));
        match removed.and_then(|_| self.files.write(ino(number), write.at, write.data)) {
            Ok(bytes) => self.page_invalidation.answer(&*self.files, ino(number), write, bytes, reply),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, reply: ReplyEmpty) {
        // Only kernels without FOPEN_NOFLUSH, or with a writeback cache, send this request. The
        // cached data has been written before.
        reply.ok();
    }

    fn release(&self, _: &Request, number: INodeNo, handle: FileHandle, reply: ReplyEmpty) {
        self.commands.release(&*self.files, handle);
        self.passthrough.release(ino(number));
        self.unsent.released(ino(number));
        reply::empty(reply, self.files.unpin(ino(number)));
    }

    fn fsync(&self, _: &Request, number: INodeNo, data_only: bool, reply: ReplyEmpty) {
        reply::empty(reply, self.files.sync_file(ino(number), data_only));
    }

    fn opendir(&self, _: &Request, _: INodeNo, reply: ReplyOpen) {
        if self.free_opendir.load(Ordering::Relaxed) {
            // The kernel then sends no more OPENDIR requests, and caches listings. A repeated walk
            // of a tree takes one request per directory instead of three.
            return reply.error(Errno::ENOSYS);
        }
        let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR;
        reply.opened(Opened::Requests(FileHandle(0), flags));
    }

    fn readdir(&self, _: &Request, dir: INodeNo, from: u64, mut reply: ReplyDirectory) {
        match self.list(ino(dir), from, &mut reply) {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn readdirplus(&self, _: &Request, dir: INodeNo, from: u64, mut reply: ReplyDirectoryPlus) {
        match self.list_plus(ino(dir), from, &mut reply) {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn fsyncdir(&self, _: &Request, dir: INodeNo, data_only: bool, reply: ReplyEmpty) {
        reply::empty(reply, self.files.sync_file(ino(dir), data_only));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.files.usage() {
            Ok(u) => reply.statfs(&Usage {
                blocks: u.blocks,
                blocks_free: u.blocks_free,
                files: u.inodes,
                files_free: u.inodes_free,
                block_bytes: u.block_bytes,
                name_max: u.name_max,
            }),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        reply: ReplyEmpty,
    ) {
        let Some(mode) = xattr_mode(flags) else { return reply.error(Errno::EINVAL) };
        let set = self.files.set_xattr(&caller(request), ino(number), name.as_bytes(), value, mode);
        if name.as_bytes() == CAPABILITY {
            self.killpriv.forget(ino(number));
            // The program then writes through the kernel, which removes the capability.
            self.files.revoke_lease(ino(number));
        }
        reply::empty(reply, set);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        reply::xattr(reply, room, self.files.xattr(ino(number), name.as_bytes()));
    }

    fn listxattr(&self, request: &Request, number: INodeNo, room: u32, reply: ReplyXattr) {
        reply::xattr(reply, room, self.files.xattrs(ino(number)).map(|names| visible(request, names)));
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes();
        // The kernel removes capabilities also for a change of owner that changes nothing.
        if name == CAPABILITY {
            if let Err(e) = self.check_remover(request, ino(number)) {
                return reply.error(errno(&e));
            }
            self.killpriv.note_removal(request, ino(number));
        }
        reply::empty(reply, self.files.remove_xattr(&caller(request), ino(number), name));
    }

    fn access(&self, _: &Request, _: INodeNo, _: u32, reply: ReplyEmpty) {
        // The kernel checks permissions (default_permissions) and does not send this request.
        reply.ok();
    }

    fn fallocate(&self, request: &Request, number: INodeNo, range: &Fallocate, reply: ReplyEmpty) {
        let Some(mode) = allocate(range.mode) else { return reply.error(Errno::EOPNOTSUPP) };
        let (loss, writer) = (PrivilegeLoss::Unprivileged, Writer::Sender(request));
        let removed = self.killpriv.remove(&*self.files, ino(number), loss, writer);
        let allocate = |_| self.files.allocate(ino(number), mode, range.at, range.len);
        reply::empty(reply, removed.and_then(allocate));
    }

    fn lseek(&self, _: &Request, number: INodeNo, at: i64, whence: i32, reply: ReplyLseek) {
        if (at, whence) == (PREPARE_AT, PREPARE_WHENCE) {
            return self.direct.prepare(ino(number), reply);
        }
        let files = Arc::clone(&self.files);
        self.unsent.ask(ino(number), move || match contents::seek(&*files, ino(number), at, whence) {
            Ok(found) => reply.offset(found),
            Err(e) => reply.error(errno(&e)),
        });
    }

    fn ioctl(
        &self,
        request: &Request,
        (number, handle): (INodeNo, FileHandle),
        command: u32,
        argument: &[u8],
        reply: ReplyIoctl,
    ) {
        if command == BEGIN && self.commands.is_command(handle) {
            return self.commands.begin(&self.files, request, handle, argument, reply);
        }
        self.direct.ioctl(&*self.files, request, ino(number), (command, argument), reply);
    }

    fn poll(&self, _: &Request, handle: FileHandle, token: Option<PollToken>, reply: ReplyPoll) {
        self.commands.poll(handle, token, reply);
    }

    fn copy_file_range(&self, request: &Request, range: &CopyRange, reply: ReplyWrite) {
        let (from, to) = ((ino(range.from.0), range.from.1), (ino(range.to.0), range.to.1));
        let (loss, writer) = (PrivilegeLoss::Unprivileged, Writer::Sender(request));
        let removed = self.killpriv.remove(&*self.files, to.0, loss, writer);
        if let Err(e) = removed {
            return reply.error(errno(&e));
        }
        let (files, len) = (Arc::clone(&self.files), range.len);
        let copy = move || reply::written(reply, contents::copy(&*files, from, to, len));
        if self.ends_before(from.0, from.1.saturating_add(len)) {
            self.unsent.ask(from.0, copy);
        } else {
            copy();
        }
    }
}
