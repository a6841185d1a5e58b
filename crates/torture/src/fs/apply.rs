//! Carrying operations out on any file system, and what they answer in terms that can be compared.

use super::op::{Act, Op, Path, SLOTS, Target, Who, expand};
use frit_fs::{Attr, Caller, Changes, Files, Ino, Kind, New, Time};

/// What is the same of an inode in all correct file systems.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seen {
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    /// Hard links.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The device's number.
    pub rdev: u32,
    /// Size in bytes; 0 of directories, which have sizes of all sorts.
    pub size: u64,
}

impl From<Attr> for Seen {
    fn from(a: Attr) -> Self {
        let size = if a.kind == Kind::Directory { 0 } else { a.size };
        Self { kind: a.kind, mode: a.mode, links: a.links, uid: a.uid, gid: a.gid, rdev: a.rdev, size }
    }
}

/// What an operation that went well answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// Nothing was open in its slot, so nothing was done.
    Nothing,
    /// An inode.
    Inode(Seen),
    /// An inode, and the times that were set to a moment.
    Times(Seen, Option<Time>, Option<Time>),
    /// Bytes: contents, a target, the value of an attribute.
    Bytes(Vec<u8>),
    /// How many bytes were written.
    Written(usize),
    /// Where the end is, and how many bytes were written.
    Appended(u64, usize),
    /// A position.
    At(u64),
    /// Names of a directory in the order of bytes, with kinds.
    Names(Vec<(Vec<u8>, Kind)>),
    /// Names of extended attributes in the order of bytes.
    Keys(Vec<Vec<u8>>),
}

/// The bytes that a write with this stamp puts at `at`; 0 means zeros.
#[must_use]
pub fn bytes(stamp: u8, at: u64, len: u32) -> Vec<u8> {
    if stamp == 0 {
        return vec![0; len as usize];
    }
    let odd = u64::from(stamp) * 2 + 1;
    (0..u64::from(len)).map(|i| ((at + i).wrapping_mul(odd).wrapping_add((at + i) >> 8) as u8) | 1).collect()
}

/// A program that uses a file system: it holds files open.
#[derive(Clone)]
pub struct Session<'a> {
    fs: &'a dyn Files,
    open: [Option<Ino>; SLOTS as usize],
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("open", &self.open).finish_non_exhaustive()
    }
}

type Answer<T> = frit_fs::Result<T>;

impl<'a> Session<'a> {
    /// One that has nothing open.
    #[must_use]
    pub fn new(fs: &'a dyn Files) -> Self {
        Self { fs, open: [None; SLOTS as usize] }
    }

