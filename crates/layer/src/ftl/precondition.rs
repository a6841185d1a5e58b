//! Preconditioned volumes: full, or in the steady state of long random overwriting, without doing
//! the writes.

use super::layer::Ftl;
use super::page_map::PageEntry;
use frit_core::convert::low_u32;
use frit_core::{Error, Lpn, Ppn, Precondition, Preconditioning, Result};

impl Preconditioning for Ftl {
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        if self.flash.valid_pages() > 0 || self.map.entries(self.pages).any(|(_, e)| e.is_written()) {
            return Err(Error::param("warm", "fill or steady", "the volume is not new"));
        }
        let map = &mut self.map;
        self.changed = true;
        let mut placed = |lpn: Lpn, ppn: Ppn, seq| map.set(lpn, PageEntry::in_nand(ppn, seq));
        if !self.config.mapping.maps_blocks() {
            return self.flash.precondition(how, self.pages + self.translation_pages, &mut placed);
        }
        let pages = match how {
            Precondition::Fill => Some(self.pages),
            Precondition::FillPart { percent } => {
                Some(low_u32(u64::from(self.pages) * u64::from(percent.min(100)) / 100))
            }
            Precondition::Steady { .. } => None,
        };
        let Some(pages) = pages else {
            let name: &'static str = self.config.mapping.into();
            let why = format!("is not known for mapping = \"{name}\"; fill the volume and write to it first");
            return Err(Error::param("warm", "steady", why));
        };
        self.flash.fill_blocks(pages, &mut placed)?;
        self.adopt_blocks();
        Ok(())
    }
}
