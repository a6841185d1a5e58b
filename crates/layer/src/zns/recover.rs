//! Recovery: the table of zones states what is durable, and the pages that follow without a gap count too.
//!
//! A crash may interrupt programs. A page that the table states is there, or it is lost. A later page
//! counts if it and all pages before it are undamaged. What lies behind a gap is removed at once: a later
//! recovery could take it for data that was written after this one.
//!
//! A program that was interrupted can look as if it had never begun. So the blocks of a zone that is not
//! full are not written any more: each is replaced before its next program.

use super::blocks::FreeBlock;
use super::layer::Zns;
use super::log::{PADDING, log_spare, zone_spare};
use super::scan::{FoundBlock, Scan};
use super::table::{Mark, Record};
use super::zone::{NO_BLOCK, Zone};
use crate::planted::ZnsBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{
    BlockId, CrashKind, Error, LostPage, PAGE_NONE, Ppn, Recovery, Result, Sink, Tok, ZoneState,
};
use frit_media::PageState;
use std::collections::BTreeSet;

impl Zns {
    /// Recovers from the media after the given kind of crash.
    pub(super) fn recover_from_media(&mut self, sink: &mut Sink, _: CrashKind) -> Result<Recovery> {
        if !self.stores_bytes() {
            let why = "media without bytes hold nothing to recover from";
            return Err(Error::param("store", "none", why));
        }
        self.reset_state();
        let scan = self.scan()?;
        let halted = self.read_table(&scan)?;
        let mut r = Recovery { bytes_read: scan.bytes_read, ..Recovery::default() };
        for zone in 0..self.sizes.zones {
            self.recover_zone(&scan, zone, &mut r)?;
        }
        r.pages = self.zones.iter().map(|z| u64::from(z.written)).sum();
        let unchanged = self.zones.iter().zip(&self.records).all(|(z, record)| z.record() == *record);
        r.clean = halted && unchanged;
        self.noted_halt = halted;
        self.note_missing(&scan, &mut r);
        self.assign_blocks(&scan, &mut r);
        if self.health.refusal().is_none() {
            match self.resume(sink, &scan) {
                // The volume is read-only from now on.
                Err(Error::NoSpace { .. } | Error::ReadOnly { .. }) => {}
                resumed => resumed?,
            }
        }
        Ok(r)
    }

    /// Finds the pages of a zone.
    fn recover_zone(&mut self, scan: &Scan, number: u32, r: &mut Recovery) -> Result<()> {
        let record = self.records[to_usize(number)];
        for stripe in 0..to_usize(self.sizes.zone_blocks) {
            let block = self.choose_block(scan, number, stripe, record.epoch)?;
            self.zones[to_usize(number)].blocks[stripe].block = block;
        }
        self.zones[to_usize(number)].epoch = record.epoch;
        self.find_pages(scan, number, record, r)?;
        let zone = &mut self.zones[to_usize(number)];
        zone.finished = record.mark == Mark::Finished;
        let state = match record.mark {
            Mark::Offline => ZoneState::Offline,
            Mark::ReadOnly => ZoneState::ReadOnly,
            Mark::Finished => ZoneState::Full,
            Mark::None if zone.written == self.sizes.zone_pages => ZoneState::Full,
            Mark::None if zone.written == 0 => ZoneState::Empty,
            Mark::None => ZoneState::Closed,
        };
        for stripe in 0..zone.blocks.len() {
            let block = &mut zone.blocks[stripe];
            block.suspect = state == ZoneState::Closed;
            if self.sizes.stripe_units(zone.programmed, stripe) == 0 {
                block.block = NO_BLOCK;
            }
        }
        self.set_state(number, state);
        Ok(())
    }

