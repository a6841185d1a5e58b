//! Preconditioned volumes: every page is written once.

use super::layer::Ntl;
use super::mapping::MappingPolicy;
use super::page_bitmap::PageBitmap;
use crate::record::Record;
use frit_core::{Error, Lpn, Precondition, Preconditioning, Result};
use frit_media::checksum::digest;

impl Preconditioning for Ntl {
    /// Marks every page as written once, in order. Except for the log, which starts empty, this
    /// state is also stationary.
    fn precondition(&mut self, _: Precondition) -> Result<()> {
        if self.used != PageBitmap::new(self.pages()) {
            return Err(Error::param("precondition", "fill", "the volume is not new"));
        }
        self.mapping.fill();
        let pages = self.pages();
        self.used.fill(pages, true);
        self.live.fill(pages, true);
        if self.stores_bytes() && self.space.protected {
            // The buffer of a new layer is zero, like its pages.
            let digest = digest(&self.copy);
            for lpn in Lpn::first(pages) {
                let Some(place) = self.mapping.home(lpn) else { continue };
                self.space.seq += 1;
                let record = Record { lbn: lpn.0, valid: u8::MAX, seq: self.space.seq, digest };
                for copy in self.space.layout.places(place) {
                    self.space.pcm.preset(self.space.layout.record(copy), &record.bytes(copy))?;
                }
            }
        }
        Ok(())
    }
}
