//! Changes of attributes: chmod, chown, truncate, utimens.

use super::access::{AccessMode, SET_GID, allowed, in_group, is_owner, is_super, without_privileges};
use super::node::ModelInode;
use super::state::ModelState;
use frit_fs::{Attr, AttrChanges, Caller, Error, FILE_MAX, Ino, InodeType, Result, SetTime, Time};

/// Verifies that the caller may make these changes, by the rules of `notify_change` and its callers
/// in Linux.
fn permitted(who: &Caller, node: &ModelInode, changes: &AttrChanges) -> Result<()> {
    if let Some(size) = changes.size {
        match node.kind {
            InodeType::File | InodeType::Command => {}
            InodeType::Directory => return Err(Error::IsDirectory),
            _ => return Err(Error::Invalid("only regular files have a size to change")),
        }
        if !allowed(who, node, AccessMode::Write) {
            return Err(Error::Access);
        }
        if size > FILE_MAX && node.kind == InodeType::File {
            return Err(Error::TooLarge);
        }
    }
    if changes.mode.is_some() && node.kind == InodeType::Symlink {
        return Err(Error::Unsupported("the mode of a symbolic link"));
    }
    let touch = (changes.atime, changes.mtime) == (Some(SetTime::Now), Some(SetTime::Now));
    if touch && !is_owner(who, node) && !allowed(who, node, AccessMode::Write) {
        return Err(Error::Access);
    }
    let mine = is_owner(who, node);
    let uid = changes.uid.is_none_or(|uid| is_super(who) || mine && uid == node.uid);
    let gid = changes.gid.is_none_or(|gid| is_super(who) || mine && (gid == node.gid || in_group(who, gid)));
    let times = !touch && (changes.atime.is_some() || changes.mtime.is_some());
    let of_owner = changes.mode.is_some() || times;
    if !uid || !gid || of_owner && !mine || changes.ctime.is_some() && !is_super(who) {
        return Err(Error::NotPermitted);
    }
    Ok(())
}

/// Returns the mode after the changes.
fn mode_after(who: &Caller, node: &ModelInode, changes: &AttrChanges) -> u16 {
    if let Some(mode) = changes.mode {
        let outside = !is_super(who) && !in_group(who, changes.gid.unwrap_or(node.gid));
        return mode & if outside { 0o7777 & !SET_GID } else { 0o7777 };
    }
    let owner = (changes.uid.is_some() || changes.gid.is_some()) && !node.is_dir();
    let contents = changes.size.is_some() && !is_super(who);
    if who.checked && (owner || contents) { without_privileges(who, node) } else { node.mode }
}

fn set(time: &mut Time, to: Option<SetTime>, now: Time) {
    match to {
        Some(SetTime::Now) => *time = now,
        Some(SetTime::To(t)) => *time = t,
        None => {}
    }
}

impl ModelState {
    pub(super) fn set_attr(&mut self, who: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr> {
        let now = self.now();
        let node = self.node_mut(ino)?;
        permitted(who, node, changes)?;
        let mode = mode_after(who, node, changes);
        // Truncation to the current size changes nothing, except that it may clear set-ID bits.
        // That of a command file never changes anything else.
        let sizes = node.kind == InodeType::File && changes.size.is_some_and(|s| s != node.data.size);
        let others = AttrChanges { size: None, ..*changes } != AttrChanges::default();
        if others || mode != node.mode {
            node.ctime = now;
        }
        if sizes {
            node.data.resize(changes.size.unwrap_or_default());
            node.modified(now);
        }
        node.mode = mode;
        node.uid = changes.uid.unwrap_or(node.uid);
        node.gid = changes.gid.unwrap_or(node.gid);
        set(&mut node.atime, changes.atime, now);
        set(&mut node.mtime, changes.mtime, now);
        node.ctime = changes.ctime.unwrap_or(node.ctime);
        Ok(node.attr(ino))
    }
}