    /// Chooses the block with the pages of an epoch of a zone. If there are several, one is a copy of
    /// another, and the one with most pages counts.
    fn choose_block(&mut self, scan: &Scan, number: u32, stripe: usize, epoch: u64) -> Result<u32> {
        let all: Vec<FoundBlock> = scan.candidates(number, stripe, epoch);
        let (mut chosen, mut most) = (NO_BLOCK, None);
        if let [only] = all[..] {
            return Ok(only.block);
        }
        for found in all {
            let units = self.valid_units(number, stripe, found)?;
            // An erase of the other one has failed.
            let rank = (!found.bad, units);
            if most.is_none_or(|most| rank > most) {
                (chosen, most) = (found.block, Some(rank));
            }
        }
        Ok(chosen)
    }

    /// Number of program units of a block, from the first on, that are undamaged.
    fn valid_units(&mut self, number: u32, stripe: usize, found: FoundBlock) -> Result<u32> {
        let written = self.nand.next_page(BlockId(found.block)) / self.sizes.unit_pages;
        for unit in 0..written {
            let first = (unit * self.sizes.zone_blocks + count_u32(stripe)) * self.sizes.unit_pages;
            let at = self.nand.geometry().ppn(BlockId(found.block), unit * self.sizes.unit_pages);
            for i in 0..self.sizes.unit_pages {
                let spare = zone_spare(self.sizes.lpn(number, first + i), found.epoch);
                let padding = self.nand.page_state(at.plus(i))? == PageState::Programmed(PADDING);
                if !padding && !self.is_valid(at.plus(i), spare)? {
                    return Ok(unit);
                }
            }
        }
        Ok(written)
    }

    /// Finds the write pointer of a zone, and its saved pages.
    fn find_pages(&mut self, scan: &Scan, number: u32, record: Record, r: &mut Recovery) -> Result<()> {
        let pages = self.sizes.unit_pages;
        let end = if record.is_final() { record.written } else { self.sizes.zone_pages };
        let mut first = 0;
        while first < end {
            let stated = record.written.saturating_sub(first).min(pages);
            let of_unit = (end - first).min(pages);
            let saved = self.saved_pages(scan, number, record.epoch, first, of_unit)?;
            // Only the last program unit of a read-only zone can be saved as a whole.
            let has_saved = saved.iter().any(|ppn| ppn.0 != PAGE_NONE);
            let only_saved = has_saved && record.mark == Mark::ReadOnly && first + of_unit == end;
            let trusted = stated == of_unit && !only_saved;
            if trusted || self.is_unit_valid(number, record.epoch, first, of_unit)? {
                if trusted {
                    self.note_lost(number, record.epoch, first..first + of_unit, r)?;
                }
                first += of_unit;
                continue;
            }
            let valid = count_u32(saved.iter().take_while(|ppn| ppn.0 != PAGE_NONE).count());
            let is_lost = |page: &u32| saved[to_usize(*page)].0 == PAGE_NONE;
            for page in (valid..stated).filter(is_lost) {
                r.lost.push(self.lost_page(number, first + page));
            }
            let zone = &mut self.zones[to_usize(number)];
            zone.saved = saved;
            zone.saved.truncate(to_usize(valid.max(stated)));
            zone.programmed = first;
            zone.written = first + valid.max(stated);
            return Ok(());
        }
        let zone = &mut self.zones[to_usize(number)];
        zone.written = end;
        zone.programmed = end.next_multiple_of(pages);
        Ok(())
    }

    /// Places of the saved pages of a program unit that are undamaged; `PAGE_NONE` for the others.
    fn saved_pages(
        &mut self,
        scan: &Scan,
        number: u32,
        epoch: u64,
        first: u32,
        count: u32,
    ) -> Result<Vec<Ppn>> {
        let mut places = vec![Ppn(PAGE_NONE); to_usize(count)];
        if is_planted(ZnsBug::SavedIgnored) {
            return Ok(places);
        }
        for (page, place) in (first..).zip(&mut places) {
            let lpn = self.sizes.lpn(number, page);
            for &(of_epoch, ppn) in scan.saved.get(&lpn).into_iter().flatten() {
                if of_epoch == epoch && self.is_valid(ppn, log_spare(lpn, epoch))? {
                    *place = ppn;
                    break;
                }
            }
        }
        Ok(places)
    }

