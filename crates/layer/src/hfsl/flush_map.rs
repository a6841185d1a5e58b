//! Second map: the entries as of the last flush, for backing files that may lose any write that was
//! not synced when the machine loses power.
//!
//! An acknowledged write changes the current map at once, so that it survives a crash of the
//! process. A flush syncs the files, updates the second map, and syncs again. Everything that the
//! second map names is therefore in synced storage, provided that nothing it names is erased or
//! overwritten: locations released between flushes are held back until the next one
//! (`PcmSpace::held`, `Unit::awaiting_flush`).

use super::layout::{ENTRY_BYTES, ENTRY_LEN};
use super::pcm::PcmSpace;
use crate::planted::HfslBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Lpn, Result, Sink, WriteData};

/// Entries written together: one cache line of the processor, so that the entries of a 4 KiB block
/// are copied as one unit whenever the host writes the file back.
const CHUNK: usize = 8;

/// Chunks with entries that changed since the last flush, one bit each.
#[derive(Debug)]
pub(crate) struct FlushMap {
    bits: Vec<u64>,
}

impl FlushMap {
    pub(crate) fn new(pages: u32) -> FlushMap {
        FlushMap { bits: vec![0; (pages as usize).div_ceil(CHUNK * 64)] }
    }

    #[inline]
    pub(crate) fn changed(&mut self, lpn: Lpn) {
        let chunk = lpn.idx() / CHUNK;
        self.bits[chunk / 64] |= 1 << (chunk % 64);
    }

    /// Returns the changed chunks, and clears all marks.
    fn take(&mut self) -> Vec<usize> {
        let mut chunks = Vec::new();
        for (i, word) in self.bits.iter_mut().enumerate() {
            let mut w = std::mem::take(word);
            while w != 0 {
                chunks.push(i * 64 + w.trailing_zeros() as usize);
                // Clears the lowest set bit.
                w &= w - 1;
            }
        }
        chunks
    }

    /// Updates the second map between two syncs of PCM, and frees everything that was held back.
    /// The first map has `pages` entries.
    pub(crate) fn write(&mut self, sink: &mut Sink, pcm: &mut PcmSpace, pages: usize) -> Result<()> {
        let Some(base) = pcm.layout.flush_map_at else { return Ok(()) };
        if !is_planted(HfslBug::FlushMapFirst) {
            pcm.medium.flush(sink)?;
        }
        let mut bytes = [0u8; CHUNK * ENTRY_LEN];
        for chunk in self.take() {
            let first = chunk * CHUNK;
            let len = (pages - first).min(CHUNK) * ENTRY_LEN;
            if pcm.stores_bytes() {
                // Under `map_persist = each` the map in PCM is current, so entries are copied from
                // there.
                pcm.medium.peek(pcm.layout.map_at + first as u64 * ENTRY_BYTES, &mut bytes[..len])?;
            }
            let (at, start) = (base + first as u64 * ENTRY_BYTES, sink.start());
            pcm.medium.write(sink, at, WriteData::Bytes(&bytes[..len]), Cause::Meta, start)?;
        }
        pcm.medium.flush(sink)?;
        // Only now does no durable map name the released locations.
        pcm.release_held();
        Ok(())
    }
}
