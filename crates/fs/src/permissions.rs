//! Permission checks: the rules of POSIX, as Linux applies them.

use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::types::{Caller, InodeType, Overrides};

/// Permission to read.
pub(crate) const READ: u16 = 4;
/// Permission to write a file, or to change the names in a directory.
pub(crate) const WRITE: u16 = 2;
/// Permission to execute a file, or to look up a name in a directory.
pub(crate) const EXECUTE: u16 = 1;

/// Set-user-ID.
pub(crate) const SUID: u16 = 0o4000;
/// Set-group-ID.
pub(crate) const SGID: u16 = 0o2000;
/// Sticky bit: only the owner of an entry or of the directory may remove or rename the entry.
pub(crate) const STICKY: u16 = 0o1000;
/// Permission to execute for the group. Without it, a set-group-ID bit has no effect on execution.
const GROUP_EXECUTE: u16 = 0o010;

/// Returns `true` if the caller is in a group.
pub(crate) fn in_group(caller: &Caller, gid: u32) -> bool {
    caller.gid == gid || caller.groups.contains(&gid)
}

/// Fails if the caller lacks one of the wanted permissions.
pub(crate) fn check_access(caller: &Caller, inode: &Inode, want: u16) -> Result<()> {
    if !caller.checked {
        return Ok(());
    }
    if caller.uid == 0 && passes(caller.overrides, inode, want) {
        return Ok(());
    }
    // Only one class applies: an owner without a permission does not get it from the group.
    let shift = match caller {
        _ if caller.uid == inode.uid => 6,
        _ if in_group(caller, inode.gid) => 3,
        _ => 0,
    };
    if inode.mode >> shift & want == want { Ok(()) } else { Err(Error::Access) }
}

/// Returns `true` if a superuser gets a permission, whatever the mode.
fn passes(overrides: Overrides, inode: &Inode, want: u16) -> bool {
    let is_directory = inode.kind == InodeType::Directory;
    match overrides {
        Overrides::None => false,
        Overrides::ReadSearch if is_directory => want & WRITE == 0,
        Overrides::ReadSearch => want == READ,
        // A file without any execute bit cannot be executed.
        Overrides::All => want & EXECUTE == 0 || is_directory || inode.mode & 0o111 != 0,
    }
}

/// Fails if the caller may not remove a name of `inode` from `dir`.
pub(crate) fn check_remove(caller: &Caller, dir: &Inode, inode: &Inode) -> Result<()> {
    check_access(caller, dir, WRITE | EXECUTE)?;
    let free = dir.mode & STICKY == 0 || caller.uid == 0 || caller.uid == inode.uid || caller.uid == dir.uid;
    if !caller.checked || free { Ok(()) } else { Err(Error::NotPermitted) }
}

/// Fails if the caller is neither the owner nor the superuser.
pub(crate) fn check_owner(caller: &Caller, inode: &Inode) -> Result<()> {
    if !caller.checked || caller.uid == 0 || caller.uid == inode.uid {
        Ok(())
    } else {
        Err(Error::NotPermitted)
    }
}

/// Returns the mode and group of a new inode. Inodes in a set-group-ID directory inherit its group.
pub(crate) fn inherited(caller: &Caller, dir: &Inode, kind: InodeType, mode: u16) -> (u16, u32) {
    if dir.mode & SGID == 0 {
        return (mode, caller.gid);
    }
    let mode = match kind {
        InodeType::Directory => mode | SGID,
        _ if caller.checked => without_foreign_group(caller, dir.gid, mode),
        _ => mode,
    };
    (mode, dir.gid)
}

/// Returns the mode without the set-group-ID bit if the caller is not in the group that the bit
/// grants.
pub(crate) fn without_foreign_group(caller: &Caller, gid: u32, mode: u16) -> u16 {
    let lends = mode & SGID != 0 && mode & GROUP_EXECUTE != 0;
    if lends && caller.uid != 0 && !in_group(caller, gid) { mode & !SGID } else { mode }
}

/// Returns the mode of an inode after a change of its owner or contents: the set-ID bits are
/// cleared.
pub(crate) fn without_set_ids(kind: InodeType, mode: u16) -> u16 {
    if kind == InodeType::Directory {
        return mode;
    }
    let mode = mode & !SUID;
    if mode & GROUP_EXECUTE != 0 { mode & !SGID } else { mode }
}
