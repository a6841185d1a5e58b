//! No wear leveling.

use super::{Leveler, Shape, StripeLocation, StripeMove};

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
    fn map(&self, stripe: u32) -> StripeLocation {
        StripeLocation { stripe, region: 0 }
    }

    fn step(&self, _region: u32) -> StripeMove {
        StripeMove { from: 0, to: 0, number: 0 }
    }

    fn number(&self, _region: u32) -> u64 {
        0
    }

    fn set_number(&mut self, _region: u32, _number: u64) {}
}
