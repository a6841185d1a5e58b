//! Dynamic page-level mapping: any idle chip at the first write, in place afterwards (sections II.A
//! and IV.B). The table has four bytes for each page.

use super::{FreePlaces, MappingPolicy, MappingSetup, PLACE_NONE};
use crate::numbers::Place;
use frit_core::Lpn;
use frit_core::convert::{to_u64, to_usize};
use frit_media::memory::table_of;

/// Table from pages to places.
#[derive(Clone, Debug)]
pub struct DynamicMapping {
    table: Vec<Place>,
    free: FreePlaces,
    /// Places to which pages were restored, until [`MappingPolicy::end_restore`].
    taken: Vec<bool>,
}

impl DynamicMapping {
    pub(super) fn new(setup: &MappingSetup) -> DynamicMapping {
        let pages = to_usize(setup.chips * setup.chip_pages);
        DynamicMapping {
            table: table_of(pages, PLACE_NONE),
            free: FreePlaces::new(setup.chips, setup.chip_pages),
            taken: Vec::new(),
        }
    }
}

impl MappingPolicy for DynamicMapping {
    #[inline]
    fn home(&self, lpn: Lpn) -> Option<Place> {
        Some(self.table[lpn.idx()]).filter(|&p| p != PLACE_NONE)
    }

    fn assign(&mut self, lpn: Lpn, costs: &[u64]) -> Option<Place> {
        let place = Place(self.free.take(costs)?);
        self.table[lpn.idx()] = place;
        Some(place)
    }

    fn restore(&mut self, lpn: Lpn, place: Place) -> bool {
        self.taken.resize(self.table.len(), false);
        let free = self.taken.get(place.idx()) == Some(&false);
        let open = self.table.get(lpn.idx()) == Some(&PLACE_NONE);
        if free && open {
            self.taken[place.idx()] = true;
            self.table[lpn.idx()] = place;
        }
        free && open
    }

    fn end_restore(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.free.rebuild(|place| taken.get(Place(place).idx()) == Some(&true));
    }

    fn fill(&mut self) {
        for (lpn, place) in self.table.iter_mut().enumerate() {
            *place = Place::of_idx(lpn);
        }
        self.free.fill();
    }

    fn forget(&mut self) {
        self.table.fill(PLACE_NONE);
        self.free.clear();
        self.taken.clear();
    }

    fn table_bytes(&self) -> u64 {
        to_u64(self.table.len()) * 4
    }
}
