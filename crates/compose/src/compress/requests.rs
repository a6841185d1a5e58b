//! Requests, divided into chunks.

use super::config::{KEPT_BY_NEW, KEPT_BY_OVERWRITES};
use super::entry::Entry;
use super::layer::Compress;
use crate::planted::CompressBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, ReadTarget, Result, SECTOR_BYTES, Sink, Tok, WriteData, size};

impl Compress {
    /// Returns the number of the chunk of a byte.
    #[inline]
    pub(super) fn chunk_of(&self, at: u64) -> u32 {
        (at / self.shape.volume.chunk) as u32
    }

    pub(super) fn read_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        mut into: ReadTarget<'_>,
        after: Tok,
    ) -> Result<Tok> {
        let (mut done, mut from, len) = (after, 0, into.len());
        while from < len {
            let (chunk, within, n) = self.shape.volume.part(at + u64::from(from), u64::from(len - from));
            let tok = self.read_part(sink, chunk, within, into.part(from, n), after)?;
            done = sink.join(done, tok);
            from += n;
        }
        Ok(done)
    }

    fn read_part(
        &mut self,
        sink: &mut Sink,
        chunk: u32,
        within: usize,
        mut into: ReadTarget<'_>,
        after: Tok,
    ) -> Result<Tok> {
        if let Some(i) = self.buffer.find(chunk) {
            let slot = self.buffer.get(i);
            copy_part(&slot.bytes, within, &mut into);
            return Ok(sink.join(after, slot.ready));
        }
        let entry = self.entries[chunk as usize];
        if entry.is_hole() {
            into.zero();
            return Ok(after);
        }
        let mut bytes = self.empty_chunk();
        let done = self.fetch(sink, chunk, &mut bytes, Cause::Host, after)?;
        copy_part(&bytes, within, &mut into);
        // The next read of the chunk finds its contents in the buffer, unless all of it is dirty.
        let _ = self.buffer.add(chunk, bytes, done);
        Ok(done)
    }

    /// Returns a chunk of zeros; without bytes, an empty one.
    fn empty_chunk(&self) -> Vec<u8> {
        if !self.without_bytes { vec![0; self.shape.volume.chunk as usize] } else { Vec::new() }
    }

    pub(super) fn write_range(
        &mut self,
        sink: &mut Sink,
        at: u64,
        data: WriteData<'_>,
        after: Tok,
    ) -> Result<Tok> {
        let (mut done, mut from, len) = (after, 0, data.len());
        while from < len {
            let (chunk, within, n) = self.shape.volume.part(at + u64::from(from), u64::from(len - from));
            let part = data.part(from, n);
            let i = self.dirty_slot(sink, chunk, u64::from(n), after)?;
            let slot = self.buffer.get_mut(i);
            if let Some(bytes) = part.bytes() {
                slot.bytes[within..within + bytes.len()].copy_from_slice(bytes);
            }
            done = sink.join(done, slot.ready);
            from += n;
        }
        Ok(done)
    }

    pub(super) fn zero_range(&mut self, sink: &mut Sink, at: u64, len: u64, after: Tok) -> Result<Tok> {
        let (mut done, mut pos, end) = (after, at, at + len);
        while pos < end {
            let (chunk, within, n) = self.shape.volume.part(pos, end - pos);
            let entry = self.entries[chunk as usize];
            if entry.is_lost() {
                return Err(self.lost(chunk));
            }
            if u64::from(n) == self.shape.volume.chunk {
                self.buffer.remove(chunk);
                if !entry.is_hole() {
                    self.replace(chunk, Entry::default());
                }
            } else if !entry.is_hole() || self.buffer.find(chunk).is_some() {
                let i = self.dirty_slot(sink, chunk, u64::from(n), after)?;
                let slot = self.buffer.get_mut(i);
                if let Some(part) = slot.bytes.get_mut(within..within + n as usize) {
                    part.fill(0);
                }
                done = sink.join(done, slot.ready);
            }
            pos += u64::from(n);
        }
        Ok(done)
    }

    /// Returns the slot of a chunk of which `n` bytes are about to be written.
    fn dirty_slot(&mut self, sink: &mut Sink, chunk: u32, n: u64, after: Tok) -> Result<usize> {
        if let Some(i) = self.buffer.find(chunk)
            && self.buffer.get(i).dirty
        {
            return Ok(i);
        }
        let entry = self.entries[chunk as usize];
        if entry.is_lost() {
            return Err(self.lost(chunk));
        }
        self.make_room(sink, &entry, after)?;
        let i = match self.buffer.find(chunk) {
            Some(i) => i,
            None => self.new_slot(sink, chunk, n, after)?,
        };
        // The old run may have been moved, but its length is the same.
        self.buffer.soil(i, self.shape.chunk_sectors - u64::from(entry.sectors));
        Ok(i)
    }

    /// Reads a chunk into a slot, unless all of it will be written.
    fn new_slot(&mut self, sink: &mut Sink, chunk: u32, n: u64, after: Tok) -> Result<usize> {
        if let Some(oldest) = self.buffer.to_store() {
            self.store(sink, oldest, after)?;
        }
        let mut contents = self.empty_chunk();
        let after = sink.join(after, self.buffer.memory());
        let mut ready = after;
        let whole = n == self.shape.volume.chunk || is_planted(CompressBug::RestNotMerged);
        if !whole && !self.entries[chunk as usize].is_hole() {
            ready = self.fetch(sink, chunk, &mut contents, Cause::Merge, after)?;
        }
        self.buffer.add(chunk, contents, ready).map_err(|_| Error::NoSpace {
            what: "the buffer of compress has no slot; enlarge buffer_chunks".into(),
        })
    }

    /// Makes sure that a chunk can be stored whatever its contents are.
    ///
    /// Every chunk in the buffer pledges the sectors that it may need beyond its old run. A new
    /// chunk leaves the space of two chunks free, and an overwrite that of one, so overwrites stay
    /// possible when new chunks are refused.
    fn make_room(&mut self, sink: &mut Sink, entry: &Entry, after: Tok) -> Result<()> {
        let all = self.shape.chunk_sectors;
        let kept = if entry.is_hole() { KEPT_BY_NEW } else { KEPT_BY_OVERWRITES } * all;
        let needed = kept + all - u64::from(entry.sectors);
        let available = |c: &Self| c.space.sectors().saturating_sub(c.buffer.pledged);
        if available(self) >= needed {
            return Ok(());
        }
        // What the buffered chunks need is known once they are stored.
        self.store_all(sink, after)?;
        if available(self) >= needed {
            return Ok(());
        }
        let bytes = |sectors: u64| size::format(sectors * SECTOR_BYTES);
        Err(Error::NoSpace {
            what: format!(
                "{} of {} of the device are free, and a chunk of {} that may not compress needs {} (with the \
                 reserve); discard what is not needed (fstrim), or enlarge the device",
                bytes(self.space.sectors()),
                bytes(self.shape.runs.1 - self.shape.runs.0),
                bytes(all),
                bytes(needed)
            ),
        })
    }
}

/// Copies a part of a chunk.
fn copy_part(chunk: &[u8], within: usize, into: &mut ReadTarget<'_>) {
    let Some(into) = into.bytes() else { return };
    match chunk.get(within..within + into.len()) {
        Some(part) => into.copy_from_slice(part),
        None => into.fill(0),
    }
}
