//! Translation pages of DFTL: their reads and writes, and the entries that they have.
//!
//! A translation page is a page of NAND like others: garbage collection moves it, and its place is in
//! the map. It has 4 bytes for each page of the volume that it covers: the physical page plus one, or
//! zero. An entry that is read is compared with the map.

use super::layer::Ftl;
use super::mapping::{MappingScheme, TranslationStep};
use super::meta::PageSet;
use super::page_map::PageEntry;
use crate::flash::NandStream;
use crate::flash::gather::UnitWrite;
use crate::payload::buffered;
use crate::planted::FtlBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Lpn, MediumKind, ReadTarget, Result, Sink, Tok};
use frit_media::Transfer;
use std::collections::BTreeSet;

/// Bytes of an entry.
const ENTRY_BYTES: u32 = 4;

/// Counters of translation pages.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct TranslationStats {
    /// Reads and writes for requests.
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// Reads and writes because garbage collection moved pages, or pages were discarded.
    pub(super) batch_reads: u64,
    pub(super) batch_writes: u64,
}

/// Entries that changed without the cache, and whose translation pages have to be written.
#[derive(Debug, Default)]
pub(super) struct StaleEntries {
    /// Pages of the volume whose entries in NAND are stale.
    entries: PageSet,
    /// Translation pages to write, by the NAND unit whose garbage collection moved pages. They are
    /// written when its victim is done, so that one write has all changes.
    waiting: Vec<(u32, BTreeSet<u32>)>,
    /// Translation pages that hold entries. Preconditioned ones hold none.
    filled: PageSet,
    steps: Vec<TranslationStep>,
    bytes: Vec<u8>,
}

impl StaleEntries {
    pub(super) fn new(pages: u32, translation_pages: u32) -> StaleEntries {
        StaleEntries {
            entries: PageSet::new(pages),
            filled: PageSet::new(translation_pages),
            ..StaleEntries::default()
        }
    }

    pub(super) fn reset(&mut self) {
        self.entries.clear();
        self.filled.clear();
        self.waiting.clear();
    }
}

/// Entries of a translation page.
pub(super) fn entries_per_page(page_bytes: u32) -> u32 {
    page_bytes / ENTRY_BYTES
}

fn encode(entry: PageEntry) -> u32 {
    entry.ppn().map_or(0, |ppn| ppn.0 + 1)
}

impl Ftl {
    /// Finds the entry of a page as DFTL does. Returns the token for which the access to the page waits.
    pub(super) fn translate(&mut self, sink: &mut Sink, lpn: Lpn, changes: bool) -> Result<Tok> {
        if self.translation_pages == 0 || self.flash.health.refusal().is_some() {
            return Ok(Tok::default());
        }
        self.settle(sink, false)?;
        let mut steps = std::mem::take(&mut self.stale.steps);
        steps.clear();
        if let Some(dftl) = self.scheme.dftl() {
            dftl.access(lpn, &mut steps);
        }
        let mut ready = Tok::default();
        let mut done = Ok(());
        for &step in &steps {
            let stepped = match step {
                TranslationStep::Load { page } => self.load(sink, page, lpn),
                TranslationStep::WriteBack { .. } if is_planted(FtlBug::EntryNotWritten) => continue,
                TranslationStep::WriteBack { page } => self.write_translation(sink, page, false),
            };
            match stepped {
                Ok(read) => ready = sink.join(ready, read),
                Err(e) => {
                    if let TranslationStep::WriteBack { page } = step {
                        // The evicted entry is in no other table any more.
                        self.covered_by(page).for_each(|lpn| self.stale.entries.set(Lpn(lpn), true));
                    }
                    done = Err(e);
                }
            }
        }
        self.stale.steps = steps;
        if changes && let Some(dftl) = self.scheme.dftl() {
            dftl.changed(lpn);
        }
        done.map(|()| ready)
    }

    /// Number of a translation page among the pages in NAND.
    fn translation_lpn(&self, page: u32) -> Lpn {
        Lpn(self.pages + page)
    }

