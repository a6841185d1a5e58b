//! What a volume may hold: for each block of 4 KiB the states that it went through, in the order of the
//! requests, and after which of them it may not fall back.

use crate::stamp::{PER_BLOCK, Versions};

/// A state of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// The request that made it; `None` for what was there before.
    pub request: Option<u32>,
    /// What the sectors hold.
    pub versions: Versions,
}

/// The states of all blocks.
#[derive(Clone, Debug)]
pub struct History {
    blocks: Vec<Vec<State>>,
}

impl History {
    /// Blocks that hold what is given.
    #[must_use]
    pub fn new(start: &[Versions]) -> History {
        History { blocks: start.iter().map(|&versions| vec![State { request: None, versions }]).collect() }
    }

    /// A volume without contents.
    #[must_use]
    pub fn empty(blocks: usize) -> History {
        History::new(&vec![[0; PER_BLOCK]; blocks])
    }

    /// A request gives sectors a version: 0 for a discard.
    pub fn change(&mut self, request: u32, first: u64, sectors: u64, version: u32) {
        let mut at = first;
        while at < first + sectors {
            let block = (at / PER_BLOCK as u64) as usize;
            let end = ((block as u64 + 1) * PER_BLOCK as u64).min(first + sectors);
            let mut versions = self.now(block);
            versions[(at % PER_BLOCK as u64) as usize..][..(end - at) as usize].fill(version);
            self.blocks[block].push(State { request: Some(request), versions });
            at = end;
        }
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The last state of a block.
    #[must_use]
    pub fn now(&self, block: usize) -> Versions {
        self.blocks[block].last().map_or([0; PER_BLOCK], |s| s.versions)
    }

    /// All states of a block, oldest first.
    #[must_use]
    pub fn states(&self, block: usize) -> &[State] {
        &self.blocks[block]
    }

    /// The oldest state that a block may be in, when just these requests are sure to have lasted.
    #[must_use]
    pub fn floor(&self, block: usize, lasted: impl Fn(u32) -> bool) -> usize {
        self.blocks[block].iter().rposition(|s| s.request.is_none_or(&lasted)).unwrap_or(0)
    }

    /// Floors of all blocks.
    #[must_use]
    pub fn floors(&self, lasted: impl Fn(u32) -> bool) -> Vec<u32> {
        (0..self.len()).map(|b| self.floor(b, &lasted) as u32).collect()
    }

    /// Whether a block may hold what was found: a state from the floor on.
    #[must_use]
    pub fn allows(&self, block: usize, floor: u32, found: &Versions) -> bool {
        self.blocks[block][floor as usize..].iter().any(|s| s.versions == *found)
    }

    /// Whether a block ever held what was found.
    #[must_use]
    pub fn ever(&self, block: usize, found: &Versions) -> bool {
        self.blocks[block].iter().any(|s| s.versions == *found)
    }

    /// Forgets how the blocks came to hold what they hold.
    pub fn settle(&mut self, found: &[Versions]) {
        for (b, &versions) in self.blocks.iter_mut().zip(found) {
            b.clear();
            b.push(State { request: None, versions });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_through_states_and_do_not_fall_below_what_lasted() {
        let mut h = History::empty(3);
        h.change(0, 6, 4, 10);
        h.change(1, 8, 8, 11);
        h.change(2, 0, 24, 0);
        assert_eq!(h.now(0), [0; 8]);
        assert_eq!(h.states(0)[1].versions, [0, 0, 0, 0, 0, 0, 10, 10]);
        assert_eq!(h.states(1)[1].versions, [10, 10, 0, 0, 0, 0, 0, 0]);
        assert_eq!(h.floors(|r| r == 1), [0, 2, 0]);
        assert_eq!(h.floors(|r| r == 0), [1, 1, 0]);
        assert!(h.allows(1, 2, &[11; 8]) && h.allows(1, 2, &[0; 8]));
        assert!(!h.allows(1, 2, &h.states(1)[1].versions) && h.ever(1, &h.states(1)[1].versions));
        assert!(!h.ever(1, &[11, 11, 11, 11, 10, 10, 10, 10]));
    }
}
