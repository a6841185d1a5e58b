//! An inode in DRAM, and the lock order.
//!
//! A thread that takes several locks takes them in this order: the lock of names (exclusive to move
//! between directories, else shared), directories from the root downwards, other inodes by number,
//! then those of the orphan list, the inode numbers, the allocator and the journal. The last four
//! are held for a short time and never together, except that the lock of the orphan list may be
//! held around the others.

use super::raw::{Inode, WORDS};
use crate::content_store::ContentFile;
use crate::dir::DirIndex;
use crate::error::{Error, Result};
use crate::extents::ExtentMap;
use crate::sync::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, RwLock, RwLockWriteGuard};
use crate::types::{Attr, Ino, InodeType, Time};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An inode in use.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) ino: Ino,
    /// Data protected by the lock of the node.
    pub(crate) state: RwLock<NodeState>,
    /// Number of times the inode is held open.
    pub(crate) pins: AtomicU32,
    /// Number of maps that need the blocks in their places.
    pub(crate) maps: AtomicU32,
    /// Index of the file among those with direct access plus 1, or 0. Changes under the exclusive lock.
    pub(crate) lease: AtomicU32,
    /// Size to which programs with direct access have extended the file, if it was not truncated since; else 0.
    pub(crate) grown_to: AtomicU64,
    /// `true` if programs with direct access no longer extend the file, until its last close.
    pub(crate) grows_no_more: AtomicBool,
    /// Parent of a directory, readable without its lock.
    pub(crate) parent: AtomicU64,
    /// Time of the last access, which readers update under the shared lock.
    pub(crate) atime: AtomicI64,
    /// `true` if timestamps in DRAM are newer than those on the medium.
    pub(crate) newer_times: AtomicBool,
    /// Number of changes of the contents or the size since the node was loaded.
    pub(crate) changes: AtomicU64,
    /// `true` if the node was used since the cache last looked for nodes to evict.
    pub(crate) used: AtomicBool,
}

/// Exclusive lock of a node.
pub(crate) type NodeGuard<'a> = RwLockWriteGuard<'a, NodeState>;

/// In-memory state of an inode.
#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) inode: Inode,
    /// The words of the inode on the medium.
    pub(crate) saved: [u64; WORDS],
    /// Extents, if they are loaded.
    pub(crate) map: Option<ExtentMap>,
    /// Name index of a directory, if it is loaded.
    pub(crate) index: Option<Box<DirIndex>>,
    /// The content file, if contents are outside the medium and the inode is pinned.
    pub(crate) content_file: Option<Arc<dyn ContentFile>>,
    /// Slot of the inode in the orphan list.
    pub(crate) orphan: Option<u32>,
    /// `true` if the inode was freed. Threads that still hold the node must not use it.
    pub(crate) dead: bool,
}

/// Age of an access time after which a read updates it even without changes: a day, as with
/// `relatime` in Linux.
const ATIME_AGE: i64 = 24 * 3600 * 1_000_000_000;

impl Node {
    pub(crate) fn new(ino: Ino, inode: Inode, saved: [u64; WORDS]) -> Self {
        let atime = AtomicI64::new(inode.atime.0);
        let parent = AtomicU64::new(inode.parent.0);
        let state =
            NodeState { inode, saved, map: None, index: None, content_file: None, orphan: None, dead: false };
        Self {
            ino,
            state: RwLock::new(state),
            pins: AtomicU32::new(0),
            maps: AtomicU32::new(0),
            lease: AtomicU32::new(0),
            grown_to: AtomicU64::new(0),
            grows_no_more: AtomicBool::new(false),
            parent,
            atime,
            newer_times: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            used: AtomicBool::new(true),
        }
    }

    /// Returns the attributes for stat(2).
    pub(crate) fn attr(&self, state: &NodeState) -> Attr {
        state.inode.attr(self.ino, Time(self.atime.load(Ordering::Relaxed)))
    }

    /// Updates the access time after a read, by the rules of `relatime`.
    #[inline]
    pub(crate) fn update_atime(&self, state: &NodeState, now: Time) {
        let atime = self.atime.load(Ordering::Relaxed);
        let changed = state.inode.mtime.max(state.inode.ctime).0;
        if (atime <= changed && atime != now.0) || now.0.saturating_sub(atime) >= ATIME_AGE {
            self.set_atime(now);
        }
    }

    pub(crate) fn set_atime(&self, to: Time) {
        self.atime.store(to.0, Ordering::Relaxed);
        self.newer_times.store(true, Ordering::Relaxed);
    }

    /// Changes the parent of a directory. The caller holds the lock of its node.
    pub(crate) fn set_parent(&self, state: &mut NodeState, parent: Ino) {
        state.inode.parent = parent;
        self.parent.store(parent.0, Ordering::Relaxed);
    }

    /// Notes a change of the contents or the size. The caller holds the lock of the node, and changes
    /// them next.
    #[inline]
    pub(crate) fn note_change(&self) {
        let changes = self.changes.load(Ordering::Relaxed);
        self.changes.store(changes.wrapping_add(1), Ordering::Release);
    }

    /// Returns `true` if the inode is held open.
    pub(crate) fn pinned(&self) -> bool {
        self.pins.load(Ordering::Acquire) > 0
    }
}

impl NodeState {
    /// Fails with [`Error::Stale`] if the inode was freed.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.dead { Err(Error::Stale) } else { Ok(()) }
    }

    /// Fails if the inode is not a directory, or is one that was removed.
    pub(crate) fn check_directory(&self) -> Result<()> {
        self.check_alive()?;
        if self.inode.kind != InodeType::Directory {
            return Err(Error::NotDirectory);
        }
        if self.inode.links == 0 { Err(Error::NotFound) } else { Ok(()) }
    }

    /// Fails if the inode is not a regular file.
    pub(crate) fn check_file(&self) -> Result<()> {
        self.check_alive()?;
        match self.inode.kind {
            InodeType::File => Ok(()),
            InodeType::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid("not a regular file")),
        }
    }
}
