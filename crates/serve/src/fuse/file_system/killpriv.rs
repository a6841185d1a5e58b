//! Removal of privileges by a write: set-user-ID and set-group-ID bits, and the capabilities of a
//! program. A cache remembers files that have nothing to remove.
//!
//! A kernel that removes them itself requests `security.capability` before every write. With
//! FUSE_HANDLE_KILLPRIV_V2 it leaves this to the file system, which halves the number of requests.
//!
//! The kernel runs a program with its cached mode, which only the reply to a request of the kernel
//! changes. So there is only one way to remove the bits before the bytes are written: if the cached
//! mode has such bits, the kernel sends SETATTR without any attribute before it writes
//! (`file_remove_privs`, under the lock of the inode), and the reply carries the mode without them.
//! This holds for writes through the page cache, for `fallocate`, `copy_file_range` and `splice`,
//! and for files that the kernel writes itself (passthrough). It does not hold for handles with
//! FOPEN_DIRECT_IO: a file that has such bits when it is opened gets no such handle, and a handle
//! that is older than the bits may not write ([`PrivilegeLoss::Refused`]). The processing engine
//! writes without a request: it makes the kernel drop its mode (`in_storage::contents`).
//!
//! A set-group-ID bit of a file that its group may not execute is no privilege (it once meant mandatory
//! locking), but Linux removes it as well if the writer is not in the group (`setattr_should_drop_sgid`): the
//! group could be allowed to execute the file later. The kernel does not report the groups of a writer, so they
//! are read from /proc ([`Writer`]), for such files only.

use super::requester::{self, Credentials};
use frit_fs::{Attr, AttrChanges, Caller, Error, FileSystem, Ino, InodeType, Result};
use frit_fuse::{FileHandle, Request, WriteFlags};
use std::sync::atomic::{AtomicU64, Ordering};

/// Extended attribute that contains the capabilities.
pub(super) const CAPABILITY: &[u8] = b"security.capability";
/// Mode bit of set-user-ID.
const SET_UID: u16 = 0o4000;
/// Mode bit of set-group-ID.
const SET_GID: u16 = 0o2000;
/// Handle of files opened with FOPEN_DIRECT_IO.
pub(super) const DIRECT: FileHandle = FileHandle(1);
/// Number of inodes in the cache.
const SLOTS: usize = 4096;
/// Number of bits of a slot that hold the inode. The other bits count changes of privileges.
const INO_BITS: u32 = 40;
const INO_MASK: u64 = (1 << INO_BITS) - 1;

/// Privileges that a change removes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PrivilegeLoss {
    /// Capabilities.
    Capability,
    /// Capabilities and set-ID bits, if the writer may not keep those (CAP_FSETID).
    Unprivileged,
    /// Capabilities and set-ID bits: the writer may not keep them.
    All,
    /// Capabilities. The change is refused if there are set-ID bits to remove, because the kernel would
    /// continue with its cached mode.
    Refused,
}

impl PrivilegeLoss {
    /// Returns the privileges that a write removes. The kernel reports if the writer may keep
    /// set-ID bits (CAP_FSETID).
    pub(super) fn by(flags: WriteFlags, handle: FileHandle) -> PrivilegeLoss {
        match flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            false => PrivilegeLoss::Capability,
            true if handle == DIRECT => PrivilegeLoss::Refused,
            true => PrivilegeLoss::All,
        }
    }
}

/// Who changes contents. Rights are looked up only for a file with set-ID bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Writer<'a> {
    /// The sender of a request.
    Sender(&'a Request),
    /// The authors of an instruction, who have the rights that all of them have.
    Authors(&'a [Credentials]),
}

impl Writer<'_> {
    /// Returns `true` if the writer may keep the set-ID bits of any file (CAP_FSETID).
    fn keeps_set_ids(&self) -> bool {
        match self {
            Writer::Sender(request) => requester::credentials(request).keeps_set_ids,
            Writer::Authors(authors) => authors.iter().all(|author| author.keeps_set_ids),
        }
    }

    fn is_in_group(&self, gid: u32) -> bool {
        match self {
            Writer::Sender(request) => {
                request.gid() == gid || requester::caller_with_groups(request).groups.contains(&gid)
            }
            Writer::Authors(authors) => authors.iter().all(|author| author.is_in_group(gid)),
        }
    }
}

/// Cache of inodes known to have no privileges, so that most writes need not check them.
///
/// Privileges can change while a write is in progress (writeback does not hold the lock of the
/// inode). So each slot contains a count of changes besides the inode, and the result of a check is
/// stored only if the count is unchanged.
#[derive(Debug)]
pub(super) struct KillprivCache(Box<[AtomicU64]>);

