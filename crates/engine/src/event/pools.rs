//! Pools of the event engine: space for data on their way, such as the write-back buffer of a cache.

use super::state::{NodeToken, Queues, Stage};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
struct Pool {
    limit: u64,
    taken: u64,
    /// Nodes that wait for space, the oldest first.
    waiting: VecDeque<u32>,
}

/// The pools, by number.
#[derive(Clone, Default, Debug)]
pub(super) struct Pools(Vec<Pool>);

impl Pools {
    /// Adds a pool and returns its number.
    pub(super) fn add(&mut self, limit: u64) -> u16 {
        self.0.push(Pool { limit, taken: 0, waiting: VecDeque::new() });
        self.0.len() as u16 - 1
    }
}

impl Queues {
    pub(super) fn pools_mut(&mut self) -> &mut Pools {
        &mut self.pools
    }

    /// Returns a token that is done when `after` is done and the pool has space.
    pub(super) fn acquire(&mut self, pool: u16, amount: u64, after: NodeToken) -> NodeToken {
        self.special(Stage::Acquire, pool, amount, after)
    }

    /// Returns space to a pool once `after` is done.
    pub(super) fn release_space(&mut self, pool: u16, amount: u64, after: NodeToken) {
        self.special(Stage::Release, pool, amount, after);
    }

    /// Gives a node that is ready its space, or lets it wait for it.
    pub(super) fn wait_for_space(&mut self, id: u32) {
        let node = &mut self.nodes[id as usize];
        (node.stage, node.waits) = (Stage::Join, 1);
        let pool = node.cmd.addr as usize;
        self.pools.0[pool].waiting.push_back(id);
        self.give_space(pool);
    }

    /// Takes space back, and gives it to those that wait.
    pub(super) fn return_space(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let (pool, amount) = (node.cmd.addr as usize, node.start.0);
        self.pools.0[pool].taken -= amount;
        self.resolve(id);
        self.give_space(pool);
    }

    fn give_space(&mut self, pool: usize) {
        loop {
            let of = &mut self.pools.0[pool];
            if of.taken >= of.limit {
                return;
            }
            let Some(id) = of.waiting.pop_front() else { return };
            of.taken += self.nodes[id as usize].start.0;
            self.resolve(id);
        }
    }
}
