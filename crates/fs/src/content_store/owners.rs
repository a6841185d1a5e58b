//! Use of content files by a file system: their assignment to inodes, attributes, and removal of
//! stray ones.

use super::{ContentFile, ContentId, ContentStore};
use crate::error::{Error, Result};
use crate::format::Superblock;
use crate::fs::Fs;
use crate::inode::{Inode, Node, NodeState};
use crate::medium::Medium;
use crate::planted::Bug;
use crate::types::{Attr, Ino, InodeType, Usage};
use frit_core::planted::is_planted;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Returns the ID of the content file of an inode.
pub(crate) fn id(ino: Ino, inode: &Inode) -> ContentId {
    let generation = if is_planted(Bug::BodyUnnumbered) { 0 } else { inode.generation };
    ContentId { ino, generation }
}

/// Returns `true` if the error is the limit on open files of this process or of the system.
fn too_many(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// Fails if a file system and a content store do not belong together, or if one of them is missing.
pub(crate) fn check_content_store(
    superblock: &Superblock,
    content_store: Option<&dyn ContentStore>,
) -> Result<()> {
    let uuid = u128::from(superblock.uuid[0]) | u128::from(superblock.uuid[1]) << 64;
    match content_store {
        None if superblock.external => Err(Error::Image(
            "the contents of its files are in a pool: name the directory of the pool, not the image in it"
                .into(),
        )),
        Some(_) if !superblock.external => {
            Err(Error::Image("the image contains the file contents: it is not the image of a pool".into()))
        }
        Some(content_store) if content_store.uuid() != uuid => Err(Error::Image(format!(
            "its contents belong to another file system: the image has UUID {uuid:032x}, the pool {:032x}",
            content_store.uuid()
        ))),
        _ => Ok(()),
    }
}

/// Lists stray content files: those without an inode. Content files of damaged inodes are not
/// included.
pub(crate) fn strays<M: Medium>(
    medium: &M,
    superblock: &Superblock,
    highest: u64,
    content_store: &dyn ContentStore,
) -> Result<Vec<ContentId>> {
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    let mut found = content_store.all()?;
    found.retain(|of| {
        // The inode table is not initialized beyond the highest number in use.
        let inode = if of.ino.0 > highest { Ok(None) } else { Inode::read(medium, &geometry, salt, of.ino) };
        match inode {
            Ok(Some(inode)) => inode.kind != InodeType::File || id(of.ino, &inode) != *of,
            Ok(None) => true,
            Err(_) => false,
        }
    });
    Ok(found)
}

impl<M: Medium> Fs<M> {
    /// Returns the content store, if the contents of the inode are outside the medium.
    pub(crate) fn external(&self, inode: &Inode) -> Option<&dyn ContentStore> {
        self.content_store.as_deref().filter(|_| inode.kind == InodeType::File)
    }

    /// Opens the content file of an inode; returns `None` if it has none.
    pub(crate) fn content_file(
        &self,
        node: &Node,
        state: &NodeState,
    ) -> Result<Option<Arc<dyn ContentFile>>> {
        match (&state.content_file, self.external(&state.inode)) {
            (Some(content_file), _) => Ok(Some(Arc::clone(content_file))),
            (None, Some(content_store)) => content_store.open(id(node.ino, &state.inode), false),
            (None, None) => Ok(None),
        }
    }

    /// Opens the content file of an inode and creates it if necessary. A pinned inode keeps it
    /// open.
    pub(crate) fn open_or_create_body(
        &self,
        node: &Node,
        state: &mut NodeState,
    ) -> Result<Arc<dyn ContentFile>> {
        let content_file = match self.content_file(node, state)? {
            Some(content_file) => content_file,
            None => {
                let content_store =
                    self.external(&state.inode).ok_or(Error::Invalid("not a regular file"))?;
                let content_file =
                    content_store.open(id(node.ino, &state.inode), true)?.ok_or(Error::NotFound)?;
                let atime = crate::types::Time(node.atime.load(Ordering::Relaxed));
                content_file.set_times(Some(atime), Some(state.inode.mtime))?;
                content_file
            }
        };
        if node.pinned() {
            state.content_file = Some(Arc::clone(&content_file));
        }
        Ok(content_file)
    }

    /// Pins an inode and opens its content file. If the content file cannot be created for lack of
    /// space, the pin succeeds and the next write reports the error. If the limit on open files is
    /// reached, the pin fails, because each read and write would fail.
    pub(crate) fn pin_node(&self, node: &Node, may: impl FnOnce(&NodeState) -> Result<()>) -> Result<()> {
        {
            let state = node.state.read();
            state.check_alive()?;
            may(&state)?;
            node.pins.fetch_add(1, Ordering::AcqRel);
            if state.content_file.is_some() || self.external(&state.inode).is_none() {
                return Ok(());
            }
        }
        let mut state = node.state.write();
        let content_file = match self.read_only {
            true => self.content_file(node, &state),
            false => self.open_or_create_body(node, &mut state).map(Some),
        };
        match content_file {
            Err(Error::Os { what, path, error }) if too_many(&error) => {
                drop(state);
                self.unpin_node(node)?;
                // EMFILE would refer to the calling process, which may still open more files.
                Err(Error::Os { what, path, error: Errno::NFILE.into() })
            }
            content_file => {
                state.content_file = content_file.ok().flatten();
                Ok(())
            }
        }
    }

    /// Returns the attributes for stat(2).
    pub(crate) fn attr_in(&self, node: &Node, state: &NodeState) -> Result<Attr> {
        let mut attr = node.attr(state);
        let Some(content_store) = self.external(&state.inode) else {
            self.add_direct_writes(node, &mut attr);
            return Ok(attr);
        };
        let look = match &state.content_file {
            Some(content_file) => Some(content_file.look()?),
            None => content_store.look(id(node.ino, &state.inode))?,
        };
        if let Some(look) = look {
            attr.size = look.size;
            attr.sectors = attr.sectors.saturating_add(look.sectors);
            attr.atime = look.atime;
            attr.mtime = look.mtime;
            // The ctime of the content file also changes when it is created and when its times are
            // set, so it is used only up to the mtime. An mtime that was set to the future is
            // limited by the ctime.
            attr.ctime = attr.ctime.max(look.mtime.min(look.ctime));
        }
        Ok(attr)
    }

    /// Removes the content file of an inode that was freed. If that fails, the next sweep removes
    /// it.
    pub(crate) fn drop_body(&self, node: &Node, state: &mut NodeState) {
        state.content_file = None;
        if let Some(content_store) = self.external(&state.inode) {
            let _ = content_store.remove(id(node.ino, &state.inode));
        }
    }

    /// Removes stray content files, which a crash may have left.
    pub(crate) fn sweep(&self) -> Result<()> {
        let Some(content_store) = self.content_store.as_deref().filter(|_| !is_planted(Bug::BodiesNotSwept))
        else {
            return Ok(());
        };
        for stray in strays(&self.medium, &self.superblock, self.inode_allocator.highest(), content_store)? {
            content_store.remove(stray)?;
        }
        Ok(())
    }

    /// Replaces block counts by those of the content store, if contents are outside the medium.
    pub(crate) fn usage_external(&self, usage: Usage) -> Result<Usage> {
        let Some(content_store) = self.content_store.as_deref() else { return Ok(usage) };
        let used = content_store.usage()?;
        Ok(Usage {
            block_bytes: used.block_bytes,
            blocks: used.blocks,
            blocks_free: used.blocks_free,
            ..usage
        })
    }
}
