//! How a file system uses bodies: which inodes have them, what stat says, what a start sweeps away.

use super::{Bodies, Body, BodyId};
use crate::error::{Error, Result};
use crate::format::Superblock;
use crate::fs::Fs;
use crate::inode::{Inode, Node, State};
use crate::medium::Medium;
use crate::types::{Attr, Ino, Kind, Usage};
use frit_core::planted::{Bug, is};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whose body an inode's is.
pub(crate) fn id(ino: Ino, inode: &Inode) -> BodyId {
    let generation = if is(Bug::FsBodyUnnumbered) { 0 } else { inode.generation };
    BodyId { ino, generation }
}

/// Returns `true` if an error says that this process, or the system, may open no more files.
fn too_many(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// Refuses a medium without the bodies that belong to it, and bodies that belong to another.
pub(crate) fn match_bodies(superblock: &Superblock, bodies: Option<&dyn Bodies>) -> Result<()> {
    let uuid = u128::from(superblock.uuid[0]) | u128::from(superblock.uuid[1]) << 64;
    match bodies {
        None if superblock.outside => Err(Error::Image(
            "the contents of its files are in a pool: name the directory of the pool, not the image in it"
                .into(),
        )),
        Some(_) if !superblock.outside => {
            Err(Error::Image("it holds the contents of its files itself: it is no image of a pool".into()))
        }
        Some(bodies) if bodies.uuid() != uuid => Err(Error::Image(format!(
            "its bodies belong to another file system: the image is {uuid:032x}, they are of {:032x}",
            bodies.uuid()
        ))),
        _ => Ok(()),
    }
}

/// Bodies that no inode of a medium has. Those of inodes that are damaged are kept.
pub(crate) fn strays<M: Medium>(
    medium: &M,
    superblock: &Superblock,
    highest: u64,
    bodies: &dyn Bodies,
) -> Result<Vec<BodyId>> {
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    let mut found = bodies.all()?;
    found.retain(|of| {
        // Beyond it the table was never written.
        let inode = if of.ino.0 > highest { Ok(None) } else { Inode::read(medium, &geometry, salt, of.ino) };
        match inode {
            Ok(Some(inode)) => inode.kind != Kind::File || id(of.ino, &inode) != *of,
            Ok(None) => true,
            Err(_) => false,
        }
    });
    Ok(found)
}

impl<M: Medium> Fs<M> {
    /// Where the contents of an inode are, if not on the medium.
    pub(crate) fn outside(&self, inode: &Inode) -> Option<&dyn Bodies> {
        self.bodies.as_deref().filter(|_| inode.kind == Kind::File)
    }

    /// The body of a file, if it has one.
    pub(crate) fn body(&self, node: &Node, state: &State) -> Result<Option<Arc<dyn Body>>> {
        match (&state.body, self.outside(&state.inode)) {
            (Some(body), _) => Ok(Some(Arc::clone(body))),
            (None, Some(bodies)) => bodies.open(id(node.ino, &state.inode), false),
            (None, None) => Ok(None),
        }
    }

    /// The body of a file, made if it has none; held as long as the inode is.
    pub(crate) fn body_made(&self, node: &Node, state: &mut State) -> Result<Arc<dyn Body>> {
        let body = match self.body(node, state)? {
            Some(body) => body,
            None => {
                let bodies = self.outside(&state.inode).ok_or(Error::Invalid("not a regular file"))?;
                let made = bodies.open(id(node.ino, &state.inode), true)?.ok_or(Error::NotFound)?;
                let atime = crate::types::Time(node.atime.load(Ordering::Relaxed));
                made.set_times(Some(atime), Some(state.inode.mtime))?;
                made
            }
        };
        if node.pinned() {
            state.body = Some(Arc::clone(&body));
        }
        Ok(body)
    }

    /// Keeps an inode for one more user. Who has the body of a file open finds it there, if there is room for one: if
    /// not, that is told when something is written. If this process may open no more files, the inode is not kept:
    /// each read and write would fail.
    pub(crate) fn pin_node(&self, node: &Node, may: impl FnOnce(&State) -> Result<()>) -> Result<()> {
        {
            let state = node.state.read();
            state.alive()?;
            may(&state)?;
            node.pins.fetch_add(1, Ordering::AcqRel);
            if state.body.is_some() || self.outside(&state.inode).is_none() {
                return Ok(());
            }
        }
        let mut state = node.state.write();
        let body = match self.read_only {
            true => self.body(node, &state),
            false => self.body_made(node, &mut state).map(Some),
        };
        match body {
            Err(Error::Os { what, path, error }) if too_many(&error) => {
                drop(state);
                self.unpin_node(node)?;
                // EMFILE would be said of the process that opens the file, and that one may open more.
                Err(Error::Os { what, path, error: Errno::NFILE.into() })
            }
            body => {
                state.body = body.ok().flatten();
                Ok(())
            }
        }
    }

    /// What stat(2) says.
    pub(crate) fn attr_in(&self, node: &Node, state: &State) -> Result<Attr> {
        let mut attr = node.attr(state);
        let Some(bodies) = self.outside(&state.inode) else { return Ok(attr) };
        let look = match &state.body {
            Some(body) => Some(body.look()?),
            None => bodies.look(id(node.ino, &state.inode))?,
        };
        if let Some(look) = look {
            attr.size = look.size;
            attr.sectors = attr.sectors.saturating_add(look.sectors);
            attr.atime = look.atime;
            attr.mtime = look.mtime;
            // The body's own ctime also moves when it is made and when times are set. A time that was set to come is no
            // change.
            attr.ctime = attr.ctime.max(look.mtime.min(look.ctime));
        }
        Ok(attr)
    }

    /// The body of an inode that is free for good goes. One that stays nevertheless is found by the next sweep.
    pub(crate) fn drop_body(&self, node: &Node, state: &mut State) {
        state.body = None;
        if let Some(bodies) = self.outside(&state.inode) {
            let _ = bodies.remove(id(node.ino, &state.inode));
        }
    }

    /// Removes bodies of inodes that are gone: what a stop left.
    pub(crate) fn sweep(&self) -> Result<()> {
        let Some(bodies) = self.bodies.as_deref().filter(|_| !is(Bug::FsBodiesNotSwept)) else {
            return Ok(());
        };
        for stray in strays(&self.medium, &self.superblock, self.numbers.highest(), bodies)? {
            bodies.remove(stray)?;
        }
        Ok(())
    }

    /// How full it is where contents are in a pool: blocks are the pool's.
    pub(crate) fn usage_outside(&self, usage: Usage) -> Result<Usage> {
        let Some(bodies) = self.bodies.as_deref() else { return Ok(usage) };
        let room = bodies.room()?;
        Ok(Usage {
            block_bytes: room.block_bytes,
            blocks: room.blocks,
            blocks_free: room.blocks_free,
            ..usage
        })
    }
}
