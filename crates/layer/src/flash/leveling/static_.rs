//! Static wear leveling with a threshold: without it, data that is never written would keep its
//! block at a low erase count.

use super::{WearPolicy, dynamic};
use crate::flash::{BlockTable, BlockUse};
use frit_core::convert::to_usize;
use std::collections::VecDeque;

/// Default of the tolerated spread of erase counts within a unit, in cycles. An assumption, since
/// the paper gives no value: small against 10^5 cycles, large against the noise of greedy garbage
/// collection.
const THRESHOLD: u32 = 64;

/// Dynamic leveling, plus moves of cold data. The scan for the least worn block of a unit runs once
/// in `SCAN_EVERY` erases of the unit (or `threshold` erases, if that is fewer), so that its cost is
/// small for any number of blocks.
#[derive(Clone, Debug)]
pub struct Static {
    threshold: u32,
    /// Erases since the last scan, for each unit. With one counter for all units, units that erase
    /// in turn would leave the scan to the same unit each time.
    since: Vec<u32>,
}

const SCAN_EVERY: u32 = 64;

impl Default for Static {
    fn default() -> Self {
        Static { threshold: THRESHOLD, since: Vec::new() }
    }
}

impl WearPolicy for Static {
    fn take(&mut self, free: &mut VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        let at = dynamic::select_free(free, cold, erases)?;
        free.remove(at)
    }

    fn relocate(&mut self, unit: u32, blocks: &BlockTable, erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        let unit_index = to_usize(unit);
        if self.since.len() <= unit_index {
            self.since.resize(unit_index + 1, 0);
        }
        let since = &mut self.since[unit_index];
        *since += 1;
        if *since < SCAN_EVERY.min(self.threshold) {
            return None;
        }
        *since = 0;
        // All blocks count for the maximum; only a sealed one can be relocated.
        let (mut most, mut least) = (0, None::<(u32, u32)>);
        for block in blocks.of_unit(unit) {
            // The blocks of the cache wear by its traffic, and hold no data for long.
            if blocks.state(block) == BlockUse::Bad || blocks.is_slc(block) {
                continue;
            }
            let e = erases(block);
            most = most.max(e);
            if blocks.state(block) == BlockUse::Sealed && least.is_none_or(|(l, _)| e < l) {
                least = Some((e, block));
            }
        }
        least.filter(|&(e, _)| most - e > self.threshold).map(|(_, b)| b)
    }

    fn set_threshold(&mut self, cycles: u32) {
        self.threshold = cycles.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_media::NandGeometry;

    #[test]
    fn every_unit_is_leveled_when_units_erase_in_turn() {
        // The number of units divides the period of the scan.
        let units = SCAN_EVERY / 4;
        let mut blocks = BlockTable::new(&NandGeometry {
            channels: units,
            blocks_per_plane: 2,
            pages_per_block: 4,
            ..crate::testing::TWO_UNITS
        });
        for row in &mut blocks.block {
            row.state = BlockUse::Sealed;
        }
        // The first block of each unit was never erased.
        let erases = |block: u32| if block.is_multiple_of(2) { 0 } else { 10 * THRESHOLD };
        let mut wear = Static::default();
        let mut moved = Vec::new();
        for _ in 0..SCAN_EVERY {
            moved.extend((0..units).filter_map(|unit| wear.relocate(unit, &blocks, &erases)));
        }
        assert_eq!(moved, (0..units).map(|unit| unit * 2).collect::<Vec<_>>());
    }
}
