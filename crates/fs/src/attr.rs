//! Operations on attributes: chmod, chown, truncate, utimens.

use crate::contents::external::NewTimes;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::Inode;
use crate::journal::Txn;
use crate::medium::Medium;
use crate::permissions::{self, SGID, WRITE};
use crate::types::{Attr, AttrChanges, Caller, Ino, InodeType, SetTime, Time};

/// Fails if the caller may not make the changes.
fn permitted(caller: &Caller, inode: &Inode, changes: &AttrChanges) -> Result<()> {
    if !caller.checked || caller.uid == 0 {
        return Ok(());
    }
    let is_owner = caller.uid == inode.uid;
    if changes.mode.is_some() {
        permissions::check_owner(caller, inode)?;
    }
    let keeps_user = changes.uid.is_none_or(|uid| uid == inode.uid);
    let group_allowed = changes.gid.is_none_or(|gid| gid == inode.gid || permissions::in_group(caller, gid));
    let changes_owner = changes.uid.is_some() || changes.gid.is_some();
    if changes_owner && !(is_owner && keeps_user && group_allowed) {
        return Err(Error::NotPermitted);
    }
    // Setting both timestamps to the current time needs write permission only. Any other change of
    // a timestamp is reserved to the owner.
    match (changes.atime, changes.mtime) {
        (None, None) => {}
        (Some(SetTime::Now), Some(SetTime::Now)) if !is_owner => {
            permissions::check_access(caller, inode, WRITE)?;
        }
        _ => permissions::check_owner(caller, inode)?,
    }
    if changes.size.is_some() {
        permissions::check_access(caller, inode, WRITE)?;
    }
    Ok(())
}

/// Returns the mode of the inode after the changes.
fn mode_after(caller: &Caller, inode: &Inode, changes: &AttrChanges) -> u16 {
    let mut mode = inode.mode;
    let privileged = caller.uid == 0 || !caller.checked;
    if let Some(new) = changes.mode {
        mode = new & 0o7777;
        if !privileged && !permissions::in_group(caller, inode.gid) {
            mode &= !SGID;
        }
    }
    // A change of owner clears the set-ID bits unless the mode is set as well; a truncation by an
    // unprivileged caller always clears them.
    let owner = caller.checked && (changes.uid.is_some() || changes.gid.is_some());
    let size = !privileged && changes.size.is_some();
    if (owner && changes.mode.is_none()) || size {
        mode = permissions::without_set_ids(inode.kind, mode);
    }
    mode
}

impl<M: Medium> Fs<M> {
    pub(crate) fn change_attr(&self, caller: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr> {
        self.check_writable()?;
        let node = self.node(ino)?;
        let mut state = node.state.write();
        let state = &mut *state;
        state.check_alive()?;
        self.end_lease(&node, state);
        if changes.mode.is_some() && state.inode.kind == InodeType::Symlink {
            return Err(Error::Unsupported("permissions of symbolic links"));
        }
        if changes.size.is_some() {
            match state.inode.kind {
                // A shell truncates the command file that it writes an instruction to.
                InodeType::File | InodeType::Command => {}
                InodeType::Directory => return Err(Error::IsDirectory),
                _ => return Err(Error::Invalid("only files have a size that can be set")),
            }
        }
        permitted(caller, &state.inode, changes)?;
        if *changes == AttrChanges::default() {
            return self.attr_in(&node, state);
        }
        let now = self.clock.now();
        let mut txn = Txn::new();
        let time = |set: SetTime| match set {
            SetTime::Now => now,
            SetTime::To(time) => time,
        };
        let external = self.external(&state.inode).is_some();
        let resized = changes.size.filter(|_| state.inode.kind == InodeType::File);
        // External contents are changed before the inode, because that can fail.
        if external {
            let times = NewTimes { atime: changes.atime.map(time), mtime: changes.mtime.map(time) };
            self.change_body(&node, state, changes.size, times)?;
        } else if let Some(to) = resized {
            self.prepare_resize(&node, state, &mut txn, to)?;
        }
        let inode = &mut state.inode;
        inode.mode = mode_after(caller, inode, changes);
        inode.uid = changes.uid.unwrap_or(inode.uid);
        inode.gid = changes.gid.unwrap_or(inode.gid);
        inode.mtime = match changes.mtime {
            Some(set) => time(set),
            None if changes.size.is_some() => now,
            None => inode.mtime,
        };
        inode.ctime = changes.ctime.unwrap_or(now);
        if let Some(set) = changes.atime {
            let Time(nanos) = time(set);
            node.atime.store(nanos, std::sync::atomic::Ordering::Relaxed);
        }
        match resized.filter(|_| !external) {
            Some(to) => self.resize(&node, state, txn, to)?,
            None => {
                self.put_inode(&mut txn, &node, state);
                self.commit(txn);
            }
        }
        self.attr_in(&node, state)
    }
}