impl KillprivCache {
    pub(super) fn new() -> KillprivCache {
        KillprivCache((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    fn slot(&self, ino: Ino) -> &AtomicU64 {
        &self.0[ino.0 as usize % SLOTS]
    }

    /// Removes an inode from the cache. Must be called after the inode was created or has gained
    /// privileges.
    pub(super) fn forget(&self, ino: Ino) {
        let next = |slot: u64| Some((slot >> INO_BITS).wrapping_add(1) << INO_BITS);
        let _ = self.slot(ino).fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    /// Stores an inode that was found to have no privileges after its slot contained `before`. Has
    /// no effect if the slot has changed since then.
    fn remember(&self, ino: Ino, before: u64) {
        if ino.0 & !INO_MASK == 0 {
            let seen = before & !INO_MASK | ino.0;
            let _ = self.slot(ino).compare_exchange(before, seen, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Removes the privileges of a file that a change of its contents removes. Returns `true` if the mode
    /// has changed.
    pub(super) fn remove<F: FileSystem>(
        &self,
        files: &F,
        ino: Ino,
        loses: PrivilegeLoss,
        writer: Writer<'_>,
    ) -> Result<bool> {
        let before = self.slot(ino).load(Ordering::Acquire);
        if before & INO_MASK == ino.0 {
            return Ok(false);
        }
        let attr = files.attr(ino)?;
        remove_capability(files, ino)?;
        match loses {
            _ if !has_set_id(&attr) => {
                self.remember(ino, before);
                Ok(false)
            }
            PrivilegeLoss::Capability => Ok(false),
            PrivilegeLoss::Unprivileged if writer.keeps_set_ids() => Ok(false),
            _ if without(&attr, writer) == attr.mode => Ok(false),
            PrivilegeLoss::Refused => Err(Error::NotPermitted),
            PrivilegeLoss::All | PrivilegeLoss::Unprivileged => {
                remove_set_id(files, &attr, writer).map(|()| true)
            }
        }
    }

    /// Removes privileges before a write, at the kernel's request. The kernel requests it if there
    /// is a capability, or if there are set-ID bits that the writer may not keep. It does not
    /// report which.
    pub(super) fn remove_before_write<F: FileSystem>(files: &F, ino: Ino, writer: Writer<'_>) -> Result<()> {
        let attr = files.attr(ino)?;
        remove_capability(files, ino)?;
        if has_set_id(&attr) && !writer.keeps_set_ids() {
            return remove_set_id(files, &attr, writer);
        }
        Ok(())
    }

    /// Extends changes of the owner or the size by the privileges that they remove.
    pub(super) fn extend_changes<F: FileSystem>(
        files: &F,
        writer: Writer<'_>,
        ino: Ino,
        changes: &mut AttrChanges,
    ) -> Result<()> {
        let owner = changes.uid.is_some() || changes.gid.is_some();
        if !owner && changes.size.is_none() {
            return Ok(());
        }
        let attr = files.attr(ino)?;
        if attr.kind == InodeType::Command && changes.size.is_some() {
            // A program that copies a file over it must not believe that it is there.
            return Err(Error::NotPermitted);
        }
        if attr.kind != InodeType::File {
            return Ok(());
        }
        remove_capability(files, ino)?;
        // Callers with CAP_FSETID keep the bits, except for a change of owner.
        if changes.mode.is_none() && has_set_id(&attr) && (owner || !writer.keeps_set_ids()) {
            changes.mode = Some(without(&attr, writer));
        }
        Ok(())
    }
}

fn remove_capability<F: FileSystem>(files: &F, ino: Ino) -> Result<()> {
    match files.xattr(ino, CAPABILITY) {
        Ok(_) => files.remove_xattr(&Caller::ROOT, ino, CAPABILITY),
        Err(Error::NoAttribute | Error::Unsupported(_)) => Ok(()),
        Err(e) => Err(e),
    }
}

fn remove_set_id<F: FileSystem>(files: &F, attr: &Attr, writer: Writer<'_>) -> Result<()> {
    let mode = without(attr, writer);
    if mode == attr.mode {
        return Ok(());
    }
    let changes = AttrChanges { mode: Some(mode), ..AttrChanges::default() };
    files.set_attr(&Caller::trusted(0, 0), attr.ino, &changes).map(drop)
}

/// Returns `true` if a file has set-ID bits that the write of somebody removes.
pub(super) fn has_set_id(attr: &Attr) -> bool {
    attr.kind == InodeType::File && attr.mode & (SET_UID | SET_GID) != 0
}

/// Returns the mode without the bits that a write removes.
fn without(attr: &Attr, writer: Writer<'_>) -> u16 {
    if !has_set_id(attr) {
        return attr.mode;
    }
    let mode = attr.mode & !SET_UID;
    let lends_group = mode & 0o010 != 0;
    if mode & SET_GID != 0 && (lends_group || !writer.is_in_group(attr.gid)) { mode & !SET_GID } else { mode }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_came_while_they_were_looked_for_are_not_overlooked() {
        let (killpriv, ino, far) = (KillprivCache::new(), Ino(7), Ino(1 << INO_BITS | 7));
        let is_known = |ino: Ino| killpriv.slot(ino).load(Ordering::Acquire) & INO_MASK == ino.0;
        let before = killpriv.slot(ino).load(Ordering::Acquire);
        killpriv.forget(ino);
        killpriv.remember(ino, before);
        assert!(!is_known(ino), "it may have gained privileges");
        killpriv.remember(ino, killpriv.slot(ino).load(Ordering::Acquire));
        assert!(is_known(ino));
        killpriv.forget(Ino(7 + SLOTS as u64));
        assert!(!is_known(ino));
        killpriv.remember(far, killpriv.slot(far).load(Ordering::Acquire));
        assert!(!is_known(ino) && !is_known(far), "the number does not fit into a slot");
    }
}
