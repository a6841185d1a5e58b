//! Which writes are for PCM as storage. A policy is one file, and one line in [`Placement`].

mod by_heat;
mod hint;
mod ssw;

use by_heat::ByHeat;
use enum_dispatch::enum_dispatch;
use hint::Hint;
use ssw::Ssw;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// What a placement policy knows of a write.
#[derive(Clone, Copy, Debug)]
pub struct WriteView {
    /// Size of the host's request, in bytes.
    pub bytes: u64,
    /// Threshold of small writes (SSW), in bytes.
    pub ssw: u64,
    /// Whether a request of exactly SSW bytes is small.
    pub inclusive: bool,
    /// File-system metadata, by the host's hint.
    pub metadata: bool,
    /// Hot by the heat module or by hint.
    pub hot: bool,
    /// Cold by hint.
    pub cold: bool,
}

impl WriteView {
    /// Whether the request is small.
    #[inline]
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.bytes < self.ssw || (self.inclusive && self.bytes == self.ssw)
    }
}

/// Decides which writes are for PCM.
#[enum_dispatch]
pub trait PlacementPolicy {
    /// Whether the write is for PCM as storage.
    fn to_pcm(&self, write: &WriteView) -> bool;
}

/// All placement policies.
#[enum_dispatch(PlacementPolicy)]
#[derive(Clone, Copy, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Placement {
    /// Small writes and metadata (the paper, section 2.6.1 a).
    Ssw,
    /// Hot pages and metadata.
    #[strum(serialize = "heat")]
    ByHeat,
    /// What the host's hints say, and nothing else.
    Hint,
}
