//! Access rights: the rules of Linux for callers whose permissions are checked here.

use super::node::ModelInode;
use frit_fs::{Caller, Error, Result};

/// Set-user-ID bit of a mode.
pub(super) const SET_UID: u16 = 0o4000;
/// Set-group-ID bit of a mode.
pub(super) const SET_GID: u16 = 0o2000;
const STICKY: u16 = 0o1000;
const GROUP_EXECUTE: u16 = 0o010;

/// Kind of access to an inode.
#[derive(Clone, Copy, Debug)]
pub(super) enum AccessMode {
    /// Lookup of names.
    Search = 1,
    /// Change of the inode.
    Write = 2,
}

/// Returns `true` if the caller passes all checks: the superuser, or a caller whose permissions
/// were checked before.
pub(super) fn is_super(who: &Caller) -> bool {
    !who.checked || who.uid == 0
}

pub(super) fn in_group(who: &Caller, gid: u32) -> bool {
    who.gid == gid || who.groups.contains(&gid)
}

/// Returns `true` if the mode of the inode allows the access.
pub(super) fn allowed(who: &Caller, node: &ModelInode, want: AccessMode) -> bool {
    let shift = match () {
        () if is_super(who) => return true,
        () if who.uid == node.uid => 6,
        () if in_group(who, node.gid) => 3,
        () => 0,
    };
    node.mode >> shift & want as u16 != 0
}

pub(super) fn is_owner(who: &Caller, node: &ModelInode) -> bool {
    is_super(who) || who.uid == node.uid
}

/// Verifies that the caller may add names to a directory.
///
/// # Errors
/// EACCES.
pub(super) fn may_add(who: &Caller, dir: &ModelInode) -> Result<()> {
    if allowed(who, dir, AccessMode::Write) { Ok(()) } else { Err(Error::Access) }
}

/// Verifies that the caller may remove the name of `victim` from a directory. In a sticky directory
/// only the owners of the directory and of the victim may.
///
/// # Errors
/// EACCES or EPERM; ENOTDIR or EISDIR if the victim is of the wrong kind.
pub(super) fn may_delete(who: &Caller, dir: &ModelInode, victim: &ModelInode, wants_dir: bool) -> Result<()> {
    may_add(who, dir)?;
    if dir.mode & STICKY != 0 && !is_owner(who, victim) && !is_owner(who, dir) {
        return Err(Error::NotPermitted);
    }
    match (wants_dir, victim.is_dir()) {
        (true, false) => Err(Error::NotDirectory),
        (false, true) => Err(Error::IsDirectory),
        _ => Ok(()),
    }
}

/// Returns the mode without the bits that a change of owner or contents clears: set-user-ID always,
/// set-group-ID if the group may execute the file or the caller is not in the group.
pub(super) fn without_privileges(who: &Caller, node: &ModelInode) -> u16 {
    let group = node.mode & GROUP_EXECUTE != 0 || !(is_super(who) || in_group(who, node.gid));
    node.mode & !SET_UID & if group { !SET_GID } else { !0 }
}

/// Returns the mode of a new inode. A caller outside the group cannot create an executable with
/// set-group-ID.
pub(super) fn mode_of_new(who: &Caller, mode: u16, gid: u32) -> u16 {
    let program = SET_GID | GROUP_EXECUTE;
    if mode & program == program && !is_super(who) && !in_group(who, gid) { mode & !SET_GID } else { mode }
}
