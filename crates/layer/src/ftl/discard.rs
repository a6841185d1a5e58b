//! Discards, and their record in NAND.
//!
//! A discarded page has no version any more, but older versions of it may still lie in blocks that
//! were not erased. A crash must not bring one of them back after the newest version is erased. So
//! the discard maps are written before the next erase can be: every operation that may erase a block
//! writes them first.

use super::layer::Ftl;
use super::meta::encode_discards;
use super::page_map::PageEntry;
use crate::flash::NandStream;
use crate::flash::gather::{ProgrammedUnit, UnitWrite};
use crate::payload::zeros_on;
use crate::planted::FtlBug;
use crate::spans::split;
use frit_core::convert::count_u32;
use frit_core::planted::is_planted;
use frit_core::{Cause, Hints, Lpn, PAGE_NONE, Result, Sink, Tok, WriteData};
use frit_media::Transfer;

impl Ftl {
    /// Discards a range of bytes. Parts of pages are overwritten with zeros.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        let page = u64::from(self.page_bytes);
        let (mut byte, end) = (at, at + bytes);
        while byte < end {
            let (lpn, offset) = split(byte, page);
            let len = (page - offset).min(end - byte);
            let lpn = Lpn::of_u64(lpn);
            if len == page {
                self.unmap(lpn);
            } else if self.map.get(lpn).is_written() || self.map.lost().contains_key(&lpn.0) {
                self.write_range(sink, byte, zeros_on(self.stores_bytes(), len as u32), Hints::NONE)?;
            }
            byte += len;
        }
        if !self.buffers() {
            self.write_discards(sink)?;
            sink.ack(self.programmed);
        }
        Ok(())
    }

    /// Forgets the contents of a page.
    fn unmap(&mut self, lpn: Lpn) {
        let entry = self.map.get(lpn);
        if entry.is_buffered()
            && let Some(position) = self.find_buffered(lpn)
        {
            self.buffer.remove(position);
        }
        let held = entry.ppn().is_some() || self.map.lost().contains_key(&lpn.0);
        if let Some(ppn) = entry.ppn() {
            self.flash.invalidate(ppn);
        }
        self.map.set(lpn, PageEntry::default());
        if held {
            self.note_changed(lpn, 0);
        }
        if held && self.config.scans() && !is_planted(FtlBug::DiscardNotRecorded) {
            self.note_discard_map(self.meta.map_of(lpn));
        }
    }

    /// Notes that a discard map has to be written.
    pub(super) fn note_discard_map(&mut self, index: u32) {
        self.discards_pending.set(Lpn(index), true);
        self.any_discards_pending = true;
        self.changed = true;
    }

    /// Notes discard maps of which a copy was lost. The map in DRAM has what they state.
    pub(super) fn restore_lost_maps(&mut self) {
        if self.map.lost().is_empty() {
            return;
        }
        let lost = self.map.lost().range(self.pages..).filter_map(|(&lpn, _)| self.meta.index_of(Lpn(lpn)));
        for index in lost.collect::<Vec<_>>() {
            self.note_discard_map(index);
        }
    }

    /// Writes the discard maps that have changed, into the reserve of garbage collection if need be.
    /// Every later program and erase waits for them.
    pub(super) fn write_discards(&mut self, sink: &mut Sink) -> Result<()> {
        if !self.any_discards_pending {
            return Ok(());
        }
        let changed: Vec<u32> =
            (0..self.meta.maps()).filter(|&i| self.discards_pending.has(Lpn(i))).collect();
        let copies: Vec<Lpn> = changed.into_iter().flat_map(|index| self.meta.copies(index)).collect();
        for copies in copies.chunks(self.unit_pages as usize) {
            self.write_maps(sink, copies)?;
        }
        self.discards_pending.clear();
        self.any_discards_pending = false;
        Ok(())
    }

    /// Writes copies of discard maps into one program unit.
    fn write_maps(&mut self, sink: &mut Sink, copies: &[Lpn]) -> Result<()> {
        let (page, run) = (self.page_bytes as usize, self.unit_pages as usize);
        let mut lpns = vec![PAGE_NONE; run];
        let mut bytes = vec![0; if self.stores_bytes() { page * run } else { 0 }];
        let seq = self.flash.last_seq();
        for (i, &copy) in copies.iter().enumerate() {
            lpns[i] = copy.0;
            let Some(index) = self.meta.index_of(copy) else { continue };
            if let Some(page) = bytes.get_mut(i * page..(i + 1) * page) {
                let map = &self.map;
                let discarded = |lpn: Lpn| map.get(lpn).ppn().is_none() && !map.lost().contains_key(&lpn.0);
                encode_discards(page, index, seq, self.meta.covered_by(index), discarded);
            }
        }
        // A page whose bit is not set has a newer version than one that was discarded before. It must
        // be durable first.
        let after = if is_planted(FtlBug::DiscardsBeforeData) { sink.start() } else { self.programmed };
        let (unit, programmed) = self.program_meta(sink, &lpns, &bytes, after)?;
        self.stats.discard_maps += copies.len() as u64;
        if !is_planted(FtlBug::DiscardNotOrdered) {
            self.flash.in_use = sink.join(self.flash.in_use, programmed.done);
        }
        self.flash.collect_on_write(sink, &mut self.map, unit, self.unit_pages)?;
        self.note_moved();
        Ok(())
    }

    /// Programs a program unit of metadata, into the reserve of garbage collection if need be. Returns
    /// its NAND unit.
    pub(super) fn program_meta(
        &mut self,
        sink: &mut Sink,
        lpns: &[u32],
        bytes: &[u8],
        after: Tok,
    ) -> Result<(u32, ProgrammedUnit)> {
        let data = if self.stores_bytes() {
            WriteData::Bytes(bytes)
        } else {
            WriteData::Len(self.unit_pages * self.page_bytes)
        };
        let turn = self.streams.next_turn();
        let unit = self.flash.unit_in_turn(turn);
        let write = UnitWrite {
            lpns,
            unit,
            stream: NandStream::Gc,
            data,
            transfer: Transfer::Pages,
            cause: Cause::Meta,
            after,
        };
        let programmed = self.flash.program_reserved(sink, write)?;
        for (i, &lpn) in lpns.iter().enumerate().filter(|(_, lpn)| **lpn != PAGE_NONE) {
            let lpn = Lpn(lpn);
            if let Some(old) = self.map.get(lpn).ppn() {
                self.flash.invalidate_after(sink, old, programmed.done);
            }
            let seq = self.flash.unit_spares()[i].seq;
            self.map.set(lpn, PageEntry::in_nand(programmed.first.plus(count_u32(i)), seq));
        }
        self.programmed = sink.join(self.programmed, programmed.done);
        self.map.meta_written = sink.join(self.map.meta_written, programmed.done);
        self.changed = true;
        Ok((unit, programmed))
    }
}
