//! Saves of the map in virtual blocks, and flushes.

use super::layer::Nameless;
use crate::planted::NamelessBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, NamelessDevice, Result, Sink, WriteData};

impl<D: NamelessDevice> Nameless<D> {
    /// Writes the parts of the map that have changed. They wait for the contents that they refer to, and
    /// the blocks that they no longer refer to wait for them.
    pub(super) fn save_map(&mut self, sink: &mut Sink) -> Result<()> {
        let outdated = self.map.outdated();
        if outdated.is_empty() {
            return Ok(());
        }
        if !is_planted(NamelessBug::MapBeforeSync) {
            self.device.sync()?;
        }
        let after =
            if is_planted(NamelessBug::MapBeforeContents) { sink.start() } else { self.device.written() };
        let page = to_usize(self.page_bytes);
        let mut bytes = std::mem::take(&mut self.scratch);
        let mut saved = Ok(after);
        for blocks in outdated.chunks(to_usize(self.device.queue_blocks())) {
            for (&block, place) in blocks.iter().zip(bytes.chunks_exact_mut(page)) {
                self.map.encode(block, place);
            }
            let len = blocks.len() * page;
            let data = match bytes.get(..len) {
                Some(bytes) => WriteData::Bytes(bytes),
                None => WriteData::Len(count_u32(len)),
            };
            let written = self.device.virtual_write(sink, blocks, data, Cause::Meta, after);
            self.take_migrations();
            saved = saved.and_then(|saved| written.map(|written| sink.join(saved, written)));
            if saved.is_err() {
                break;
            }
        }
        self.scratch = bytes;
        let saved = saved?;
        self.stats.saves += 1;
        self.map.mark_saved();
        self.release_waiting(sink, saved);
        Ok(())
    }

    /// Makes all acknowledged writes and discards durable. A volume that has become read-only and has
    /// accepted none since the last flush, or since its recovery, has nothing to save.
    pub(super) fn flush_all(&mut self, sink: &mut Sink) -> Result<()> {
        if is_planted(NamelessBug::FlushIgnored) {
            return Ok(());
        }
        if !self.unflushed && self.writable().is_err() {
            // What a recovery has read can be in the page cache only.
            self.device.sync()?;
            sink.ack(self.device.written());
            return Ok(());
        }
        self.writable()?;
        self.dispatch(sink)?;
        self.save_map(sink)?;
        let flushed = self.device.flush(sink);
        self.take_migrations();
        sink.ack(flushed?);
        self.unflushed = false;
        Ok(())
    }
}
