//! Preconditioned volumes: full, or in the steady state of long random overwriting, without doing
//! the writes.

use super::Hfsl;
use super::entry::{MapEntry, PageLocation};
use frit_core::{Error, Lpn, Ppn, Precondition, Preconditioning, Result};

impl Preconditioning for Hfsl {
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        if self.flash.valid_pages() > 0
            || self.map.table.iter().any(|&e| MapEntry(e).place() != PageLocation::Unmapped)
        {
            return Err(Error::param("warm", "fill or steady", "the volume is not new"));
        }
        let table = &mut self.map.table;
        self.flash.precondition(how, self.pages, &mut |lpn: Lpn, ppn: Ppn, seq| {
            table[lpn.idx()] = MapEntry::default().moved(PageLocation::Nand(ppn), 0, seq).0;
        })
    }
}
