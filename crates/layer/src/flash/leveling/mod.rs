//! Wear-leveling policies of NAND: choice of the free block to write, and moves of cold data.
//!
//! A policy is one file beside this one, and one line in [`WearLeveling`].

mod dynamic;
mod none;
mod static_;

use super::BlockTable;
use dynamic::Dynamic;
use enum_dispatch::enum_dispatch;
use none::None as NoLeveling;
use static_::Static;
use std::collections::VecDeque;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Levels the wear of NAND blocks.
#[enum_dispatch]
pub trait WearPolicy {
    /// Takes a block out of the free pool of a unit. `cold` describes the data to be written;
    /// `erases` returns the erase count of a block.
    fn take(&mut self, free: &mut VecDeque<u32>, cold: bool, erases: &dyn Fn(u32) -> u32) -> Option<u32>;

    /// Returns a sealed block whose data should be moved, so that the block is used again. Called
    /// after a block of `unit` was erased.
    fn relocate(&mut self, _unit: u32, _blocks: &BlockTable, _erases: &dyn Fn(u32) -> u32) -> Option<u32> {
        None
    }

    /// Sets the tolerated spread of erase counts, in cycles.
    fn set_threshold(&mut self, _cycles: u32) {}
}

/// All wear-leveling policies.
#[enum_dispatch(WearPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum WearLeveling {
    /// Takes free blocks in the order in which they became free.
    #[strum(serialize = "none")]
    NoLeveling,
    /// Takes the least worn free block for hot data, the most worn one for cold data (HFSL paper,
    /// 2.6.1 b).
    Dynamic,
    /// As `Dynamic`. In addition, when the spread of erase counts exceeds the threshold, the data
    /// of the least worn block is moved to the most worn free block.
    Static,
}
