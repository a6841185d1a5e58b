//! Operations of programs, addressed by paths.

use frit_fs::{Allocate, Caller, InodeType, RenameMode, Seek, SetTime, XattrMode};

/// Number of open files that a session can hold.
pub const SLOTS: u8 = 3;

/// User that performs an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumString, strum::IntoStaticStr, strum::EnumIter)]
#[strum(serialize_all = "lowercase")]
pub enum User {
    /// The superuser.
    Root,
    /// User 1000 of group 1000.
    Alice,
    /// User 1001 of group 1001, who is also in group 1000.
    Bob,
    /// User 1002 of group 1002, whose permissions were checked by a kernel.
    Trusted,
}

impl User {
    /// Returns the caller for the file system.
    #[must_use]
    pub fn caller(self) -> Caller {
        match self {
            User::Root => Caller::ROOT,
            User::Alice => Caller { uid: 1000, gid: 1000, groups: Vec::new(), checked: true, ..Caller::ROOT },
            User::Bob => Caller { uid: 1001, gid: 1001, groups: vec![1000], checked: true, ..Caller::ROOT },
            User::Trusted => Caller::trusted(1002, 1002),
        }
    }
}

/// Names from the root on, separated by slashes; an empty path is the root. A name `n*255` stands
/// for 255 times `n`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Path(pub String);

/// Returns the bytes that a name of an operation stands for: `n*255` is 255 times `n`, any other
/// name is itself.
#[must_use]
pub fn expand(word: &str) -> Vec<u8> {
    match word.split_once('*') {
        Some((what, times)) => what.as_bytes().repeat(times.parse().unwrap_or(1)),
        None => word.as_bytes().to_vec(),
    }
}

/// Returns the short form of a name: the inverse of [`expand`].
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
    /// Creates a path from its text form.
    #[must_use]
    pub fn new(words: &str) -> Self {
        Self(words.trim_matches('/').to_string())
    }

    /// Returns the names of the path.
    #[must_use]
    pub fn names(&self) -> Vec<Vec<u8>> {
        self.0.split('/').filter(|w| !w.is_empty()).map(expand).collect()
    }

    /// Returns the path of a name below this path.
    #[must_use]
    pub fn join(&self, word: &str) -> Self {
        if self.0.is_empty() { Self(word.to_string()) } else { Self(format!("{}/{word}", self.0)) }
    }
}

/// Inode that an operation applies to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpTarget {
    /// The inode with this path. Symbolic links are not followed.
    Path(Path),
    /// The file that was opened last in this slot. If the slot is empty, the operation does
    /// nothing.
    Slot(u8),
}

/// Operation of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The fields are those of the calls of `FileSystem`.
pub enum Act {
    /// Reads the attributes of an inode.
    Stat(OpTarget),
    /// Creates an inode that is not a symbolic link.
    Create { path: Path, kind: InodeType, mode: u16, rdev: u32 },
    /// Creates a symbolic link. The target is written in the form of a name.
    Symlink { path: Path, to: String },
    /// Adds a name to an inode.
    Link { what: OpTarget, path: Path },
    /// Removes a name.
    Unlink(Path),
    /// Removes a directory.
    Rmdir(Path),
    /// Renames an inode.
    Rename { from: Path, to: Path, mode: RenameMode },
    /// Reads a symbolic link.
    ReadLink(OpTarget),
    /// Changes the mode.
    Chmod { what: OpTarget, mode: u16 },
    /// Changes the owner, the group or both.
    Chown { what: OpTarget, uid: Option<u32>, gid: Option<u32> },
    /// Sets access and modification times.
    Times { what: OpTarget, atime: Option<SetTime>, mtime: Option<SetTime> },
    /// Sets the size.
    Truncate { what: OpTarget, size: u64 },
    /// Reads bytes.
    Read { what: OpTarget, at: u64, len: u32 },
    /// Writes bytes that `stamp` determines; 0 stands for zeros.
    Write { what: OpTarget, at: u64, len: u32, stamp: u8 },
    /// Appends bytes.
    Append { what: OpTarget, len: u32, stamp: u8 },
    /// Allocates, punches or zeroes a range.
    Allocate { what: OpTarget, how: Allocate, at: u64, len: u64 },
    /// Finds the next data or hole.
    Seek { what: OpTarget, kind: Seek, at: u64 },
    /// Syncs a file.
    SyncFile { what: OpTarget, data_only: bool },
    /// Syncs the file system.
    Sync,
    /// Defragments a file.
    Gather(OpTarget),
    /// Lists a directory.
    List(OpTarget),
    /// Reads an extended attribute.
    Xattr { what: OpTarget, name: String },
    /// Lists extended attributes.
    Xattrs(OpTarget),
    /// Sets an extended attribute to `len` bytes that `stamp` determines.
    SetXattr { what: OpTarget, name: String, len: u32, stamp: u8, mode: XattrMode },
    /// Removes an extended attribute.
    RemoveXattr { what: OpTarget, name: String },
    /// Opens a file: pins its inode. The file that the slot held is closed.
    Open { slot: u8, path: Path },
    /// Closes the file of a slot.
    Close(u8),
}

/// An operation and its user. Its text is one line, which [`str::parse`] reads:
/// `alice write a/f 4095 100 7`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FsOp {
    /// User.
    pub who: User,
    /// Operation.
    pub act: Act,
}

impl Act {
    /// Returns the inode that the operation applies to, unless it is given as a name in a
    /// directory.
    #[must_use]
    pub fn target(&self) -> Option<&OpTarget> {
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
