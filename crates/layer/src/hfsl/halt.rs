//! Clean shutdown: writes the map to PCM (section 2.6.1). Without PCM the map is not stored.

use super::Hfsl;
use super::entry::MapEntry;
use super::header::SUSPECTS;
use super::layout::{CHUNK, ENTRY_BYTES, ENTRY_LEN};
use super::pcm::NONE;
use crate::planted::HfslBug;
use frit_core::planted::is_planted;
use frit_core::{Result, Sink, Tok};

impl Hfsl {
    /// Shuts down in order: writes descriptors and map, and notes it in the header.
    pub(super) fn shut_down(&mut self, sink: &mut Sink) -> Result<()> {
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

    /// Writes descriptors before entries: an entry must never point to an unwritten descriptor.
    fn write_descs(&mut self, sink: &mut Sink) -> Result<Tok> {
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

    fn write_map(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let mut bytes = Vec::with_capacity(CHUNK * ENTRY_LEN);
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
            let at = pcm.layout.map_at + (i * CHUNK) as u64 * ENTRY_BYTES;
            let written = pcm.meta(sink, at, &bytes, after)?;
            done = sink.join(done, written);
        }
        let done = pcm.medium.fence(sink, done);
        self.map.redo_barrier = sink.join(self.map.redo_barrier, done);
        sink.ack(done);
        Ok(())
    }

    /// Marks the layer as cleanly shut down, so that the next boot has nothing to repair.
    fn mark_clean(&mut self, sink: &mut Sink) -> Result<()> {
        // Stores a limit above all numbers in use, from which the next boot continues.
        self.write_usage(sink, false)?;
        let flags = if self.flash.suspect_blocks() > 0 { SUSPECTS } else { 0 };
        if let Some(pcm) = &mut self.map.pcm {
            // The state "halted" waits for all commands before it, because a recovery after a
            // halt looks for no torn page.
            let entries = sink.join(self.map.redo_barrier, self.map.written);
            let all = sink.join(entries, self.flash.erased);
            let all = if is_planted(HfslBug::HaltedBeforeEntries) { self.map.redo_barrier } else { all };
            let done = pcm.write_flags(sink, flags, all)?;
            sink.ack(done);
            pcm.medium.sync(sink)?;
        }
        self.usage.in_use = false;
        Ok(())
    }
}
