//! Static wear leveling with a threshold: without it, data that is never written would keep its
//! block at a low erase count.

use super::{WearPolicy, dynamic};
use crate::flash::{BlockState, BlockTable};
use std::collections::VecDeque;

/// Default of the tolerated spread of erase counts within a unit, in cycles. An assumption, since
/// the paper gives no value: small against 10^5 cycles, large against the noise of greedy garbage
/// collection.
const THRESHOLD: u32 = 64;

/// Dynamic leveling, plus moves of cold data. The scan for the least worn block runs once in
/// `SCAN_EVERY` erases (or `threshold` erases, if that is fewer), so that its cost is small for any
/// number of blocks.
#[derive(Clone, Debug)]
pub struct Static {
    threshold: u32,
    since: u32,
}

const SCAN_EVERY: u32 = 64;

impl Default for Static {
    fn default() -> Self {
        Static { threshold: THRESHOLD, since: 0 }
    }
}

impl WearPolicy for Static {
    fn take(&mut self, free: &mut VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        let at = dynamic::select_free(free, cold, erases)?;
        free.remove(at)
    }

    fn relocate(&mut self, unit: u32, blocks: &BlockTable, erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        self.since += 1;
        if self.since < SCAN_EVERY.min(self.threshold) {
            return None;
        }
        self.since = 0;
        // All blocks count for the maximum; only a sealed one can be relocated.
        let (mut most, mut least) = (0, None::<(u32, u32)>);
        for block in blocks.of_unit(unit) {
            if blocks.state(block) == BlockState::Bad {
                continue;
            }
            let e = erases(block);
            most = most.max(e);
            if blocks.state(block) == BlockState::Sealed && least.is_none_or(|(l, _)| e < l) {
                least = Some((e, block));
            }
        }
        least.filter(|&(e, _)| most - e > self.threshold).map(|(_, b)| b)
    }

    fn set_threshold(&mut self, cycles: u32) {
        self.threshold = cycles.max(1);
    }
}
