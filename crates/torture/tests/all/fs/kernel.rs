//! A directory of the running kernel as a file system, for comparison with the model.
//!
//! Inodes are held by descriptors opened with O_PATH. They have the inode numbers of the kernel and
//! exist as long as the descriptor. A call for a user runs with that user's IDs, which requires
//! root.

use super::user::as_user;
use frit_fs::{
    Allocate, Attr, AttrChanges, Caller, DirEntry, Error, FileExtent, FileSystem, Ino, InodeType, NAME_MAX,
    NewInode, RenameMode, Result, Seek, SetTime, Time, Usage, XattrMode,
};
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, SeekFrom, Timespec, Timestamps,
    UTIME_NOW, UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A directory, with descriptors of its inodes.
pub(crate) struct Kernel {
    root: u64,
    known: Mutex<BTreeMap<u64, Arc<OwnedFd>>>,
    pinned: Mutex<Vec<Ino>>,
}

fn os(e: Errno) -> Error {
    Error::Os { what: "the kernel's", path: PathBuf::new(), error: e.into() }
}

fn open_at(dir: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(os)
}

fn kind_of(mode: u32) -> InodeType {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => InodeType::File,
        FileType::Directory => InodeType::Directory,
        FileType::Symlink => InodeType::Symlink,
        FileType::Fifo => InodeType::Fifo,
        FileType::Socket => InodeType::Socket,
        FileType::CharacterDevice => InodeType::Char,
        _ => InodeType::Block,
    }
}

impl Kernel {
    /// Creates it over an empty directory.
    pub(crate) fn new(path: &std::path::Path) -> Kernel {
        let root = open_at(rustix::fs::CWD, path.as_os_str().as_encoded_bytes()).unwrap();
        rustix::fs::chmod(path, Mode::from_raw_mode(0o755)).unwrap();
        let ino = rustix::fs::fstat(&root).unwrap().st_ino;
        Kernel { root: ino, known: Mutex::new([(ino, Arc::new(root))].into()), pinned: Mutex::default() }
    }

    fn real(&self, ino: Ino) -> u64 {
        if ino == Ino::ROOT { self.root } else { ino.0 }
    }

    fn fd(&self, ino: Ino) -> Result<Arc<OwnedFd>> {
        self.known.lock().unwrap().get(&self.real(ino)).cloned().ok_or(Error::Stale)
    }

    /// Returns a path of the inode that does not depend on its names.
    fn path(&self, ino: Ino) -> Result<PathBuf> {
        Ok(format!("/proc/self/fd/{}", self.fd(ino)?.as_raw_fd()).into())
    }

    fn stat(&self, fd: impl AsFd) -> Result<Attr> {
        let s = rustix::fs::fstat(fd).map_err(os)?;
        Ok(Attr {
            ino: if s.st_ino == self.root { Ino::ROOT } else { Ino(s.st_ino) },
            generation: 0,
            kind: kind_of(s.st_mode),
            mode: (s.st_mode & 0o7777) as u16,
            links: s.st_nlink as u32,
            uid: s.st_uid,
            gid: s.st_gid,
            rdev: s.st_rdev as u32,
            size: s.st_size as u64,
            sectors: s.st_blocks as u64,
            atime: Time::new(s.st_atime, s.st_atime_nsec as u32),
            mtime: Time::new(s.st_mtime, s.st_mtime_nsec as u32),
            ctime: Time::new(s.st_ctime, s.st_ctime_nsec as u32),
            btime: Time::default(),
        })
    }

    /// Keeps the descriptor of an inode. If there are many descriptors, those of unlinked inodes
    /// without a pin are closed.
    fn keep(&self, fd: OwnedFd) -> Result<Attr> {
        let attr = self.stat(&fd)?;
        let mut known = self.known.lock().unwrap();
        if known.len() > 400 {
            let pinned: BTreeSet<u64> = self.pinned.lock().unwrap().iter().map(|&i| self.real(i)).collect();
            known.retain(|ino, fd| {
                *ino == self.root
                    || pinned.contains(ino)
                    || rustix::fs::fstat(fd.as_fd()).is_ok_and(|s| s.st_nlink > 0)
            });
        }
        known.insert(self.real(attr.ino), Arc::new(fd));
        Ok(attr)
    }

    /// Opens a regular file as the superuser; other inodes have no contents.
    fn open(&self, ino: Ino, flags: OFlags) -> Result<File> {
        match self.attr(ino)?.kind {
            InodeType::File => {}
            InodeType::Directory => return Err(Error::IsDirectory),
            _ => return Err(Error::Invalid("only regular files have contents")),
        }
        let fd = rustix::fs::open(self.path(ino)?, flags | OFlags::CLOEXEC, Mode::empty()).map_err(os)?;
        Ok(fd.into())
    }

