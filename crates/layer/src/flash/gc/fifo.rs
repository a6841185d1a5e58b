//! FIFO (cyclic) garbage collection: victims are taken in the order in which blocks were sealed.

use super::GcPolicy;
use crate::flash::{BlockTable, BlockUse};
use frit_core::convert::to_usize;
use std::collections::VecDeque;

/// Chooses the block that was sealed first. A fully valid block is skipped and goes to the end of
/// the queue, since collecting it would gain nothing.
#[derive(Clone, Default, Debug)]
pub struct Fifo {
    queues: Vec<VecDeque<u32>>,
    /// The last victim, which is no longer in its queue.
    taken: Option<u32>,
}

impl GcPolicy for Fifo {
    fn reset(&mut self, blocks: &BlockTable) {
        self.queues = vec![VecDeque::new(); to_usize(blocks.count() / blocks.blocks_per_unit().max(1))];
    }

    fn sealed(&mut self, block: u32, blocks: &BlockTable) {
        self.queues[to_usize(blocks.unit_of(block))].push_back(block);
    }

    fn victim(&mut self, unit: u32, blocks: &BlockTable) -> Option<u32> {
        let queue = &mut self.queues[to_usize(unit)];
        for _ in 0..queue.len() {
            let block = queue.pop_front()?;
            match blocks.state(block) {
                BlockUse::Sealed if u32::from(blocks.valid(block)) < blocks.pages_per_block() => {
                    self.taken = Some(block);
                    return Some(block);
                }
                BlockUse::Sealed => queue.push_back(block),
                _ => {}
            }
        }
        None
    }

    fn removed(&mut self, block: u32, blocks: &BlockTable) {
        if self.taken.take() == Some(block) {
            return;
        }
        // A block taken by wear leveling must leave the queue: it may be sealed again before its
        // old position is reached.
        let queue = &mut self.queues[to_usize(blocks.unit_of(block))];
        if let Some(at) = queue.iter().position(|&b| b == block) {
            queue.remove(at);
        }
    }
}
