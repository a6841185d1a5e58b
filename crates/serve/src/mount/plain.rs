//! Rights that a write takes away: set-user-ID and set-group-ID bits, and the capabilities of a program.
//!
//! A kernel that takes them away itself asks for `security.capability` before every write; one that leaves it to the
//! file system (FUSE_HANDLE_KILLPRIV_V2) does not, and half as many requests come.
//!
//! The kernel runs a program with the mode that it remembers, which only the reply to a request of the kernel
//! changes. So the bits are gone before the bytes are there in this way alone: where the remembered mode has such
//! bits, the kernel sends SETATTR without any attribute before it writes (`file_remove_privs`, under the lock of the
//! inode), and the reply carries the mode without them. This holds for writes through the page cache, for
//! `fallocate`, `copy_file_range` and `splice`, and for files that the kernel writes itself (passthrough). It does
//! not hold for handles with FOPEN_DIRECT_IO: a file that has such bits when it is opened gets none, and a handle
//! that is older than the bits may not write ([`Loses::Refused`]).

use frit_fs::{Attr, Caller, Changes, Error, Files, Ino, Kind, Result};
use fuser::{FileHandle, Request, WriteFlags};
use std::sync::atomic::{AtomicU64, Ordering};

/// The attribute in which capabilities are.
pub(super) const CAPABILITY: &[u8] = b"security.capability";
/// Set-user-ID and set-group-ID.
const SET_ID: u16 = 0o6000;
/// The handle of a file that is opened with FOPEN_DIRECT_IO.
pub(super) const DIRECT: FileHandle = FileHandle(1);
/// Inodes that are remembered.
const SLOTS: usize = 4096;
/// Bits of a slot that hold the inode. The others count changes of rights.
const INO_BITS: u32 = 40;
const INO_MASK: u64 = (1 << INO_BITS) - 1;

/// Which rights a change takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loses {
    /// Capabilities.
    Capability,
    /// Capabilities and set-ID bits.
    All,
    /// Capabilities; the change is refused if there are set-ID bits, because the kernel would go on with the mode
    /// that it remembers.
    Refused,
}

impl Loses {
    /// Returns what a write takes away: the kernel says whether the writer may keep set-ID bits (CAP_FSETID).
    pub(super) fn by(flags: WriteFlags, handle: FileHandle) -> Loses {
        match flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            false => Loses::Capability,
            true if handle == DIRECT => Loses::Refused,
            true => Loses::All,
        }
    }

    /// What a request takes away with which the kernel says nothing of the kind.
    pub(super) fn of(request: &Request) -> Loses {
        if request.uid() == 0 { Loses::Capability } else { Loses::All }
    }
}

/// Remembers inodes that were seen to have no such rights, so that most writes look for none.
///
/// Rights can change while a write is under way (writeback holds no lock of the inode). So a slot has a count of
/// changes beside the inode, and what was seen is remembered only if the count is still the same.
#[derive(Debug)]
pub(super) struct Plain(Box<[AtomicU64]>);

