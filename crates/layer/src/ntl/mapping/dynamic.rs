//! Dynamic page-level mapping: any idle chip at the first write, in place afterwards (sections II.A
//! and IV.B). The table has four bytes for each page.

use super::{FreePlaces, MappingPolicy, MappingSetup, PLACE_NONE};
use frit_media::memory::table_of;

/// Table from pages to places.
#[derive(Clone, Debug)]
pub struct DynamicMapping {
    chips: u32,
    table: Vec<u32>,
    free: FreePlaces,
    /// Places to which pages were restored, until [`MappingPolicy::end_restore`].
    taken: Vec<bool>,
}

impl DynamicMapping {
    pub(super) fn new(setup: &MappingSetup) -> DynamicMapping {
        let pages = (setup.chips * setup.chip_pages) as usize;
        DynamicMapping {
            chips: setup.chips,
            table: table_of(pages, PLACE_NONE),
            free: FreePlaces::new(setup.chips, setup.chip_pages),
            taken: Vec::new(),
        }
    }
}

impl MappingPolicy for DynamicMapping {
    #[inline]
    fn home(&self, lpn: u32) -> Option<u32> {
        Some(self.table[lpn as usize]).filter(|&p| p != PLACE_NONE)
    }

    fn assign(&mut self, lpn: u32, costs: &[u64]) -> Option<u32> {
        let (index, chip) = self.free.take(costs)?;
        let place = index * self.chips + chip;
        self.table[lpn as usize] = place;
        Some(place)
    }

    fn restore(&mut self, lpn: u32, place: u32) -> bool {
        self.taken.resize(self.table.len(), false);
        let free = self.taken.get(place as usize) == Some(&false);
        let open = self.table.get(lpn as usize) == Some(&PLACE_NONE);
        if free && open {
            self.taken[place as usize] = true;
            self.table[lpn as usize] = place;
        }
        free && open
    }

    fn end_restore(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        let chips = self.chips;
        self.free.rebuild(|index, chip| taken.get((index * chips + chip) as usize) == Some(&true));
    }

    fn fill(&mut self) {
        for (lpn, place) in self.table.iter_mut().enumerate() {
            *place = lpn as u32;
        }
        self.free.fill();
    }

    fn forget(&mut self) {
        self.table.fill(PLACE_NONE);
        self.free.clear();
        self.taken.clear();
    }

    fn table_bytes(&self) -> u64 {
        self.table.len() as u64 * 4
    }
}
