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
use parking_lot::Mutex;
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

/// What a writer may keep of a file.
#[derive(Clone, Copy, Debug)]
struct KeptRights {
    /// All set-ID bits (CAP_FSETID).
    set_ids: bool,
    /// A set-group-ID bit without execution by the group: the writer is in the group, or has CAP_FSETID.
    group_bit: bool,
}

impl Writer<'_> {
    /// Looks up what the writer may keep of a file of a group.
    fn keeps(&self, gid: u32) -> KeptRights {
        let of =
            |rights: &Credentials| (rights.keeps_set_ids, rights.keeps_set_ids || rights.is_in_group(gid));
        let (set_ids, group_bit) = match self {
            Writer::Sender(request) => of(&requester::credentials(request)),
            Writer::Authors(authors) => {
                authors.iter().map(of).fold((true, true), |all, one| (all.0 && one.0, all.1 && one.1))
            }
        };
        KeptRights { set_ids, group_bit }
    }
}

/// Cache of inodes known to have no privileges, so that most writes need not check them.
///
/// Privileges can change while a write is in progress (writeback does not hold the lock of the
/// inode). So each slot contains a count of changes besides the inode, and the result of a check is
/// stored only if the count is unchanged.
#[derive(Debug)]
pub(super) struct KillprivCache {
    slots: Box<[AtomicU64]>,
    /// Thread and inode of the last request to remove capabilities.
    removal: Mutex<Option<(u32, Ino)>>,
}

impl KillprivCache {
    pub(super) fn new() -> KillprivCache {
        KillprivCache { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(), removal: Mutex::default() }
    }

    fn slot(&self, ino: Ino) -> &AtomicU64 {
        &self.slots[ino.0 as usize % SLOTS]
    }

    /// Notes that the kernel has asked for the removal of capabilities.
    pub(super) fn note_removal(&self, request: &Request, ino: Ino) {
        *self.removal.lock() = Some((request.pid(), ino));
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
        if !has_set_id(&attr) {
            self.remember(ino, before);
            return Ok(false);
        }
        if loses == PrivilegeLoss::Capability {
            return Ok(false);
        }
        let keeps = writer.keeps(attr.gid);
        let mode = without(&attr, keeps);
        match loses {
            PrivilegeLoss::Unprivileged if keeps.set_ids => Ok(false),
            _ if mode == attr.mode => Ok(false),
            PrivilegeLoss::Refused => Err(Error::NotPermitted),
            _ => set_mode(files, ino, mode).map(|()| true),
        }
    }

    /// Removes privileges at a request of the kernel without attributes. It precedes a write if there
    /// is a capability, or if there are set-ID bits that the writer may not keep; and it is a change of owner
    /// that changes nothing, which removes the set-ID bits as any change of owner does. The kernel does not
    /// report which. It has asked for the removal of a capability before. So a writer who may keep
    /// the bits does so only then: otherwise there was no reason for the request but a change of owner. The price is
    /// that a file with both keeps its set-ID bits when such a user changes its owner to the same one.
    pub(super) fn remove_on_request<F: FileSystem>(
        &self,
        files: &F,
        attr: &Attr,
        request: &Request,
    ) -> Result<()> {
        let had_capability = self.removal.lock().take_if(|last| *last == (request.pid(), attr.ino)).is_some();
        remove_capability(files, attr.ino)?;
        if !has_set_id(attr) {
            return Ok(());
        }
        let keeps = Writer::Sender(request).keeps(attr.gid);
        match without(attr, keeps) {
            _ if keeps.set_ids && had_capability => Ok(()),
            mode if mode == attr.mode => Ok(()),
            mode => set_mode(files, attr.ino, mode),
        }
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
        if changes.mode.is_none() && has_set_id(&attr) {
            let keeps = writer.keeps(attr.gid);
            // Callers with CAP_FSETID keep the bits, except for a change of owner.
            if owner || !keeps.set_ids {
                changes.mode = Some(without(&attr, keeps));
            }
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

fn set_mode<F: FileSystem>(files: &F, ino: Ino, mode: u16) -> Result<()> {
    let changes = AttrChanges { mode: Some(mode), ..AttrChanges::default() };
    files.set_attr(&Caller::trusted(0, 0), ino, &changes).map(drop)
}

/// Returns `true` if a file has set-ID bits that the write of somebody removes.
pub(super) fn has_set_id(attr: &Attr) -> bool {
    attr.kind == InodeType::File && attr.mode & (SET_UID | SET_GID) != 0
}

/// Returns the mode of a file without the bits that a write removes.
fn without(attr: &Attr, keeps: KeptRights) -> u16 {
    let lends_group = attr.mode & 0o010 != 0;
    let kept = if lends_group || !keeps.group_bit { 0 } else { SET_GID };
    attr.mode & !(SET_UID | SET_GID) | attr.mode & kept
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
