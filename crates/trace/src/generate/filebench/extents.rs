//! Free space of the file system model: extents, allocated at or after a goal.

use std::collections::BTreeMap;

/// A run of consecutive blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockRun {
    pub(super) first: u32,
    pub(super) blocks: u32,
}

/// Free extents by first block.
pub(super) struct FreeSpace {
    free: BTreeMap<u32, u32>,
}

impl FreeSpace {
    pub(super) fn new(all: BlockRun) -> FreeSpace {
        FreeSpace { free: BTreeMap::from([(all.first, all.blocks)]) }
    }

    /// Takes up to `blocks` consecutive blocks: the first free ones at or after `goal`, or else the
    /// first ones of the disk; `None` if the space is full.
    pub(super) fn take(&mut self, goal: u32, blocks: u32) -> Option<BlockRun> {
        // The extent before the goal can reach beyond it.
        let around = self.free.range(..=goal).next_back().map(|(&f, &n)| (f, n));
        let (first, free) = match around.filter(|&(f, n)| f + n > goal) {
            Some((first, n)) if first < goal => {
                self.free.insert(first, goal - first);
                let rest = first + n - goal;
                self.free.insert(goal, rest);
                (goal, rest)
            }
            Some(found) => found,
            None => self.free.range(goal..).chain(self.free.iter()).next().map(|(&f, &n)| (f, n))?,
        };
        let taken = blocks.min(free);
        self.free.remove(&first);
        if taken < free {
            self.free.insert(first + taken, free - taken);
        }
        Some(BlockRun { first, blocks: taken })
    }

    /// Returns a run, and joins it with its free neighbours.
    pub(super) fn give_back(&mut self, run: BlockRun) {
        let BlockRun { mut first, mut blocks } = run;
        if let Some((&before, &n)) = self.free.range(..first).next_back()
            && before + n == first
        {
            self.free.remove(&before);
            (first, blocks) = (before, n + blocks);
        }
        if let Some(n) = self.free.remove(&(first + blocks)) {
            blocks += n;
        }
        self.free.insert(first, blocks);
    }

    #[cfg(test)]
    fn blocks(&self) -> u32 {
        self.free.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::random::Random;

    #[test]
    fn blocks_are_taken_once_and_come_back_joined() {
        let mut space = FreeSpace::new(BlockRun { first: 100, blocks: 1000 });
        let (mut random, mut taken) = (Random::new(7), Vec::<BlockRun>::new());
        let mut owned = [false; 1100];
        for _ in 0..20_000 {
            if random.unit() < 0.55 {
                let Some(run) = space.take(random.below(1200) as u32, 1 + random.below(40) as u32) else {
                    continue;
                };
                for block in run.first..run.first + run.blocks {
                    assert!(block >= 100 && !std::mem::replace(&mut owned[block as usize], true));
                }
                taken.push(run);
            } else if !taken.is_empty() {
                let run = taken.swap_remove(random.below(taken.len() as u64) as usize);
                owned[run.first as usize..(run.first + run.blocks) as usize].fill(false);
                space.give_back(run);
            }
            let used: u32 = taken.iter().map(|r| r.blocks).sum();
            assert_eq!(space.blocks() + used, 1000);
        }
        taken.into_iter().for_each(|run| space.give_back(run));
        assert_eq!((space.free.len(), space.blocks()), (1, 1000));
    }

    #[test]
    fn allocation_begins_at_the_goal_and_wraps() {
        let mut space = FreeSpace::new(BlockRun { first: 0, blocks: 10 });
        let run = |first, blocks| Some(BlockRun { first, blocks });
        assert_eq!((space.take(6, 2), space.take(6, 9), space.take(6, 3)), (run(6, 2), run(8, 2), run(0, 3)));
        assert_eq!((space.take(4, 9), space.take(9, 9), space.take(0, 1)), (run(4, 2), run(3, 1), None));
    }
}
