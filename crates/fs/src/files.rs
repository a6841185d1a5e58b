//! Interface of a file system by inodes and names, without a kernel. The mount, the path library
//! and the tests use it.

use crate::error::Result;
use crate::types::{
    Allocate, Attr, AttrChanges, Caller, DefragResult, DirEntry, FileExtent, Ino, LookedUp, NewInode,
    RenameMode, Seek, Usage, XattrMode,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// File system operations. Calls may run concurrently on several threads. Each takes effect
/// completely or not at all, also at a power loss, unless its description says otherwise
/// (`docs/reference/semantics.md`).
pub trait FileSystem: Send + Sync {
    /// Returns the space usage.
    fn usage(&self) -> Result<Usage>;

    /// Sets, once, the function that says which inodes somebody has looked up. Such an inode is not
    /// freed with its last name, but by [`FileSystem::forgotten`], or when space runs out. Its number
    /// is then not used again while there are others.
    fn set_looked_up(&self, looked_up: LookedUp) {
        drop(looked_up);
    }

    /// Frees an inode without names and pins that nobody has looked up any more.
    fn forgotten(&self, _ino: Ino) -> Result<()> {
        Ok(())
    }

    /// Returns the attributes of the inode with this name in a directory; `.` and `..` are valid
    /// names.
    fn lookup(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// Returns the attributes of an inode.
    fn attr(&self, ino: Ino) -> Result<Attr>;

    /// Modifies attributes, all or none: chmod, chown, truncate, utimens.
    fn set_attr(&self, caller: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr>;

    /// Creates an inode under a name that must not exist.
    fn create(&self, caller: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr>;

    /// Adds a name to an inode that is not a directory.
    fn link(&self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr>;

    /// Removes a name of an inode that is not a directory. The inode is freed when it has no names
    /// and no pins, and nobody has looked it up.
    fn unlink(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    fn rmdir(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<()>;

    /// Renames `from` to `to`.
    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()>;

    /// Returns the target of a symbolic link.
    fn read_link(&self, ino: Ino) -> Result<Vec<u8>>;

    /// Pins an inode, which keeps it alive without names, as an open file descriptor does. Each pin
    /// needs one `unpin`.
    fn pin(&self, ino: Ino) -> Result<()>;

    /// Releases one `pin`. The last unpin of an inode without names frees it.
    fn unpin(&self, ino: Ino) -> Result<()>;

    /// Reads from byte `at`; returns the number of bytes, which is lower only at the end of the
    /// file.
    fn read(&self, ino: Ino, at: u64, into: &mut [u8]) -> Result<usize>;

    /// Writes from byte `at`; returns the number of bytes, which is lower only if space ran out.
    fn write(&self, ino: Ino, at: u64, data: &[u8]) -> Result<usize>;

    /// Writes at the end of the file atomically with respect to other writers. Returns the new end
    /// and the number of bytes written.
    fn append(&self, ino: Ino, data: &[u8]) -> Result<(u64, usize)>;

    /// Allocates, punches or zeroes a range.
    fn allocate(&self, ino: Ino, mode: Allocate, at: u64, len: u64) -> Result<()>;

    /// Returns the first position at or after `at` that is data, or is in a hole.
    fn seek(&self, ino: Ino, what: Seek, at: u64) -> Result<u64>;

    /// Makes the data of the file durable, and all its attributes unless `data_only`.
    fn sync_file(&self, ino: Ino, data_only: bool) -> Result<()>;

    /// Makes all changes so far durable.
    fn sync(&self) -> Result<()>;

    /// Lists the names of a directory, `.` and `..` first, until `each` returns `false`. `from` is
    /// 0 for all names, or [`DirEntry::next`] of an earlier entry. A name that exists during the
    /// whole listing is reported exactly once.
    fn read_dir(&self, ino: Ino, from: u64, each: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()>;

    /// Returns the value of an extended attribute. The name includes its namespace (`user.…`).
    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>>;

    /// Returns the names of all extended attributes, each terminated by a zero, as in listxattr(2).
    fn xattrs(&self, ino: Ino) -> Result<Vec<u8>>;

    /// Sets an extended attribute.
    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()>;

    /// Removes an extended attribute.
    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> Result<()>;

    /// Returns the external file that holds the contents of a pinned file, if contents are outside
    /// the medium. Writes to this file change the contents.
    fn content_file(&self, _ino: Ino) -> Option<Arc<OwnedFd>> {
        None
    }

    /// Reports the contiguous pieces of a file on the medium from byte `at`, in file order, until
    /// `each` returns `false`. Holes and contents outside the medium are left out.
    fn pieces(&self, ino: Ino, at: u64, each: &mut dyn FnMut(&FileExtent) -> bool) -> Result<()>;

    /// Defragments a file, as far as free space permits. Its contents and timestamps stay
    /// unchanged.
    fn gather(&self, _: Ino) -> Result<DefragResult> {
        Ok(DefragResult::default())
    }
}
