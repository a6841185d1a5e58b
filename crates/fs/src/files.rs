//! The interface of a file system without any kernel: inodes and names. A mount, a library and a test stand on it.

use crate::error::Result;
use crate::types::{
    Allocate, Attr, Caller, Changes, Entry, Gathered, Ino, New, Piece, RenameMode, Seek, Usage, XattrMode,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A file system. All calls may come from several threads at once; each takes effect as a whole or not at all
/// unless it says so, also when power is cut (`docs/semantics.md`).
pub trait Files: Send + Sync {
    /// How full it is.
    fn usage(&self) -> Result<Usage>;

    /// The inode that a directory calls `name`; `.` and `..` are names too.
    fn lookup(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// What is known of an inode.
    fn attr(&self, ino: Ino) -> Result<Attr>;

    /// Changes attributes, all or none: chmod, chown, truncate, utimens.
    fn set_attr(&self, who: &Caller, ino: Ino, changes: &Changes) -> Result<Attr>;

    /// Makes an inode under a name that is free.
    fn create(&self, who: &Caller, dir: Ino, name: &[u8], new: New<'_>) -> Result<Attr>;

    /// Gives an inode that is no directory one more name.
    fn link(&self, who: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// Takes a name of something that is no directory away. Contents stay as long as it has names or is pinned.
    fn unlink(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    fn rmdir(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()>;

    /// Gives what is called `from` the name `to`.
    fn rename(&self, who: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()>;

    /// Where a symbolic link points.
    fn read_link(&self, ino: Ino) -> Result<Vec<u8>>;

    /// Keeps an inode alive without names, as an open file descriptor does. Each needs its `unpin`.
    fn pin(&self, ino: Ino) -> Result<()>;

    /// Takes one `pin` back. The last one of an inode without names frees it.
    fn unpin(&self, ino: Ino) -> Result<()>;

    /// Reads from byte `at`; returns how many bytes, fewer only at the end of the file.
    fn read(&self, ino: Ino, at: u64, into: &mut [u8]) -> Result<usize>;

    /// Writes from byte `at`; returns how many bytes, fewer only when space ran out on the way.
    fn write(&self, ino: Ino, at: u64, data: &[u8]) -> Result<usize>;

    /// Writes at the end, whatever others do; returns where the end is then, and how many bytes were written.
    fn append(&self, ino: Ino, data: &[u8]) -> Result<(u64, usize)>;

    /// Allocates, punches or zeroes a range.
    fn allocate(&self, ino: Ino, how: Allocate, at: u64, len: u64) -> Result<()>;

    /// The first byte from `at` on that is data, or is in a hole.
    fn seek(&self, ino: Ino, what: Seek, at: u64) -> Result<u64>;

    /// What was written to the file outlives a power cut, with all its attributes unless `data_only`.
    fn sync_file(&self, ino: Ino, data_only: bool) -> Result<()>;

    /// Everything so far outlives a power cut.
    fn sync(&self) -> Result<()>;

    /// Names of a directory from position `from` on (0: all; else [`Entry::next`] of an earlier one), `.` and `..`
    /// first, until `each` returns false. A name that is there all the time is told once.
    fn read_dir(&self, ino: Ino, from: u64, each: &mut dyn FnMut(&Entry<'_>) -> bool) -> Result<()>;

    /// The value of an extended attribute. Its name has its namespace (`user.…`).
    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>>;

    /// The names of all extended attributes, each ended by a zero, as listxattr(2) has them.
    fn xattrs(&self, ino: Ino) -> Result<Vec<u8>>;

    /// Sets an extended attribute.
    fn set_xattr(&self, who: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()>;

    /// Removes an extended attribute.
    fn remove_xattr(&self, who: &Caller, ino: Ino, name: &[u8]) -> Result<()>;

    /// The file that holds the contents of a file that is pinned, where they are in one of their own: what is done to
    /// it is done to the contents.
    fn body(&self, _ino: Ino) -> Option<Arc<OwnedFd>> {
        None
    }

    /// Where a file's bytes lie on the medium, from byte `at` on, in the order of the file, until `each` returns
    /// false; holes are left out, and contents that are outside of it.
    fn pieces(&self, ino: Ino, at: u64, each: &mut dyn FnMut(&Piece) -> bool) -> Result<()>;

    /// Puts the pieces of a file together, as far as there is room for them elsewhere. Nothing that can be read of the
    /// file changes, nor its times.
    fn gather(&self, _: Ino) -> Result<Gathered> {
        Ok(Gathered::default())
    }
}
