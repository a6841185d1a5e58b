//! Finding a name.

use crate::dir::valid;
use crate::error::{Error, Result};
use crate::format::INODE;
use crate::fs::Fs;
use crate::inode::Node;
use crate::medium::Medium;
use crate::rules::{self, EXECUTE};
use crate::types::{Attr, Caller, Ino, Kind};
use std::sync::Arc;

/// How often a name is looked up again because what it named was freed meanwhile. Only a damaged directory, whose
/// name leads to a free inode, comes to the end of it.
pub(crate) const RACES_MAX: u32 = 1000;

impl<M: Medium> Fs<M> {
    /// Refuses a directory that the caller cannot reach names in.
    pub(crate) fn reach(&self, who: &Caller, dir: Ino) -> Result<()> {
        let node = self.node(dir)?;
        let state = node.state.read();
        state.directory()?;
        rules::may(who, &state.inode, EXECUTE)
    }

    /// What an inode is.
    pub(crate) fn find_kind(&self, node: &Node) -> Kind {
        node.state.read().inode.kind
    }

    /// The inode of a name.
    pub(crate) fn lookup_ino(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<Ino> {
        let node = self.node(dir)?;
        let mut state = node.state.read();
        if state.index.is_none() {
            state.directory()?;
            drop(state);
            self.load_index(&node, &mut node.state.write())?;
            state = node.state.read();
        }
        state.directory()?;
        rules::may(who, &state.inode, EXECUTE)?;
        match name {
            b"." => return Ok(dir),
            b".." => return Ok(state.inode.parent),
            _ => valid(name)?,
        }
        self.find(&state, name)?.map(|found| found.ino).ok_or(Error::NotFound)
    }

    pub(crate) fn lookup_attr(&self, who: &Caller, dir: Ino, name: &[u8]) -> Result<Attr> {
        let mut ino = Ino(0);
        for _ in 0..RACES_MAX {
            ino = self.lookup_ino(who, dir, name)?;
            match self.attr_of(ino) {
                // It was removed since the name was found, maybe because something else has the name now.
                Err(Error::Stale) => {}
                other => return other,
            }
        }
        Err(self.no_inode(ino))
    }

    /// The node of an inode that a directory has a name of. The directory is locked: no name can lose it.
    ///
    /// # Errors
    /// The inode is damaged, or free although it has a name.
    pub(crate) fn named(&self, ino: Ino) -> Result<Arc<Node>> {
        self.node(ino).map_err(|error| match error {
            Error::Stale => self.no_inode(ino),
            error => error,
        })
    }

    /// A name leads to an inode that is free.
    fn no_inode(&self, ino: Ino) -> Error {
        let at = self.geometry.inodes_at + ino.0.saturating_sub(1) * INODE;
        Error::Damaged {
            what: "an inode that is free and has a name, or a name that leads to it, the inode",
            at,
        }
    }

    pub(crate) fn attr_of(&self, ino: Ino) -> Result<Attr> {
        let node = self.node(ino)?;
        let state = node.state.read();
        state.alive()?;
        self.attr_in(&node, &state)
    }
}
