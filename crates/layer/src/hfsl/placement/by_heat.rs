//! Placement by heat: frequently written pages go to PCM, which endures more writes than NAND.

use super::{PlacementPolicy, WriteView};

/// Sends hot pages to PCM, and metadata, which is usually hot.
#[derive(Clone, Copy, Default, Debug)]
pub struct ByHeat;

impl PlacementPolicy for ByHeat {
    fn to_pcm(&self, write: &WriteView) -> bool {
        write.metadata || (write.hot && !write.cold)
    }
}
