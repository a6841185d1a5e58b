//! Files that a write takes no rights from.
//!
//! A write, a truncation and a change of owner take the set-user-ID and set-group-ID bits and the capabilities of a
//! program away. A kernel that does it itself asks for `security.capability` before every write; one that leaves it
//! to the file system (FUSE_HANDLE_KILLPRIV_V2) asks nothing, and half as many requests come.

use frit_fs::{Attr, Caller, Changes, Error, Files, Ino, Kind, Result};
use fuser::{Request, WriteFlags};
use std::sync::atomic::{AtomicU64, Ordering};

/// The attribute in which capabilities are.
pub(super) const CAPABILITY: &[u8] = b"security.capability";
/// Set-user-ID and set-group-ID.
const SET_ID: u16 = 0o6000;
/// Inodes that are remembered.
const SLOTS: usize = 4096;

/// Which rights a change takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loses {
    /// Capabilities.
    Capability,
    /// Capabilities and set-ID bits.
    All,
}

impl Loses {
    /// What a write takes away: the kernel says whether the writer may keep set-ID bits (CAP_FSETID).
    pub(super) fn by(flags: WriteFlags) -> Loses {
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) { Loses::All } else { Loses::Capability }
    }

    /// What a request takes away with which the kernel says nothing of the kind.
    pub(super) fn of(request: &Request) -> Loses {
        if request.uid() == 0 { Loses::Capability } else { Loses::All }
    }
}

/// Remembers inodes that were seen to have no such rights, so that most writes look for none. The kernel lets
/// nobody change the rights of a file while it is written.
#[derive(Debug)]
pub(super) struct Plain(Box<[AtomicU64]>);

impl Plain {
    pub(super) fn new() -> Plain {
        Plain((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    fn slot(&self, ino: Ino) -> &AtomicU64 {
        &self.0[ino.0 as usize % SLOTS]
    }

    /// The inode is new, or may have got rights.
    pub(super) fn forget(&self, ino: Ino) {
        let _ = self.slot(ino).compare_exchange(ino.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Takes from a file what a change of its contents takes.
    pub(super) fn take<F: Files>(&self, files: &F, ino: Ino, loses: Loses) -> Result<()> {
        if self.slot(ino).load(Ordering::Relaxed) == ino.0 {
            return Ok(());
        }
        let attr = files.attr(ino)?;
        take_capability(files, ino)?;
        let mode = without(&attr);
        if mode == attr.mode {
            self.slot(ino).store(ino.0, Ordering::Relaxed);
        } else if loses == Loses::All {
            let changes = Changes { mode: Some(mode), ..Changes::default() };
            let _ = files.set_attr(&Caller::trusted(0, 0), ino, &changes)?;
        }
        Ok(())
    }

    /// Adds to changes of an owner or a size what they take away as well.
    pub(super) fn taken_with<F: Files>(
        &self,
        files: &F,
        who: &Caller,
        ino: Ino,
        changes: &mut Changes,
    ) -> Result<()> {
        if changes.mode.is_some() {
            self.forget(ino);
        }
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
        if changes.mode.is_none() && (owner || who.uid != 0) && without(&attr) != attr.mode {
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

/// The mode without what a write takes. Set-group-ID without the right of the group to execute is not a right (it
/// was mandatory locking once) and stays.
fn without(attr: &Attr) -> u16 {
    if attr.kind != Kind::File {
        return attr.mode;
    }
    let taken = if attr.mode & 0o010 == 0 { SET_ID & 0o4000 } else { SET_ID };
    attr.mode & !taken
}
