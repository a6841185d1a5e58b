//! Placement by the host's hints alone.

use super::{PlacementPolicy, WriteView};

/// Sends writes with the metadata hint to PCM; size and heat have no effect.
#[derive(Clone, Copy, Default, Debug)]
pub struct Hint;

impl PlacementPolicy for Hint {
    fn to_pcm(&self, write: &WriteView) -> bool {
        write.metadata
    }
}
