//! Applies operations to any file system, with results in a form that can be compared.

use super::op::{Act, FsOp, OpTarget, Path, SLOTS, User, expand};
use frit_fs::{Attr, AttrChanges, Caller, FileSystem, Ino, InodeType, NewInode, Time};

/// Attributes of an inode that are the same in all correct file systems.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InodeAttrs {
    /// Kind of the inode.
    pub kind: InodeType,
    /// Permission bits.
    pub mode: u16,
    /// Number of hard links.
    pub links: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Device number.
    pub rdev: u32,
    /// Size in bytes; 0 for directories, whose sizes differ between file systems.
    pub size: u64,
}

impl From<Attr> for InodeAttrs {
    fn from(a: Attr) -> Self {
        let size = if a.kind == InodeType::Directory { 0 } else { a.size };
        Self { kind: a.kind, mode: a.mode, links: a.links, uid: a.uid, gid: a.gid, rdev: a.rdev, size }
    }
}

/// Result of an operation that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpResult {
    /// The operation is complete and returns no data.
    Done,
    /// The slot had no open file, so the operation did nothing.
    Nothing,
    /// Attributes of an inode.
    Inode(InodeAttrs),
    /// Attributes of an inode, and the access and modification times that were set explicitly.
    Times(InodeAttrs, Option<Time>, Option<Time>),
    /// Bytes: contents, the target of a symbolic link, or the value of an attribute.
    Bytes(Vec<u8>),
    /// Number of bytes written.
    Written(usize),
    /// End of the file after the write, and number of bytes written.
    Appended(u64, usize),
    /// A position in a file.
    At(u64),
    /// Names of a directory with kinds, sorted by bytes.
    Names(Vec<(Vec<u8>, InodeType)>),
    /// Names of extended attributes, sorted by bytes.
    Keys(Vec<Vec<u8>>),
}

/// Returns the bytes that a write with this stamp puts at `at`; stamp 0 stands for zeros.
#[must_use]
pub fn bytes(stamp: u8, at: u64, len: u32) -> Vec<u8> {
    if stamp == 0 {
        return vec![0; len as usize];
    }
    let odd = u64::from(stamp) * 2 + 1;
    (0..u64::from(len)).map(|i| ((at + i).wrapping_mul(odd).wrapping_add((at + i) >> 8) as u8) | 1).collect()
}

/// A program that uses a file system and holds files open.
#[derive(Clone)]
pub struct ProgramSession<'a> {
    fs: &'a dyn FileSystem,
    open: [Option<Ino>; SLOTS as usize],
}

impl std::fmt::Debug for ProgramSession<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramSession").field("open", &self.open).finish_non_exhaustive()
    }
}

type FsResult<T> = frit_fs::Result<T>;

impl<'a> ProgramSession<'a> {
    /// Creates a session without open files.
    #[must_use]
    pub fn new(fs: &'a dyn FileSystem) -> Self {
        Self { fs, open: [None; SLOTS as usize] }
    }

