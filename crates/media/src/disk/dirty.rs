//! Dirty blocks in the cache of a drive.

use std::collections::BTreeMap;

/// Blocks that are acknowledged and not yet on the platters: first block → number of blocks.
#[derive(Clone, Default, Debug)]
pub(super) struct Dirty {
    pub(super) runs: BTreeMap<u64, u32>,
    pub(super) sectors: u64,
    /// The run that is being written (first block and number of blocks). It is on the platters when
    /// the arm is free.
    pub(super) in_flight: (u64, u32),
    /// Block after the run that was written last, where the arm is.
    pub(super) last: u64,
}

impl Dirty {
    /// Adds blocks. Existing ones are replaced; adjacent runs are merged to runs of at most `most`
    /// blocks.
    pub(super) fn add(&mut self, block: u64, sectors: u32, most: u64) {
        self.remove(block, sectors);
        let (mut first, mut n) = (block, u64::from(sectors));
        if let Some((&b, &len)) = self.runs.range(..block).next_back()
            && b + u64::from(len) == block
            && u64::from(len) + n <= most
        {
            self.runs.remove(&b);
            first = b;
            n += u64::from(len);
        }
        if let Some(&len) = self.runs.get(&(first + n))
            && u64::from(len) + n <= most
        {
            self.runs.remove(&(first + n));
            n += u64::from(len);
        }
        self.runs.insert(first, n as u32);
        self.sectors += u64::from(sectors);
    }

    /// Removes blocks.
    pub(super) fn remove(&mut self, block: u64, sectors: u32) {
        let end = block + u64::from(sectors);
        while let Some((&b, &len)) = self.runs.range(..end).next_back() {
            let over = b + u64::from(len);
            if over <= block {
                break;
            }
            self.runs.remove(&b);
            self.sectors -= over.min(end) - b.max(block);
            if b < block {
                self.runs.insert(b, (block - b) as u32);
            }
            if over > end {
                self.runs.insert(end, (over - end) as u32);
            }
        }
    }

    /// Returns `true` if all these blocks are in one run, or in the run that is being written.
    pub(super) fn holds(&self, block: u64, end: u64, writing: bool) -> bool {
        let (first, n) = self.in_flight;
        if writing && first <= block && end <= first + u64::from(n) {
            return true;
        }
        self.runs.range(..=block).next_back().is_some_and(|(b, n)| b + u64::from(*n) >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The runs contain exactly the blocks that were added and not removed.
        #[test]
        fn runs_are_a_set_of_blocks(
            steps in prop::collection::vec((any::<bool>(), 0_u64..200, 1_u32..30), 1..80),
        ) {
            let (mut d, mut set) = (Dirty::default(), BTreeSet::new());
            for (add, block, n) in steps {
                let blocks = block..block + u64::from(n);
                if add {
                    d.add(block, n, 64);
                    set.extend(blocks);
                } else {
                    d.remove(block, n);
                    set.retain(|b| !blocks.contains(b));
                }
                let all: Vec<u64> =
                    d.runs.iter().flat_map(|(&b, &n)| b..b + u64::from(n)).collect();
                prop_assert_eq!(&all, &set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(d.sectors, set.len() as u64);
            }
        }
    }
}