    fn truncate(&self, who: &Caller, ino: Ino, size: u64) -> Result<()> {
        as_user(who, || {
            let file = self.open(ino, OFlags::WRONLY)?;
            rustix::fs::ftruncate(&file, size).map_err(os)
        })
    }
}

fn timespec(set: Option<SetTime>) -> Timespec {
    match set {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::To(t)) => Timespec { tv_sec: t.split().0, tv_nsec: t.split().1.into() },
    }
}

fn io(e: std::io::Error) -> Error {
    Error::Os { what: "the kernel's", path: PathBuf::new(), error: e }
}

/// Returns `true` for `.` and `..`, which every directory has.
fn dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

impl FileSystem for Kernel {
    fn usage(&self) -> Result<Usage> {
        let s = rustix::fs::fstatvfs(&*self.fd(Ino::ROOT)?).map_err(os)?;
        Ok(Usage {
            block_bytes: s.f_frsize as u32,
            blocks: s.f_blocks,
            blocks_free: s.f_bavail,
            inodes: s.f_files,
            inodes_free: s.f_favail,
            name_max: NAME_MAX as u32,
        })
    }

    fn lookup(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        let fd = self.fd(dir)?;
        // The directory above the root of the test does not belong to it.
        let name = if self.real(dir) == self.root && name == b".." { b"." } else { name };
        self.keep(as_user(who, || open_at(&*fd, name))?)
    }

    fn attr(&self, ino: Ino) -> Result<Attr> {
        self.stat(&*self.fd(ino)?)
    }

    fn set_attr(&self, who: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr> {
        let fd = self.fd(ino)?;
        if let Some(size) = changes.size {
            self.truncate(who, ino, size)?;
        }
        let path = self.path(ino)?;
        as_user(who, || {
            if changes.uid.is_some() || changes.gid.is_some() {
                let (uid, gid) = (changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw));
                rustix::fs::chownat(&*fd, c"", uid, gid, AtFlags::EMPTY_PATH).map_err(os)?;
            }
            if let Some(mode) = changes.mode {
                rustix::fs::chmod(&path, Mode::from_raw_mode(mode.into())).map_err(os)?;
            }
            if changes.atime.is_some() || changes.mtime.is_some() {
                let times = Timestamps {
                    last_access: timespec(changes.atime),
                    last_modification: timespec(changes.mtime),
                };
                rustix::fs::utimensat(&*fd, c"", &times, AtFlags::EMPTY_PATH).map_err(os)?;
            }
            Ok(())
        })?;
        self.attr(ino)
    }

    fn create(&self, who: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr> {
        let fd = self.fd(dir)?;
        let mode = Mode::from_raw_mode(new.mode.into());
        let node = |kind| rustix::fs::mknodat(&*fd, name, kind, mode, new.rdev.into());
        as_user(who, || {
            match new.kind {
                InodeType::File => node(FileType::RegularFile),
                InodeType::Directory => rustix::fs::mkdirat(&*fd, name, mode),
                InodeType::Symlink => rustix::fs::symlinkat(new.target, &*fd, name),
                InodeType::Fifo => node(FileType::Fifo),
                InodeType::Socket => node(FileType::Socket),
                InodeType::Char => node(FileType::CharacterDevice),
                InodeType::Block => node(FileType::BlockDevice),
                InodeType::Command => Err(Errno::INVAL),
            }
            .map_err(os)
        })?;
        self.lookup(&Caller::ROOT, dir, name)
    }

    fn link(&self, who: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let (from, to) = (self.path(ino)?, self.fd(dir)?);
        as_user(who, || {
            rustix::fs::linkat(rustix::fs::CWD, &from, &*to, name, AtFlags::SYMLINK_FOLLOW).map_err(os)
        })?;
        self.attr(ino)
    }

    fn unlink(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        let fd = self.fd(dir)?;
        as_user(who, || rustix::fs::unlinkat(&*fd, name, AtFlags::empty()).map_err(os))
    }

    fn rmdir(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        let fd = self.fd(dir)?;
        as_user(who, || rustix::fs::unlinkat(&*fd, name, AtFlags::REMOVEDIR).map_err(os))
    }

    fn rename(&self, who: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()> {
        let (a, b) = (self.fd(from.0)?, self.fd(to.0)?);
        let flags = match mode {
            RenameMode::Replace => RenameFlags::empty(),
            RenameMode::NoReplace => RenameFlags::NOREPLACE,
            RenameMode::Exchange => RenameFlags::EXCHANGE,
        };
        as_user(who, || rustix::fs::renameat_with(&*a, from.1, &*b, to.1, flags).map_err(os))
    }

    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        if self.attr(ino)?.kind != InodeType::Symlink {
            return Err(Error::Invalid("not a symbolic link"));
        }
        rustix::fs::readlinkat(&*self.fd(ino)?, c"", Vec::new())
            .map(std::ffi::CString::into_bytes)
            .map_err(os)
    }

    fn pin(&self, ino: Ino) -> Result<()> {
        self.pinned.lock().unwrap().push(ino);
        Ok(())
    }

    fn unpin(&self, ino: Ino) -> Result<()> {
        let mut pinned = self.pinned.lock().unwrap();
        let at = pinned.iter().position(|&p| p == ino).ok_or(Error::Invalid("not pinned"))?;
        pinned.remove(at);
        Ok(())
    }

    fn read(&self, ino: Ino, at: u64, into: &mut [u8]) -> Result<usize> {
        self.open(ino, OFlags::RDONLY)?.read_at(into, at).map_err(io)
    }

    fn write(&self, ino: Ino, at: u64, data: &[u8]) -> Result<usize> {
        self.open(ino, OFlags::RDWR)?.write_at(data, at).map_err(io)
    }

    fn append(&self, ino: Ino, data: &[u8]) -> Result<(u64, usize)> {
        use std::io::Write;
        let mut file = self.open(ino, OFlags::RDWR | OFlags::APPEND)?;
        let n = file.write(data).map_err(io)?;
        Ok((self.attr(ino)?.size, n))
    }

    fn allocate(&self, ino: Ino, how: Allocate, at: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Err(Error::Invalid("a range without bytes"));
        }
        let (keep, zero) = (FallocateFlags::KEEP_SIZE, FallocateFlags::ZERO_RANGE);
        let flags = match how {
            Allocate::Extend => FallocateFlags::empty(),
            Allocate::Keep => keep,
            Allocate::Punch => FallocateFlags::PUNCH_HOLE | keep,
            Allocate::Zero => zero,
            Allocate::ZeroKeep => zero | keep,
        };
        rustix::fs::fallocate(self.open(ino, OFlags::RDWR)?, flags, at, len).map_err(os)
    }

