//! The mapping table: in DRAM for every request, in PCM so that it outlives a stop.

use super::config::MapPersist;
use super::entry::{Entry, Place};
use super::pcm::PcmSpace;
use crate::Token;
use crate::flash::{ForwardMap, Moved};
use frit_core::{Cause, Lpn, Result, Sink, Source};
use frit_media::Store;

/// Bytes of an entry in PCM: the unit that PCM writes atomically.
pub(crate) const ENTRY_BYTES: u64 = 8;

/// The table, and the PCM in which it and some of the pages lie.
#[derive(Debug)]
pub(crate) struct Mapping<T, P: Store> {
    pub(crate) table: Vec<u64>,
    pub(crate) pcm: Option<PcmSpace<T, P>>,
    pub(crate) persist: MapPersist,
}

impl<T: Token, P: Store> Mapping<T, P> {
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
        self.table[lpn.idx()] = entry.0;
        match (&mut self.pcm, self.persist) {
            (Some(pcm), MapPersist::Each) => {
                self.table[lpn.idx()] = entry.clean().0;
                pcm.write_entry(sink, lpn, entry.clean(), after)
            }
            _ => Ok(after),
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
}

impl<T: Token, P: Store> PcmSpace<T, P> {
    fn write_entry<S: Sink<Tok = T>>(&mut self, sink: &mut S, lpn: Lpn, entry: Entry, after: T) -> Result<T> {
        let at = self.map_at + u64::from(lpn.0) * ENTRY_BYTES;
        let bytes = entry.0.to_le_bytes();
        let data = if P::HOLDS { Source::Bytes(&bytes) } else { Source::Len(ENTRY_BYTES as u32) };
        let done = self.medium.write(sink, at, data, Cause::Meta, after)?;
        Ok(self.medium.fence(sink, done))
    }
}
