//! Mapping table: in DRAM for lookups, in PCM for durability.

use super::config::MapPersist;
use super::entry::{MapEntry, PageLocation};
use super::flush_map::FlushMap;
use super::layout::ENTRY_BYTES;
use super::pcm::PcmSpace;
use crate::flash::{ForwardMap, MovedPage};
use crate::planted::HfslBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Lpn, MediumKind, Result, Sink, Tok, WriteData};
use std::collections::BTreeMap;

/// Mapping table, and the PCM that holds the table and some of the pages.
#[derive(Debug)]
pub(crate) struct MappingTable {
    pub(crate) table: Vec<u64>,
    pub(crate) pcm: Option<PcmSpace>,
    pub(crate) persist: MapPersist,
    /// Token that every write of an entry and of a redo record waits for: after it, no older redo
    /// record can overwrite the entry.
    pub(crate) redo_barrier: Tok,
    /// Time at which all entries so far are as durable as the configuration wants them.
    pub(crate) written: Tok,
    /// Pages whose contents are lost, with the reason. They are unmapped in the table.
    pub(crate) lost: BTreeMap<u32, String>,
    /// Entries that changed since the last flush; present if the second map is kept.
    pub(crate) flush_map: Option<FlushMap>,
}

impl MappingTable {
    pub(crate) fn new(pages: u32, pcm: Option<PcmSpace>, persist: MapPersist) -> MappingTable {
        let flush_map = pcm.as_ref().and_then(|p| p.layout.flush_map_at).map(|_| FlushMap::new(pages));
        let table = frit_media::memory::table64(pages as usize);
        MappingTable {
            table,
            pcm,
            persist,
            redo_barrier: Tok::default(),
            written: Tok::default(),
            lost: BTreeMap::new(),
            flush_map,
        }
    }

    /// Returns `true` if each change of an entry is written to PCM before it is acknowledged.
    #[inline]
    pub(crate) fn each(&self) -> bool {
        self.persist == MapPersist::Each
    }

    /// Returns the entry of a page.
    #[inline]
    pub(crate) fn get(&self, lpn: Lpn) -> MapEntry {
        MapEntry(self.table[lpn.idx()])
    }

    /// Changes an entry after `after` is complete. Returns a token that completes when the change
    /// is as durable as `map_persist` requires.
    #[inline]
    pub(crate) fn set(&mut self, sink: &mut Sink, lpn: Lpn, entry: MapEntry, after: Tok) -> Result<Tok> {
        self.note(lpn, entry);
        if !self.each() {
            return Ok(after);
        }
        let after = if is_planted(HfslBug::EntryBeforeData) { sink.start() } else { after };
        let Some(pcm) = &mut self.pcm else { return Ok(after) };
        if pcm.redo.covers(lpn) && !is_planted(HfslBug::RedoNotCleared) {
            self.redo_barrier = pcm.retire_redo(sink, self.redo_barrier)?;
        }
        // Until `self.redo_barrier` an older redo record could overwrite this entry in a recovery.
        let after =
            if is_planted(HfslBug::RedoGateOpen) { after } else { sink.join(after, self.redo_barrier) };
        // Clean in DRAM, since PCM receives the same entry now.
        self.table[lpn.idx()] = entry.clean().0;
        let written = pcm.write_entry(sink, lpn.0, entry.clean().sealed(lpn.0), after)?;
        let done =
            if is_planted(HfslBug::EntryNotFenced) { written } else { pcm.medium.fence(sink, written) };
        self.written = sink.join(self.written, done);
        Ok(done)
    }

    /// Changes an entry in DRAM only.
    #[inline]
    // A new entry ends the loss of the page: its contents are valid again.
    pub(crate) fn note(&mut self, lpn: Lpn, entry: MapEntry) {
        self.table[lpn.idx()] = entry.0;
        if !self.lost.is_empty() {
            self.lost.remove(&lpn.0);
        }
        if let Some(f) = &mut self.flush_map {
            f.changed(lpn);
        }
    }

    /// Marks a page as lost. Reads of it fail with the reason until it is written again.
    pub(crate) fn mark_lost(&mut self, lpn: Lpn, why: &Error) {
        self.table[lpn.idx()] = 0;
        self.lost.insert(lpn.0, why.to_string());
    }

    /// Checks that an unmapped page was not lost.
    ///
    /// # Errors
    /// `Corrupt` if the page was lost.
    #[inline]
    pub(crate) fn check_not_lost(&self, lpn: Lpn) -> Result<()> {
        match self.lost.get(&lpn.0) {
            None => Ok(()),
            Some(why) => Err(Error::Corrupt {
                medium: MediumKind::Pcm,
                at: self.pcm.as_ref().map_or(0, |p| p.layout.map_at) + u64::from(lpn.0) * ENTRY_BYTES,
                what: format!("logical page {} is lost: {why}", lpn.0),
            }),
        }
    }
}

impl ForwardMap for MappingTable {
    #[inline]
    fn moved(&mut self, sink: &mut Sink, page: MovedPage) -> Result<Tok> {
        let entry = self.get(page.lpn).moved(PageLocation::Nand(page.to), 0, page.seq);
        self.set(sink, page.lpn, entry, page.done)
    }

    fn prepare(&self, pages: &[u32]) {
        // Loads the entries without using them: the loads overlap, whereas each move would wait for
        // its own cache miss.
        let entry = |&page: &u32| self.table.get(page.wrapping_sub(1) as usize).copied().unwrap_or(0);
        std::hint::black_box(pages.iter().map(entry).fold(0, |a, e| a ^ e));
    }

    fn tag(&self, lpn: Lpn) -> u16 {
        self.get(lpn).tag()
    }

    fn lost(&mut self, lpn: Lpn, why: &Error) {
        self.mark_lost(lpn, why);
    }

    fn make_durable(&mut self, sink: &mut Sink) -> Result<()> {
        match (&mut self.pcm, &mut self.flush_map) {
            (Some(pcm), Some(map)) => map.write(sink, pcm, self.table.len()),
            _ => Ok(()),
        }
    }
}

impl PcmSpace {
    /// Writes an entry to PCM. It is durable after the next fence.
    pub(crate) fn write_entry(&mut self, sink: &mut Sink, lpn: u32, raw: u64, after: Tok) -> Result<Tok> {
        let at = self.layout.map_at + u64::from(lpn) * ENTRY_BYTES;
        self.medium.write(sink, at, WriteData::Bytes(&raw.to_le_bytes()), Cause::Meta, after)
    }
}
