//! Page map: a row for each page, in DRAM.

use super::{MappingScheme, MappingSizes};

/// Bytes of a row: a physical page.
const ROW_BYTES: u64 = 4;

/// The page map of the device, which is the map that the FTL has.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct PageTable {
    pages: u32,
}

impl PageTable {
    pub(super) fn new(sizes: MappingSizes) -> PageTable {
        PageTable { pages: sizes.pages }
    }
}

impl MappingScheme for PageTable {
    fn reset(&mut self) {}

    fn table_bytes(&self) -> u64 {
        u64::from(self.pages) * ROW_BYTES
    }
}
