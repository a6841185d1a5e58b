//! Operations on names: create, link, unlink, rmdir.

use super::access::{SET_GID, is_super, may_add, may_delete, mode_of_new};
use super::node::ModelInode;
use super::state::{ModelState, is_dot};
use frit_fs::{Attr, Caller, Error, Ino, InodeType, LINK_MAX, NewInode, Result, TARGET_MAX};

impl ModelState {
    /// Verifies that the caller can add `name` to a directory.
    fn check_addable(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        let node = self.search(who, dir)?;
        if is_dot(name) || self.is_command(name) || self.child(node, name)?.is_some() {
            return Err(Error::Exists);
        }
        may_add(who, node)
    }

    pub(super) fn create(&mut self, who: &Caller, dir: Ino, name: &[u8], new: NewInode<'_>) -> Result<Attr> {
        if new.kind == InodeType::Command {
            return Err(Error::Invalid("a command file is created with its directory"));
        }
        if new.kind == InodeType::Symlink {
            match new.target.len() {
                0 => return Err(Error::NotFound),
                len if len > TARGET_MAX => return Err(Error::NameTooLong),
                _ => {}
            }
        }
        self.check_addable(who, dir, name)?;
        let device = matches!(new.kind, InodeType::Char | InodeType::Block);
        if device && !is_super(who) {
            return Err(Error::NotPermitted);
        }
        let (now, ino) = (self.now(), Ino(self.next));
        let parent = self.node_mut(dir)?;
        let of_parent = parent.mode & SET_GID != 0;
        let gid = if of_parent { parent.gid } else { who.gid };
        let mode = match new.kind {
            InodeType::Directory if of_parent => new.mode & 0o7777 | SET_GID,
            InodeType::Symlink => 0o777,
            InodeType::Directory => new.mode & 0o7777,
            // A directory with set-group-ID passes on its group, which may be one that the caller
            // is not in.
            _ => mode_of_new(who, new.mode & 0o7777, gid),
        };
        parent.put(name, ino);
        parent.modified(now);
        if new.kind == InodeType::Directory {
            parent.links += 1;
        }
        let mut node = ModelInode::new(new.kind, mode, (who.uid, gid), dir, now);
        if device {
            node.rdev = new.rdev;
        }
        if new.kind == InodeType::Symlink {
            node.target = new.target.to_vec();
        }
        let attr = node.attr(ino);
        self.nodes.insert(ino, node);
        self.next += 1;
        if self.command_files && new.kind == InodeType::Directory {
            self.add_command(ino);
        }
        Ok(attr)
    }

    pub(super) fn link(&mut self, who: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        let node = self.node(ino)?;
        self.check_addable(who, dir, name)?;
        if matches!(node.kind, InodeType::Directory | InodeType::Command) {
            return Err(Error::NotPermitted);
        }
        if node.links == 0 {
            return Err(Error::NotFound);
        }
        if node.links >= LINK_MAX {
            return Err(Error::LinksFull);
        }
        let now = self.now();
        let parent = self.node_mut(dir)?;
        parent.put(name, ino);
        parent.modified(now);
        let node = self.node_mut(ino)?;
        node.links += 1;
        node.ctime = now;
        Ok(node.attr(ino))
    }

    pub(super) fn unlink(&mut self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        let node = self.search(who, dir)?;
        if is_dot(name) {
            return Err(Error::IsDirectory);
        }
        if self.is_command(name) {
            return Err(Error::NotPermitted);
        }
        let ino = self.child(node, name)?.ok_or(Error::NotFound)?;
        may_delete(who, node, self.node(ino)?, false)?;
        self.remove_name(dir, name)?;
        self.drop_link(ino)
    }

    pub(super) fn rmdir(&mut self, who: &Caller, dir: Ino, name: &[u8]) -> Result<()> {
        let node = self.search(who, dir)?;
        match name {
            b"." => return Err(Error::Invalid("`.` cannot be removed")),
            b".." => return Err(Error::NotEmpty),
            _ if self.is_command(name) => return Err(Error::NotDirectory),
            _ => {}
        }
        let ino = self.child(node, name)?.ok_or(Error::NotFound)?;
        let victim = self.node(ino)?;
        may_delete(who, node, victim, true)?;
        if !victim.names.is_empty() {
            return Err(Error::NotEmpty);
        }
        self.remove_name(dir, name)?;
        self.drop_directory(ino, dir)
    }

    /// Removes a name from a directory.
    pub(super) fn remove_name(&mut self, dir: Ino, name: &[u8]) -> Result<()> {
        let now = self.now();
        let node = self.node_mut(dir)?;
        node.names.remove(name);
        node.modified(now);
        Ok(())
    }
}
