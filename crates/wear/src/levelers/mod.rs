//! Levelers and their interface.

mod none;
mod randomized_start_gap;
mod round_robin;
mod security_refresh;
mod sfc;
mod start_gap;

use super::{Shape, WearConfig};
use crate::numbers::{LogicalStripe, PhysicalStripe, RegionId};
use enum_dispatch::enum_dispatch;
use frit_core::Result;
use none::NoLeveling;
use randomized_start_gap::RandomizedStartGap;
use round_robin::RoundRobin;
use security_refresh::SecurityRefresh;
use sfc::Sfc;
use start_gap::StartGap;
use strum::{EnumDiscriminants, EnumIter, EnumString, IntoStaticStr, VariantNames};

/// Location of a logical stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripeLocation {
    /// Physical stripe.
    pub stripe: PhysicalStripe,
    /// Region of the stripe, which counts its writes.
    pub region: RegionId,
}

/// Next step of a region: a copy of one stripe, after which the region has a new number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripeMove {
    /// Physical stripe whose contents are copied.
    pub from: PhysicalStripe,
    /// Physical stripe that receives the copy, and holds no data.
    pub to: PhysicalStripe,
    /// Number of the region after the step, larger than the one before.
    pub number: u64,
}

/// Mapping of stripes that changes by copies of single stripes.
#[enum_dispatch]
pub trait Leveler {
    /// Number of logical stripes.
    fn logical(&self) -> u32;

    /// One past the last physical stripe in use.
    fn physical(&self) -> u32;

    /// Number of regions, each with its own number; 0 if nothing ever moves.
    fn regions(&self) -> u32;

    /// Physical stripes of a region.
    fn region_stripes(&self) -> u32;

    /// Current location of a logical stripe, which must be below [`Leveler::logical`].
    fn map(&self, stripe: LogicalStripe) -> StripeLocation;

    /// Next step of a region.
    fn step(&self, region: RegionId) -> StripeMove;

    /// Number of a region, initially 0.
    fn number(&self, region: RegionId) -> u64;

    /// Sets the number of a region: after the copy of a step, or in a recovery.
    fn set_number(&mut self, region: RegionId, number: u64);
}

/// All levelers.
#[enum_dispatch(Leveler)]
#[derive(Clone, Debug, EnumDiscriminants)]
#[strum_discriminants(
    name(LevelerKind),
    doc = "Name of a leveler, in kebab case.",
    derive(EnumString, EnumIter, VariantNames, IntoStaticStr, Hash),
    strum(serialize_all = "kebab-case")
)]
pub enum Levelers {
    /// No leveling: nothing moves.
    #[strum_discriminants(strum(serialize = "none"))]
    #[strum_discriminants(doc = "Nothing moves.")]
    NoLeveling,
    /// Start-gap in regions of consecutive stripes (Qureshi et al., MICRO 2009).
    #[strum_discriminants(doc = "Start-gap in regions of consecutive stripes.")]
    StartGap,
    /// Start-gap behind a fixed permutation of all stripes (the same paper, section 5).
    #[strum_discriminants(doc = "Start-gap behind a fixed permutation of all stripes.")]
    RandomizedStartGap,
    /// Stripes in round-robin order over ranks, then banks; start-gap in each bank (HALO paper,
    /// section V.B).
    #[strum_discriminants(doc = "Stripes round over ranks, then banks, start-gap in each bank.")]
    RoundRobin,
    /// Cubes filled along a space-filling curve (HALO paper, section IV).
    #[strum_discriminants(doc = "Stripes round over cubes, each filled along a space-filling curve.")]
    Sfc,
    /// Regions remapped by random keys, stripe by stripe (Seong et al., ISCA 2010).
    #[strum_discriminants(doc = "Regions remapped by random keys, stripe by stripe.")]
    SecurityRefresh,
}

impl Levelers {
    /// Creates the leveler that a configuration selects, for a device of this shape.
    ///
    /// # Errors
    /// Parameters that the leveler cannot use with this shape.
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
