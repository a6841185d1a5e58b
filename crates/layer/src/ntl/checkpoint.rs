//! Checkpoint of the tables, written at a clean shutdown of an unprotected layer, which has no
//! records to rebuild them from.
//!
//! ```text
//! 0     magic (8), pages (4), zero (4), CRC32C of what follows (4), zeros (44)
//! 64    one bit for each page: its home was written (in words of 8 bytes)
//!       one bit for each page: it holds data
//!       home of each page (4)
//! ```

use super::layer::Ntl;
use super::layout::CHECKPOINT_HEADER_BYTES;
use super::mapping::{MappingPolicy, PLACE_NONE};
use crate::numbers::Place;
use frit_core::Lpn;
use frit_core::convert::{count_u32, size_in_memory, to_u64, to_usize};
use frit_core::{Cause, Error, MediumKind, ReadTarget, Result, Sink, WriteData};
use frit_media::checksum::crc32c;

const MAGIC: &[u8; 8] = b"fritNTLt";

impl Ntl {
    /// Writes the checkpoint. The log is merged before, so that its tables need not be saved.
    pub(super) fn write_checkpoint(&mut self, sink: &mut Sink) -> Result<()> {
        if let Some(rows) = self.log.as_ref().filter(|log| log.pages() > 0).map(super::log::LogTables::rows) {
            self.merge(sink, rows)?;
        }
        let mut body = Vec::new();
        for bits in [&self.used, &self.live] {
            body.extend(bits.words().iter().flat_map(|w| w.to_le_bytes()));
        }
        for lpn in Lpn::first(self.pages()) {
            let home = if self.used.has(lpn) { self.mapping.home(lpn) } else { None };
            body.extend(home.unwrap_or(PLACE_NONE).0.to_le_bytes());
        }
        let mut all = vec![0; size_in_memory(CHECKPOINT_HEADER_BYTES)];
        all[..8].copy_from_slice(MAGIC);
        all[8..12].copy_from_slice(&self.pages().to_le_bytes());
        all[16..20].copy_from_slice(&crc32c(&body).to_le_bytes());
        all.extend(body);
        let start = sink.start();
        // Consecutive pages of the checkpoint lie on consecutive chips, which write in parallel.
        for (i, part) in all.chunks(to_usize(self.page_bytes())).enumerate() {
            let at = self.space.layout.checkpoint(to_u64(i) * u64::from(self.page_bytes()));
            let source = if self.stores_bytes() {
                WriteData::Bytes(part)
            } else {
                WriteData::Len(count_u32(part.len()))
            };
            let tok = self.space.pcm.write(sink, at, source, Cause::Meta, start)?;
            sink.ack(tok);
        }
        Ok(())
    }

    /// Reads the checkpoint.
    pub(super) fn read_checkpoint(&mut self, sink: &mut Sink) -> Result<()> {
        let words = self.used.words().len();
        let len = size_in_memory(CHECKPOINT_HEADER_BYTES) + 16 * words + 4 * to_usize(self.pages());
        let mut all = vec![0; len];
        let start = sink.start();
        for (i, part) in all.chunks_mut(to_usize(self.page_bytes())).enumerate() {
            let at = self.space.layout.checkpoint(to_u64(i) * u64::from(self.page_bytes()));
            let tok = self.space.pcm.read(sink, at, ReadTarget::Bytes(part), Cause::Meta, start)?;
            sink.ack(tok);
        }
        let (head, body) = all.split_at(size_in_memory(CHECKPOINT_HEADER_BYTES));
        if head[..8] != *MAGIC
            || head[8..12] != self.pages().to_le_bytes()
            || head[16..20] != crc32c(body).to_le_bytes()
        {
            return Err(checkpoint_damaged(self.space.layout.checkpoint(0)));
        }
        let (bits, homes) = body.split_at(16 * words);
        let (used, live) = bits.split_at(8 * words);
        for (into, from) in [(&mut self.used, used), (&mut self.live, live)] {
            for (word, bytes) in into.words_mut().iter_mut().zip(from.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        for (lpn, home) in homes.as_chunks::<4>().0.iter().enumerate() {
            let home = Place(u32::from_le_bytes(*home));
            if home != PLACE_NONE && !self.mapping.restore(Lpn::of_idx(lpn), home) {
                return Err(checkpoint_damaged(self.space.layout.checkpoint(0)));
            }
        }
        self.mapping.end_restore();
        Ok(())
    }
}

fn checkpoint_damaged(at: u64) -> Error {
    let what = "the checkpoint of the tables is damaged, or the layer was never shut down cleanly".into();
    Error::Corrupt { medium: MediumKind::Pcm, at, what }
}
