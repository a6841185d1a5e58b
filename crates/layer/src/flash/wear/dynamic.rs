//! Dynamic wear leveling: wear decides which free block is used.

use super::WearPolicy;
use std::collections::VecDeque;

/// How many free blocks are compared: in steady state a pool is shorter, and a fresh one is even.
const WINDOW: usize = 64;

/// Hot data to the least worn free block, cold data to the most worn one.
#[derive(Clone, Default, Debug)]
pub struct Dynamic;

/// The place of the most (`cold`) or least worn block among the first free ones; the earliest of
/// equals.
pub(super) fn place(free: &VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<usize> {
    let candidates = free.iter().take(WINDOW).enumerate();
    let key = |&(at, &b): &(usize, &u32)| {
        let e = i64::from(erases(b));
        (if cold { -e } else { e }, at)
    };
    candidates.min_by_key(key).map(|(at, _)| at)
}

impl WearPolicy for Dynamic {
    fn take(&mut self, free: &mut VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        let at = place(free, cold, erases)?;
        free.remove(at)
    }
}
