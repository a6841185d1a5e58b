//! d-choices cleaning: the best of a few blocks drawn at random.

use super::GcPolicy;
use crate::flash::{BlockTable, BlockUse};
use frit_core::split_mix;

/// Blocks that are compared for one victim.
const D: u32 = 10;

/// The fewest valid pages among [`D`] sealed blocks drawn at random.
#[derive(Clone, Default, Debug)]
pub struct DChoices {
    /// State of the draws, which are the same in each run.
    state: u64,
}

impl GcPolicy for DChoices {
    fn victim(&mut self, unit: u32, blocks: &BlockTable) -> Option<u32> {
        let all = blocks.of_unit(unit);
        let usable = |b: &u32| {
            blocks.state(*b) == BlockUse::Sealed && u32::from(blocks.valid(*b)) < blocks.pages_per_block()
        };
        let of_unit = u64::from(blocks.blocks_per_unit());
        let drawn = (0..D).map(|_| all.start + (split_mix::next(&mut self.state) % of_unit) as u32);
        let best = drawn.filter(usable).min_by_key(|&b| blocks.valid(b));
        // None of those drawn can be cleaned: the first that can.
        best.or_else(|| blocks.of_unit(unit).find(|b| usable(b)))
    }
}
