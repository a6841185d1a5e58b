//! Which block to clean next.
//!
//! A policy is one file beside this one that implements [`GcPolicy`], and one line in [`Gc`]: the
//! name in a stack file is the variant's in kebab case. `docs/extending.md` walks through one.

mod cost_benefit;
mod fifo;
mod greedy;
mod off;

use super::Blocks;
use cost_benefit::CostBenefit;
use enum_dispatch::enum_dispatch;
use fifo::Fifo;
use greedy::Greedy;
use off::Off;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Chooses victims. Only [`GcPolicy::victim`] has to be written; the other calls let a policy keep
/// an index so that it need not look at every block.
#[enum_dispatch]
pub trait GcPolicy {
    /// The best block of `unit` to clean now, among those in state `Sealed`, or `None` when cleaning
    /// is pointless (no block has an invalid page) or switched off.
    fn victim(&mut self, unit: u32, blocks: &Blocks) -> Option<u32>;

    /// Forget everything; there are these blocks, none sealed.
    fn reset(&mut self, _blocks: &Blocks) {}

    /// A block is full and may be cleaned from now on.
    fn sealed(&mut self, _block: u32, _blocks: &Blocks) {}

    /// A page of a sealed block became invalid (its valid count is already lower by one).
    #[inline]
    fn invalidated(&mut self, _block: u32, _blocks: &Blocks) {}

    /// A sealed block is no candidate any more: chosen as victim, or taken for another reason.
    fn removed(&mut self, _block: u32, _blocks: &Blocks) {}
}

/// All garbage-collection policies.
#[enum_dispatch(GcPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Gc {
    /// The fewest valid pages.
    Greedy,
    /// The best ratio of space gained × age to the cost of copying (Kawaguchi et al. 1995).
    CostBenefit,
    /// The block that was sealed first.
    Fifo,
    /// None: the module is switched off (HFSL paper, section 2.7.3).
    Off,
}
