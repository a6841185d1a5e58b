//! Set of block ranges with a bounded size.

/// Maximum number of ranges before all are merged into one.
const RANGES_MAX: usize = 32;

/// Blocks of a file as a few ranges. It contains all blocks added, and others as well if ranges
/// were merged.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct BlockRanges(Vec<(u64, u64)>);

impl BlockRanges {
    /// Returns `true` if there are no ranges.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds blocks `from..to`.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        if let Some(last) = self.0.last_mut().filter(|last| last.0 <= from && from <= last.1) {
            // A sequential writer extends the last range.
            last.1 = last.1.max(to);
            return;
        }
        let (mut from, mut to) = (from, to);
        self.0.retain(|&(a, b)| {
            let apart = b < from || to < a;
            if !apart {
                (from, to) = (from.min(a), to.max(b));
            }
            apart
        });
        self.0.push((from, to));
        if self.0.len() > RANGES_MAX {
            // Too many ranges: they are merged into one, which may contain further blocks.
            let all = self.0.iter().fold((u64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
            self.0 = vec![all];
        }
    }

    /// Removes and returns all ranges.
    pub(crate) fn take(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_added_is_in(adds in prop::collection::vec((0u64..500, 0u64..9), 0..60)) {
            let mut ranges = BlockRanges::default();
            for &(from, len) in &adds {
                ranges.add(from, from + len);
            }
            prop_assert!(ranges.0.len() <= RANGES_MAX);
            prop_assert_eq!(ranges.is_empty(), adds.iter().all(|&(_, len)| len == 0));
            let taken = ranges.take();
            for block in adds.iter().flat_map(|&(from, len)| from..from + len) {
                prop_assert!(taken.iter().any(|&(a, b)| a <= block && block < b), "{block} in {taken:?}");
            }
            prop_assert!(ranges.is_empty());
        }
    }
}
