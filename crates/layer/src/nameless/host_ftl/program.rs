//! Request queues. Each is programmed into a virtual page of its own, with padding: lower layers may
//! reorder request queues, so a virtual page that two of them share would be programmed twice without
//! an erase (section 3.4 of FAST 2013).

use super::maps::address_of;
use super::{DeviceBlocks, HostFtl, VIRTUAL};
use crate::flash::NandStream;
use crate::flash::gather::{ProgrammedUnit, UnitWrite};
use crate::payload::buffered;
use crate::planted::NamelessBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Lpn, PAGE_NONE, PhysicalAddress, Ppn, Result, Sink, Tok, WriteData};
use frit_media::Transfer;

impl HostFtl {
    /// Programs a queue of nameless blocks.
    pub(super) fn program_nameless(
        &mut self,
        sink: &mut Sink,
        owners: &[u32],
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
        placed: &mut Vec<PhysicalAddress>,
    ) -> Result<Tok> {
        self.check_space(count_u32(owners.len()))?;
        let (unit, programmed) = self.program_queue(sink, owners.iter().copied(), data, cause, after)?;
        for i in 0..owners.len() {
            let seq = self.flash.unit_spares()[i].seq;
            placed.push(address_of(programmed.first.plus(count_u32(i)), seq));
        }
        self.programmed = sink.join(self.programmed, programmed.done);
        self.stats.nameless_queues += 1;
        self.stats.nameless_blocks += owners.len() as u64;
        self.maps.stored += count_u32(owners.len());
        self.flash.collect_on_write(sink, &mut self.maps, unit, self.unit_pages)?;
        Ok(programmed.done)
    }

    /// Programs a queue of virtual blocks.
    pub(super) fn program_virtual(
        &mut self,
        sink: &mut Sink,
        blocks: &[u32],
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let numbers = blocks.iter().map(|b| VIRTUAL + b);
        let (unit, programmed) = self.program_queue(sink, numbers, data, cause, after)?;
        self.map_metadata(sink, blocks, programmed);
        self.stats.virtual_queues += 1;
        self.stats.virtual_blocks += blocks.len() as u64;
        self.flash.collect_on_write(sink, &mut self.maps, unit, self.unit_pages)?;
        Ok(programmed.done)
    }

    /// Maps virtual blocks or pages of metadata that were programmed. Their old versions are no longer
    /// needed once the new ones are durable.
    pub(super) fn map_metadata(&mut self, sink: &mut Sink, numbers: &[u32], programmed: ProgrammedUnit) {
        for (i, &number) in numbers.iter().enumerate() {
            let kept = |old: &PhysicalAddress| self.maps.is_saved_at(number, *old);
            if let Some(old) = self.maps.get(number).filter(|old| !kept(old)) {
                let early = is_planted(NamelessBug::VirtualFreedEarly);
                let durable = if early { sink.start() } else { programmed.done };
                self.flash.invalidate_after(sink, Ppn(old.page), durable);
            }
            let seq = self.flash.unit_spares()[i].seq;
            self.maps.set(number, address_of(programmed.first.plus(count_u32(i)), seq));
        }
        self.maps.written = sink.join(self.maps.written, programmed.done);
    }

    /// Checks that contents fit into the device.
    fn check_space(&self, blocks: u32) -> Result<()> {
        let DeviceBlocks { capacity, waiting, atomic_flush, .. } = self.blocks;
        let stored = self.maps.stored;
        if !atomic_flush || u64::from(stored) + u64::from(blocks) <= u64::from(capacity) + u64::from(waiting)
        {
            return Ok(());
        }
        let what = format!(
            "{stored} blocks are stored, and the device has space for {capacity} and for {waiting} that wait \
             to be freed; free blocks that no metadata refers to after a flush"
        );
        Err(Error::NoSpace { what })
    }

    /// Checks that a queue fits a virtual page, and that its numbers are possible.
    pub(super) fn check_queue(
        &self,
        numbers: &[u32],
        data: WriteData<'_>,
        end: u32,
        of: &'static str,
    ) -> Result<()> {
        let (n, most) = (count_u32(numbers.len()), self.unit_pages);
        if n == 0 || n > most {
            let why = format!("a request queue has 1 to {most} blocks, those of a virtual page");
            return Err(Error::param("request queue", format!("{n} blocks"), why));
        }
        let bytes = u64::from(n) * u64::from(self.page_bytes);
        if u64::from(data.len()) != bytes {
            let why = format!("{n} blocks have {bytes} bytes");
            return Err(Error::param("data", format!("{} bytes", data.len()), why));
        }
        match numbers.iter().find(|&&number| number >= end) {
            Some(number) => Err(Error::param(of, number, format!("has to be below {end}"))),
            None => Ok(()),
        }
    }

    /// Programs a queue into the next virtual page of a NAND unit. Returns the unit.
    fn program_queue(
        &mut self,
        sink: &mut Sink,
        numbers: impl Iterator<Item = u32>,
        data: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<(u32, ProgrammedUnit)> {
        self.fill_unit(numbers, data);
        self.turn = self.turn.wrapping_add(1);
        let unit = self.flash.first_unit(sink, Lpn(self.turn));
        let write = UnitWrite {
            lpns: &self.lpns,
            unit,
            stream: NandStream::Host,
            data: buffered(&self.unit, self.unit_pages * self.page_bytes),
            transfer: Transfer::Pages,
            cause,
            after,
        };
        let programmed = self.flash.write_unit(sink, &mut self.maps, write)?;
        Ok((unit, programmed))
    }

    /// Programs pages of metadata, into the reserve of garbage collection if need be.
    pub(super) fn program_metadata(
        &mut self,
        sink: &mut Sink,
        numbers: &[u32],
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<Tok> {
        self.turn = self.turn.wrapping_add(1);
        let unit = self.flash.unit_in_turn(self.turn);
        // Recoveries that are interrupted one after the other must not use the reserve up.
        match self.flash.reserve(sink, &mut self.maps, unit, NandStream::Gc, self.unit_pages) {
            Ok(()) | Err(Error::NoSpace { .. }) => {}
            Err(e) => return Err(e),
        }
        self.fill_unit(numbers.iter().map(|n| VIRTUAL + n), data);
        let write = UnitWrite {
            lpns: &self.lpns,
            unit,
            stream: NandStream::Gc,
            data: buffered(&self.unit, self.unit_pages * self.page_bytes),
            transfer: Transfer::Pages,
            cause: Cause::Meta,
            after,
        };
        let programmed = self.flash.program_reserved(sink, write)?;
        self.map_metadata(sink, numbers, programmed);
        self.flash.collect_on_write(sink, &mut self.maps, unit, self.unit_pages)?;
        Ok(programmed.done)
    }

    /// Fills the virtual page with a queue, and with padding.
    fn fill_unit(&mut self, numbers: impl Iterator<Item = u32>, data: WriteData<'_>) {
        self.lpns.clear();
        self.lpns.extend(numbers);
        self.stats.padded += u64::from(self.unit_pages - count_u32(self.lpns.len()));
        self.lpns.resize(to_usize(self.unit_pages), PAGE_NONE);
        if let Some(bytes) = data.bytes()
            && !self.unit.is_empty()
        {
            self.unit[..bytes.len()].copy_from_slice(bytes);
            self.unit[bytes.len()..].fill(0);
        }
    }
}
