//! Dynamic wear leveling: the choice of a free block depends on its wear.

use super::WearPolicy;
use std::collections::VecDeque;

/// Number of free blocks that are compared. In the steady state a pool has fewer; in a new pool all
/// blocks are equal.
const WINDOW: usize = 64;

/// Takes the least worn free block for hot data, and the most worn one for cold data.
#[derive(Clone, Default, Debug)]
pub struct Dynamic;

/// Position of the most (`cold`) or least worn block among the first free ones; the first of
/// several equals.
pub(super) fn select_free(free: &VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<usize> {
    let candidates = free.iter().take(WINDOW).enumerate();
    let key = |&(at, &b): &(usize, &u32)| {
        let e = i64::from(erases(b));
        (if cold { -e } else { e }, at)
    };
    candidates.min_by_key(key).map(|(at, _)| at)
}

impl WearPolicy for Dynamic {
    fn take(&mut self, free: &mut VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        let at = select_free(free, cold, erases)?;
        free.remove(at)
    }
}
