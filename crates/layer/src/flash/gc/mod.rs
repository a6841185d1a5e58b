//! Garbage-collection policies: they choose the victims.
//!
//! A policy is one file beside this one that implements [`GcPolicy`], and one line in [`Gc`]. Its
//! name in a stack file is the variant's name in kebab case. `docs/guide/extending.md` walks
//! through an example.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod off;

use super::BlockTable;
use cost_benefit::CostBenefit;
use d_choices::DChoices;
use enum_dispatch::enum_dispatch;
use fifo::Fifo;
use greedy::Greedy;
use off::Off;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Chooses victims. Only [`GcPolicy::victim`] is required. The other methods let a policy maintain
/// an index, so that it need not scan all blocks.
#[enum_dispatch]
pub trait GcPolicy {
    /// Returns the best block of `unit` to collect now, among those in state `Sealed`. `None` if no
    /// block has an invalid page, or if garbage collection is switched off.
    fn victim(&mut self, unit: u32, blocks: &BlockTable) -> Option<u32>;

    /// Resets the policy for these blocks, none of which is sealed.
    fn reset(&mut self, _blocks: &BlockTable) {}

    /// Records that a block is full, and a candidate from now on.
    fn sealed(&mut self, _block: u32, _blocks: &BlockTable) {}

    /// Records that a page of a sealed block became invalid (its valid count is already lower by
    /// one).
    #[inline]
    fn invalidated(&mut self, _block: u32, _blocks: &BlockTable) {}

    /// Records that a sealed block is no longer a candidate: it was chosen as victim, or taken for
    /// another reason.
    fn removed(&mut self, _block: u32, _blocks: &BlockTable) {}
}

/// All garbage-collection policies.
#[enum_dispatch(GcPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Gc {
    /// Chooses the block with the fewest valid pages.
    Greedy,
    /// Chooses the block with the best ratio of space gained × age to the cost of copying
    /// (Kawaguchi et al. 1995).
    CostBenefit,
    /// Chooses the block that was sealed first.
    Fifo,
    /// Chooses the block with the fewest valid pages among ten drawn at random (Van Houdt 2013).
    DChoices,
    /// No garbage collection (HFSL paper, section 2.7.3).
    Off,
}