    fn seek(&self, ino: Ino, what: Seek, at: u64) -> Result<u64> {
        let to = if what == Seek::Data { SeekFrom::Data(at) } else { SeekFrom::Hole(at) };
        rustix::fs::seek(self.open(ino, OFlags::RDONLY)?, to).map_err(os)
    }

    fn sync_file(&self, ino: Ino, _data_only: bool) -> Result<()> {
        self.fd(ino).map(|_| ())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn read_dir(&self, ino: Ino, from: u64, each: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(self.path(ino)?, flags, Mode::empty()).map_err(os)?;
        let mut all = Vec::new();
        for entry in Dir::new(fd).map_err(os)? {
            let entry = entry.map_err(os)?;
            let name = entry.file_name().to_bytes().to_vec();
            let ino = match &name[..] {
                b".." if self.real(ino) == self.root => self.root,
                _ => entry.ino(),
            };
            let kind = match entry.file_type() {
                FileType::Unknown => return Err(Error::Unsupported("a file system that lists no kinds")),
                known => kind_of(known.as_raw_mode()),
            };
            all.push((name, if ino == self.root { Ino::ROOT } else { Ino(ino) }, kind));
        }
        // Positions are indexes in the order of names (`.` and `..` first), which is correct while
        // no name is added or removed.
        all.sort_by(|a, b| dots(&b.0).cmp(&dots(&a.0)).then(a.0.cmp(&b.0)));
        for (i, (name, ino, kind)) in all.iter().enumerate().skip(from as usize) {
            if !each(&DirEntry { name, ino: *ino, kind: *kind, next: i as u64 + 1 }) {
                break;
            }
        }
        Ok(())
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let mut value = vec![0; 65_536];
        let n = rustix::fs::getxattr(self.path(ino)?, name, &mut value[..]).map_err(os)?;
        value.truncate(n);
        Ok(value)
    }

    fn xattrs(&self, ino: Ino) -> Result<Vec<u8>> {
        let mut names = vec![0; 65_536];
        let n = rustix::fs::listxattr(self.path(ino)?, &mut names[..]).map_err(os)?;
        names.truncate(n);
        Ok(names)
    }

    fn set_xattr(&self, who: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        let flags = match mode {
            XattrMode::Any => XattrFlags::empty(),
            XattrMode::Create => XattrFlags::CREATE,
            XattrMode::Replace => XattrFlags::REPLACE,
        };
        let path = self.path(ino)?;
        as_user(who, || rustix::fs::setxattr(&path, name, value, flags).map_err(os))
    }

    fn remove_xattr(&self, who: &Caller, ino: Ino, name: &[u8]) -> Result<()> {
        let path = self.path(ino)?;
        as_user(who, || rustix::fs::removexattr(&path, name).map_err(os))
    }

    fn pieces(&self, _: Ino, _: u64, _: &mut dyn FnMut(&FileExtent) -> bool) -> Result<()> {
        Err(Error::Unsupported("where a kernel keeps bytes"))
    }
}
