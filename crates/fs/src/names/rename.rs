//! Renaming: renameat2(2).

use super::create::update_dir;
use crate::dir::{FoundName, check_name};
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::{Node, NodeGuard, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::permissions::{self, EXECUTE, WRITE};
use crate::planted::Bug;
use crate::types::{Caller, Ino, InodeType, LINK_MAX, RenameMode};
use frit_core::planted::is_planted;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One side of a rename: a directory and a name in it.
#[derive(Clone, Copy, Debug)]
struct DirName<'a> {
    dir: &'a Node,
    name: &'a [u8],
}

/// The locked directories of a rename: one or two.
struct LockedDirs<'a> {
    from: NodeGuard<'a>,
    to: Option<NodeGuard<'a>>,
}

impl LockedDirs<'_> {
    fn to(&mut self) -> &mut NodeState {
        match &mut self.to {
            Some(to) => to,
            None => &mut self.from,
        }
    }

    fn to_ref(&self) -> &NodeState {
        self.to.as_deref().unwrap_or(&self.from)
    }
}

impl<M: Medium> Fs<M> {
    pub(crate) fn rename_from(
        &self,
        caller: &Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        self.check_writable()?;
        self.check_search(caller, from.0)?;
        self.check_search(caller, to.0)?;
        let dots = |name: &[u8]| matches!(name, b"." | b"..");
        if dots(from.1) || dots(to.1) {
            let exists = mode == RenameMode::NoReplace && !dots(from.1);
            return Err(if exists { Error::Exists } else { Error::Busy });
        }
        let moves = from.0 != to.0;
        let alone = moves.then(|| self.names.write());
        let _shared = (!moves).then(|| self.names.read());
        let (from_node, to_node) = (self.node(from.0)?, self.node(to.0)?);
        // Two unrelated directories are locked together only under the exclusive lock of names, so
        // two renames cannot deadlock.
        let from_state = from_node.state.write();
        let to_state = moves.then(|| to_node.state.write());
        let mut dirs = LockedDirs { from: from_state, to: to_state };
        let from = DirName { dir: &from_node, name: from.1 };
        let to = DirName { dir: &to_node, name: to.1 };
        let done = self.rename_locked(caller, &mut dirs, from, to, mode);
        drop(dirs);
        drop(alone);
        done
    }

