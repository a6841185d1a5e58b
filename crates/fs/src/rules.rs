//! Who may do what: the permission rules of POSIX, as Linux applies them.

use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::types::{Caller, Kind};

/// Permission to read.
pub(crate) const READ: u16 = 4;
/// Permission to write, or to change names.
pub(crate) const WRITE: u16 = 2;
/// Permission to execute, or to look a name up.
pub(crate) const EXECUTE: u16 = 1;

/// Set-user-ID.
pub(crate) const SUID: u16 = 0o4000;
/// Set-group-ID.
pub(crate) const SGID: u16 = 0o2000;
/// Names in the directory belong to their owners.
pub(crate) const STICKY: u16 = 0o1000;
/// Execution by the group: with it a set-group-ID bit means what its name says.
const GROUP_EXECUTE: u16 = 0o010;

/// Whether the caller is in a group.
pub(crate) fn in_group(who: &Caller, gid: u32) -> bool {
    who.gid == gid || who.groups.contains(&gid)
}

/// Refuses a caller without all of the wanted permissions.
pub(crate) fn may(who: &Caller, inode: &Inode, want: u16) -> Result<()> {
    if !who.checked {
        return Ok(());
    }
    if who.uid == 0 {
        let runs = want & EXECUTE == 0 || inode.kind == Kind::Directory || inode.mode & 0o111 != 0;
        return if runs { Ok(()) } else { Err(Error::Access) };
    }
    let shift = match who {
        _ if who.uid == inode.uid => 6,
        _ if in_group(who, inode.gid) => 3,
        _ => 0,
    };
    if inode.mode >> shift & want == want { Ok(()) } else { Err(Error::Access) }
}

/// Refuses to take a name of `inode` out of `dir`.
pub(crate) fn may_remove(who: &Caller, dir: &Inode, inode: &Inode) -> Result<()> {
    may(who, dir, WRITE | EXECUTE)?;
    let free = dir.mode & STICKY == 0 || who.uid == 0 || who.uid == inode.uid || who.uid == dir.uid;
    if !who.checked || free { Ok(()) } else { Err(Error::NotPermitted) }
}

/// Refuses what only the owner may do.
pub(crate) fn owner(who: &Caller, inode: &Inode) -> Result<()> {
    if !who.checked || who.uid == 0 || who.uid == inode.uid { Ok(()) } else { Err(Error::NotPermitted) }
}

/// The mode and the group of something new in a directory: a set-group-ID directory hands its group down.
pub(crate) fn inherited(who: &Caller, dir: &Inode, kind: Kind, mode: u16) -> (u16, u32) {
    if dir.mode & SGID == 0 {
        return (mode, who.gid);
    }
    let mode = match kind {
        Kind::Directory => mode | SGID,
        _ if who.checked => without_foreign_group(who, dir.gid, mode),
        _ => mode,
    };
    (mode, dir.gid)
}

/// A mode without the set-group-ID bit, where the caller is not in the group that it would lend.
pub(crate) fn without_foreign_group(who: &Caller, gid: u32, mode: u16) -> u16 {
    let lends = mode & SGID != 0 && mode & GROUP_EXECUTE != 0;
    if lends && who.uid != 0 && !in_group(who, gid) { mode & !SGID } else { mode }
}

/// The mode of a file after its owner or its contents were changed.
pub(crate) fn without_set_ids(kind: Kind, mode: u16) -> u16 {
    if kind == Kind::Directory {
        return mode;
    }
    let mode = mode & !SUID;
    if mode & GROUP_EXECUTE != 0 { mode & !SGID } else { mode }
}
