//! Node cache: nodes in use and those recently used.

use super::node::Node;
use crate::sync::Mutex;
use crate::types::Ino;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Number of shards, each with its own lock.
const SHARDS: usize = 64;

/// A shard of the cache. The hasher has a fixed seed because a sync writes nodes in iteration
/// order: the same operations then produce the same bytes, so that torture runs are reproducible.
/// Hash flooding is not a concern, because programs do not choose inode numbers.
type Shard = HashMap<Ino, Arc<Node>, FixedState>;

/// Nodes by inode number.
#[derive(Debug)]
pub(crate) struct NodeCache {
    shards: Vec<Mutex<Shard>>,
    /// Number of nodes of a shard above which it evicts unused ones.
    shard_nodes_max: usize,
}

impl NodeCache {
    /// Creates a cache for about `nodes` unused nodes. Nodes in use are always kept.
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect(),
            shard_nodes_max: (nodes / SHARDS).max(4),
        }
    }

    fn shard(&self, ino: Ino) -> &Mutex<Shard> {
        &self.shards[ino.0 as usize % SHARDS]
    }

    /// Returns a node, created by `load` if it is not cached. `drop` is called for unused nodes
    /// selected for eviction and returns `true` if the node may be evicted.
    pub(crate) fn get<E>(
        &self,
        ino: Ino,
        load: impl FnOnce() -> Result<Node, E>,
        mut drop: impl FnMut(&Node) -> bool,
    ) -> Result<Arc<Node>, E> {
        let mut shard = self.shard(ino).lock();
        if let Some(node) = shard.get(&ino) {
            node.used.store(true, Ordering::Relaxed);
            return Ok(Arc::clone(node));
        }
        let node = Arc::new(load()?);
        // Clock algorithm: a node that was used since the last pass loses its mark and stays.
        if shard.len() >= self.shard_nodes_max {
            let mut left = shard.len() / 4;
            shard.retain(|_, node| {
                let evict = left > 0
                    && Arc::strong_count(node) == 1
                    && !node.used.swap(false, Ordering::Relaxed)
                    && !node.pinned()
                    && drop(node);
                left -= usize::from(evict);
                !evict
            });
        }
        shard.insert(ino, Arc::clone(&node));
        Ok(node)
    }

    /// Inserts a newly created node.
    pub(crate) fn insert(&self, node: Arc<Node>) {
        match self.shard(node.ino).lock().entry(node.ino) {
            Entry::Occupied(mut there) => {
                there.insert(node);
            }
            Entry::Vacant(free) => {
                free.insert(node);
            }
        }
    }

    /// Removes a node that was freed.
    pub(crate) fn remove(&self, ino: Ino) {
        self.shard(ino).lock().remove(&ino);
    }

    /// Returns all nodes in the cache.
    pub(crate) fn all(&self) -> Vec<Arc<Node>> {
        self.shards.iter().flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>()).collect()
    }
}
