//! Operations of programs, by paths.

use frit_fs::{Allocate, Caller, Kind, RenameMode, Seek, SetTime, XattrMode};

/// Open files that a session can hold.
pub const SLOTS: u8 = 3;

/// Who does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumString, strum::IntoStaticStr, strum::EnumIter)]
#[strum(serialize_all = "lowercase")]
pub enum Who {
    /// The superuser.
    Root,
    /// User 1000 of group 1000.
    Alice,
    /// User 1001 of group 1001, who is in group 1000 too.
    Bob,
    /// User 1002 of group 1002, whose permissions a kernel has checked.
    Trusted,
}

impl Who {
    /// The caller.
    #[must_use]
    pub fn caller(self) -> Caller {
        match self {
            Who::Root => Caller::ROOT,
            Who::Alice => Caller { uid: 1000, gid: 1000, groups: Vec::new(), checked: true },
            Who::Bob => Caller { uid: 1001, gid: 1001, groups: vec![1000], checked: true },
            Who::Trusted => Caller::trusted(1002, 1002),
        }
    }
}

/// Names from the root on, between slashes; none is the root itself. A name `n*255` is 255 times `n`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Path(pub String);

/// What a word of an operation stands for: `n*255` is 255 times `n`, everything else is itself.
#[must_use]
pub fn expand(word: &str) -> Vec<u8> {
    match word.split_once('*') {
        Some((what, times)) => what.as_bytes().repeat(times.parse().unwrap_or(1)),
        None => word.as_bytes().to_vec(),
    }
}

/// The word for a name: the opposite of [`expand`].
#[must_use]
pub fn shorten(name: &[u8]) -> String {
    match name.first() {
        Some(&first) if name.len() > 8 && name.iter().all(|&b| b == first) => {
            format!("{}*{}", char::from(first), name.len())
        }
        _ => String::from_utf8_lossy(name).into_owned(),
    }
}

impl Path {
    /// From its words.
    #[must_use]
    pub fn new(words: &str) -> Self {
        Self(words.trim_matches('/').to_string())
    }

    /// The names on it.
    #[must_use]
    pub fn names(&self) -> Vec<Vec<u8>> {
        self.0.split('/').filter(|w| !w.is_empty()).map(expand).collect()
    }

    /// A name below it.
    #[must_use]
    pub fn join(&self, word: &str) -> Self {
        if self.0.is_empty() { Self(word.to_string()) } else { Self(format!("{}/{word}", self.0)) }
    }
}

/// Which inode is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// What has this path; links are not followed.
    Path(Path),
    /// What was opened last in this slot. If nothing was, the operation does nothing.
    Slot(u8),
}

/// What is done.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The fields are those of the calls of `Files`.
pub enum Act {
    /// Looks at one inode.
    Stat(Target),
    /// Makes an inode that is no symbolic link.
    Create { path: Path, kind: Kind, mode: u16, rdev: u32 },
    /// Makes a symbolic link; the target is a word as names are.
    Symlink { path: Path, to: String },
    /// Gives an inode one more name.
    Link { what: Target, path: Path },
    /// Takes a name away.
    Unlink(Path),
    /// Removes a directory.
    Rmdir(Path),
    /// Renames.
    Rename { from: Path, to: Path, mode: RenameMode },
    /// Reads a symbolic link.
    ReadLink(Target),
    /// Changes the mode.
    Chmod { what: Target, mode: u16 },
    /// Changes owner or group or both.
    Chown { what: Target, uid: Option<u32>, gid: Option<u32> },
    /// Sets times.
    Times { what: Target, atime: Option<SetTime>, mtime: Option<SetTime> },
    /// Sets the size.
    Truncate { what: Target, size: u64 },
    /// Reads.
    Read { what: Target, at: u64, len: u32 },
    /// Writes bytes that `stamp` determines; 0: zeros.
    Write { what: Target, at: u64, len: u32, stamp: u8 },
    /// Writes at the end.
    Append { what: Target, len: u32, stamp: u8 },
    /// Allocates, punches or zeroes.
    Allocate { what: Target, how: Allocate, at: u64, len: u64 },
    /// Looks for data or holes.
    Seek { what: Target, kind: Seek, at: u64 },
    /// Makes one file durable.
    SyncFile { what: Target, data_only: bool },
    /// Makes everything durable.
    Sync,
    /// Puts the pieces of a file together.
    Gather(Target),
    /// Lists a directory.
    List(Target),
    /// Reads an extended attribute.
    Xattr { what: Target, name: String },
    /// Lists extended attributes.
    Xattrs(Target),
    /// Sets an extended attribute to so many bytes of `stamp`.
    SetXattr { what: Target, name: String, len: u32, stamp: u8, mode: XattrMode },
    /// Removes an extended attribute.
    RemoveXattr { what: Target, name: String },
    /// Opens: pins an inode. What the slot held is closed.
    Open { slot: u8, path: Path },
    /// Closes.
    Close(u8),
}

/// Who does what. Displayed as one line, which [`str::parse`] reads: `alice write a/f 4095 100 7`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Op {
    /// Who.
    pub who: Who,
    /// What.
    pub act: Act,
}

impl Act {
    /// The inode that it is about, where that is not given as a name in a directory.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        match self {
            Act::Stat(what)
            | Act::ReadLink(what)
            | Act::List(what)
            | Act::Xattrs(what)
            | Act::Gather(what)
            | Act::Link { what, .. }
            | Act::Chmod { what, .. }
            | Act::Chown { what, .. }
            | Act::Times { what, .. }
            | Act::Truncate { what, .. }
            | Act::Read { what, .. }
            | Act::Write { what, .. }
            | Act::Append { what, .. }
            | Act::Allocate { what, .. }
            | Act::Seek { what, .. }
            | Act::SyncFile { what, .. }
            | Act::Xattr { what, .. }
            | Act::SetXattr { what, .. }
            | Act::RemoveXattr { what, .. } => Some(what),
            _ => None,
        }
    }
}
