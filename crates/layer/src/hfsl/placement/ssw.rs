//! Placement by request size (HFSL paper, section 2.6.1 a).

use super::{PlacementPolicy, WriteView};

/// Sends small writes, and metadata of any size, to PCM.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ssw;

impl PlacementPolicy for Ssw {
    #[inline]
    fn to_pcm(&self, write: &WriteView) -> bool {
        write.metadata || write.is_small()
    }
}
