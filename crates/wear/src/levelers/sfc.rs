//! Space-filling curve (HALO paper, section IV, equation 1): stripes are distributed in round-robin
//! order over cubes, which divide all banks along the stripe dimension. Inside a cube they move as
//! with start-gap, over the cube's positions in the order of a three-dimensional Hilbert curve. The
//! gap costs one stripe of each cube (of 2048 with the sizes of Table I).

use super::{Leveler, Shape, StripeLocation, StripeMove, WearConfig};
use crate::curve::Curve3;
use crate::gaps::GapRegisters;
use crate::numbers::{LogicalStripe, PhysicalStripe, RegionId};
use frit_core::convert::to_usize;
use frit_core::{Error, Result};

/// Distributes stripes over cubes; each cube is a region.
#[derive(Clone, Debug)]
pub struct Sfc {
    cubes: u32,
    gaps: GapRegisters,
    /// For each cube, the physical stripe at each position of the curve.
    places: Vec<PhysicalStripe>,
}

impl Sfc {
    pub(super) fn new(config: &WearConfig, shape: &Shape) -> Result<Sfc> {
        let cubes = config.cubes;
        let depth = shape.bank_stripes.checked_div(cubes).unwrap_or(0);
        if depth == 0 || depth * shape.all_banks() < 2 {
            let why = format!(
                "has to be at least 1, and at most the {} stripes of a bank: use fewer cubes, smaller stripes or \
                 more PCM",
                shape.bank_stripes
            );
            return Err(Error::param("cubes", cubes, why));
        }
        // With an odd depth there may be no continuous curve; then one stripe of each bank is left
        // unused.
        let curve_of = |depth| Ok((depth, Curve3::new([shape.ranks, shape.banks, depth])?));
        let (depth, curve) = match curve_of(depth) {
            Err(e) if depth < 2 => return Err(e),
            Err(_) => curve_of(depth - 1)?,
            found @ Ok(_) => found?,
        };
        let turns = if config.turn { shape.all_banks().min(cubes) } else { 1 };
        // Distance between the banks of two turns: as large as possible with different banks for
        // all turns.
        let apart = (shape.banks / turns.div_ceil(shape.ranks)).max(1);
        let place = |cube: u32, seq: u32| -> PhysicalStripe {
            let [rank, bank, stripe] = curve.at(seq);
            let turn = cube % turns;
            let rank = (rank + turn) % shape.ranks;
            let bank = (bank + turn / shape.ranks * apart) % shape.banks;
            shape.at(rank, bank, cube * depth + stripe)
        };
        let places = (0..cubes).flat_map(|c| (0..curve.len()).map(move |s| (c, s)));
        let places = places.map(|(c, s)| place(c, s)).collect();
        Ok(Sfc { cubes, gaps: GapRegisters::new(cubes, curve.len() - 1), places })
    }

    #[inline]
    fn place(&self, cube: RegionId, seq: u32) -> PhysicalStripe {
        self.places[to_usize(cube.0 * (self.gaps.n() + 1) + seq)]
    }
}

impl Leveler for Sfc {
    fn logical(&self) -> u32 {
        self.cubes * self.gaps.n()
    }

    fn physical(&self) -> u32 {
        self.places.iter().copied().max().map_or(0, |last| last.0 + 1)
    }

    fn regions(&self) -> u32 {
        self.cubes
    }

    fn region_stripes(&self) -> u32 {
        self.gaps.n() + 1
    }

    #[inline]
    fn map(&self, stripe: LogicalStripe) -> StripeLocation {
        let (cube, offset) = (RegionId(stripe.0 % self.cubes), stripe.0 / self.cubes);
        StripeLocation { stripe: self.place(cube, self.gaps.map(cube, offset)), region: cube }
    }

    fn step(&self, region: RegionId) -> StripeMove {
        let (from, to) = self.gaps.step(region);
        StripeMove {
            from: self.place(region, from),
            to: self.place(region, to),
            number: self.gaps.moves(region) + 1,
        }
    }

    fn number(&self, region: RegionId) -> u64 {
        self.gaps.moves(region)
    }

    fn set_number(&mut self, region: RegionId, number: u64) {
        self.gaps.set_moves(region, number);
    }
}
