//! Mappings of pages to chips.
//!
//! A mapping is one file of this module that implements [`MappingPolicy`], and one line in
//! [`Mappings`]. Its name in a stack file is the variant's name in kebab case.

mod block;
mod dynamic;
mod fixed;

use crate::numbers::Place;
use block::BlockMapping;
use dynamic::DynamicMapping;
use enum_dispatch::enum_dispatch;
use fixed::StaticMapping;
use frit_core::Lpn;
use frit_core::PAGE_NONE;
use frit_core::convert::{count_u32, to_usize};
use strum::{EnumDiscriminants, EnumString, IntoStaticStr, VariantNames};

/// Reserved number that means "no place".
pub(crate) const PLACE_NONE: Place = Place(u32::MAX);

/// Reserved number that means "no page".
pub(crate) const LPN_NONE: Lpn = Lpn(PAGE_NONE);

/// Parameters of a new mapping.
#[derive(Clone, Copy, Debug)]
pub struct MappingSetup {
    /// Number of chips.
    pub chips: u32,
    /// Number of pages on each chip. The volume has the same number of pages for each chip.
    pub chip_pages: u32,
    /// Pages of a block.
    pub block_pages: u32,
}

/// Home locations of pages. A page gets its home location at the first write, and keeps it.
///
/// A place is `index * chips + chip`.
#[enum_dispatch]
pub trait MappingPolicy {
    /// Returns the current or future home location of a page, or `None` if it is not determined
    /// yet.
    fn home(&self, lpn: Lpn) -> Option<Place>;

    /// Assigns a home location to a page that has none, on the chip with the lowest cost among
    /// those with free places. Returns `None` if all chips are full, which cannot happen while
    /// there are no more pages than places.
    fn assign(&mut self, lpn: Lpn, costs: &[u64]) -> Option<Place>;

    /// Restores the home location of a page. Returns `false` if it conflicts with another page or
    /// with the mapping.
    fn restore(&mut self, lpn: Lpn, place: Place) -> bool;

    /// Ends a restoration: all places to which no page was restored become free.
    fn end_restore(&mut self);

    /// Assigns home locations as if all pages had been written in order.
    fn fill(&mut self);

    /// Removes all assignments.
    fn forget(&mut self);

    /// Returns the size of the table, in bytes.
    fn table_bytes(&self) -> u64;
}

/// All mappings, by the names that stack files use.
#[enum_dispatch(MappingPolicy)]
#[derive(Clone, Debug, EnumDiscriminants)]
#[strum_discriminants(
    name(MappingKind),
    derive(EnumString, VariantNames, IntoStaticStr),
    strum(serialize_all = "kebab-case"),
    doc = "The mappings by name."
)]
pub enum Mappings {
    /// The page number determines the location.
    Static(StaticMapping),
    /// A page lies on the chip that was selected at its first write.
    Dynamic(DynamicMapping),
    /// A block of pages lies on one chip.
    Block(BlockMapping),
}

impl Mappings {
    /// Creates a mapping of a kind.
    #[must_use]
    pub fn new(kind: MappingKind, setup: &MappingSetup) -> Mappings {
        match kind {
            MappingKind::Static => StaticMapping::new().into(),
            MappingKind::Dynamic => DynamicMapping::new(setup).into(),
            MappingKind::Block => BlockMapping::new(setup).into(),
        }
    }
}

/// Returns the chip with the lowest cost among those with free places.
fn cheapest(costs: &[u64], room: impl Fn(usize) -> bool) -> Option<usize> {
    (0..costs.len()).filter(|&c| room(c)).min_by_key(|&c| costs[c])
}

/// The free places, or physical blocks, on each chip: all from a cursor on, and holes before it.
#[derive(Clone, Debug)]
struct FreePlaces {
    per_chip: u32,
    next: Vec<u32>,
    holes: Vec<Vec<u32>>,
}

impl FreePlaces {
    fn new(chips: u32, per_chip: u32) -> FreePlaces {
        FreePlaces { per_chip, next: vec![0; to_usize(chips)], holes: vec![Vec::new(); to_usize(chips)] }
    }

    /// Returns the number `index * chips + chip`.
    fn number(&self, index: u32, chip: usize) -> u32 {
        index * count_u32(self.next.len()) + count_u32(chip)
    }

    /// Takes a free place on the chip with the lowest cost. Returns `index * chips + chip`.
    fn take(&mut self, costs: &[u64]) -> Option<u32> {
        let chip = cheapest(costs, |c| !self.holes[c].is_empty() || self.next[c] < self.per_chip)?;
        let index = self.holes[chip].pop().unwrap_or_else(|| {
            self.next[chip] += 1;
            self.next[chip] - 1
        });
        Some(self.number(index, chip))
    }

