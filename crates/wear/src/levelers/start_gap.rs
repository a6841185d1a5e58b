//! Start-gap in regions of consecutive stripes (Qureshi et al., MICRO 2009, section 6.3: regions).

use super::{Leveler, Shape, StripeLocation, StripeMove, WearConfig};
use crate::gaps::GapRegisters;
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
    fn map(&self, stripe: u32) -> StripeLocation {
        let (region, offset) = (stripe / self.gaps.n(), stripe % self.gaps.n());
        StripeLocation { stripe: region * (self.gaps.n() + 1) + self.gaps.map(region, offset), region }
    }

    fn step(&self, region: u32) -> StripeMove {
        let base = region * self.region_stripes();
        let (from, to) = self.gaps.step(region);
        StripeMove { from: base + from, to: base + to, number: self.gaps.moves(region) + 1 }
    }

    fn number(&self, region: u32) -> u64 {
        self.gaps.moves(region)
    }

    fn set_number(&mut self, region: u32, number: u64) {
        self.gaps.set_moves(region, number);
    }
}
