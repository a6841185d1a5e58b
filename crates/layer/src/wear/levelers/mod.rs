//! All levelers.

mod none;
mod randomized_start_gap;
mod round_robin;
mod security_refresh;
mod sfc;
mod start_gap;

use super::{Shape, WearConfig};
use enum_dispatch::enum_dispatch;
use frit_core::Result;
use none::NoLeveling;
use randomized_start_gap::RandomizedStartGap;
use round_robin::RoundRobin;
use security_refresh::SecurityRefresh;
use sfc::Sfc;
use start_gap::StartGap;
use strum::{EnumDiscriminants, EnumIter, EnumString, IntoStaticStr, VariantNames};

/// Where a logical stripe lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The physical stripe.
    pub stripe: u32,
    /// The region that it belongs to: who counts its writes.
    pub region: u32,
}

/// The next change of a region: a copy, after which the region's number is another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The physical stripe whose content moves.
    pub from: u32,
    /// The physical stripe that it moves to, where nothing lives.
    pub to: u32,
    /// The region's number from then on: larger than the one before.
    pub number: u64,
}

/// A mapping of stripes that changes by single copies.
#[enum_dispatch]
pub trait Leveler {
    /// Logical stripes.
    fn logical(&self) -> u32;

    /// One past the last physical stripe that it uses.
    fn physical(&self) -> u32;

    /// Regions, each with a number of its own; none when nothing ever moves.
    fn regions(&self) -> u32;

    /// Physical stripes of a region.
    fn region_stripes(&self) -> u32;

    /// Where a logical stripe lies now. The stripe is below [`Leveler::logical`].
    fn map(&self, stripe: u32) -> Place;

    /// The next change of a region.
    fn step(&self, region: u32) -> Step;

    /// The number of a region: 0 at first.
    fn number(&self, region: u32) -> u64;

    /// Sets the number of a region: after the copy of its step, or when it comes back after a stop.
    fn set_number(&mut self, region: u32, number: u64);
}

/// All levelers.
#[enum_dispatch(Leveler)]
#[derive(Clone, Debug, EnumDiscriminants)]
#[strum_discriminants(
    name(LevelerKind),
    doc = "Which leveler, by its name in kebab case.",
    derive(EnumString, EnumIter, VariantNames, IntoStaticStr, Hash),
    strum(serialize_all = "kebab-case")
)]
pub enum Levelers {
    /// Nothing moves.
    #[strum_discriminants(strum(serialize = "none"))]
    #[strum_discriminants(doc = "Nothing moves.")]
    NoLeveling,
    /// Start-gap in regions of consecutive stripes (Qureshi et al., MICRO 2009).
    #[strum_discriminants(doc = "Start-gap in regions of consecutive stripes.")]
    StartGap,
    /// Start-gap behind a fixed permutation of all stripes (the same paper, section 5).
    #[strum_discriminants(doc = "Start-gap behind a fixed permutation of all stripes.")]
    RandomizedStartGap,
    /// Stripes round over ranks, then banks, start-gap in each bank (HALO paper, section V.B).
    #[strum_discriminants(doc = "Stripes round over ranks, then banks, start-gap in each bank.")]
    RoundRobin,
    /// Cubes filled along a space-filling curve (HALO paper, section IV).
    #[strum_discriminants(doc = "Stripes round over cubes, each filled along a space-filling curve.")]
    Sfc,
    /// Regions that are remapped by keys, stripe by stripe (Seong et al., ISCA 2010).
    #[strum_discriminants(doc = "Regions remapped by random keys, stripe by stripe.")]
    SecurityRefresh,
}

impl Levelers {
    /// The leveler that a configuration names, over a device of this shape.
    ///
    /// # Errors
    /// Parameters that it cannot use with this shape.
    pub fn new(config: &WearConfig, shape: &Shape) -> Result<Levelers> {
        Ok(match config.leveler {
            LevelerKind::NoLeveling => NoLeveling::new(shape).into(),
            LevelerKind::StartGap => StartGap::new(config, shape)?.into(),
            LevelerKind::RandomizedStartGap => RandomizedStartGap::new(config, shape)?.into(),
            LevelerKind::RoundRobin => RoundRobin::new(shape).into(),
            LevelerKind::Sfc => Sfc::new(config, shape)?.into(),
            LevelerKind::SecurityRefresh => SecurityRefresh::new(config, shape)?.into(),
        })
    }
}
