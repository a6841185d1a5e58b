//! Placement by the host's word alone.

use super::{PlacementPolicy, WriteView};

/// Metadata by hint; sizes and heat do not count.
#[derive(Clone, Copy, Default, Debug)]
pub struct Hint;

impl PlacementPolicy for Hint {
    fn to_pcm(&self, write: &WriteView) -> bool {
        write.metadata
    }
}
