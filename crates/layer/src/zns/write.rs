//! Writes at the write pointer of a zone.

use super::layer::Zns;
use super::log::{PADDING, zone_spare};
use super::zone::NO_BLOCK;
use crate::planted::ZnsBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{BlockId, Cause, Error, Result, Sink, Tok, WriteData, ZoneState};
use frit_media::Transfer;

impl Zns {
    /// Writes whole pages at the write pointer of a zone, which has space for them.
    pub(super) fn write_at_pointer(
        &mut self,
        sink: &mut Sink,
        number: u32,
        data: WriteData<'_>,
    ) -> Result<()> {
        self.open_for_write(sink, number)?;
        self.halted = false;
        self.changed.insert(number);
        self.clock += 1;
        self.zones[to_usize(number)].used = self.clock;
        let (page_bytes, unit_pages) = (self.sizes.page_bytes, self.sizes.unit_pages);
        let mut from = 0;
        while from < data.len() {
            let zone = &mut self.zones[to_usize(number)];
            let at = zone.written - zone.programmed;
            let pages = (unit_pages - at).min((data.len() - from) / page_bytes);
            if let Some(buffer) = &mut zone.buffer {
                if at == 0 {
                    buffer.begin_unit(sink);
                }
                sink.ack(buffer.free);
                let part = data.part(from, pages * page_bytes);
                if let (false, Some(bytes)) = (buffer.bytes.is_empty(), part.bytes()) {
                    let first = to_usize(at * page_bytes);
                    buffer.bytes[first..first + bytes.len()].copy_from_slice(bytes);
                }
            }
            zone.written += pages;
            from += pages * page_bytes;
            if at + pages == unit_pages {
                self.program_buffer(sink, number)?;
            }
        }
        if self.zones[to_usize(number)].written == self.sizes.zone_pages {
            self.drop_buffer(number);
            self.set_state(number, ZoneState::Full);
        }
        Ok(())
    }

    /// Programs the buffer of a zone into its blocks, with padding if it is not full. If no block can
    /// replace one in which a program failed, saves the pages, and makes the zone read-only.
    pub(super) fn program_buffer(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        let zone = &self.zones[to_usize(number)];
        let (first, pages) = (zone.programmed, zone.written - zone.programmed);
        self.spares.clear();
        for page in first..first + pages {
            self.spares.push(zone_spare(self.sizes.lpn(number, page), zone.epoch));
        }
        self.spares.resize(to_usize(self.sizes.unit_pages), PADDING);
        let done = loop {
            if !self.prepare_block(sink, number, self.sizes.place(first).stripe)? {
                return self.end_as_read_only(sink, number);
            }
            match self.program_once(sink, number, first)? {
                Some(done) => break done,
                None if self.replace_failed(sink, number, self.sizes.place(first).stripe)? => {}
                None => return self.end_as_read_only(sink, number),
            }
        };
        let zone = &mut self.zones[to_usize(number)];
        zone.programmed += self.sizes.unit_pages;
        zone.saved.clear();
        if let Some(buffer) = &mut zone.buffer {
            buffer.programming(done);
        }
        self.programmed = sink.join(self.programmed, done);
        Ok(())
    }

    /// Tries once to program the buffer of a zone. `None` if the program failed.
    fn program_once(&mut self, sink: &mut Sink, number: u32, first: u32) -> Result<Option<Tok>> {
        let zone = &self.zones[to_usize(number)];
        let Some(buffer) = &zone.buffer else { return Ok(None) };
        let place = self.sizes.place(first);
        let ppn = self.nand.geometry().ppn(BlockId(zone.blocks[place.stripe].block), place.page);
        let after = sink.join(buffer.free, buffer.read);
        let after = if is_planted(ZnsBug::WrittenBeforeReset) { after } else { sink.join(after, zone.ready) };
        let after = sink.join(after, self.in_use);
        let data = if self.stores_bytes() {
            WriteData::Bytes(&buffer.bytes)
        } else {
            WriteData::Len(self.sizes.unit_bytes())
        };
        match self.nand.program_unit(sink, ppn, data, &self.spares, Transfer::Pages, Cause::Host, after) {
            Ok(done) => Ok(Some(done)),
            Err(Error::ProgramFailed { .. }) => {
                self.stats.program_retries += 1;
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Makes a block of a zone ready for its next program: takes one, or replaces one in which a program may
    /// have been interrupted. `false` if there is no block to take.
    fn prepare_block(&mut self, sink: &mut Sink, number: u32, stripe: usize) -> Result<bool> {
        let block = self.zones[to_usize(number)].blocks[stripe];
        let units = self.sizes.stripe_units(self.zones[to_usize(number)].programmed, stripe);
        if block.block == NO_BLOCK && units == 0 {
            let unit = self.sizes.unit_of(number, stripe);
            let Some(taken) = self.take_for_zone(sink, unit)? else { return Ok(false) };
            self.zones[to_usize(number)].blocks[stripe].block = taken;
            return Ok(true);
        }
        if block.block != NO_BLOCK && (!block.suspect || is_planted(ZnsBug::SuspectContinued)) {
            return Ok(true);
        }
        let spares = std::mem::take(&mut self.spares);
        let replaced = self.replace(sink, number, stripe);
        self.spares = spares;
        let Some(old) = replaced? else { return Ok(false) };
        if old != NO_BLOCK {
            self.release(old, self.programmed);
        }
        Ok(true)
    }

    /// Replaces a block in which a program failed. `false` if there is no block to take.
    fn replace_failed(&mut self, sink: &mut Sink, number: u32, stripe: usize) -> Result<bool> {
        let spares = std::mem::take(&mut self.spares);
        let replaced = self.replace(sink, number, stripe);
        self.spares = spares;
        let Some(old) = replaced? else { return Ok(false) };
        self.erase_and_retire(sink, old, self.programmed)?;
        Ok(true)
    }

    /// Saves the buffer of a zone for which there are no blocks, and makes the zone read-only.
    fn end_as_read_only(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        self.save_partial(sink, number)?;
        self.drop_buffer(number);
        self.set_state(number, ZoneState::ReadOnly);
        if self.config.scans() {
            self.record_zones(sink, &[number], self.programmed)?;
        }
        let why = "became read-only: a program failed, and no erase block is left that could replace the \
                   failed one; copy its data to another zone";
        Err(self.zone_error(number, frit_core::ZoneFault::IsReadOnly, why))
    }
}
