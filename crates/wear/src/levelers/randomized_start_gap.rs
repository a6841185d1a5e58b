//! Start-gap behind a fixed permutation of all stripes (Qureshi et al., MICRO 2009, section 5):
//! stripes that are written together are in different regions.

use super::start_gap::StartGap;
use super::{Leveler, Shape, StripeLocation, StripeMove, WearConfig};
use crate::feistel::Feistel;
use crate::numbers::{LogicalStripe, RegionId};
use frit_core::Result;

/// Permutes addresses by a Feistel network, then applies start-gap in regions.
#[derive(Clone, Debug)]
pub struct RandomizedStartGap {
    order: Feistel,
    below: StartGap,
}

impl RandomizedStartGap {
    pub(super) fn new(config: &WearConfig, shape: &Shape) -> Result<RandomizedStartGap> {
        let below = StartGap::new(config, shape)?;
        Ok(RandomizedStartGap { order: Feistel::new(below.logical(), config.seed), below })
    }
}

impl Leveler for RandomizedStartGap {
    fn logical(&self) -> u32 {
        self.below.logical()
    }

    fn physical(&self) -> u32 {
        self.below.physical()
    }

    fn regions(&self) -> u32 {
        self.below.regions()
    }

    fn region_stripes(&self) -> u32 {
        self.below.region_stripes()
    }

    #[inline]
    fn map(&self, stripe: LogicalStripe) -> StripeLocation {
        self.below.map(LogicalStripe(self.order.map(stripe.0)))
    }

    fn step(&self, region: RegionId) -> StripeMove {
        self.below.step(region)
    }

    fn number(&self, region: RegionId) -> u64 {
        self.below.number(region)
    }

    fn set_number(&mut self, region: RegionId, number: u64) {
        self.below.set_number(region, number);
    }
}