    /// Rebuilds the free places after a recovery: all that are not `used` are free.
    fn rebuild(&mut self, used: impl Fn(u32) -> bool) {
        for chip in 0..self.next.len() {
            let is_used = |index: &u32| used(self.number(*index, chip));
            let next = (0..self.per_chip).rev().find(is_used).map_or(0, |i| i + 1);
            let holes = (0..next).filter(|i| !is_used(i)).collect();
            (self.next[chip], self.holes[chip]) = (next, holes);
        }
    }

    fn fill(&mut self) {
        self.next.fill(self.per_chip);
        self.holes.iter_mut().for_each(Vec::clear);
    }

    fn clear(&mut self) {
        self.next.fill(0);
        self.holes.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::convert::to_u64;
    use strum::VariantNames;

    const SETUP: MappingSetup = MappingSetup { chips: 4, chip_pages: 8, block_pages: 2 };

    #[test]
    fn every_page_finds_a_home_of_its_own_and_finds_it_again() {
        for name in MappingKind::VARIANTS {
            let kind: MappingKind = name.parse().unwrap();
            let mut m = Mappings::new(kind, &SETUP);
            let pages: Vec<Lpn> = (0..32).map(|i| Lpn(i * 13 % 32)).collect();
            let mut homes = vec![PLACE_NONE; 32];
            for (n, &lpn) in pages.iter().enumerate() {
                let turn = to_u64(n) % 4;
                let costs: Vec<u64> = (0..4).map(|c| (c + 4 - turn) % 4).collect();
                let home = m.home(lpn).or_else(|| m.assign(lpn, &costs)).unwrap();
                assert_eq!(m.home(lpn), Some(home), "{name}");
                homes[lpn.idx()] = home;
            }
            let mut sorted = homes.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, Place::first(32).collect::<Vec<_>>(), "{name}");
            let mut back = Mappings::new(kind, &SETUP);
            for lpn in Lpn::first(32).filter(|l| l.0 % 3 > 0) {
                assert!(back.restore(lpn, homes[lpn.idx()]), "{name} {lpn}");
            }
            back.end_restore();
            for lpn in Lpn::first(32).filter(|l| l.0 % 3 > 0) {
                assert_eq!(back.home(lpn), Some(homes[lpn.idx()]), "{name}");
            }
            let mut rest: Vec<Place> = Lpn::first(32)
                .map(|lpn| back.home(lpn).or_else(|| back.assign(lpn, &[0, 1, 2, 3])).unwrap())
                .collect();
            rest.sort_unstable();
            assert_eq!(rest, Place::first(32).collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_is_not_restored() {
        let mut s = Mappings::new(MappingKind::Static, &SETUP);
        assert!(!s.restore(Lpn(3), Place(4)) && s.restore(Lpn(4), Place(4)));
        let mut b = Mappings::new(MappingKind::Block, &SETUP);
        assert!(b.restore(Lpn(6), Place(8 + 1)) && b.restore(Lpn(7), Place(12 + 1)));
        assert!(!b.restore(Lpn(7), Place(8 + 1)), "another offset");
        assert!(!b.restore(Lpn(6), Place(2)), "the block lies elsewhere");
        assert!(!b.restore(Lpn(4), Place(8 + 1)), "another block lies there");
        let mut d = Mappings::new(MappingKind::Dynamic, &SETUP);
        assert!(
            d.restore(Lpn(9), Place(30)) && !d.restore(Lpn(9), Place(31)) && !d.restore(Lpn(8), Place(30))
        );
    }

    #[test]
    fn blocks_stay_on_one_chip_and_fill_is_in_order() {
        let mut b = Mappings::new(MappingKind::Block, &SETUP);
        let first = b.assign(Lpn(5), &[5, 5, 0, 5]).unwrap();
        assert_eq!((first.0 % 4, b.home(Lpn(4)).unwrap().0 % 4), (2, 2));
        for kind in [MappingKind::Static, MappingKind::Dynamic, MappingKind::Block] {
            let mut m = Mappings::new(kind, &SETUP);
            m.fill();
            let mut all: Vec<Place> = Lpn::first(32).map(|l| m.home(l).unwrap()).collect();
            all.sort_unstable();
            assert_eq!(all, Place::first(32).collect::<Vec<_>>());
            m.forget();
            assert_eq!(m.home(Lpn(3)).is_some(), kind == MappingKind::Static);
        }
    }
}
