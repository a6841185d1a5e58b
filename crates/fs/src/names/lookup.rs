//! Lookup of names.

use crate::dir::check_name;
use crate::error::{Error, Result};
use crate::format::INODE;
use crate::fs::Fs;
use crate::inode::Node;
use crate::medium::Medium;
use crate::permissions::{self, EXECUTE};
use crate::types::{Attr, Caller, Ino, InodeType};
use std::sync::Arc;

/// Maximum number of lookups if the inode found was freed in the meantime. The limit is reached
/// only in a damaged directory with a name that points to a free inode.
pub(crate) const LOOKUP_RETRIES_MAX: u32 = 1000;

impl<M: Medium> Fs<M> {
    /// Fails if the caller may not look up names in a directory.
    pub(crate) fn check_search(&self, caller: &Caller, dir: Ino) -> Result<()> {
        let node = self.node(dir)?;
        let state = node.state.read();
        state.check_directory()?;
        permissions::check_access(caller, &state.inode, EXECUTE)
    }

    /// Returns the type of an inode.
    pub(crate) fn find_kind(&self, node: &Node) -> InodeType {
        node.state.read().inode.kind
    }

    /// Looks up the inode number of a name.
    pub(crate) fn lookup_ino(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<Ino> {
        let node = self.node(dir)?;
        let mut state = node.state.read();
        if state.index.is_none() {
            state.check_directory()?;
            drop(state);
            self.load_index(&node, &mut node.state.write())?;
            state = node.state.read();
        }
        state.check_directory()?;
        permissions::check_access(caller, &state.inode, EXECUTE)?;
        match name {
            b"." => return Ok(dir),
            b".." => return Ok(state.inode.parent),
            _ => check_name(name)?,
        }
        if self.is_command(name) {
            return Some(state.inode.command).filter(|ino| *ino != Ino(0)).ok_or(Error::NotFound);
        }
        self.find(&state, name)?.map(|found| found.ino).ok_or(Error::NotFound)
    }

    pub(crate) fn lookup_attr(&self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        let mut ino = Ino(0);
        for _ in 0..LOOKUP_RETRIES_MAX {
            ino = self.lookup_ino(caller, dir, name)?;
            match self.attr_of(ino) {
                // The inode was freed after the lookup, perhaps because another inode has the name
                // now.
                Err(Error::Stale) => {}
                other => return other,
            }
        }
        Err(self.no_inode(ino))
    }

    /// Returns the node of an inode with a name in a directory. The directory is locked, so the
    /// name cannot disappear.
    ///
    /// # Errors
    /// The inode is damaged, or free although it has a name.
    pub(crate) fn named(&self, ino: Ino) -> Result<Arc<Node>> {
        self.node(ino).map_err(|error| match error {
            Error::Stale => self.no_inode(ino),
            error => error,
        })
    }

    /// Returns the error for a name that points to a free inode.
    fn no_inode(&self, ino: Ino) -> Error {
        let at = self.geometry.inodes_at + ino.0.saturating_sub(1) * INODE;
        Error::Damaged {
            what: "a free inode that still has a name, or the name that points to it; the inode",
            at,
        }
    }

    pub(crate) fn attr_of(&self, ino: Ino) -> Result<Attr> {
        let node = self.node(ino)?;
        let state = node.state.read();
        state.check_alive()?;
        self.attr_in(&node, &state)
    }
}
