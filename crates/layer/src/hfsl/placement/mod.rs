//! Placement policies: they select the writes that go to PCM as storage. A policy is one file, and
//! one line in [`Placement`].

mod by_heat;
mod hint;
mod ssw;

use by_heat::ByHeat;
use enum_dispatch::enum_dispatch;
use hint::Hint;
use ssw::Ssw;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Properties of a write that a placement policy can use.
#[derive(Clone, Copy, Debug)]
pub struct WriteView {
    /// Size of the host's request, in bytes.
    pub bytes: u64,
    /// Threshold of small writes (SSW), in bytes.
    pub ssw: u64,
    /// `true` if a request of exactly SSW bytes is small.
    pub inclusive: bool,
    /// The write is file-system metadata, by the host's hint.
    pub metadata: bool,
    /// The page is hot, by the heat detector or by hint.
    pub hot: bool,
    /// The page is cold, by hint.
    pub cold: bool,
}

impl WriteView {
    /// Returns `true` if the request is small.
    #[inline]
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.bytes < self.ssw || (self.inclusive && self.bytes == self.ssw)
    }
}

/// Selects the writes that go to PCM.
#[enum_dispatch]
pub trait PlacementPolicy {
    /// Returns `true` if the write goes to PCM as storage.
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
    /// Metadata by the host's hints, and nothing else.
    Hint,
}
