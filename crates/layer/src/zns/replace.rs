//! Replacement of a block of a zone by another one.

use super::layer::Zns;
use super::log::{PADDING, expected, zone_spare};
use super::zone::{NO_BLOCK, ZoneBlock};
use crate::payload::buffered;
use frit_core::convert::to_usize;
use frit_core::{BlockId, Cause, Error, Ppn, ReadTarget, Result, Sink, Tok};
use frit_media::{Spare, Transfer};

impl Zns {
    /// Copies the program units of a block of a zone to another block, which takes its place. Returns the
    /// old one, or `NO_BLOCK` if it was lost; `None` if there is no block to take. The copies are done with
    /// `programmed`.
    ///
    /// A page that is damaged is copied as padding, so that it stays lost.
    pub(super) fn replace(&mut self, sink: &mut Sink, number: u32, stripe: usize) -> Result<Option<u32>> {
        let old = self.zones[to_usize(number)].blocks[stripe].block;
        let units = self.sizes.stripe_units(self.zones[to_usize(number)].programmed, stripe);
        loop {
            let Some(new) = self.take_for_zone(sink, self.sizes.unit_of(number, stripe))? else {
                return Ok(None);
            };
            let mut copied = true;
            for unit in 0..units {
                if !self.copy_unit(sink, (number, stripe), unit, (old, new))? {
                    copied = false;
                    break;
                }
            }
            if copied {
                self.zones[to_usize(number)].blocks[stripe] = ZoneBlock { block: new, suspect: false };
                self.stats.replaced += 1;
                return Ok(Some(old));
            }
            self.erase_and_retire(sink, new, self.programmed)?;
        }
    }

    /// Copies a program unit of a block of a zone. `false` if the program failed.
    fn copy_unit(
        &mut self,
        sink: &mut Sink,
        (number, stripe): (u32, usize),
        unit: u32,
        (old, new): (u32, u32),
    ) -> Result<bool> {
        let pages = self.sizes.unit_pages;
        let zone = &self.zones[to_usize(number)];
        let first = (unit * self.sizes.zone_blocks + stripe as u32) * pages;
        let mut spares: Vec<Spare> = (first..first + pages)
            .map(|page| {
                let spare = zone_spare(self.sizes.lpn(number, page), zone.epoch);
                if page < zone.written { spare } else { PADDING }
            })
            .collect();
        let mut bytes = std::mem::take(&mut self.moved);
        let taken = self.take_unit(sink, old, unit, &mut spares, &mut bytes);
        let to = self.nand.geometry().ppn(BlockId(new), unit * pages);
        let data = buffered(&bytes, self.sizes.unit_bytes());
        let programmed = taken.and_then(|read| {
            self.nand.program_unit(sink, to, data, &spares, Transfer::Pages, Cause::Gc, read)
        });
        self.moved = bytes;
        match programmed {
            Ok(done) => {
                self.programmed = sink.join(self.programmed, done);
                self.stats.copied_units += 1;
                Ok(true)
            }
            Err(Error::ProgramFailed { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Reads a program unit of a block; nothing if the block was lost.
    fn take_unit(
        &mut self,
        sink: &mut Sink,
        block: u32,
        unit: u32,
        spares: &mut [Spare],
        bytes: &mut [u8],
    ) -> Result<Tok> {
        let pages = self.sizes.unit_pages;
        if block == NO_BLOCK || unit * pages >= self.nand.next_page(BlockId(block)) {
            spares.fill(PADDING);
            return Ok(self.programmed);
        }
        let from = self.nand.geometry().ppn(BlockId(block), unit * pages);
        // The program of the unit may be in progress.
        let after = sink.join(self.in_use, self.programmed);
        let read = self.nand.read_unit(sink, from, pages, Cause::Gc, after)?;
        self.copy_out_pages(from, spares, bytes)?;
        Ok(read)
    }

    /// Takes the bytes of the pages of a program unit that was read. The spare area of a damaged page
    /// becomes padding.
    fn copy_out_pages(&mut self, from: Ppn, spares: &mut [Spare], bytes: &mut [u8]) -> Result<()> {
        let size = to_usize(self.sizes.page_bytes);
        for ((i, spare), page) in (0..).zip(spares).zip(bytes.chunks_exact_mut(size)) {
            if *spare == PADDING {
                page.fill(0);
                continue;
            }
            match self.nand.copy_out(from.plus(i), 0, ReadTarget::Bytes(page), Some(expected(*spare))) {
                Ok(()) => {}
                Err(Error::Corrupt { .. }) => *spare = PADDING,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
