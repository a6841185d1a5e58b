//! The mapping table: in DRAM for every request, in PCM so that it outlives a stop.

use super::config::MapPersist;
use super::entry::{Entry, Place};
use super::flush_map::FlushMap;
use super::pcm::PcmSpace;
use crate::Token;
use crate::flash::{ForwardMap, Moved};
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Error, Lpn, MediumKind, Result, Sink, Source};
use frit_media::Store;
use std::collections::BTreeMap;

/// Bytes of an entry in PCM: the unit that PCM writes atomically.
pub(crate) const ENTRY_BYTES: u64 = 8;

/// The table, and the PCM in which it and some of the pages lie.
#[derive(Debug)]
pub(crate) struct Mapping<T, P: Store> {
    pub(crate) table: Vec<u64>,
    pub(crate) pcm: Option<PcmSpace<T, P>>,
    pub(crate) persist: MapPersist,
    /// What each write of an entry waits for: that an older record can no longer undo it.
    pub(crate) gate: T,
    /// Time at which all entries so far are as durable as the configuration wants them.
    pub(crate) written: T,
    /// Pages that cannot be given back, and why. They are unmapped in the table.
    pub(crate) lost: BTreeMap<u32, String>,
    /// Entries that changed since the last flush, when there is a map of that.
    pub(crate) flush_map: Option<FlushMap>,
}

impl<T: Token, P: Store> Mapping<T, P> {
    pub(crate) fn new(pages: u32, pcm: Option<PcmSpace<T, P>>, persist: MapPersist) -> Mapping<T, P> {
        let flush_map = pcm.as_ref().and_then(|p| p.flush_map_at).map(|_| FlushMap::new(pages));
        let table = frit_media::memory::table64(pages as usize);
        Mapping {
            table,
            pcm,
            persist,
            gate: T::default(),
            written: T::default(),
            lost: BTreeMap::new(),
            flush_map,
        }
    }

    /// Whether each change of an entry is written before it is acknowledged.
    #[inline]
    pub(crate) fn each(&self) -> bool {
        self.persist == MapPersist::Each
    }

    /// The entry of a page.
    #[inline]
    pub(crate) fn get(&self, lpn: Lpn) -> Entry {
        Entry(self.table[lpn.idx()])
    }

    /// Changes an entry, once `after` is done. Returns when the change is as durable as the
    /// configuration wants it.
    #[inline]
    pub(crate) fn set<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lpn: Lpn,
        entry: Entry,
        after: T,
    ) -> Result<T> {
        self.note(lpn, entry);
        if !self.each() {
            return Ok(after);
        }
        let after = if is(Bug::EntryBeforeData) { sink.start() } else { after };
        let after = if is(Bug::RedoGateOpen) { after } else { sink.join(after, self.gate) };
        let Some(pcm) = &mut self.pcm else { return Ok(after) };
        self.table[lpn.idx()] = entry.clean().0;
        let written = pcm.write_entry(sink, lpn.0, entry.clean().sealed(lpn.0), after)?;
        let done = if is(Bug::EntryNotFenced) { written } else { pcm.medium.fence(sink, written) };
        self.written = sink.join(self.written, done);
        Ok(done)
    }

    /// Changes an entry in DRAM.
    #[inline]
    pub(crate) fn note(&mut self, lpn: Lpn, entry: Entry) {
        self.table[lpn.idx()] = entry.0;
        if !self.lost.is_empty() {
            self.lost.remove(&lpn.0);
        }
        if let Some(f) = &mut self.flush_map {
            f.changed(lpn);
        }
    }

    /// A page that was mapped and cannot be given back: reading it says so until it is written anew.
    pub(crate) fn lose(&mut self, lpn: Lpn, why: &Error) {
        self.table[lpn.idx()] = 0;
        self.lost.insert(lpn.0, why.to_string());
    }

    /// Whether a page that lies nowhere is one that was lost.
    ///
    /// # Errors
    /// It is.
    #[inline]
    pub(crate) fn not_lost(&self, lpn: Lpn) -> Result<()> {
        match self.lost.get(&lpn.0) {
            None => Ok(()),
            Some(why) => Err(Error::Corrupt {
                medium: MediumKind::Pcm,
                at: self.pcm.as_ref().map_or(0, |p| p.map_at) + u64::from(lpn.0) * ENTRY_BYTES,
                what: format!("logical page {} is lost: {why}", lpn.0),
            }),
        }
    }
}

impl<T: Token, P: Store> ForwardMap<T> for Mapping<T, P> {
    #[inline]
    fn moved<S: Sink<Tok = T>>(&mut self, sink: &mut S, page: Moved<T>) -> Result<T> {
        let entry = self.get(page.lpn).moved(Place::Nand(page.to), 0, page.seq);
        self.set(sink, page.lpn, entry, page.done)
    }

    fn prepare(&self, pages: &[u32]) {
        // Loads without a use: they overlap, where the moves would each wait for one.
        let entry = |&page: &u32| self.table.get(page.wrapping_sub(1) as usize).copied().unwrap_or(0);
        std::hint::black_box(pages.iter().map(entry).fold(0, |a, e| a ^ e));
    }

    fn tag(&self, lpn: Lpn) -> u16 {
        self.get(lpn).tag()
    }

    fn lost(&mut self, lpn: Lpn, why: &Error) {
        self.lose(lpn, why);
    }

    fn outlive<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        self.write_flush_map(sink)
    }
}

impl<T: Token, P: Store> PcmSpace<T, P> {
    /// Writes an entry. It is durable after a fence.
    pub(crate) fn write_entry<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lpn: u32,
        raw: u64,
        after: T,
    ) -> Result<T> {
        let at = self.map_at + u64::from(lpn) * ENTRY_BYTES;
        let bytes = raw.to_le_bytes();
        let data = if P::HOLDS { Source::Bytes(&bytes) } else { Source::Len(ENTRY_BYTES as u32) };
        self.medium.write(sink, at, data, Cause::Meta, after)
    }
}