    /// Returns the same session on a copy of its file system.
    #[must_use]
    pub fn on<'b>(&self, fs: &'b dyn FileSystem) -> ProgramSession<'b> {
        ProgramSession { fs, open: self.open }
    }

    /// Returns the file system.
    #[must_use]
    pub fn fs(&self) -> &'a dyn FileSystem {
        self.fs
    }

    /// Returns the open files by slot.
    #[must_use]
    pub fn open(&self) -> &[Option<Ino>] {
        &self.open
    }

    /// Applies an operation.
    ///
    /// # Errors
    /// The error number of the operation.
    pub fn apply(&mut self, op: &FsOp) -> Result<OpResult, i32> {
        self.act(&op.who.caller(), &op.act).map_err(|e| e.errno())
    }

    /// Returns the inode of a target, or `None` if the slot is empty.
    ///
    /// # Errors
    /// Errors of the lookups on the path.
    pub fn find(&self, who: &Caller, target: &OpTarget) -> FsResult<Option<Ino>> {
        match target {
            OpTarget::Slot(slot) => Ok(self.open.get(usize::from(*slot)).copied().flatten()),
            OpTarget::Path(path) => self.walk(who, &path.names()).map(Some),
        }
    }

    fn walk(&self, who: &Caller, names: &[Vec<u8>]) -> FsResult<Ino> {
        names.iter().try_fold(Ino::ROOT, |dir, name| Ok(self.fs.lookup(who, dir, name)?.ino))
    }

    /// Returns the directory of a path's last name, and the name. For the root it returns the root
    /// and `.`.
    fn parent(&self, who: &Caller, path: &Path) -> FsResult<(Ino, Vec<u8>)> {
        let mut names = path.names();
        let last = names.pop().unwrap_or_else(|| b".".to_vec());
        Ok((self.walk(who, &names)?, last))
    }

    fn act(&mut self, who: &Caller, act: &Act) -> FsResult<OpResult> {
        let fs = self.fs;
        match act {
            Act::Create { path, kind, mode, rdev } => {
                let (dir, name) = self.parent(who, path)?;
                let new = NewInode { kind: *kind, mode: *mode, rdev: *rdev, target: &[] };
                Ok(OpResult::Inode(fs.create(who, dir, &name, new)?.into()))
            }
            Act::Symlink { path, to } => {
                let (dir, name) = self.parent(who, path)?;
                Ok(OpResult::Inode(fs.create(who, dir, &name, NewInode::symlink(&expand(to)))?.into()))
            }
            Act::Unlink(path) => {
                let (dir, name) = self.parent(who, path)?;
                fs.unlink(who, dir, &name).map(|()| OpResult::Done)
            }
            Act::Rmdir(path) => {
                let (dir, name) = self.parent(who, path)?;
                fs.rmdir(who, dir, &name).map(|()| OpResult::Done)
            }
            Act::Rename { from, to, mode } => {
                let (from, to) = (self.parent(who, from)?, self.parent(who, to)?);
                fs.rename(who, (from.0, &from.1), (to.0, &to.1), *mode).map(|()| OpResult::Done)
            }
            Act::Open { slot, path } => {
                let ino = self.walk(who, &path.names())?;
                fs.pin(ino)?;
                match self.open[usize::from(*slot)].replace(ino) {
                    Some(old) => fs.unpin(old).map(|()| OpResult::Done),
                    None => Ok(OpResult::Done),
                }
            }
            Act::Close(slot) => match self.open[usize::from(*slot)].take() {
                Some(old) => fs.unpin(old).map(|()| OpResult::Done),
                None => Ok(OpResult::Nothing),
            },
            Act::Sync => fs.sync().map(|()| OpResult::Done),
            _ => {
                // These calls act on an open file, so the lookup is made as the superuser.
                let finder = if skips_permissions(act) { User::Root.caller() } else { who.clone() };
                let found = act.target().map_or(Ok(None), |t| self.find(&finder, t))?;
                found.map_or(Ok(OpResult::Nothing), |ino| self.act_on(who, act, ino))
            }
        }
    }

    fn act_on(&self, who: &Caller, act: &Act, ino: Ino) -> FsResult<OpResult> {
        let fs = self.fs;
        let done = |()| OpResult::Done;
        let change =
            |changes: AttrChanges| fs.set_attr(who, ino, &changes).map(|a| OpResult::Inode(a.into()));
        match act {
            Act::Stat(_) => Ok(OpResult::Inode(fs.attr(ino)?.into())),
            Act::ReadLink(_) => fs.read_link(ino).map(OpResult::Bytes),
            Act::List(_) => list(fs, ino).map(OpResult::Names),
            Act::Xattrs(_) => keys(fs, ino).map(OpResult::Keys),
            Act::Link { path, .. } => {
                let (dir, name) = self.parent(who, path)?;
                Ok(OpResult::Inode(fs.link(who, ino, dir, &name)?.into()))
            }
            Act::Chmod { mode, .. } => change(AttrChanges { mode: Some(*mode), ..AttrChanges::default() }),
            Act::Chown { uid, gid, .. } => {
                change(AttrChanges { uid: *uid, gid: *gid, ..AttrChanges::default() })
            }
            Act::Truncate { size, .. } => change(AttrChanges { size: Some(*size), ..AttrChanges::default() }),
            Act::Times { atime, mtime, .. } => {
                use frit_fs::SetTime::To;
                let changes = AttrChanges { atime: *atime, mtime: *mtime, ..AttrChanges::default() };
                let a = fs.set_attr(who, ino, &changes)?;
                let is = |set: &Option<frit_fs::SetTime>, time| matches!(set, Some(To(_))).then_some(time);
                Ok(OpResult::Times(a.into(), is(atime, a.atime), is(mtime, a.mtime)))
            }
            Act::Read { at, len, .. } => {
                let mut into = vec![0xA5; *len as usize];
                let n = fs.read(ino, *at, &mut into)?;
                into.truncate(n);
                Ok(OpResult::Bytes(into))
            }
            Act::Write { at, len, stamp, .. } => {
                fs.write(ino, *at, &bytes(*stamp, *at, *len)).map(OpResult::Written)
            }
            Act::Append { len, stamp, .. } => {
                let (end, n) = fs.append(ino, &bytes(*stamp, 0, *len))?;
                Ok(OpResult::Appended(end, n))
            }
            Act::Allocate { how, at, len, .. } => fs.allocate(ino, *how, *at, *len).map(done),
            Act::Seek { kind, at, .. } => fs.seek(ino, *kind, *at).map(OpResult::At),
            Act::SyncFile { data_only, .. } => fs.sync_file(ino, *data_only).map(done),
            // The number of extents is invisible to readers, so it is not compared.
            Act::Gather(_) => fs.gather(ino).map(|_| OpResult::Done),
            Act::Xattr { name, .. } => fs.xattr(ino, &expand(name)).map(OpResult::Bytes),
            Act::SetXattr { name, len, stamp, mode, .. } => {
                fs.set_xattr(who, ino, &expand(name), &bytes(*stamp, 0, *len), *mode).map(done)
            }
            Act::RemoveXattr { name, .. } => fs.remove_xattr(who, ino, &expand(name)).map(done),
            _ => Ok(OpResult::Nothing),
        }
    }
}

