//! No wear leveling.

use super::WearPolicy;
use std::collections::VecDeque;

/// Takes the block that was freed first.
#[derive(Clone, Default, Debug)]
pub struct None;

impl WearPolicy for None {
    fn take(&mut self, free: &mut VecDeque<u32>, _: bool, _: &dyn Fn(u32) -> u32) -> Option<u32> {
        free.pop_front()
    }
}
