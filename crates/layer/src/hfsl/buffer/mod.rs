//! Which page leaves PCM next. A policy is one file, and one line in [`Buffer`].
//!
//! Pages are known by the number of their descriptor, which is dense, so a policy can thread lists
//! through plain arrays.

mod clock;
mod lru;

use clock::Clock;
use enum_dispatch::enum_dispatch;
use frit_core::Lpn;
use lru::Lru;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Orders the pages of a PCM region for eviction.
#[enum_dispatch]
pub trait BufferPolicy {
    /// Forget everything; descriptors will be below `descriptors`.
    fn reset(&mut self, descriptors: u32);

    /// A page came in.
    fn admitted(&mut self, desc: u32, lpn: Lpn);

    /// A page was written again.
    fn touched(&mut self, desc: u32);

    /// A page left.
    fn removed(&mut self, desc: u32, lpn: Lpn);

    /// The page to leave next; it stays until `removed`.
    fn victim(&mut self) -> Option<u32>;

    /// Pages that follow `lpn` without a gap and could leave with it, at most `most`: they go to
    /// different channels and so leave at the same time.
    fn followers(&self, _lpn: Lpn, _most: u32) -> Vec<u32> {
        Vec::new()
    }
}

/// All buffer policies.
#[enum_dispatch(BufferPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Buffer {
    /// Least recently written, with a balanced tree by address (the paper, section 2.6.4).
    Lru,
    /// Second chance.
    Clock,
}