    /// The same program on a copy of its file system.
    #[must_use]
    pub fn on<'b>(&self, fs: &'b dyn Files) -> Session<'b> {
        Session { fs, open: self.open }
    }

    /// The file system.
    #[must_use]
    pub fn fs(&self) -> &'a dyn Files {
        self.fs
    }

    /// What is open, by slot.
    #[must_use]
    pub fn open(&self) -> &[Option<Ino>] {
        &self.open
    }

    /// Does it.
    ///
    /// # Errors
    /// The error number.
    pub fn apply(&mut self, op: &Op) -> Result<Outcome, i32> {
        self.act(&op.who.caller(), &op.act).map_err(|e| e.errno())
    }

    /// The inode that is meant. `None` when the slot is empty.
    ///
    /// # Errors
    /// What lookups on the way say.
    pub fn find(&self, who: &Caller, target: &Target) -> Answer<Option<Ino>> {
        match target {
            Target::Slot(slot) => Ok(self.open.get(usize::from(*slot)).copied().flatten()),
            Target::Path(path) => self.walk(who, &path.names()).map(Some),
        }
    }

    fn walk(&self, who: &Caller, names: &[Vec<u8>]) -> Answer<Ino> {
        names.iter().try_fold(Ino::ROOT, |dir, name| Ok(self.fs.lookup(who, dir, name)?.ino))
    }

    /// The directory that a path's last name is in, and the name; `.` of the root for the root.
    fn parent(&self, who: &Caller, path: &Path) -> Answer<(Ino, Vec<u8>)> {
        let mut names = path.names();
        let last = names.pop().unwrap_or_else(|| b".".to_vec());
        Ok((self.walk(who, &names)?, last))
    }

    fn act(&mut self, who: &Caller, act: &Act) -> Answer<Outcome> {
        let fs = self.fs;
        match act {
            Act::Create { path, kind, mode, rdev } => {
                let (dir, name) = self.parent(who, path)?;
                let new = New { kind: *kind, mode: *mode, rdev: *rdev, target: &[] };
                Ok(Outcome::Inode(fs.create(who, dir, &name, new)?.into()))
            }
            Act::Symlink { path, to } => {
                let (dir, name) = self.parent(who, path)?;
                Ok(Outcome::Inode(fs.create(who, dir, &name, New::symlink(&expand(to)))?.into()))
            }
            Act::Unlink(path) => {
                let (dir, name) = self.parent(who, path)?;
                fs.unlink(who, dir, &name).map(|()| Outcome::Done)
            }
            Act::Rmdir(path) => {
                let (dir, name) = self.parent(who, path)?;
                fs.rmdir(who, dir, &name).map(|()| Outcome::Done)
            }
            Act::Rename { from, to, mode } => {
                let (from, to) = (self.parent(who, from)?, self.parent(who, to)?);
                fs.rename(who, (from.0, &from.1), (to.0, &to.1), *mode).map(|()| Outcome::Done)
            }
            Act::Open { slot, path } => {
                let ino = self.walk(who, &path.names())?;
                fs.pin(ino)?;
                match self.open[usize::from(*slot)].replace(ino) {
                    Some(old) => fs.unpin(old).map(|()| Outcome::Done),
                    None => Ok(Outcome::Done),
                }
            }
            Act::Close(slot) => match self.open[usize::from(*slot)].take() {
                Some(old) => fs.unpin(old).map(|()| Outcome::Done),
                None => Ok(Outcome::Nothing),
            },
            Act::Sync => fs.sync().map(|()| Outcome::Done),
            _ => {
                // Reading and writing is of what is open, so it is found as the superuser finds it.
                let finder = if is_of_contents(act) { Who::Root.caller() } else { who.clone() };
                let found = act.target().map_or(Ok(None), |t| self.find(&finder, t))?;
                found.map_or(Ok(Outcome::Nothing), |ino| self.act_on(who, act, ino))
            }
        }
    }

    fn act_on(&self, who: &Caller, act: &Act, ino: Ino) -> Answer<Outcome> {
        let fs = self.fs;
        let done = |()| Outcome::Done;
        let change = |changes: Changes| fs.set_attr(who, ino, &changes).map(|a| Outcome::Inode(a.into()));
        match act {
            Act::Stat(_) => Ok(Outcome::Inode(fs.attr(ino)?.into())),
            Act::ReadLink(_) => fs.read_link(ino).map(Outcome::Bytes),
            Act::List(_) => list(fs, ino).map(Outcome::Names),
            Act::Xattrs(_) => keys(fs, ino).map(Outcome::Keys),
            Act::Link { path, .. } => {
                let (dir, name) = self.parent(who, path)?;
                Ok(Outcome::Inode(fs.link(who, ino, dir, &name)?.into()))
            }
            Act::Chmod { mode, .. } => change(Changes { mode: Some(*mode), ..Changes::default() }),
            Act::Chown { uid, gid, .. } => change(Changes { uid: *uid, gid: *gid, ..Changes::default() }),
            Act::Truncate { size, .. } => change(Changes { size: Some(*size), ..Changes::default() }),
            Act::Times { atime, mtime, .. } => {
                use frit_fs::SetTime::To;
                let changes = Changes { atime: *atime, mtime: *mtime, ..Changes::default() };
                let a = fs.set_attr(who, ino, &changes)?;
                let is = |set: &Option<frit_fs::SetTime>, time| matches!(set, Some(To(_))).then_some(time);
                Ok(Outcome::Times(a.into(), is(atime, a.atime), is(mtime, a.mtime)))
            }
            Act::Read { at, len, .. } => {
                let mut into = vec![0xA5; *len as usize];
                let n = fs.read(ino, *at, &mut into)?;
                into.truncate(n);
                Ok(Outcome::Bytes(into))
            }
            Act::Write { at, len, stamp, .. } => {
                fs.write(ino, *at, &bytes(*stamp, *at, *len)).map(Outcome::Written)
            }
            Act::Append { len, stamp, .. } => {
                let (end, n) = fs.append(ino, &bytes(*stamp, 0, *len))?;
                Ok(Outcome::Appended(end, n))
            }
            Act::Allocate { how, at, len, .. } => fs.allocate(ino, *how, *at, *len).map(done),
            Act::Seek { kind, at, .. } => fs.seek(ino, *kind, *at).map(Outcome::At),
            Act::SyncFile { data_only, .. } => fs.sync_file(ino, *data_only).map(done),
            // In how many pieces a file is says nothing to those who read it.
            Act::Gather(_) => fs.gather(ino).map(|_| Outcome::Done),
            Act::Xattr { name, .. } => fs.xattr(ino, &expand(name)).map(Outcome::Bytes),
            Act::SetXattr { name, len, stamp, mode, .. } => {
                fs.set_xattr(who, ino, &expand(name), &bytes(*stamp, 0, *len), *mode).map(done)
            }
            Act::RemoveXattr { name, .. } => fs.remove_xattr(who, ino, &expand(name)).map(done),
            _ => Ok(Outcome::Nothing),
        }
    }
}

/// Whether no caller is asked for its permission.
fn is_of_contents(act: &Act) -> bool {
    matches!(
        act,
        Act::Read { .. } | Act::Write { .. } | Act::Append { .. } | Act::Allocate { .. } | Act::Seek { .. }
    )
}

/// Names of a directory, listed in bits of three with a new call for each, in the order of bytes.
///
/// # Errors
/// What the listing says.
pub fn list(fs: &dyn Files, dir: Ino) -> Answer<Vec<(Vec<u8>, Kind)>> {
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

/// Names of extended attributes in the order of bytes.
///
/// # Errors
/// What the listing says.
pub fn keys(fs: &dyn Files, ino: Ino) -> Answer<Vec<Vec<u8>>> {
    let all = fs.xattrs(ino)?;
    let mut keys: Vec<Vec<u8>> = all.split_inclusive(|&b| b == 0).map(<[u8]>::to_vec).collect();
    for key in &mut keys {
        // A name that is not ended by its zero stays as it is, so that it differs from all others.
        if key.pop_if(|&mut b| b == 0).is_none() {
            key.extend_from_slice(b" (not ended)");
        }
    }
    keys.sort();
    Ok(keys)
}
