//! Removed inodes that are kept for somebody outside of the file system: the kernel, which opens a
//! file by the number that it has looked up before.
//!
//! A kept inode is on the list of orphans, as a file that is held open. It is freed when nobody has it
//! looked up any more, or when space runs out, unless it is pinned then.

use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::inode::{Node, NodeState};
use crate::journal::Txn;
use crate::medium::Medium;
use crate::sync::Mutex;
use crate::types::{Ino, InodeType, LookedUp, Usage};
use hashbrown::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Inodes without links that are not freed yet, because somebody has looked them up.
#[derive(Default)]
pub(crate) struct RemovedInodes {
    /// Returns `true` for numbers that somebody has looked up.
    looked_up: OnceLock<LookedUp>,
    kept: Mutex<HashMap<Ino, Arc<Node>, foldhash::fast::FixedState>>,
    /// Number of inodes in `kept`, for a check without the lock.
    count: AtomicUsize,
}

impl std::fmt::Debug for RemovedInodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemovedInodes").field("count", &self.count).finish_non_exhaustive()
    }
}

impl RemovedInodes {
    /// Sets, once, the function that says which inodes somebody has looked up.
    pub(crate) fn set_looked_up(&self, looked_up: LookedUp) {
        let _ = self.looked_up.set(looked_up);
    }

    /// Returns `true` if somebody outside has looked up an inode with this number.
    pub(crate) fn is_looked_up(&self, ino: Ino) -> bool {
        self.looked_up.get().is_some_and(|looked_up| looked_up(ino))
    }

    /// Keeps an inode if somebody has looked it up, and returns `true` then. The caller holds the lock
    /// of the node.
    pub(crate) fn keep(&self, node: &Arc<Node>) -> bool {
        if !self.is_looked_up(node.ino) {
            return false;
        }
        self.change(|kept| kept.insert(node.ino, Arc::clone(node)));
        // `take` reads the count after the last lookup was forgotten: it finds the inode, or this
        // thread finds that it was forgotten.
        fence(Ordering::SeqCst);
        self.is_looked_up(node.ino) || self.change(|kept| kept.remove(&node.ino)).is_none()
    }

    /// Returns `true` if an inode is kept.
    pub(crate) fn is_kept(&self, ino: Ino) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.kept.lock().contains_key(&ino)
    }

    /// Keeps an inode no longer, and returns it if it was kept.
    fn take(&self, ino: Ino) -> Option<Arc<Node>> {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.change(|kept| kept.remove(&ino))
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut HashMap<Ino, Arc<Node>, foldhash::fast::FixedState>) -> T,
    ) -> T {
        let mut kept = self.kept.lock();
        let changed = change(&mut kept);
        self.count.store(kept.len(), Ordering::Release);
        changed
    }

    /// Returns the kept files. Directories need no space for which it would be worth to end their use.
    fn files(&self) -> Vec<Arc<Node>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        self.kept.lock().values().cloned().collect()
    }
}

/// Returns `true` if a kept inode can be freed for its space: a directory stays for those who work in it.
fn is_reclaimable(node: &Node, state: &NodeState) -> bool {
    !state.dead && state.inode.links == 0 && state.inode.kind != InodeType::Directory && !node.pinned()
}

impl<M: Medium> Fs<M> {
    /// Allocates an inode number.
    ///
    /// # Errors
    /// All numbers are in use.
    pub(crate) fn alloc_ino(&self) -> Result<Ino> {
        self.inode_allocator.alloc(&self.medium, |ino| self.removed.is_looked_up(ino))
    }

    /// Frees a removed inode that nobody has looked up any more, unless it is pinned: the last unpin
    /// frees it then.
    pub(crate) fn free_forgotten(&self, ino: Ino) -> Result<()> {
        let Some(node) = self.removed.take(ino) else { return Ok(()) };
        let mut state = node.state.write();
        if state.dead || state.inode.links > 0 || node.pinned() {
            return Ok(());
        }
        self.free_node(&node, &mut state, Txn::new())
    }

    /// Calls `operation`, again if it fails for lack of space or inodes that removed files have.
    pub(crate) fn with_space<T>(&self, operation: impl Fn() -> Result<T>) -> Result<T> {
        match operation() {
            Err(Error::NoSpace | Error::NoInode) if self.reclaim_removed() => operation(),
            other => other,
        }
    }

    /// Frees all removed files that are not pinned, although somebody has looked them up. Returns `true`
    /// if there were any.
    pub(crate) fn reclaim_removed(&self) -> bool {
        let mut any = false;
        for node in self.removed.files() {
            let mut state = node.state.write();
            if is_reclaimable(&node, &state) && self.removed.take(node.ino).is_some() {
                any |= self.free_node(&node, &mut state, Txn::new()).is_ok();
            }
        }
        any
    }

    /// Adds to `usage` the space of removed files, which is free for all who need it.
    pub(crate) fn usage_reclaimable(&self, mut usage: Usage) -> Usage {
        for node in self.removed.files() {
            let state = node.state.read();
            if is_reclaimable(&node, &state) {
                usage.inodes_free += 1;
                usage.blocks_free += state.inode.blocks;
            }
        }
        usage.blocks_free = usage.blocks_free.min(usage.blocks);
        usage
    }
}