impl Plain {
    pub(super) fn new() -> Plain {
        Plain((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    fn slot(&self, ino: Ino) -> &AtomicU64 {
        &self.0[ino.0 as usize % SLOTS]
    }

    /// Forgets an inode that is new or has got rights: to be called after they are there.
    pub(super) fn forget(&self, ino: Ino) {
        let next = |slot: u64| Some((slot >> INO_BITS).wrapping_add(1) << INO_BITS);
        let _ = self.slot(ino).fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    /// Remembers an inode that was seen to have no rights after its slot held `before`. If it has been forgotten since,
    /// or another inode is remembered there, it is not.
    fn remember(&self, ino: Ino, before: u64) {
        if ino.0 & !INO_MASK == 0 {
            let seen = before & !INO_MASK | ino.0;
            let _ = self.slot(ino).compare_exchange(before, seen, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Takes from a file what a change of its contents takes.
    pub(super) fn take<F: Files>(&self, files: &F, ino: Ino, loses: Loses) -> Result<()> {
        let before = self.slot(ino).load(Ordering::Acquire);
        if before & INO_MASK == ino.0 {
            return Ok(());
        }
        let attr = files.attr(ino)?;
        take_capability(files, ino)?;
        match loses {
            _ if !has_set_id(&attr) => {
                self.remember(ino, before);
                Ok(())
            }
            Loses::Capability => Ok(()),
            Loses::All => take_set_id(files, &attr),
            Loses::Refused => Err(Error::NotPermitted),
        }
    }

    /// Takes rights away before a write, because the kernel asks for it: it does so for a capability, and for
    /// set-ID bits if the writer may not keep them. It does not say for which; a superuser keeps the bits.
    pub(super) fn take_before<F: Files>(files: &F, ino: Ino, superuser: bool) -> Result<()> {
        let attr = files.attr(ino)?;
        take_capability(files, ino)?;
        if has_set_id(&attr) && !superuser { take_set_id(files, &attr) } else { Ok(()) }
    }

    /// Adds to changes of an owner or a size what they take away as well.
    pub(super) fn taken_with<F: Files>(
        files: &F,
        who: &Caller,
        ino: Ino,
        changes: &mut Changes,
    ) -> Result<()> {
        let owner = changes.uid.is_some() || changes.gid.is_some();
        if !owner && changes.size.is_none() {
            return Ok(());
        }
        let attr = files.attr(ino)?;
        if attr.kind != Kind::File {
            return Ok(());
        }
        take_capability(files, ino)?;
        // Who may set them keeps them (CAP_FSETID, which fuser does not pass on) but for a change of owner.
        if changes.mode.is_none() && (owner || who.uid != 0) && has_set_id(&attr) {
            changes.mode = Some(without(&attr));
        }
        Ok(())
    }
}

fn take_capability<F: Files>(files: &F, ino: Ino) -> Result<()> {
    match files.xattr(ino, CAPABILITY) {
        Ok(_) => files.remove_xattr(&Caller::ROOT, ino, CAPABILITY),
        Err(Error::NoAttribute | Error::Unsupported(_)) => Ok(()),
        Err(e) => Err(e),
    }
}

fn take_set_id<F: Files>(files: &F, attr: &Attr) -> Result<()> {
    let changes = Changes { mode: Some(without(attr)), ..Changes::default() };
    files.set_attr(&Caller::trusted(0, 0), attr.ino, &changes).map(drop)
}

/// Returns `true` if a file has set-ID bits that a write takes.
pub(super) fn has_set_id(attr: &Attr) -> bool {
    without(attr) != attr.mode
}

/// The mode without what a write takes. Set-group-ID without the right of the group to execute is not a right (it
/// was mandatory locking once) and stays.
fn without(attr: &Attr) -> u16 {
    if attr.kind != Kind::File {
        return attr.mode;
    }
    let taken = if attr.mode & 0o010 == 0 { SET_ID & 0o4000 } else { SET_ID };
    attr.mode & !taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_came_while_they_were_looked_for_are_not_overlooked() {
        let (plain, ino, far) = (Plain::new(), Ino(7), Ino(1 << INO_BITS | 7));
        let is_known = |ino: Ino| plain.slot(ino).load(Ordering::Acquire) & INO_MASK == ino.0;
        let before = plain.slot(ino).load(Ordering::Acquire);
        plain.forget(ino);
        plain.remember(ino, before);
        assert!(!is_known(ino), "it may have rights since");
        plain.remember(ino, plain.slot(ino).load(Ordering::Acquire));
        assert!(is_known(ino));
        plain.forget(Ino(7 + SLOTS as u64));
        assert!(!is_known(ino));
        plain.remember(far, plain.slot(far).load(Ordering::Acquire));
        assert!(!is_known(ino) && !is_known(far), "a slot has no room for its number");
    }
}