    /// Place of a page in the chosen block of its zone, if the block has so many pages.
    fn place_in_zone(&self, number: u32, page: u32) -> Option<Ppn> {
        let place = self.sizes.place(page);
        let block = self.zones[to_usize(number)].blocks[place.stripe].block;
        let there = block != NO_BLOCK && place.page < self.nand.next_page(BlockId(block));
        there.then(|| self.nand.geometry().ppn(BlockId(block), place.page))
    }

    /// Returns `true` if all pages of a program unit are undamaged in the blocks of their zone.
    fn is_unit_valid(&mut self, number: u32, epoch: u64, first: u32, count: u32) -> Result<bool> {
        for page in first..first + count {
            let Some(ppn) = self.place_in_zone(number, page) else { return Ok(false) };
            if !self.is_valid(ppn, zone_spare(self.sizes.lpn(number, page), epoch))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lists pages that the table states and whose spare areas are not there.
    fn note_lost(
        &mut self,
        number: u32,
        epoch: u64,
        pages: std::ops::Range<u32>,
        r: &mut Recovery,
    ) -> Result<()> {
        for page in pages {
            let spare = zone_spare(self.sizes.lpn(number, page), epoch);
            let found = match self.place_in_zone(number, page) {
                Some(ppn) => self.nand.page_state(ppn)? == PageState::Programmed(spare),
                None => false,
            };
            if !found {
                r.lost.push(self.lost_page(number, page));
            }
        }
        Ok(())
    }

    fn lost_page(&self, zone: u32, page: u32) -> LostPage {
        let why = format!("page {page} of zone {zone} was durable, and is not in its erase block");
        LostPage { lpn: self.sizes.lpn(zone, page), why }
    }

    /// Notes that the table is older than the data: its newest version is missing.
    fn note_missing(&mut self, scan: &Scan, r: &mut Recovery) {
        let older = |&(&zone, &epoch): &(&u32, &u64)| epoch > self.records[to_usize(zone)].epoch;
        if let Some((zone, _)) = scan.newest.iter().find(older) {
            let what = format!("the table of zones is older than the data of zone {zone}");
            self.health.note_missing(what, r);
        }
    }

    /// Assigns the blocks to the log and to the pool, in which every block may hold old data.
    fn assign_blocks(&mut self, scan: &Scan, r: &mut Recovery) {
        let g = *self.nand.geometry();
        let of_zones: BTreeSet<u32> =
            self.zones.iter().flat_map(|z| &z.blocks).map(|b| b.block).filter(|&b| b != NO_BLOCK).collect();
        let in_log =
            self.parts.iter().flat_map(|p| p.copies).chain(self.zones.iter().flat_map(|z| z.saved.clone()));
        let of_log: BTreeSet<u32> =
            in_log.filter(|ppn| ppn.0 != PAGE_NONE).map(|ppn| g.block_of(ppn).0).collect();
        self.good_blocks = 0;
        for block in 0..g.blocks() {
            let unit = to_usize(self.unit_of_block(block));
            let bad = self.nand.is_bad(BlockId(block));
            self.good_blocks += u32::from(!bad);
            if of_log.contains(&block) && scan.log_blocks.contains(&block) {
                self.logs[unit].blocks.push_back(block);
            } else if !bad && !of_zones.contains(&block) {
                let used = if is_planted(ZnsBug::SuspectNotErased) && self.nand.next_page(BlockId(block)) == 0
                {
                    None
                } else {
                    Some(Tok::default())
                };
                self.free[unit].push(FreeBlock { block, used });
                r.suspect_blocks += 1;
            }
        }
        self.freed_unsynced = true;
        self.retire_zones();
    }

    /// Removes data behind gaps, and writes the table with the zones as they were found.
    fn resume(&mut self, sink: &mut Sink, scan: &Scan) -> Result<()> {
        self.nand.sync()?;
        let erased =
            if is_planted(ZnsBug::JunkKept) { Tok::default() } else { self.remove_junk(sink, scan)? };
        self.nand.sync()?;
        let differs = |z: u32| self.zones[to_usize(z)].record() != self.records[to_usize(z)];
        let changed: Vec<u32> = (0..self.sizes.zones).filter(|&z| differs(z)).collect();
        let after = sink.join(self.programmed, erased);
        self.record_zones(sink, &changed, after)?;
        // A part with one copy is that of an interrupted flush.
        for part in 0..self.sizes.parts {
            let known = self.parts[to_usize(part)];
            let single = known.copies[0].0 != PAGE_NONE && known.versions[1] != known.versions[0];
            if single {
                self.write_part(sink, part, after)?;
            }
        }
        self.nand.sync()?;
        self.changed.clear();
        self.in_use = sink.join(self.programmed, erased);
        self.recorded = self.in_use;
        sink.ack(self.in_use);
        Ok(())
    }

    /// Removes the pages behind the write pointers of all zones from their blocks.
    ///
    /// Blocks in the pool come first: one of them could otherwise be taken as a replacement, and then be
    /// erased as the block that it was.
    fn remove_junk(&mut self, sink: &mut Sink, scan: &Scan) -> Result<Tok> {
        let mut erased = Tok::default();
        for replaces in [false, true] {
            for zone in 0..self.sizes.zones {
                if !self.records[to_usize(zone)].is_final() {
                    self.remove_junk_of(sink, scan, zone, replaces, &mut erased)?;
                }
            }
        }
        Ok(erased)
    }

    /// Removes the pages behind the write pointer of a zone: from the blocks that it has, or from others.
    fn remove_junk_of(
        &mut self,
        sink: &mut Sink,
        scan: &Scan,
        number: u32,
        replaces: bool,
        erased: &mut Tok,
    ) -> Result<()> {
        let Zone { programmed, epoch, .. } = self.zones[to_usize(number)];
        for stripe in 0..to_usize(self.sizes.zone_blocks) {
            let limit = self.sizes.stripe_units(programmed, stripe) * self.sizes.unit_pages;
            for FoundBlock { block, bad, .. } in scan.candidates(number, stripe, epoch) {
                let own = self.zones[to_usize(number)].blocks[stripe].block == block;
                if own != replaces || bad || self.nand.next_page(BlockId(block)) <= limit {
                    continue;
                }
                let unit = to_usize(self.unit_of_block(block));
                if !own {
                    self.free[unit].retain(|b| b.block != block);
                } else if self.replace(sink, number, stripe)?.is_none() {
                    return self.set_read_only(sink, number);
                }
                self.freed_unsynced = true;
                match self.erase(sink, block, self.programmed)? {
                    Some(done) => {
                        *erased = sink.join(*erased, done);
                        self.free[unit].push(FreeBlock { block, used: None });
                    }
                    // Its pages stay. They do not count beside another block, or in a read-only zone.
                    None if limit > 0 => {}
                    None => return self.set_read_only(sink, number),
                }
            }
        }
        Ok(())
    }

    /// Makes a zone read-only whose blocks cannot be written.
    fn set_read_only(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        self.set_state(number, ZoneState::ReadOnly);
        self.record_zones(sink, &[number], self.programmed)
    }
}

impl Scan {
    /// Blocks with pages of an epoch of a zone.
    pub(super) fn candidates(&self, zone: u32, stripe: usize, epoch: u64) -> Vec<FoundBlock> {
        let all = self.blocks.get(&(zone, stripe)).into_iter().flatten();
        all.filter(|found| found.epoch == epoch).copied().collect()
    }
}
