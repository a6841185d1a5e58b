//! No wear leveling.

use super::{Leveler, Shape, StripeLocation, StripeMove};
use crate::numbers::{LogicalStripe, PhysicalStripe, RegionId};

/// Identity mapping: nothing moves.
#[derive(Clone, Debug)]
pub struct NoLeveling {
    stripes: u32,
}

impl NoLeveling {
    pub(super) fn new(shape: &Shape) -> NoLeveling {
        NoLeveling { stripes: shape.stripes() }
    }
}

impl Leveler for NoLeveling {
    fn logical(&self) -> u32 {
        self.stripes
    }

    fn physical(&self) -> u32 {
        self.stripes
    }

    fn regions(&self) -> u32 {
        0
    }

    fn region_stripes(&self) -> u32 {
        self.stripes
    }

    #[inline]
    fn map(&self, stripe: LogicalStripe) -> StripeLocation {
        StripeLocation { stripe: PhysicalStripe(stripe.0), region: RegionId(0) }
    }

    fn step(&self, _region: RegionId) -> StripeMove {
        StripeMove { from: PhysicalStripe(0), to: PhysicalStripe(0), number: 0 }
    }

    fn number(&self, _region: RegionId) -> u64 {
        0
    }

    fn set_number(&mut self, _region: RegionId, _number: u64) {}
}
