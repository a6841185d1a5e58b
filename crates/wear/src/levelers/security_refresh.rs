//! Security refresh (Seong et al., ISCA 2010, section 4), one level. A region of 2^k stripes is
//! remapped from one random key to the next, `place = address XOR key`. The refresh pointer passes
//! through all addresses. The stripe at each address is exchanged with the one at its destination;
//! because of XOR an exchange involves exactly two stripes.
//!
//! The paper exchanges two lines in the buffers of the memory controller, whose contents a power
//! loss would destroy. Here an exchange consists of three copies by way of a scratch stripe, each
//! to a stripe that holds no data, so that the mapping is valid at every moment. The number of
//! scratch stripes is chosen such that each wears like the other stripes: an exchange writes one
//! scratch stripe once, and the `n` others twice, in addition to the host's writes to the region in
//! the time of three moves.

use super::{Leveler, Shape, StripeLocation, StripeMove, WearConfig};
use crate::config::WRITE_BYTES;
use crate::numbers::{LogicalStripe, PhysicalStripe, RegionId};
use frit_core::convert::{bounded_u32, count_u32, floor_u32, low_u8, to_f64, to_usize};
use frit_core::split_mix::mix;
use frit_core::{Error, Result};

/// Number of copies in an exchange.
const COPIES: u64 = 3;

/// State of one region. All registers follow from its number.
#[derive(Clone, Copy, Debug)]
struct RefreshState {
    /// `3 × (round × n + pointer) + copies made of the exchange at the pointer`.
    number: u64,
    old: u32,
    new: u32,
    pointer: u32,
    copies: u8,
    scratch: u32,
}

/// Maps regions of 2^k stripes by keys, with scratch stripes for the exchanges.
#[derive(Clone, Debug)]
pub struct SecurityRefresh {
    n: u32,
    spares: u32,
    seed: u64,
    regions: Vec<RefreshState>,
}

impl SecurityRefresh {
    pub(super) fn new(config: &WearConfig, shape: &Shape) -> Result<SecurityRefresh> {
        let asked = config.region_stripes;
        let n = if asked == 0 { 1 << shape.bank_stripes.ilog2() } else { asked };
        if !n.is_power_of_two() || n < 2 {
            let why = "has to be a power of two from 2 for security refresh, or 0 for a bank";
            return Err(Error::param("region_stripes", asked, why));
        }
        let stripes_written = to_f64(COPIES) * f64::from(config.interval) * f64::from(WRITE_BYTES)
            / f64::from(config.stripe_bytes);
        let spares = floor_u32((f64::from(n) / (2.0 + stripes_written)).ceil().max(1.0));
        let regions = shape.stripes() / (n + spares);
        if regions == 0 {
            let why = format!(
                "makes regions of {n} stripes and {spares} scratch stripes; the PCM has {}",
                shape.stripes()
            );
            return Err(Error::param("region_stripes", asked, why));
        }
        let zero = RefreshState { number: 0, old: 0, new: 0, pointer: 0, copies: 0, scratch: 0 };
        let mut s = SecurityRefresh { n, spares, seed: config.seed, regions: vec![zero; to_usize(regions)] };
        for region in RegionId::first(regions) {
            s.set_number(region, 0);
        }
        Ok(s)
    }

    /// Key of a round, which differs from that of the previous round. With n = 2, an even round may
    /// repeat it: such a round has no exchanges and is skipped.
    fn key(&self, region: RegionId, round: u64) -> u32 {
        let of = |round: u64| {
            bounded_u32(mix(self.seed ^ mix(round << 32 | u64::from(region))) % u64::from(self.n))
        };
        // Even rounds take a random key. An odd round whose key equals that of a neighbouring round
        // takes the next key that differs from both.
        let key = of(round);
        if round.is_multiple_of(2) {
            return key;
        }
        let (before, after) = (of(round - 1), of(round + 1));
        // With n = 2 there are only two keys, so the next round may repeat this one.
        (0..).map(|i| (key + i) % self.n).find(|&k| k != before && (k != after || self.n == 2)).unwrap_or(key)
    }

    fn registers(&self, region: RegionId, number: u64) -> RefreshState {
        let (at, copies) = (number / COPIES, low_u8(number % COPIES));
        let round = at / u64::from(self.n);
        RefreshState {
            number,
            old: self.key(region, round),
            new: self.key(region, round + 1),
            pointer: bounded_u32(at % u64::from(self.n)),
            copies,
            scratch: self.n + bounded_u32(at % u64::from(self.spares)),
        }
    }

    /// State at the next address, from the pointer on, whose stripe must be exchanged.
    fn next_exchange(&self, region: RegionId, number: u64) -> RefreshState {
        let mut r = self.registers(region, number);
        loop {
            // Each pair is exchanged once, at its smaller address.
            if r.pointer < r.pointer ^ r.old ^ r.new {
                return r;
            }
            if r.pointer + 1 < self.n {
                let scratch = self.n + bounded_u32((r.number / COPIES + 1) % u64::from(self.spares));
                r = RefreshState { number: r.number + COPIES, pointer: r.pointer + 1, scratch, ..r };
            } else {
                r = self.registers(region, r.number + COPIES);
            }
        }
    }
}

impl SecurityRefresh {
    /// Returns the first stripe of a region.
    #[inline]
    fn base(&self, region: RegionId) -> PhysicalStripe {
        PhysicalStripe(region.0 * (self.n + self.spares))
    }
}

impl Leveler for SecurityRefresh {
    fn logical(&self) -> u32 {
        self.regions() * self.n
    }

    fn physical(&self) -> u32 {
        self.regions() * self.region_stripes()
    }

    fn regions(&self) -> u32 {
        count_u32(self.regions.len())
    }

    fn region_stripes(&self) -> u32 {
        self.n + self.spares
    }

    #[inline]
    fn map(&self, stripe: LogicalStripe) -> StripeLocation {
        let (region, offset) = (RegionId(stripe.0 / self.n), stripe.0 % self.n);
        let r = &self.regions[region.idx()];
        let other = offset ^ r.old ^ r.new;
        // Exchanged already; first copy made; second copy made; not exchanged yet.
        let place = if offset.min(other) < r.pointer {
            offset ^ r.new
        } else if r.copies > 0 && offset == r.pointer {
            r.scratch
        } else if r.copies > 1 && other == r.pointer {
            offset ^ r.new
        } else {
            offset ^ r.old
        };
        StripeLocation { stripe: self.base(region).plus(place), region }
    }

    fn step(&self, region: RegionId) -> StripeMove {
        let base = self.base(region);
        let now = self.regions[region.idx()];
        let r = if now.copies == 0 { self.next_exchange(region, now.number) } else { now };
        let (from, to) = match r.copies {
            0 => (r.pointer ^ r.old, r.scratch),
            1 => (r.pointer ^ r.new, r.pointer ^ r.old),
            _ => (r.scratch, r.pointer ^ r.new),
        };
        StripeMove { from: base.plus(from), to: base.plus(to), number: r.number + 1 }
    }

    fn number(&self, region: RegionId) -> u64 {
        self.regions[region.idx()].number
    }

    fn set_number(&mut self, region: RegionId, number: u64) {
        self.regions[region.idx()] = self.registers(region, number);
    }
}
