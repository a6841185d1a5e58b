//! Distribution of the addresses of requests.

use super::bijection::Bijection;
use super::random::Random;
use super::zipf::Zipf;

/// Distribution over the slots of a span.
pub(super) enum AddressLaw {
    /// All slots have the same probability.
    Uniform,
    /// Zipf distribution by popularity rank, with popular slots scattered over the span.
    Zipf(Zipf, Bijection),
    /// A share of the requests goes to a share of the slots: number of hot slots, share of
    /// requests, and the permutation that scatters the hot slots, if any.
    HotCold(u64, f64, Option<Bijection>),
    /// Consecutive slots: the next slot-aligned sector for reads and for writes.
    Sequential([u64; 2]),
}

/// Distribution of addresses: a law over slots of `align` sectors in a span.
pub(super) struct AddressDistribution {
    pub(super) base: u64,
    pub(super) span: u64,
    pub(super) align: u64,
    pub(super) law: AddressLaw,
}

impl AddressDistribution {
    /// Returns the number of slots in the span.
    pub(super) fn slots(span: u64, align: u64) -> u64 {
        (span / align).max(1)
    }

    /// Draws the first sector of a request of this size. The whole request is inside the span.
    #[inline]
    pub(super) fn draw(&mut self, random: &mut Random, sectors: u32, read: bool) -> u64 {
        let size = u64::from(sectors);
        let n = AddressDistribution::slots(self.span, self.align);
        let slot = match &mut self.law {
            AddressLaw::Uniform => random.below(n),
            AddressLaw::Zipf(zipf, scatter) => scatter.map(zipf.draw(random)),
            AddressLaw::HotCold(hot, share, scatter) => {
                let rank = if random.unit() < *share {
                    random.below(*hot)
                } else {
                    *hot + random.below((n - *hot).max(1))
                };
                let rank = rank.min(n - 1);
                scatter.as_ref().map_or(rank, |s| s.map(rank))
            }
            AddressLaw::Sequential(next) => {
                let next = &mut next[usize::from(!read)];
                if *next + size > self.span {
                    *next = 0;
                }
                let at = *next;
                *next += size.next_multiple_of(self.align);
                return self.base + at;
            }
        };
        // A request that would extend past the end begins earlier.
        let last = (self.span - size) / self.align;
        self.base + slot.min(last) * self.align
    }
}
