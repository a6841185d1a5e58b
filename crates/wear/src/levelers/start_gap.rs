//! Start-gap in regions of consecutive stripes (Qureshi et al., MICRO 2009, section 6.3: regions).

use super::{Leveler, Shape, StripeLocation, StripeMove, WearConfig};
use crate::gaps::GapRegisters;
use crate::numbers::{LogicalStripe, PhysicalStripe, RegionId};
use frit_core::{Error, Result};

/// Maps regions of consecutive stripes, each with its own gap.
#[derive(Clone, Debug)]
pub struct StartGap {
    gaps: GapRegisters,
}

impl StartGap {
    pub(super) fn new(config: &WearConfig, shape: &Shape) -> Result<StartGap> {
        let region = if config.region_stripes == 0 { shape.bank_stripes } else { config.region_stripes };
        if region < 2 || region > shape.stripes() {
            let why = format!("has to be 2 to the {} stripes of the PCM, or 0 for a bank", shape.stripes());
            return Err(Error::param("region_stripes", config.region_stripes, why));
        }
        Ok(StartGap { gaps: GapRegisters::new(shape.stripes() / region, region - 1) })
    }
}

impl StartGap {
    /// Returns the first stripe of a region.
    #[inline]
    fn base(&self, region: RegionId) -> PhysicalStripe {
        PhysicalStripe(region.0 * (self.gaps.n() + 1))
    }
}

impl Leveler for StartGap {
    fn logical(&self) -> u32 {
        self.gaps.regions() * self.gaps.n()
    }

    fn physical(&self) -> u32 {
        self.gaps.regions() * self.region_stripes()
    }

    fn regions(&self) -> u32 {
        self.gaps.regions()
    }

    fn region_stripes(&self) -> u32 {
        self.gaps.n() + 1
    }

    #[inline]
    fn map(&self, stripe: LogicalStripe) -> StripeLocation {
        let (region, offset) = (RegionId(stripe.0 / self.gaps.n()), stripe.0 % self.gaps.n());
        StripeLocation { stripe: self.base(region).plus(self.gaps.map(region, offset)), region }
    }

    fn step(&self, region: RegionId) -> StripeMove {
        let base = self.base(region);
        let (from, to) = self.gaps.step(region);
        StripeMove { from: base.plus(from), to: base.plus(to), number: self.gaps.moves(region) + 1 }
    }

    fn number(&self, region: RegionId) -> u64 {
        self.gaps.moves(region)
    }

    fn set_number(&mut self, region: RegionId, number: u64) {
        self.gaps.set_moves(region, number);
    }
}
