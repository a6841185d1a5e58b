//! Placement by heat: what is written again soon wears PCM, which bears it, instead of NAND.

use super::{PlacementPolicy, WriteView};

/// Hot pages, and metadata, which is hot by nature.
#[derive(Clone, Copy, Default, Debug)]
pub struct ByHeat;

impl PlacementPolicy for ByHeat {
    fn to_pcm(&self, write: &WriteView) -> bool {
        write.metadata || (write.hot && !write.cold)
    }
}
