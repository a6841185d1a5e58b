//! The next request for a bus of each unit, ordered by time.

use frit_core::Nanos;
use std::hint::select_unpredictable;

/// The key of a unit without a request.
const NEVER: u128 = u128::MAX;

/// Bits of a key for the position, and for the number of the command.
const POSITION_BITS: u32 = 16;
const NUMBER_BITS: u32 = 48;

/// A winner tree (Knuth, The Art of Computer Programming 3, section 5.4.1) over at most one event
/// for each position. The order is by time, and at equal times by the number of the command.
///
/// A unit has at most one phase that asks for its bus, so the tree never grows, and an update
/// replaces one path from a leaf to the root without a branch that depends on the data.
#[derive(Clone, Debug)]
pub(super) struct AskTree {
    /// Key of the winner of each node. The children of node `n` are `2n` and `2n + 1`; the leaves
    /// are the second half.
    keys: Box<[u128]>,
    leaves: usize,
}

impl AskTree {
    /// Creates a tree for this number of positions, at most 65 536.
    pub(super) fn new(positions: usize) -> AskTree {
        let leaves = positions.next_power_of_two().max(2);
        AskTree { keys: vec![NEVER; 2 * leaves].into_boxed_slice(), leaves }
    }

    /// Sets the event of a position. `number` orders events of the same time.
    #[inline]
    pub(super) fn set(&mut self, position: usize, at: Nanos, number: u64) {
        let low = (number << POSITION_BITS) | position as u64;
        self.update(position, u128::from(at.0) << (POSITION_BITS + NUMBER_BITS) | u128::from(low));
    }

    /// Removes the event of a position.
    #[inline]
    pub(super) fn clear(&mut self, position: usize) {
        self.update(position, NEVER);
    }

    #[inline]
    fn update(&mut self, position: usize, key: u128) {
        let mut node = self.leaves + position;
        let mut winner = key;
        self.keys[node] = key;
        while node > 1 {
            winner = smaller(winner, self.keys[node ^ 1]);
            node /= 2;
            self.keys[node] = winner;
        }
    }

    /// Time of the first event; [`Nanos::MAX`] if there is none.
    #[inline]
    pub(super) fn first_time(&self) -> Nanos {
        Nanos((self.keys[1] >> (POSITION_BITS + NUMBER_BITS)) as u64)
    }

    /// Returns `true` if the first event has number 0 and a position below `positions`.
    #[inline]
    pub(super) fn first_is_end(&self, positions: usize) -> bool {
        (self.keys[1] as u64) < positions as u64
    }

    /// Position of the first event, if there is an event.
    #[inline]
    pub(super) fn first(&self) -> usize {
        self.keys[1] as usize & ((1 << POSITION_BITS) - 1)
    }
}

/// Returns the smaller key without a branch: either is equally likely.
#[inline]
fn smaller(a: u128, b: u128) -> u128 {
    let halves = |key: u128| ((key >> 64) as u64, key as u64);
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let less = (b_high < a_high) | ((b_high == a_high) & (b_low < a_low));
    let high = select_unpredictable(less, b_high, a_high);
    let low = select_unpredictable(less, b_low, a_low);
    u128::from(high) << 64 | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn first_is_the_minimum_by_time_and_number(
            sets in prop::collection::vec((0usize..13, prop::option::weighted(0.7, 0u64..50)), 1..120)
        ) {
            let mut tree = AskTree::new(13);
            let mut events = std::collections::BTreeMap::new();
            prop_assert_eq!(tree.first_time(), Nanos::MAX);
            for (number, (position, at)) in sets.into_iter().enumerate() {
                if let Some(at) = at {
                    tree.set(position, Nanos(at), number as u64);
                    events.insert(position, (at, number));
                } else {
                    tree.clear(position);
                    events.remove(&position);
                }
                match events.iter().map(|(&p, &(at, number))| (at, number, p)).min() {
                    None => prop_assert_eq!(tree.first_time(), Nanos::MAX),
                    Some((at, _, position)) => {
                        prop_assert_eq!((tree.first_time().0, tree.first()), (at, position));
                    }
                }
            }
        }
    }
}
