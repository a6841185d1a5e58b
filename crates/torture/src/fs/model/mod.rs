//! A file system in memory, kept simple: the semantics of each call by POSIX and Linux.
//!
//! Permissions are checked for callers that are [`checked`](frit_fs::Caller::checked). All other
//! callers are allowed everything, like a kernel that has already checked permissions and computed
//! modes.
//!
//! Directories may have command files, which no other file system has: the kernel cannot verify them, and
//! `docs/reference/semantics.md` has their rules.
//!
//! It has no medium: space never runs out, no data is damaged, and a sync does nothing.

mod access;
mod attrs;
mod contents;
mod names;
mod node;
mod rename;
mod state;
mod write;
mod xattrs;

use super::op::shorten;
use frit_fs::{
    Allocate, Attr, AttrChanges, Caller, DirEntry, FileExtent, FileSystem, Ino, NAME_MAX, NewInode,
    RenameMode, Result, Seek, Usage, XattrMode,
};
use state::ModelState;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of blocks that the model reports; they never run out.
const BLOCKS: u64 = 1 << 30;

/// The reference file system. A clone is an independent copy.
///
/// Its clock is logical: each call that may change something advances it by one nanosecond, so a
/// time that a call sets differs from all earlier ones.
#[derive(Debug, Default)]
pub struct ModelFs(Mutex<ModelState>);

impl Clone for ModelFs {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.state().clone()))
    }
}

impl ModelFs {
    /// Creates an empty file system: a root directory of the superuser with mode 755.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty file system in which each directory has a command file.
    #[must_use]
    pub fn with_command_files() -> Self {
        Self(Mutex::new(ModelState::with_command_files()))
    }

    /// Creates an empty file system with or without command files.
    #[must_use]
    pub fn of(command_files: bool) -> Self {
        if command_files { Self::with_command_files() } else { Self::new() }
    }

    fn state(&self) -> MutexGuard<'_, ModelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances the clock and locks the state, for a call that may change it.
    fn later(&self) -> MutexGuard<'_, ModelState> {
        let mut state = self.state();
        state.clock += 1;
        state
    }

    /// Returns the paths of all inodes as names of operations, in the order of names.
    pub(super) fn walked(&self) -> Vec<Vec<String>> {
        let state = self.state();
        let (mut all, mut left) = (Vec::new(), vec![(Vec::new(), Ino::ROOT)]);
        while let Some((path, ino)) = left.pop() {
            let names = state.node(ino).map(|n| &n.names).into_iter().flatten();
            for (name, named) in names.collect::<Vec<_>>().into_iter().rev() {
                let below = path.iter().cloned().chain([shorten(name)]).collect();
                left.push((below, named.ino));
            }
            all.push(path);
        }
        all
    }

    /// Returns `true` if `answer` is correct for `seek`. Every division into data and holes is
    /// correct in which all bytes that are not zero are data. `None` stands for ENXIO.
    ///
    /// # Errors
    /// The inode does not exist or has no contents.
    pub fn may_seek(&self, ino: Ino, what: Seek, at: u64, answer: Option<u64>) -> Result<bool> {
        let state = self.state();
        let file = state.file(ino)?;
        let next = file.data.first_nonzero(at).unwrap_or(file.data.size);
        let size = file.data.size;
        Ok(match (what, answer) {
            (_, None) if at >= size => true,
            (_, Some(_)) if at >= size => false,
            (Seek::Data, None) => next == size,
            (Seek::Data, Some(r)) => at <= r && r < size && r <= next,
            (Seek::Hole, None) => false,
            (Seek::Hole, Some(r)) => at <= r && r <= size && (r == size || file.data.byte(r) == 0),
        })
    }
}

impl FileSystem for ModelFs {
    fn usage(&self) -> Result<Usage> {
        let (blocks, nodes) = self.state().used();
        Ok(Usage {
            block_bytes: contents::PAGE as u32,
            blocks: BLOCKS,
            blocks_free: BLOCKS - blocks,
            inodes: BLOCKS,
            inodes_free: BLOCKS - nodes,
            name_max: NAME_MAX as u32,
        })
    }

    fn lookup(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        let state = self.state();
        state.attr(state.lookup(who, dir, name)?)
    }

    fn attr(&self, ino: Ino) -> Result<Attr> {
        self.state().attr(ino)
    }

    fn set_attr(&self, who: &Caller, ino: Ino, changes: &AttrChanges) -> Result<Attr> {
        self.later().set_attr(who, ino, changes)
    }

    fn create(&self, who: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr> {
        self.later().create(who, dir, name, new)
    }

    fn link(&self, who: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.later().link(who, ino, dir, name)
    }

    fn unlink(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.later().unlink(who, dir, name)
    }

    fn rmdir(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        self.later().rmdir(who, dir, name)
    }

    fn rename(&self, who: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<()> {
        self.later().rename(who, from, to, mode)
    }

    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        self.state().read_link(ino)
    }

    fn pin(&self, ino: Ino) -> Result<()> {
        self.state().pin(ino)
    }

    fn unpin(&self, ino: Ino) -> Result<()> {
        self.state().unpin(ino)
    }

    fn read(&self, ino: Ino, at: u64, into: &mut [u8]) -> Result<usize> {
        Ok(self.state().file(ino)?.data.read(at, into))
    }

    fn write(&self, ino: Ino, at: u64, data: &[u8]) -> Result<usize> {
        self.later().write(ino, at, data)
    }

    fn append(&self, ino: Ino, data: &[u8]) -> Result<(u64, usize)> {
        let mut state = self.later();
        let end = state.file(ino)?.data.size;
        let written = state.write(ino, end, data)?;
        Ok((end + written as u64, written))
    }

    fn allocate(&self, ino: Ino, how: Allocate, at: u64, len: u64) -> Result<()> {
        self.later().allocate(ino, how, at, len)
    }

    fn seek(&self, ino: Ino, what: Seek, at: u64) -> Result<u64> {
        self.state().file(ino)?.data.seek(what, at)
    }

    fn sync_file(&self, ino: Ino, _data_only: bool) -> Result<()> {
        self.state().node(ino).map(|_| ())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn read_dir(&self, ino: Ino, from: u64, each: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let listed = self.state().listed(ino, from)?;
        for (position, name, ino, kind) in listed {
            if !each(&DirEntry { name: &name, ino, kind, next: position + 1 }) {
                break;
            }
        }
        Ok(())
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.state().xattr(ino, name)
    }

    fn xattrs(&self, ino: Ino) -> Result<Vec<u8>> {
        self.state().xattrs(ino)
    }

    fn set_xattr(&self, who: &Caller, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        self.later().set_xattr(who, ino, name, value, mode)
    }

    fn remove_xattr(&self, who: &Caller, ino: Ino, name: &[u8]) -> Result<()> {
        self.later().remove_xattr(who, ino, name)
    }

    fn pieces(&self, ino: Ino, at: u64, each: &mut dyn FnMut(&FileExtent) -> bool) -> Result<()> {
        let pieces = self.state().file(ino)?.data.pieces(at);
        for piece in pieces {
            if !each(&piece) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
