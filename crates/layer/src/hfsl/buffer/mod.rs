//! Buffer policies: they choose the next victim in PCM. A policy is one file, and one line in
//! [`PcmBuffer`].
//!
//! Pages are identified by their descriptor number, which is dense, so a policy can keep linked
//! lists in plain arrays.

mod clock;
mod lru;
#[cfg(test)]
mod tests;

use clock::Clock;
use enum_dispatch::enum_dispatch;
use frit_core::Lpn;
use lru::Lru;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Orders the pages of a PCM region for eviction.
#[enum_dispatch]
pub trait BufferPolicy {
    /// Resets the policy. All descriptor numbers will be below `descriptors`.
    fn reset(&mut self, descriptors: u32);

    /// Records that a page was admitted.
    fn admitted(&mut self, desc: u32, lpn: Lpn);

    /// Records that a page was written again.
    fn touched(&mut self, desc: u32);

    /// Records that a page was removed.
    fn removed(&mut self, desc: u32, lpn: Lpn);

    /// Returns the next victim. It stays in the buffer until `removed` is called.
    fn victim(&mut self) -> Option<u32>;

    /// Returns the next victim that is not hot, or the next victim if all pages are hot.
    ///
    /// A page for which `hot` is `true` has to stay hot until the next call of `cooled`. The policy
    /// therefore asks for it once, and searches O(1) pages per write on average.
    fn coldest(&mut self, hot: &mut dyn FnMut(u32) -> bool) -> Option<u32>;

    /// Records that pages that were hot may be cold now.
    fn cooled(&mut self);

    /// Returns at most `most` pages that follow `lpn` without a gap and can be destaged together
    /// with it. They go to different channels, so their programs overlap.
    fn followers(&self, _lpn: Lpn, _most: u32) -> Vec<u32> {
        Vec::new()
    }
}

/// All buffer policies.
#[enum_dispatch(BufferPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum PcmBuffer {
    /// Evicts the least recently written page; a balanced tree by address finds its neighbours (the
    /// paper, section 2.6.4).
    Lru,
    /// Evicts in CLOCK order (second chance).
    Clock,
}
