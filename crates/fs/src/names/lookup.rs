//! Finding a name.

use crate::dir::valid;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::Node;
use crate::medium::Medium;
use crate::rules::{self, EXECUTE};
use crate::types::{Attr, Caller, Ino, Kind};

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
        for _ in 0..RACES_MAX {
            match self.attr_of(self.lookup_ino(who, dir, name)?) {
                // It was removed since the name was found, maybe because something else has the name now.
                Err(Error::Stale) => {}
                other => return other,
            }
        }
        Err(Error::NotFound)
    }

    pub(crate) fn attr_of(&self, ino: Ino) -> Result<Attr> {
        let node = self.node(ino)?;
        let state = node.state.read();
        state.alive()?;
        self.attr_in(&node, &state)
    }
}
