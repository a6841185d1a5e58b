//! Which free block to use, and whether to move data that wears nothing.
//!
//! A policy is one file beside this one, and one line in [`Wear`].

mod dynamic;
mod none;
mod static_;

use super::Blocks;
use dynamic::Dynamic;
use enum_dispatch::enum_dispatch;
use none::None as NoLeveling;
use static_::Static;
use std::collections::VecDeque;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Levels the wear of NAND blocks.
#[enum_dispatch]
pub trait WearPolicy {
    /// Takes a block out of the pool of a unit for data that is cold or not. `erases` tells a block's
    /// erase count.
    fn take(&mut self, free: &mut VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<u32>;

    /// After a block of `unit` was erased: a sealed block whose data should be moved so that its
    /// block is used again, or nothing.
    fn relocate(&mut self, _unit: u32, _blocks: &Blocks, _erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        None
    }

    /// Sets the spread of erase counts that is tolerated, in cycles.
    fn set_threshold(&mut self, _cycles: u32) {}
}

/// All wear-leveling policies.
#[enum_dispatch(WearPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Wear {
    /// Free blocks are used in the order in which they became free.
    #[strum(serialize = "none")]
    NoLeveling,
    /// Hot data to the least worn free block, cold data to the most worn one (HFSL paper, 2.6.1 b).
    Dynamic,
    /// As dynamic; and when the spread of erase counts passes the threshold, the data of the least
    /// worn block is moved to the most worn one.
    Static,
}
