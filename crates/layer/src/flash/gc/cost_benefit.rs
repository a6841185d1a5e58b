//! Cost-benefit garbage collection: Kawaguchi, Nishioka, Motoda: *A flash-memory based file
//! system*, USENIX 1995, section 4. The victim has the largest `age × (1 − u) / 2u`, where u is the
//! share of valid pages.

use super::GcPolicy;
use crate::flash::{BlockTable, BlockUse};

/// Chooses the block with the best ratio of benefit to cost. Scans all blocks of the unit: exact,
/// at about a nanosecond a block for each victim.
#[derive(Clone, Default, Debug)]
pub struct CostBenefit;

impl GcPolicy for CostBenefit {
    fn victim(&mut self, unit: u32, blocks: &BlockTable) -> Option<u32> {
        let pages = blocks.pages_per_block();
        let mut best = None;
        let mut best_score = -1.0f32;
        for block in blocks.of_unit(unit) {
            let valid = u32::from(blocks.valid(block));
            if blocks.state(block) != BlockUse::Sealed || valid == pages {
                continue;
            }
            if valid == 0 {
                return Some(block);
            }
            // The factor 1/2 is the same for all blocks and is left out.
            let score = (blocks.age(block) as f32 + 1.0) * (pages - valid) as f32 / valid as f32;
            if score > best_score {
                best_score = score;
                best = Some(block);
            }
        }
        best
    }
}
