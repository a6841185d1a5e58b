//! Halt and boot: writes the map to PCM and reads it back (section 2.6.1). Without PCM the map is
//! not stored; boot then finds each page by the spare areas of NAND, and the newest version counts.

use super::Hfsl;
use super::entry::{MapEntry, PageLocation};
use super::mapping::ENTRY_BYTES;
use super::pcm::NONE;
use super::recover::CHUNK;
use crate::Token;
use frit_core::{BlockId, CrashKind, Error, Lpn, Quiesce, Recovery, Result, Sink};
use frit_media::Store;

impl<S: Sink, N: Store, P: Store> Quiesce<S> for Hfsl<S::Tok, N, P> {
    fn halt(&mut self, sink: &mut S) -> Result<()> {
        self.ensure_in_use(sink)?;
        let done = self.write_descs(sink)?;
        self.write_map(sink, done)?;
        self.flash.nand_mut().sync()?;
        if self.config.flush_map {
            self.flash.make_durable(sink, &mut self.map)?;
        }
        // The clean state is written last: it promises that data and map are durable.
        self.mark_clean(sink)
    }

    fn boot(&mut self, sink: &mut S) -> Result<()> {
        let recovery = self.recover_from_media(sink, CrashKind::Process)?;
        match recovery.lost.first() {
            Some(lost) => Err(Error::Corrupt {
                medium: frit_core::MediumKind::Pcm,
                at: u64::from(lost.lpn) * ENTRY_BYTES,
                what: format!("{} pages are lost; page {}: {}", recovery.lost.len(), lost.lpn, lost.why),
            }),
            None => Ok(()),
        }
    }
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Writes descriptors before entries: an entry must never point to an unwritten descriptor.
    fn write_descs<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<T> {
        let mut done = sink.start();
        let Some(pcm) = &mut self.map.pcm else { return Ok(done) };
        for desc in 0..pcm.desc.len() as u32 {
            let lpn = pcm.desc[desc as usize].lpn;
            let stale = MapEntry(self.map.table.get(lpn as usize).copied().unwrap_or(0)).changed();
            if lpn != NONE && stale {
                let start = sink.start();
                let written = pcm.write_desc(sink, desc, start)?;
                done = sink.join(done, written);
            }
        }
        Ok(pcm.medium.fence(sink, done))
    }

    fn write_map<S: Sink<Tok = T>>(&mut self, sink: &mut S, after: T) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let mut bytes = Vec::with_capacity(CHUNK * ENTRY_BYTES as usize);
        let mut done = after;
        for (i, chunk) in self.map.table.chunks_mut(CHUNK).enumerate() {
            if !chunk.iter().any(|&e| MapEntry(e).changed()) {
                continue;
            }
            bytes.clear();
            for (j, e) in chunk.iter_mut().enumerate() {
                *e = MapEntry(*e).clean().0;
                let lpn = (i * CHUNK + j) as u32;
                // The damaged entry of a lost page stays as it is, for a later check.
                let raw = match self.map.lost.contains_key(&lpn) {
                    true => pcm.peek_entry(lpn)?,
                    false => MapEntry(*e).sealed(lpn),
                };
                bytes.extend_from_slice(&raw.to_le_bytes());
            }
            let at = pcm.map_at + (i * CHUNK) as u64 * ENTRY_BYTES;
            let written = pcm.meta(sink, at, &bytes, after)?;
            done = sink.join(done, written);
        }
        let done = pcm.medium.fence(sink, done);
        self.map.redo_barrier = sink.join(self.map.redo_barrier, done);
        sink.ack(done);
        Ok(())
    }

    /// Recovers without a map: the newest version of each page, by the sequence numbers in the
    /// spare areas. Discards are recorded in the map only, so they are lost.
    pub(super) fn recover_without_pcm(&mut self) -> Result<Recovery> {
        let g = *self.flash.nand().geometry();
        let mut newest = vec![0u64; self.pages as usize];
        for block in (0..g.blocks()).map(BlockId) {
            for page in 0..self.flash.nand().next_page(block) {
                let ppn = g.ppn(block, page);
                // A page whose program failed has no valid spare area, and was never the newest
                // version.
                let spare = match self.flash.nand().spare(ppn) {
                    Err(Error::Corrupt { .. }) | Ok(None) => continue,
                    Ok(Some(spare)) => spare,
                    Err(e) => return Err(e),
                };
                let lpn = spare.lpn as usize;
                if lpn < newest.len() && spare.seq > newest[lpn] {
                    newest[lpn] = spare.seq;
                    self.map.table[lpn] =
                        MapEntry::default().moved(PageLocation::Nand(ppn), 0, spare.seq).clean().0;
                }
            }
        }
        let mut pages = 0;
        for lpn in (0..self.pages).map(Lpn) {
            if let PageLocation::Nand(ppn) = self.map.get(lpn).place() {
                self.flash.adopt(lpn, ppn, self.map.get(lpn).tag(), false)?;
                pages += 1;
            }
        }
        self.flash.adopted(newest.into_iter().max().unwrap_or(0), true);
        Ok(Recovery { pages, ..Recovery::default() })
    }
}
