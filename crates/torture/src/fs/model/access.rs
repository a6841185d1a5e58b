//! Who may do what: the rules of Linux for callers whose permissions are checked here.

use super::node::Node;
use frit_fs::{Caller, Error, Result};

/// Set-user-ID, of `mode`.
pub(super) const SET_UID: u16 = 0o4000;
/// Set-group-ID, of `mode`.
pub(super) const SET_GID: u16 = 0o2000;
const STICKY: u16 = 0o1000;
const GROUP_EXECUTE: u16 = 0o010;

/// What an inode is wanted for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// To look names up.
    Search = 1,
    /// To change it.
    Write = 2,
}

/// Whether the caller passes all checks: the superuser, or one that somebody else has checked.
pub(super) fn is_super(who: &Caller) -> bool {
    !who.checked || who.uid == 0
}

pub(super) fn in_group(who: &Caller, gid: u32) -> bool {
    who.gid == gid || who.groups.contains(&gid)
}

/// Whether the mode of the inode allows it.
pub(super) fn allowed(who: &Caller, node: &Node, want: Want) -> bool {
    let shift = match () {
        () if is_super(who) => return true,
        () if who.uid == node.uid => 6,
        () if in_group(who, node.gid) => 3,
        () => 0,
    };
    node.mode >> shift & want as u16 != 0
}

pub(super) fn is_owner(who: &Caller, node: &Node) -> bool {
    is_super(who) || who.uid == node.uid
}

/// Whether the caller may add names to a directory.
///
/// # Errors
/// EACCES.
pub(super) fn may_add(who: &Caller, dir: &Node) -> Result<()> {
    if allowed(who, dir, Want::Write) { Ok(()) } else { Err(Error::Access) }
}

/// Whether the caller may take the name of `victim` out of a directory: in one that is sticky only its owner
/// and the victim's may.
///
/// # Errors
/// EACCES or EPERM; ENOTDIR or EISDIR when the victim is not what is wanted.
pub(super) fn may_delete(who: &Caller, dir: &Node, victim: &Node, wants_dir: bool) -> Result<()> {
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

/// The mode without the bits that a change of owner or contents takes away: set-user-ID, and set-group-ID
/// where it makes a program run as the group, or where the caller is not in it.
pub(super) fn without_privileges(who: &Caller, node: &Node) -> u16 {
    let group = node.mode & GROUP_EXECUTE != 0 || !(is_super(who) || in_group(who, node.gid));
    node.mode & !SET_UID & if group { !SET_GID } else { !0 }
}

/// The mode that a new inode gets of the one that was asked for: set-group-ID of a program is not for callers
/// outside of its group.
pub(super) fn mode_of_new(who: &Caller, mode: u16, gid: u32) -> u16 {
    let program = SET_GID | GROUP_EXECUTE;
    if mode & program == program && !is_super(who) && !in_group(who, gid) { mode & !SET_GID } else { mode }
}