    fn rename_locked(
        &self,
        caller: &Caller,
        dirs: &mut LockedDirs<'_>,
        from: DirName<'_>,
        to: DirName<'_>,
        mode: RenameMode,
    ) -> Result<()> {
        self.load_index(from.dir, &mut dirs.from)?;
        self.load_index(to.dir, dirs.to())?;
        permissions::check_access(caller, &dirs.from.inode, EXECUTE)?;
        permissions::check_access(caller, &dirs.to_ref().inode, EXECUTE)?;
        check_name(from.name)?;
        if self.is_command(from.name) || self.is_command(to.name) {
            return Err(Error::NotPermitted);
        }
        let source = self.find(&dirs.from, from.name)?.ok_or(Error::NotFound)?;
        check_name(to.name)?;
        let target = self.find(dirs.to_ref(), to.name)?;
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => return Err(Error::Exists),
            (RenameMode::Exchange, None) => return Err(Error::NotFound),
            _ => {}
        }
        if dirs.to.is_some() {
            self.check_no_cycle(dirs, from, to, source, target, mode)?;
        }
        // Both names refer to the same inode: rename(2) does nothing then.
        if target.is_some_and(|target| target.ino == source.ino) {
            return Ok(());
        }
        // Names that lead to their own directory exist only through damage, and their inodes are
        // locked already.
        let is_locked = |ino: Ino| ino == from.dir.ino || ino == to.dir.ino;
        if is_locked(source.ino) || target.is_some_and(|target| is_locked(target.ino)) {
            let at = self.geometry.inode_at(from.dir.ino.0);
            return Err(Error::Damaged { what: "a name that points to its own directory, in the inode", at });
        }
        self.check_not_command(from.dir.ino, &source)?;
        target.map_or(Ok(()), |target| self.check_not_command(to.dir.ino, &target))?;
        let source_node = self.named(source.ino)?;
        let target_node = target.map(|target| self.named(target.ino)).transpose()?;
        let (mut source_state, mut target_state) = lock_both(&source_node, target_node.as_ref());
        // A file that replaces another one has its bytes before it has the name.
        self.note_accesses(&source_node, &mut source_state);
        if let Some((node, state)) = target_node.as_ref().zip(target_state.as_mut()) {
            self.note_accesses(node, state);
        }
        let movers = RenameArgs { caller, from, to, source, source_node: &source_node };
        match (target, target_node.as_ref().zip(target_state)) {
            (Some(target), Some((node, state))) if mode == RenameMode::Exchange => {
                let target = RenameTarget { found: target, node, state };
                self.exchange(&movers, dirs, &mut source_state, target)
            }
            (target, node) => self.replace(&movers, dirs, &mut source_state, target.zip(node)),
        }
    }

    /// Fails if a directory would move into itself or its descendants, or would replace its own
    /// ancestor.
    fn check_no_cycle(
        &self,
        dirs: &LockedDirs<'_>,
        from: DirName<'_>,
        to: DirName<'_>,
        source: FoundName,
        target: Option<FoundName>,
        mode: RenameMode,
    ) -> Result<()> {
        let above = |of: &Node, state: &NodeState, what: Ino| self.is_above(what, of.ino, state.inode.parent);
        if source.kind == InodeType::Directory && above(to.dir, dirs.to_ref(), source.ino)? {
            return Err(Error::Invalid("a directory cannot move into itself"));
        }
        let Some(target) = target.filter(|target| target.kind == InodeType::Directory) else { return Ok(()) };
        if above(from.dir, &dirs.from, target.ino)? {
            return Err(match mode {
                RenameMode::Exchange => Error::Invalid("a directory cannot move into itself"),
                _ => Error::NotEmpty,
            });
        }
        Ok(())
    }

    /// Returns `true` if `what` is `dir` or an ancestor of it. The lock of names is held, so
    /// directories do not move meanwhile.
    ///
    /// # Errors
    /// A directory on the path is damaged, or the path does not lead to the root.
    fn is_above(&self, what: Ino, dir: Ino, parent: Ino) -> Result<bool> {
        let mut at = dir;
        for _ in 0..self.geometry.inodes {
            if at == what {
                return Ok(true);
            }
            if at == Ino::ROOT {
                return Ok(false);
            }
            // Directories between may be locked by other threads, so their parents are read without
            // locks.
            at = if at == dir { parent } else { Ino(self.node(at)?.parent.load(Ordering::Relaxed)) };
        }
        Err(Error::Damaged { what: "the parent of a directory", at: self.geometry.inode_at(dir.0) })
    }

    /// Renames an inode, and frees the inode that had the new name.
    fn replace(
        &self,
        movers: &RenameArgs<'_>,
        dirs: &mut LockedDirs<'_>,
        source: &mut NodeState,
        target: Option<(FoundName, (&Arc<Node>, NodeGuard<'_>))>,
    ) -> Result<()> {
        let RenameArgs { caller, from, to, .. } = *movers;
        source.check_alive()?;
        permissions::check_remove(caller, &dirs.from.inode, &source.inode)?;
        let is_dir = source.inode.kind == InodeType::Directory;
        let mut txn = Txn::new();
        let mut target = target;
        let command = match &target {
            Some((_, (node, state))) => self.command_of(node.ino, state)?,
            None => None,
        };
        let slot = self.prepare_name(movers, dirs, source, &mut target, &mut txn)?;
        let mut command = command.as_deref().map(|node| (node, node.state.write()));
        if let Some((_, (_, state))) = &mut target {
            let locked = command.as_mut().map(|(node, state)| (*node, &mut **state));
            self.detach_command(state, locked, &mut txn)?;
        }
        let now = self.clock.now();
        self.put_name(
            to.dir,
            dirs.to_ref(),
            &mut txn,
            slot,
            to.name,
            (movers.source.ino, movers.source.kind),
        );
        if is_planted(Bug::RenameTwoSteps) && target.is_none() {
            self.put_inode(&mut txn, to.dir, dirs.to());
            self.commit(std::mem::replace(&mut txn, Txn::new()));
        }
        self.clear_name(&dirs.from, &mut txn, movers.source.slot, from.name);
        source.inode.ctime = now;
        if is_dir {
            drop_one(&mut dirs.from);
            add_one(dirs.to());
            if !is_planted(Bug::ParentStays) {
                movers.source_node.set_parent(source, to.dir.ino);
            }
        }
        if target.as_ref().is_some_and(|(_, (_, state))| state.inode.kind == InodeType::Directory) {
            drop_one(dirs.to());
        }
        self.put_inode(&mut txn, movers.source_node, source);
        let replaced = target.is_some();
        let names = NameDeltas { from: -1, to: i64::from(!replaced) };
        self.update_dirs(movers, dirs, &mut txn, names, now);
        let done = match target {
            Some((_, (node, mut state))) => {
                state.inode.ctime = now;
                self.drop_link(&mut state);
                self.commit_unlink(node, &mut state, txn)
            }
            None => {
                self.commit(txn);
                Ok(())
            }
        };
        self.free_command(command.as_ref().map(|(node, state)| (*node, &**state)));
        if let Some(index) = dirs.from.index.as_deref_mut() {
            index.remove(from.name, movers.source.slot);
        }
        if let Some(index) = dirs.to().index.as_deref_mut().filter(|_| !replaced) {
            index.insert(to.name, slot);
        }
        done
    }

    /// Returns the slot of the new name, after the steps of a replacement that can fail.
    fn prepare_name(
        &self,
        movers: &RenameArgs<'_>,
        dirs: &mut LockedDirs<'_>,
        source: &NodeState,
        target: &mut Option<(FoundName, (&Arc<Node>, NodeGuard<'_>))>,
        txn: &mut Txn,
    ) -> Result<u32> {
        let RenameArgs { caller, to, .. } = *movers;
        let is_dir = source.inode.kind == InodeType::Directory;
        let Some((found, (node, state))) = target else {
            permissions::check_access(caller, &dirs.to_ref().inode, WRITE)?;
            self.check_new_parent(movers, dirs, source)?;
            if is_dir && dirs.to.is_some() && dirs.to_ref().inode.links >= LINK_MAX {
                return Err(Error::LinksFull);
            }
            return self.place(to.dir, dirs.to(), txn, to.name);
        };
        check_replace(caller, dirs.to_ref(), is_dir, state)?;
        self.check_new_parent(movers, dirs, source)?;
        // Permissions are checked before the directory must be empty, as in Linux.
        if is_dir {
            self.empty(node, state)?;
        }
        self.prepare_unlink(node, state, txn)?;
        Ok(found.slot)
    }

    /// Fails if the caller may not change the `..` of a directory, which requires write permission
    /// to it.
    fn check_new_parent(
        &self,
        movers: &RenameArgs<'_>,
        dirs: &LockedDirs<'_>,
        source: &NodeState,
    ) -> Result<()> {
        if source.inode.kind == InodeType::Directory && dirs.to.is_some() {
            permissions::check_access(movers.caller, &source.inode, WRITE)?;
        }
        Ok(())
    }

    /// Updates timestamps and name counts of both directories.
    fn update_dirs(
        &self,
        movers: &RenameArgs<'_>,
        dirs: &mut LockedDirs<'_>,
        txn: &mut Txn,
        names: NameDeltas,
        now: crate::types::Time,
    ) {
        let delta = if dirs.to.is_some() { names.from } else { names.from + names.to };
        update_dir(&mut dirs.from, now, delta);
        self.put_inode(txn, movers.from.dir, &mut dirs.from);
        if let Some(state) = dirs.to.as_deref_mut() {
            update_dir(state, now, names.to);
            self.put_inode(txn, movers.to.dir, state);
        }
    }

    /// Exchanges two names.
    fn exchange(
        &self,
        movers: &RenameArgs<'_>,
        dirs: &mut LockedDirs<'_>,
        source: &mut NodeState,
        target: RenameTarget<'_>,
    ) -> Result<()> {
        let RenameTarget { found: target, node: target_node, state: mut other } = target;
        let RenameArgs { caller, from, to, .. } = *movers;
        source.check_alive()?;
        other.check_alive()?;
        permissions::check_remove(caller, &dirs.from.inode, &source.inode)?;
        permissions::check_remove(caller, &dirs.to_ref().inode, &other.inode)?;
        self.check_new_parent(movers, dirs, source)?;
        self.check_new_parent(movers, dirs, &other)?;
        let mut txn = Txn::new();
        let now = self.clock.now();
        let (source_is, other_is) = (movers.source.kind, target.kind);
        let is_directory = |kind| u32::from(kind == InodeType::Directory);
        let (moved_out, moved_in) = (is_directory(source_is), is_directory(other_is));
        let full = |dir: &NodeState, more: u32, less: u32| more > less && dir.inode.links >= LINK_MAX;
        if dirs.to.is_some()
            && (full(&dirs.from, moved_in, moved_out) || full(dirs.to_ref(), moved_out, moved_in))
        {
            return Err(Error::LinksFull);
        }
        self.put_name(to.dir, dirs.to_ref(), &mut txn, target.slot, to.name, (movers.source.ino, source_is));
        self.put_name(from.dir, &dirs.from, &mut txn, movers.source.slot, from.name, (target.ino, other_is));
        if dirs.to.is_some() {
            if source_is == InodeType::Directory {
                movers.source_node.set_parent(source, to.dir.ino);
                drop_one(&mut dirs.from);
                add_one(dirs.to());
            }
            if other_is == InodeType::Directory {
                target_node.set_parent(&mut other, from.dir.ino);
                add_one(&mut dirs.from);
                drop_one(dirs.to());
            }
        }
        source.inode.ctime = now;
        other.inode.ctime = now;
        self.put_inode(&mut txn, movers.source_node, source);
        self.put_inode(&mut txn, target_node, &mut other);
        self.update_dirs(movers, dirs, &mut txn, NameDeltas { from: 0, to: 0 }, now);
        self.commit(txn);
        Ok(())
    }
}

/// Fails if the inode of a name in `dir` may not be replaced by a directory or by another inode.
fn check_replace(caller: &Caller, dir: &NodeState, by_directory: bool, state: &NodeState) -> Result<()> {
    state.check_alive()?;
    permissions::check_remove(caller, &dir.inode, &state.inode)?;
    match (by_directory, state.inode.kind == InodeType::Directory) {
        (true, false) => Err(Error::NotDirectory),
        (false, true) => Err(Error::IsDirectory),
        _ => Ok(()),
    }
}

/// Decrements the count of subdirectories. Damaged counts saturate.
fn drop_one(dir: &mut NodeState) {
    dir.inode.links = dir.inode.links.saturating_sub(1);
}

/// Increments the count of subdirectories.
fn add_one(dir: &mut NodeState) {
    dir.inode.links = dir.inode.links.saturating_add(1);
}

/// The inode that has the new name before a rename.
struct RenameTarget<'a> {
    found: FoundName,
    node: &'a Arc<Node>,
    state: NodeGuard<'a>,
}

/// Changes of the numbers of names of both directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NameDeltas {
    from: i64,
    to: i64,
}

/// Parameters of a rename.
#[derive(Clone, Copy)]
struct RenameArgs<'a> {
    caller: &'a Caller,
    from: DirName<'a>,
    to: DirName<'a>,
    source: FoundName,
    source_node: &'a Node,
}

/// Locks the source and the target of a rename: directories first, then by number.
fn lock_both<'a>(source: &'a Node, target: Option<&'a Arc<Node>>) -> (NodeGuard<'a>, Option<NodeGuard<'a>>) {
    let Some(target) = target else { return (source.state.write(), None) };
    let key = |node: &Node| (node.state.read().inode.kind != InodeType::Directory, node.ino);
    if key(source) < key(target) {
        let first = source.state.write();
        (first, Some(target.state.write()))
    } else {
        let second = target.state.write();
        (source.state.write(), Some(second))
    }
}
