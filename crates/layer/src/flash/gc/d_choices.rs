//! d-choices cleaning: the best of a few blocks drawn at random.

use super::GcPolicy;
use crate::flash::{BlockTable, BlockUse};

/// Blocks that are compared for one victim.
const D: u32 = 10;

/// The fewest valid pages among [`D`] sealed blocks drawn at random.
#[derive(Clone, Default, Debug)]
pub struct DChoices {
    state: u64,
}

impl DChoices {
    /// A linear congruential generator (Knuth, MMIX): runs stay reproducible.
    fn random(&mut self, below: u32) -> u32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) % u64::from(below)) as u32
    }
}

impl GcPolicy for DChoices {
    fn victim(&mut self, unit: u32, blocks: &BlockTable) -> Option<u32> {
        let all = blocks.of_unit(unit);
        let usable = |b: &u32| {
            blocks.state(*b) == BlockUse::Sealed && u32::from(blocks.valid(*b)) < blocks.pages_per_block()
        };
        let drawn: Vec<u32> = (0..D).map(|_| all.start + self.random(blocks.blocks_per_unit())).collect();
        let best = drawn.into_iter().filter(usable).min_by_key(|&b| blocks.valid(b));
        // None of those drawn can be cleaned: the first that can.
        best.or_else(|| blocks.of_unit(unit).find(|b| usable(b)))
    }
}
