//! Static page-level mapping: chip = LPN mod chips (section II.B.1). It has no table.

use super::MappingPolicy;

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
    fn home(&self, lpn: u32) -> Option<u32> {
        Some(lpn)
    }

    fn assign(&mut self, lpn: u32, _: &[u64]) -> Option<u32> {
        Some(lpn)
    }

    fn restore(&mut self, lpn: u32, place: u32) -> bool {
        lpn == place
    }

    fn end_restore(&mut self) {}

    fn fill(&mut self) {}

    fn forget(&mut self) {}

    fn table_bytes(&self) -> u64 {
        0
    }
}
