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
    /// Writers in turn, each in order in a zone of its own.
    Zones(ZoneWriters),
}

/// Writers of zones: writer `w` of `n` fills the zones `w`, `w + n`, `w + 2n` …, and then begins again.
pub(super) struct ZoneWriters {
    /// Size of a zone, in the unit of addresses.
    zone: u64,
    /// Zones of each writer.
    rounds: u64,
    /// Writer of the next request.
    turn: usize,
    /// For each writer, its round and its place in the zone.
    places: Vec<(u64, u64)>,
}

impl ZoneWriters {
    /// Creates writers in a span; `None` if they do not have a zone each.
    pub(super) fn new(span: u64, zone: u64, writers: u64) -> Option<ZoneWriters> {
        let rounds = span.checked_div(zone)?.checked_div(writers)?;
        let places = vec![(0, 0); usize::try_from(writers).ok()?];
        (rounds > 0).then_some(ZoneWriters { zone, rounds, turn: 0, places })
    }

    /// Place of the next request of this size. A request that does not fit into the rest of a zone begins
    /// the next one.
    fn next(&mut self, size: u64) -> u64 {
        let writers = self.places.len() as u64;
        let writer = self.turn;
        self.turn = (self.turn + 1) % self.places.len();
        let Some((round, at)) = self.places.get_mut(writer) else { return 0 };
        if *at + size > self.zone {
            (*round, *at) = ((*round + 1) % self.rounds, 0);
        }
        let place = (*round * writers + writer as u64) * self.zone + *at;
        *at += size;
        place
    }
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
        if let AddressLaw::Zones(writers) = &mut self.law {
            return self.base + writers.next(size.next_multiple_of(self.align));
        }
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
            AddressLaw::Zones(_) => 0,
        };
        // A request that would extend past the end begins earlier.
        let last = (self.span - size) / self.align;
        self.base + slot.min(last) * self.align
    }
}
