//! The second map: entries as of the last flush, for backing files of which a stop of the machine may
//! lose any write that was not synced.
//!
//! An acknowledged write changes the map at once, so that it survives the end of the program. A flush
//! syncs the files, then brings the second map up to date, then syncs again. What the second map names
//! is therefore always in synced storage, as long as nothing that it names is erased or written anew:
//! places that are given up between flushes are held back until the next one (`PcmSpace::held`,
//! `Unit::emptied`).

use super::mapping::{ENTRY_BYTES, Mapping};
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{Cause, Lpn, Result, Sink, Source};
use frit_media::Store;

/// Entries that are written together: a line of the processor's cache, so that the entries of a block of
/// 4 KiB are copied as one, whenever the host writes the file out.
const CHUNK: usize = 8;

/// Chunks with entries that changed since the last flush, one bit each.
#[derive(Debug)]
pub(crate) struct FlushMap {
    bits: Vec<u64>,
    /// Pages whose change is not in the second map, at least one.
    any: bool,
}

impl FlushMap {
    pub(crate) fn new(pages: u32) -> FlushMap {
        FlushMap { bits: vec![0; (pages as usize).div_ceil(CHUNK * 64)], any: false }
    }

    #[inline]
    pub(crate) fn changed(&mut self, lpn: Lpn) {
        let chunk = lpn.idx() / CHUNK;
        self.bits[chunk / 64] |= 1 << (chunk % 64);
        self.any = true;
    }

    /// The chunks that changed; none is marked afterwards.
    fn take(&mut self) -> Vec<usize> {
        let mut chunks = Vec::new();
        for (i, word) in self.bits.iter_mut().enumerate() {
            let mut w = std::mem::take(word);
            while w != 0 {
                chunks.push(i * 64 + w.trailing_zeros() as usize);
                w &= w - 1;
            }
        }
        self.any = false;
        chunks
    }
}

impl<T: Token, P: Store> Mapping<T, P> {
    /// Brings the second map up to date, between two syncs of PCM, and lets go of what was held back.
    pub(crate) fn write_flush_map<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let (Some(pcm), Some(map)) = (&mut self.pcm, &mut self.flush_map) else { return Ok(()) };
        let Some(base) = pcm.flush_map_at else { return Ok(()) };
        if !is(Bug::FlushMapFirst) {
            pcm.medium.store_mut().sync()?;
        }
        let mut bytes = [0u8; CHUNK * ENTRY_BYTES as usize];
        for chunk in map.take() {
            let first = chunk * CHUNK;
            let len = (self.table.len() - first).min(CHUNK) * ENTRY_BYTES as usize;
            if P::HOLDS {
                // Kept with each write, the map in PCM is as it should be.
                pcm.medium.peek(pcm.map_at + first as u64 * ENTRY_BYTES, &mut bytes[..len])?;
            }
            let data = if P::HOLDS { Source::Bytes(&bytes[..len]) } else { Source::Len(len as u32) };
            let (at, start) = (base + first as u64 * ENTRY_BYTES, sink.start());
            pcm.medium.write(sink, at, data, Cause::Meta, start)?;
        }
        pcm.medium.store_mut().sync()?;
        pcm.let_go();
        Ok(())
    }
}
