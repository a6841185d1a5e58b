//! Round robin (HALO paper, section V.B, "RR"): stripes are distributed first over ranks, then over
//! the banks of a rank. In each bank they move as with start-gap.

use super::{Leveler, Shape, StripeLocation, StripeMove};
use crate::gaps::GapRegisters;
use crate::numbers::{LogicalStripe, PhysicalStripe, RegionId};

/// Distributes stripes over banks; each bank is a region.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    shape: Shape,
    gaps: GapRegisters,
}

impl RoundRobin {
    pub(super) fn new(shape: &Shape) -> RoundRobin {
        RoundRobin { shape: *shape, gaps: GapRegisters::new(shape.all_banks(), shape.bank_stripes - 1) }
    }
}

impl Leveler for RoundRobin {
    fn logical(&self) -> u32 {
        self.gaps.regions() * self.gaps.n()
    }

    fn physical(&self) -> u32 {
        self.shape.stripes()
    }

    fn regions(&self) -> u32 {
        self.gaps.regions()
    }

    fn region_stripes(&self) -> u32 {
        self.shape.bank_stripes
    }

    #[inline]
    fn map(&self, stripe: LogicalStripe) -> StripeLocation {
        let (rank, row) = (stripe.0 % self.shape.ranks, stripe.0 / self.shape.ranks);
        let (bank, offset) = (row % self.shape.banks, row / self.shape.banks);
        let region = RegionId(rank * self.shape.banks + bank);
        StripeLocation { stripe: self.shape.at(rank, bank, self.gaps.map(region, offset)), region }
    }

    fn step(&self, region: RegionId) -> StripeMove {
        let base = PhysicalStripe(region.0 * self.shape.bank_stripes);
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
