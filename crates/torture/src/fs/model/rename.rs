//! Renames, with the checks in the order of Linux (`do_renameat2` and `vfs_rename`).

use super::access::{AccessMode, allowed, may_add, may_delete};
use super::state::{ModelState, is_dot};
use frit_fs::{Caller, Error, Ino, RenameMode, Result};
use std::path::PathBuf;

/// EBUSY of errno-base.h, for which [`Error`] has no variant.
const EBUSY: i32 = 16;

fn busy() -> Error {
    let error = std::io::Error::from_raw_os_error(EBUSY);
    Error::Os { what: "rename", path: PathBuf::from("."), error }
}

impl ModelState {
    pub(super) fn rename(
        &mut self,
        who: &Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let (from_dir, to_dir) = (self.search(who, from.0)?, self.search(who, to.0)?);
        if is_dot(from.1) {
            return Err(busy());
        }
        if is_dot(to.1) {
            return Err(if mode == RenameMode::NoReplace { Error::Exists } else { busy() });
        }
        let source = self.child(from_dir, from.1)?;
        if self.is_command(from.1) || self.is_command(to.1) {
            return Err(Error::NotPermitted);
        }
        let source = source.ok_or(Error::NotFound)?;
        let target = self.child(to_dir, to.1)?;
        match mode {
            RenameMode::NoReplace if target.is_some() => return Err(Error::Exists),
            RenameMode::Exchange if target.is_none() => return Err(Error::NotFound),
            _ => {}
        }
        let exchange = mode == RenameMode::Exchange;
        if self.is_below(to.0, source)? {
            return Err(Error::Invalid("a directory cannot go below itself"));
        }
        if let Some(target) = target {
            if self.is_below(from.0, target)? {
                return Err(if exchange {
                    Error::Invalid("a directory cannot go below itself")
                } else {
                    Error::NotEmpty
                });
            }
            if target == source {
                return Ok(());
            }
        }
        self.may_rename(who, (from.0, source), (to.0, target), exchange)?;
        match target {
            Some(target) if exchange => self.exchange((from, source), (to, target)),
            _ => self.replace((from, source), (to, target)),
        }
    }

    /// Verifies permissions and the kinds of both inodes.
    fn may_rename(
        &self,
        who: &Caller,
        (from, source): (Ino, Ino),
        (to, target): (Ino, Option<Ino>),
        exchange: bool,
    ) -> Result<()> {
        let (from_dir, to_dir) = (self.node(from)?, self.node(to)?);
        let moved = self.node(source)?;
        may_delete(who, from_dir, moved, moved.is_dir())?;
        let target = target.map(|t| self.node(t)).transpose()?;
        match target {
            None => may_add(who, to_dir)?,
            Some(t) => may_delete(who, to_dir, t, if exchange { t.is_dir() } else { moved.is_dir() })?,
        }
        // A move of a directory to another parent changes the directory itself, because of its
        // `..`.
        if from != to {
            let other = target.filter(|t| exchange && t.is_dir());
            for dir in [Some(moved).filter(|m| m.is_dir()), other].into_iter().flatten() {
                if !allowed(who, dir, AccessMode::Write) {
                    return Err(Error::Access);
                }
            }
        }
        match target {
            Some(t) if !exchange && !t.names.is_empty() => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }

    fn replace(
        &mut self,
        ((from, old), source): ((Ino, &[u8]), Ino),
        ((to, new), target): ((Ino, &[u8]), Option<Ino>),
    ) -> Result<()> {
        let now = self.now();
        self.remove_name(from, old)?;
        let dir = self.node_mut(to)?;
        dir.put(new, source);
        dir.modified(now);
        if let Some(target) = target {
            if self.node(target)?.is_dir() {
                self.drop_directory(target, to)?;
            } else {
                self.drop_link(target)?;
            }
        }
        self.moved(source, from, to)
    }

    fn exchange(
        &mut self,
        ((from, old), source): ((Ino, &[u8]), Ino),
        ((to, new), target): ((Ino, &[u8]), Ino),
    ) -> Result<()> {
        let now = self.now();
        // Each name keeps its position; only the inodes are exchanged.
        for (dir, name, ino) in [(from, old, target), (to, new, source)] {
            let dir = self.node_mut(dir)?;
            dir.put(name, ino);
            dir.modified(now);
        }
        self.moved(source, from, to)?;
        self.moved(target, to, from)
    }

    /// Updates an inode after a rename. The `..` of a directory counts as a link of its new parent.
    fn moved(&mut self, ino: Ino, from: Ino, to: Ino) -> Result<()> {
        let now = self.now();
        let node = self.node_mut(ino)?;
        node.ctime = now;
        if node.is_dir() {
            node.parent = to;
            self.node_mut(from)?.links -= 1;
            self.node_mut(to)?.links += 1;
        }
        Ok(())
    }
}