    /// Reads a translation page for an entry, which is compared with the map.
    fn load(&mut self, sink: &mut Sink, page: u32, lpn: Lpn) -> Result<Tok> {
        let read = match self.read_translation(sink, page) {
            Err(Error::Corrupt { .. }) => return self.write_translation(sink, page, false),
            read => read?,
        };
        let Some(read) = read else { return Ok(Tok::default()) };
        self.stats.translation.reads += 1;
        // Garbage collection for a write-back before this read may have moved the page.
        if !self.scheme.is_changed_in_cache(lpn) {
            self.compare(page, lpn)?;
        }
        // An entry that is newer than its translation page enters the cache as changed.
        if self.stale.entries.has(lpn)
            && let Some(dftl) = self.scheme.dftl()
        {
            dftl.changed(lpn);
            self.stale.entries.set(lpn, false);
        }
        Ok(read)
    }

    /// Reads a translation page into the buffer; `None` if there is none.
    fn read_translation(&mut self, sink: &mut Sink, page: u32) -> Result<Option<Tok>> {
        let entry = self.map.get(self.translation_lpn(page));
        let Some(ppn) = entry.ppn() else { return Ok(None) };
        let size = to_usize(self.page_bytes);
        self.stale.bytes.resize(if self.stores_bytes() { size } else { 0 }, 0);
        let into = match self.stores_bytes() {
            true => ReadTarget::Bytes(&mut self.stale.bytes),
            false => ReadTarget::Len(self.page_bytes),
        };
        self.flash.read(sink, ppn, 0, into, entry.tag(), Cause::Meta).map(Some)
    }

    /// Compares an entry of the translation page in the buffer with the map.
    fn compare(&self, page: u32, lpn: Lpn) -> Result<()> {
        if !self.stores_bytes() || !self.stale.filled.has(Lpn(page)) || self.stale.entries.has(lpn) {
            return Ok(());
        }
        let (found, expected) = (self.entry_in_buffer(page, lpn), encode(self.map.get(lpn)));
        if found == expected {
            return Ok(());
        }
        let what = format!(
            "translation page {page} has entry {found} for logical page {}, and the map has {expected}",
            lpn.0
        );
        Err(Error::Corrupt { medium: MediumKind::Nand, at: u64::from(page), what })
    }

    fn entry_in_buffer(&self, page: u32, lpn: Lpn) -> u32 {
        let at = to_usize((lpn.0 - page * entries_per_page(self.page_bytes)) * ENTRY_BYTES);
        let entry = self.stale.bytes.get(at..at + to_usize(ENTRY_BYTES)).and_then(|b| b.try_into().ok());
        entry.map_or(0, u32::from_le_bytes)
    }

    /// Pages of the volume that a translation page covers.
    fn covered_by(&self, page: u32) -> std::ops::Range<u32> {
        let entries = entries_per_page(self.page_bytes);
        page * entries..((page + 1) * entries).min(self.pages)
    }

    /// Reads and writes a translation page with all its entries. Returns the token of the program.
    fn write_translation(&mut self, sink: &mut Sink, page: u32, batch: bool) -> Result<Tok> {
        let read = match self.read_translation(sink, page) {
            // The map has all its entries.
            Err(Error::Corrupt { .. }) => None,
            read => read?,
        };
        let stats = &mut self.stats.translation;
        *(if batch { &mut stats.batch_reads } else { &mut stats.reads }) += u64::from(read.is_some());
        *(if batch { &mut stats.batch_writes } else { &mut stats.writes }) += 1;
        let lpn = self.translation_lpn(page);
        let turn = self.streams.next_turn();
        let unit = self.flash.first_unit(sink, Lpn(turn));
        // The collection that the program may need moves pages, whose entries are then stale.
        self.flash.reserve(sink, &mut self.map, unit, NandStream::Cold, self.unit_pages)?;
        self.note_moved();
        let size = to_usize(self.page_bytes);
        let mut bytes = std::mem::take(&mut self.stale.bytes);
        if self.stores_bytes() {
            bytes.clear();
            for lpn in self.covered_by(page) {
                bytes.extend_from_slice(&encode(self.map.get(Lpn(lpn))).to_le_bytes());
            }
            bytes.resize(size, 0);
        }
        let data = buffered(&bytes, self.page_bytes);
        let after = read.unwrap_or_default();
        let (lpns, stream) = ([lpn.0], NandStream::Cold);
        let write = UnitWrite {
            lpns: &lpns,
            unit,
            stream,
            data,
            transfer: Transfer::Pages,
            cause: Cause::Meta,
            after,
        };
        let programmed = self.flash.write_unit(sink, &mut self.map, write);
        self.stale.bytes = bytes;
        let programmed = programmed?;
        self.covered_by(page).for_each(|lpn| self.stale.entries.set(Lpn(lpn), false));
        if let Some(dftl) = self.scheme.dftl() {
            dftl.written(page);
        }
        if let Some(old) = self.map.get(lpn).ppn() {
            self.flash.invalidate_after(sink, old, programmed.done);
        }
        let seq = self.flash.unit_spares()[0].seq;
        self.map.set(lpn, PageEntry::in_nand(programmed.first, seq));
        self.stale.filled.set(Lpn(page), true);
        self.programmed = sink.join(self.programmed, programmed.done);
        self.changed = true;
        self.flash.collect_on_write(sink, &mut self.map, unit, self.unit_pages)?;
        self.note_moved();
        Ok(programmed.done)
    }

