//! Pacing of garbage collection: the copies that a write requires, and those in idle time.
//!
//! A policy is one file beside this one that implements [`PacingPolicy`], and one line in
//! [`Pacing`]. Its name in a stack file is the variant's name in kebab case. All policies copy the
//! same pages of the same victims; they differ in the time at which they do.

mod all_at_once;
mod share;
mod token;

use all_at_once::AllAtOnce;
use enum_dispatch::enum_dispatch;
use share::Share;
use strum::{EnumString, IntoStaticStr, VariantNames};
use token::Token;

/// A victim of a unit, and the free blocks of the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaceState {
    /// Valid pages of the victim when it was chosen.
    pub valid: u32,
    /// Pages gained by its collection; 0 for a block that is moved for another reason.
    pub gain: u32,
    /// Free blocks of the unit.
    pub free: usize,
    /// Free blocks from which writes pay for garbage collection.
    pub low: usize,
    /// Pages of a block.
    pub pages_per_block: u32,
}

/// Account of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PaceAccount {
    /// Copies that are owed, times the gain of the victim.
    debt: u32,
    /// Copies that were made before they were owed.
    ahead: u32,
    /// Pages that can be written before copies are due, in fractions of [`token::PAGE`].
    tokens: i64,
}

/// Background work in one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleCopies {
    /// So many copies in the next unit, which need not be idle.
    InTurn(u32),
    /// So many copies in each idle unit.
    InIdleUnits(u32),
}

/// Decides when the pages of victims are copied. Only [`PacingPolicy::due`] is required.
#[enum_dispatch]
pub trait PacingPolicy {
    /// Returns the copies that are due after `pages` pages were written into a unit with a victim.
    fn due(&self, account: &mut PaceAccount, pages: u32, state: PaceState) -> u32;

    /// Records that `copied` pages were copied for a write, of `due`.
    fn paid(&self, _account: &mut PaceAccount, _due: u32, _copied: u32, _state: PaceState) {}

    /// Records that pages were copied in the background.
    fn copied_in_background(&self, _account: &mut PaceAccount, _copied: u32, _state: PaceState) {}

    /// Records that a victim was chosen.
    fn started(&self, _account: &mut PaceAccount) {}

    /// Records a write into a unit that needs no garbage collection.
    #[inline]
    fn rested(&self, _account: &mut PaceAccount, _pages_per_block: u32) {}

    /// Returns the copies of a background step that is to have about `budget` of them.
    fn in_background(&self, budget: u32) -> IdleCopies {
        IdleCopies::InTurn(budget)
    }

    /// Blocks that a unit can fill before copies are due.
    fn burst_blocks(&self) -> usize {
        0
    }

    /// Sets the parameters of a policy that has them: the pages that can be written before copies are
    /// due, in blocks, and the share by which copies earn less if no block is free.
    fn set_limits(&mut self, _burst_blocks: f64, _urgency: f64) {}
}

/// All pacing policies.
#[enum_dispatch(PacingPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Pacing {
    /// Each written page pays for its share of the victim at once.
    Share,
    /// Copies earn tokens for writes, and writes wait for copies only without tokens (MQSim-E).
    Token,
    /// A victim is copied as a whole.
    AllAtOnce,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing::Share(Share)
    }
}
