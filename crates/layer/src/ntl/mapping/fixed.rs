//! Static page-level mapping: chip = LPN mod chips (section II.B.1). It has no table.

use super::MappingPolicy;
use crate::numbers::Place;
use frit_core::Lpn;

/// The mapping in which the place of a page is its number.
#[derive(Clone, Copy, Default, Debug)]
pub struct StaticMapping;

impl StaticMapping {
    pub(super) fn new() -> StaticMapping {
        StaticMapping
    }
}

impl MappingPolicy for StaticMapping {
    #[inline]
    fn home(&self, lpn: Lpn) -> Option<Place> {
        Some(Place(lpn.0))
    }

    fn assign(&mut self, lpn: Lpn, _: &[u64]) -> Option<Place> {
        Some(Place(lpn.0))
    }

    fn restore(&mut self, lpn: Lpn, place: Place) -> bool {
        lpn.0 == place.0
    }

    fn end_restore(&mut self) {}

    fn fill(&mut self) {}

    fn forget(&mut self) {}

    fn table_bytes(&self) -> u64 {
        0
    }
}