/// Returns `true` if the operation checks no permissions of the caller.
fn skips_permissions(act: &Act) -> bool {
    matches!(
        act,
        Act::Read { .. } | Act::Write { .. } | Act::Append { .. } | Act::Allocate { .. } | Act::Seek { .. }
    )
}

/// Returns the names of a directory, sorted by bytes. Each call lists three entries.
///
/// # Errors
/// Errors of the listing.
pub fn list(fs: &dyn FileSystem, dir: Ino) -> FsResult<Vec<(Vec<u8>, InodeType)>> {
    let (mut names, mut from) = (Vec::new(), 0);
    loop {
        let mut left = 3;
        fs.read_dir(dir, from, &mut |entry| {
            names.push((entry.name.to_vec(), entry.kind));
            from = entry.next;
            left -= 1;
            left > 0
        })?;
        if left > 0 {
            break;
        }
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

/// Returns the names of the extended attributes, sorted by bytes.
///
/// # Errors
/// Errors of the listing.
pub fn keys(fs: &dyn FileSystem, ino: Ino) -> FsResult<Vec<Vec<u8>>> {
    let all = fs.xattrs(ino)?;
    let mut keys: Vec<Vec<u8>> = all.split_inclusive(|&b| b == 0).map(<[u8]>::to_vec).collect();
    for key in &mut keys {
        // A name without its terminating zero is marked, so that it differs from all others.
        if key.pop_if(|&mut b| b == 0).is_none() {
            key.extend_from_slice(b" (not ended)");
        }
    }
    keys.sort();
    Ok(keys)
}