    /// Notes that the entry of a page changed without an access to its entry.
    pub(super) fn note_changed(&mut self, lpn: Lpn, unit: u32) {
        if self.translation_pages == 0 || lpn.0 >= self.pages {
            return;
        }
        if self.scheme.dftl().is_some_and(|dftl| dftl.changed(lpn)) {
            return;
        }
        self.stale.entries.set(lpn, true);
        let page = lpn.0 / entries_per_page(self.page_bytes);
        match self.stale.waiting.iter_mut().find(|(u, _)| *u == unit) {
            Some((_, pages)) => drop(pages.insert(page)),
            None => self.stale.waiting.push((unit, BTreeSet::from([page]))),
        }
    }

    /// Notes the pages that garbage collection has moved.
    pub(super) fn note_moved(&mut self) {
        if self.translation_pages == 0 {
            return;
        }
        let mut moved = std::mem::take(&mut self.map.moves);
        for (lpn, to) in moved.drain(..) {
            if is_planted(FtlBug::MovedNotTranslated) {
                continue;
            }
            let unit = self.flash.blocks().unit_of(self.block_of(to).0);
            self.note_changed(lpn, unit);
        }
        self.map.moves = moved;
    }

    /// Writes the translation pages of units whose victim is done, or all of them.
    pub(super) fn settle(&mut self, sink: &mut Sink, all: bool) -> Result<()> {
        self.note_moved();
        while let Some(i) = self.stale.waiting.iter().position(|(u, _)| all || !self.flash.has_victim(*u)) {
            let (_, pages) = self.stale.waiting.swap_remove(i);
            for page in pages {
                if self.covered_by(page).any(|lpn| self.stale.entries.has(Lpn(lpn))) {
                    self.write_translation(sink, page, true)?;
                }
            }
        }
        Ok(())
    }

    /// Finds the stale entries after a recovery, which finds the map in the records of its pages.
    pub(super) fn find_stale_entries(&mut self, sink: &mut Sink) -> Result<()> {
        if self.translation_pages == 0 {
            return Ok(());
        }
        self.stale.reset();
        self.scheme.reset();
        for page in 0..self.translation_pages {
            let read = match self.read_translation(sink, page) {
                Ok(Some(_)) => true,
                Ok(None) | Err(Error::Corrupt { .. }) => false,
                Err(e) => return Err(e),
            };
            if !read {
                self.stale.bytes.clear();
            }
            for lpn in self.covered_by(page).map(Lpn) {
                if self.entry_in_buffer(page, lpn) != encode(self.map.get(lpn)) {
                    self.note_changed(lpn, 0);
                }
            }
            self.stale.filled.set(Lpn(page), true);
        }
        Ok(())
    }

    /// Finds entries in translation pages that differ from the map, and calls `found` with each.
    pub(super) fn check_translations(
        &mut self,
        sink: &mut Sink,
        found: &mut dyn FnMut(Lpn, String),
    ) -> Result<()> {
        self.note_moved();
        for page in 0..self.translation_pages {
            match self.read_translation(sink, page) {
                Ok(Some(_)) => {}
                Ok(None) | Err(Error::Corrupt { .. }) => continue,
                Err(e) => return Err(e),
            }
            for lpn in self.covered_by(page).map(Lpn) {
                if let Err(e) = self.compare(page, lpn)
                    && !self.scheme.is_changed_in_cache(lpn)
                {
                    found(lpn, e.to_string());
                }
            }
        }
        Ok(())
    }

    /// Translation pages of a volume of so many pages.
    pub(super) fn translation_pages_for(config: &super::FtlConfig, pages: u32, page_bytes: u32) -> u32 {
        match config.mapping {
            super::Mapping::Dftl => pages.div_ceil(entries_per_page(page_bytes)),
            _ => 0,
        }
    }
}
