//! Hard links, and targets of symbolic links.

use super::create::update_dir;
use super::target;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::FAST_SYMLINK_MAX;
use crate::journal::Txn;
use crate::medium::Medium;
use crate::planted::Bug;
use crate::types::{Attr, Caller, Ino, InodeType, LINK_MAX};
use frit_core::planted::is_planted;

impl<M: Medium> Fs<M> {
    pub(crate) fn link_to(&self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr> {
        self.check_writable()?;
        let node = self.node(ino)?;
        let _names = self.names.read();
        let parent = self.node(dir)?;
        let mut dir = parent.state.write();
        self.load_index(&parent, &mut dir)?;
        self.check_may_create(caller, &dir, name)?;
        // Lock order: below a locked directory only its descendants may be locked, and this inode
        // might be one of its ancestors. Directories are refused before their lock is needed.
        if ino == parent.ino || matches!(self.find_kind(&node), InodeType::Directory | InodeType::Command) {
            return Err(Error::NotPermitted);
        }
        let mut state = node.state.write();
        state.check_alive()?;
        self.note_accesses(&node, &mut state);
        match state.inode.links {
            0 => return Err(Error::NotFound),
            LINK_MAX.. => return Err(Error::LinksFull),
            _ => {}
        }
        let mut txn = Txn::new();
        let slot = self.place(&parent, &mut dir, &mut txn, name)?;
        let now = self.clock.now();
        self.put_name(&parent, &dir, &mut txn, slot, name, (ino, state.inode.kind));
        update_dir(&mut dir, now, 1);
        self.put_inode(&mut txn, &parent, &mut dir);
        if is_planted(Bug::LinkCountLater) {
            self.commit(std::mem::replace(&mut txn, Txn::new()));
        }
        state.inode.links += 1;
        state.inode.ctime = now;
        self.put_inode(&mut txn, &node, &mut state);
        self.commit(txn);
        if let Some(index) = dir.index.as_deref_mut() {
            index.insert(name, slot);
        }
        self.attr_in(&node, &state)
    }

    pub(crate) fn target_of(&self, ino: Ino) -> Result<Vec<u8>> {
        let node = self.node(ino)?;
        let mut state = node.state.write();
        state.check_alive()?;
        if state.inode.kind != InodeType::Symlink {
            return Err(Error::Invalid("not a symbolic link"));
        }
        let len = state.inode.size as usize;
        if len <= FAST_SYMLINK_MAX {
            return Ok(bytemuck::cast_slice(&state.inode.inline_area)[..len].to_vec());
        }
        self.load_map(ino, &mut state)?;
        let extent = state.map.as_ref().and_then(|map| map.at(0));
        let at = self.geometry.inode_at(ino.0);
        let extent =
            extent.ok_or(Error::Damaged { what: "the target of a symbolic link, in the inode", at })?;
        target::read(&self.medium, self.salt, ino, &state.inode, extent.start)
    }
}
