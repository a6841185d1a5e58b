//! Flushes: program units that are not full are saved, and the table of zones states what is durable.

use super::layer::Zns;
use super::log::{PADDING, log_spare};
use super::table::encode;
use crate::planted::ZnsBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{Ppn, Result, Sink, Tok};
use std::collections::BTreeSet;

impl Zns {
    /// Makes all acknowledged writes durable. `halted` states a clean halt.
    pub(super) fn flush_all(&mut self, sink: &mut Sink, halted: bool) -> Result<()> {
        if is_planted(ZnsBug::FlushIgnored) {
            return Ok(());
        }
        let changed = std::mem::take(&mut self.changed);
        for &zone in &changed {
            if !is_planted(ZnsBug::PartialNotSaved) {
                self.save_partial(sink, zone)?;
            }
        }
        // Without recovery, only a halt states the zones: those of all changes since the start.
        if self.config.scans() || halted {
            let stated = |zone: &u32| self.records[to_usize(*zone)] != self.zones[to_usize(*zone)].record();
            let zones: Vec<u32> = match self.config.scans() {
                true => changed.into_iter().filter(stated).collect(),
                false => (0..self.sizes.zones).filter(stated).collect(),
            };
            // A flush after a halt, without a write in between, leaves the halt clean.
            self.halted |= halted;
            let after = if is_planted(ZnsBug::TableBeforeData) { sink.start() } else { self.programmed };
            self.record_zones(sink, &zones, after)?;
        }
        sink.ack(self.programmed);
        Ok(())
    }

    /// Saves the pages of a zone that are in its buffer only. Returns a token for the end of the program, if
    /// there are any.
    pub(super) fn save_partial(&mut self, sink: &mut Sink, number: u32) -> Result<Option<Tok>> {
        let zone = &self.zones[to_usize(number)];
        let Some(buffer) = &zone.buffer else { return Ok(None) };
        let pages = zone.written - zone.programmed;
        if to_usize(pages) == zone.saved.len() {
            return Ok(None);
        }
        self.spares.clear();
        for page in zone.programmed..zone.written {
            self.spares.push(log_spare(self.sizes.lpn(number, page), zone.epoch));
        }
        self.unit.copy_from_slice(&buffer.bytes);
        let after = sink.join(buffer.free, buffer.read);
        let after = sink.join(after, zone.ready);
        let (first, done) = self.save_unit(sink, after)?;
        self.stats.saved_pages += u64::from(pages);
        self.stats.saved_units += 1;
        let zone = &mut self.zones[to_usize(number)];
        zone.saved = (0..pages).map(|i| first.plus(i)).collect();
        zone.saved_done = done;
        Ok(Some(done))
    }

    /// Writes the records of zones into the table. The table waits for `after`, and for all that earlier
    /// records state. Everything is durable when `programmed` is done.
    pub(super) fn record_zones(&mut self, sink: &mut Sink, zones: &[u32], after: Tok) -> Result<()> {
        if !is_planted(ZnsBug::TableBeforeSync) {
            self.nand.sync()?;
        }
        self.recorded = sink.join(self.recorded, after);
        let mut parts = BTreeSet::new();
        for &zone in zones {
            self.records[to_usize(zone)] = self.zones[to_usize(zone)].record();
            parts.insert(zone / self.sizes.part_zones);
        }
        if self.halted != self.noted_halt {
            self.noted_halt = self.halted;
            parts.insert(0);
        }
        for part in parts {
            self.write_part(sink, part, self.recorded)?;
        }
        self.nand.sync()
    }

    /// Writes both copies of a part of the table.
    pub(super) fn write_part(&mut self, sink: &mut Sink, part: u32, after: Tok) -> Result<()> {
        self.version += 1;
        let version = self.version;
        for copy in 0..2 {
            self.encode_part(part);
            self.spares.clear();
            self.spares.push(log_spare(self.sizes.part_lpn(part), version));
            let (place, _): (Ppn, Tok) = self.save_unit(sink, after)?;
            let known = &mut self.parts[to_usize(part)];
            (known.copies[copy], known.versions[copy]) = (place, version);
            self.stats.table_pages += 1;
        }
        Ok(())
    }

    /// Encodes a part of the table into the first page of `unit`.
    fn encode_part(&mut self, part: u32) {
        if self.stores_bytes() {
            let first = part * self.sizes.part_zones;
            let end = (first + self.sizes.part_zones).min(self.sizes.zones);
            let records = &self.records[to_usize(first)..to_usize(end)];
            encode(records, self.sizes.zones, self.halted, &mut self.unit[..to_usize(self.sizes.page_bytes)]);
        }
        self.spares.fill(PADDING);
    }
}
