//! The nodes in use, and those that were used lately.

use super::node::Node;
use crate::sync::Mutex;
use crate::types::Ino;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Parts with a lock each.
const SHARDS: usize = 64;

/// A part of the cache. The hasher has a fixed seed because a sync writes nodes in the order of iteration: the same
/// operations leave the same bytes, so that a run of the torture can be repeated. Programs do not choose numbers.
type Shard = HashMap<Ino, Arc<Node>, FixedState>;

/// Nodes by number.
#[derive(Debug)]
pub(crate) struct Cache {
    shards: Vec<Mutex<Shard>>,
    /// Most nodes of a shard before it looks for some to drop.
    most: usize,
}

impl Cache {
    /// For about `nodes` nodes that nobody uses; those in use are kept in any case.
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect(),
            most: (nodes / SHARDS).max(4),
        }
    }

    fn shard(&self, ino: Ino) -> &Mutex<Shard> {
        &self.shards[ino.0 as usize % SHARDS]
    }

    /// A node, made by `load` if it is not there. `drop` is asked of nodes that nobody uses; it says whether one
    /// may go.
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
        if shard.len() >= self.most {
            let mut left = shard.len() / 4;
            shard.retain(|_, node| {
                let goes = left > 0
                    && Arc::strong_count(node) == 1
                    && !node.used.swap(false, Ordering::Relaxed)
                    && !node.pinned()
                    && drop(node);
                left -= usize::from(goes);
                !goes
            });
        }
        shard.insert(ino, Arc::clone(&node));
        Ok(node)
    }

    /// A node that was just made.
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

    /// Forgets a node that was freed.
    pub(crate) fn remove(&self, ino: Ino) {
        self.shard(ino).lock().remove(&ino);
    }

    /// All nodes at this moment.
    pub(crate) fn all(&self) -> Vec<Arc<Node>> {
        self.shards.iter().flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>()).collect()
    }
}
