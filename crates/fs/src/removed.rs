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
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Maximum size of a file with contents in a content store that is kept, in sectors of 512 bytes: 64 KiB.
const KEPT_SECTORS_MAX: u64 = 128;
/// Number of times that the usage is computed again because files were freed meanwhile.
const USAGE_TRIES: usize = 16;

/// Nodes by inode number. The hasher has a fixed seed, as that of [`NodeCache`](crate::inode::NodeCache).
type Nodes = HashMap<Ino, Arc<Node>, FixedState>;

/// Inodes without links that are not freed yet, because somebody has looked them up.
#[derive(Default)]
pub(crate) struct RemovedInodes {
    /// Returns `true` for numbers that somebody has looked up.
    looked_up: OnceLock<LookedUp>,
    kept: Mutex<Nodes>,
    /// Number of inodes in `kept`, for a check without the lock.
    count: AtomicUsize,
    /// Number of inodes that were freed or are no longer kept.
    forgotten: AtomicU64,
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
        self.change(|kept| _ = kept.insert(node.ino, Arc::clone(node)));
        // `find` reads the count after the last lookup was forgotten: it finds the inode, or this
        // thread finds that it was forgotten.
        fence(Ordering::SeqCst);
        let is_kept = self.is_looked_up(node.ino);
        if !is_kept {
            self.forget(node);
        }
        is_kept
    }

    /// Returns `true` if an inode is kept.
    pub(crate) fn is_kept(&self, ino: Ino) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.kept.lock().contains_key(&ino)
    }

    /// Returns a kept inode.
    fn find(&self, ino: Ino) -> Option<Arc<Node>> {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.kept.lock().get(&ino).cloned()
    }

    /// Keeps an inode no longer. Its number may belong to another one meanwhile.
    fn forget(&self, node: &Arc<Node>) {
        self.change(|kept| {
            if kept.get(&node.ino).is_some_and(|other| Arc::ptr_eq(other, node)) {
                kept.remove(&node.ino);
            }
        });
        self.forgotten.fetch_add(1, Ordering::Release);
    }

    fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    fn change(&self, change: impl FnOnce(&mut Nodes)) {
        let mut kept = self.kept.lock();
        change(&mut kept);
        self.count.store(kept.len(), Ordering::Release);
    }

    /// Returns the kept inodes.
    fn nodes(&self) -> Vec<Arc<Node>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        self.kept.lock().values().cloned().collect()
    }
}

/// Returns `true` if a kept inode can be freed for its space. Only files: the kernel opens directories,
/// pipes, sockets and devices without a request, so they may be in use.
fn is_reclaimable(node: &Node, state: &NodeState) -> bool {
    let is_file = matches!(state.inode.kind, InodeType::File | InodeType::Symlink);
    is_file && !state.dead && state.inode.links == 0 && !node.pinned()
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
        let Some(node) = self.removed.find(ino) else { return Ok(()) };
        let mut state = node.state.write();
        let is_free = !state.dead && state.inode.links == 0 && !node.pinned();
        let freed = if is_free { self.free_node(&node, &mut state, Txn::new()) } else { Ok(()) };
        // Until now, others find the inode and wait for its space.
        self.removed.forget(&node);
        freed
    }

    /// Returns `true` if an inode may be kept. The contents of large files in a content store are freed with
    /// the last name: others than the file system use the space of the store, and cannot reclaim it.
    pub(crate) fn may_keep(&self, node: &Node, state: &NodeState) -> bool {
        // Recovery has to find an inode that is kept.
        let is_orphan = state.orphan.is_some() || self.orphans.lock().has_overflow();
        let is_small = || self.attr_in(node, state).is_ok_and(|attr| attr.sectors <= KEPT_SECTORS_MAX);
        is_orphan && (self.external(&state.inode).is_none() || node.pinned() || is_small())
    }

    /// Calls `operation`, again if it fails for lack of space or inodes that removed files have.
    pub(crate) fn with_space<T>(&self, operation: impl Fn() -> Result<T>) -> Result<T> {
        let forgotten = self.removed.forgotten();
        match operation() {
            Err(Error::NoSpace | Error::NoInode) if self.reclaim_removed(forgotten) => operation(),
            other => other,
        }
    }

    /// Writes to a file. Space of removed files is used before a write is short.
    pub(crate) fn write_with_space(&self, node: &Node, at: u64, data: &[u8]) -> Result<usize> {
        let forgotten = self.removed.forgotten();
        let written = self.with_space(|| self.write_node(node, at, data))?;
        if written == data.len() || !self.reclaim_removed(forgotten) {
            return Ok(written);
        }
        // The next write reports an error.
        Ok(written + self.write_node(node, at + written as u64, &data[written..]).unwrap_or(0))
    }

    /// Frees all removed files that are not pinned, although somebody has looked them up. Returns `true`
    /// if any were freed since `forgotten` were.
    fn reclaim_removed(&self, forgotten: u64) -> bool {
        for node in self.removed.nodes() {
            let mut state = node.state.write();
            if is_reclaimable(&node, &state) && self.free_node(&node, &mut state, Txn::new()).is_ok() {
                self.removed.forget(&node);
            }
        }
        self.removed.forgotten() != forgotten
    }

    /// Returns the usage that `own` returns, with the space of removed files as free: it is for all who
    /// need it.
    pub(crate) fn usage_with_reclaimable(&self, own: impl Fn() -> Usage) -> Usage {
        let usage = || (self.removed.forgotten(), self.add_reclaimable(own()));
        // Files that are freed meanwhile would be missing in both.
        let stable = (0..USAGE_TRIES).map(|_| usage()).find(|(then, _)| self.removed.forgotten() == *then);
        stable.unwrap_or_else(usage).1
    }

    fn add_reclaimable(&self, mut usage: Usage) -> Usage {
        for node in self.removed.nodes() {
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
