//! Requests, divided into chunks.

use super::entry::{Entry, checksum};
use super::layer::Segments;
use crate::planted::SegmentsBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, ReadTarget, Result, Sink, Tok, WriteData, size};

impl Segments {
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
            let entry = self.entries[chunk as usize];
            let n = if entry.is_lost() {
                return Err(self.lost(chunk));
            } else if entry.is_hole() {
                into.part(from, n).zero();
                n
            } else if let Some(open) = self.open_segment(entry.object) {
                let contents = open.contents(entry.index, self.chunk_len());
                if let Some(to) = into.part(from, n).bytes()
                    && let Some(part) = contents.get(within..within + to.len())
                {
                    to.copy_from_slice(part);
                }
                done = sink.join(done, open.ready);
                n
            } else {
                let n = self.run(chunk, within, len - from);
                let tok = self.read_run(sink, chunk, within, into.part(from, n), after)?;
                done = sink.join(done, tok);
                n
            };
            from += n;
        }
        Ok(done)
    }

    /// Returns the length of the part of a request whose chunks follow each other in one object.
    fn run(&self, first: u32, within: usize, most: u32) -> u32 {
        let (chunk, entry) = (self.shape.volume.chunk, self.entries[first as usize]);
        let mut bytes = chunk - within as u64;
        let following = self.entries[first as usize + 1..].iter().zip(1u32..);
        for (next, n) in following {
            let adjacent = next.object == entry.object && u32::from(next.index) == u32::from(entry.index) + n;
            if !adjacent || bytes >= u64::from(most) {
                break;
            }
            bytes += chunk;
        }
        bytes.min(u64::from(most)) as u32
    }

    /// Reads a part of chunks that follow each other in an object, with one request. Whole chunks are
    /// read, since a checksum covers a chunk.
    fn read_run(
        &mut self,
        sink: &mut Sink,
        first: u32,
        within: usize,
        mut into: ReadTarget<'_>,
        after: Tok,
    ) -> Result<Tok> {
        let chunk = self.chunk_len();
        let len = into.len() as usize;
        let chunks = (within + len).div_ceil(chunk);
        let whole = within == 0 && chunks * chunk == len;
        let (cause, bytes) = (Cause::Host, chunks * chunk);
        match into.bytes() {
            None => self.get_chunks(sink, first, ReadTarget::Len(bytes as u32), cause, after),
            Some(to) if whole => self.get_chunks(sink, first, ReadTarget::Bytes(to), cause, after),
            Some(to) => {
                let mut scratch = std::mem::take(&mut self.scratch);
                scratch.resize(bytes, 0);
                let done = self.get_chunks(sink, first, ReadTarget::Bytes(&mut scratch), cause, after);
                to.copy_from_slice(&scratch[within..within + len]);
                self.scratch = scratch;
                done
            }
        }
    }

    /// Reads whole chunks that follow each other in an object, and verifies their checksums.
    pub(super) fn get_chunks(
        &mut self,
        sink: &mut Sink,
        first: u32,
        mut into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let (chunk, entry) = (self.chunk_len(), self.entries[first as usize]);
        let at = u32::from(entry.index) * chunk as u32;
        let after = self.put_of(sink, entry.object, after);
        let len = into.len();
        if let Some(bytes) = into.bytes()
            && self.gets.defer(entry.object, at, bytes)
        {
            return self.store.get(sink, entry.object, at, ReadTarget::Len(len), cause, after);
        }
        let done = self.store.get(sink, entry.object, at, into.part(0, len), cause, after)?;
        for (b, i) in into.bytes().unwrap_or(&mut []).chunks_exact(chunk).zip(first..) {
            if checksum(b, i) != self.entries[i as usize].sum && !is_planted(SegmentsBug::ChecksumIgnored) {
                return Err(self.damaged(i));
            }
        }
        Ok(done)
    }

    /// Returns the error of a chunk whose checksum does not match.
    pub(super) fn damaged(&self, chunk: u32) -> Error {
        let entry = self.entries[chunk as usize];
        let at = u64::from(entry.index) * self.shape.volume.chunk;
        let what = format!(
            "chunk {chunk} of segments, at byte {at} of object {}: its checksum does not match",
            entry.object
        );
        Error::Corrupt { medium: frit_core::MediumKind::Object, at, what }
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
            let bytes = data.part(from, n).bytes();
            let tok = self.change_chunk(sink, chunk, n, after, |contents| {
                if let Some(bytes) = bytes {
                    contents[within..within + bytes.len()].copy_from_slice(bytes);
                }
            })?;
            done = sink.join(done, tok);
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
            if entry.is_mapped() && u64::from(n) == self.shape.volume.chunk {
                if !is_planted(SegmentsBug::DiscardForgotten) {
                    self.replace(chunk, Entry::default());
                }
            } else if entry.is_mapped() {
                let tok = self.change_chunk(sink, chunk, n, after, |contents| {
                    if let Some(part) = contents.get_mut(within..within + n as usize) {
                        part.fill(0);
                    }
                })?;
                done = sink.join(done, tok);
            }
            pos += u64::from(n);
        }
        Ok(done)
    }

    /// Changes `n` bytes of a chunk in the host's segment, into which the chunk is copied first.
    fn change_chunk(
        &mut self,
        sink: &mut Sink,
        chunk: u32,
        n: u32,
        after: Tok,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<Tok> {
        let len = self.chunk_len();
        let old = self.entries[chunk as usize];
        if old.is_lost() {
            return Err(self.lost(chunk));
        }
        let mut ready = after;
        if old.object != self.host.id || !old.is_mapped() {
            if self.host.owners.len() == self.shape.per_object as usize {
                self.put(sink, Cause::Host)?;
                self.make_room(sink, after)?;
            }
            let whole = n as usize == len || is_planted(SegmentsBug::RestNotMerged);
            let copied = !whole && old.is_mapped();
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.resize(if copied && !self.without_bytes { len } else { 0 }, 0);
            let copy = if copied { self.copy_chunk(sink, chunk, &mut scratch, after) } else { Ok(after) };
            if let Ok(tok) = copy {
                ready = tok;
                let index = self.host.push(chunk, len, !self.without_bytes);
                if copied {
                    self.host.contents_mut(index, len).copy_from_slice(&scratch);
                }
                self.replace(chunk, Entry { object: self.host.id, index, sum: 0 });
            }
            self.scratch = scratch;
            copy?;
        }
        let index = self.entries[chunk as usize].index;
        let contents = self.host.contents_mut(index, len);
        if !contents.is_empty() {
            change(contents);
            self.entries[chunk as usize].sum = checksum(contents, chunk);
        }
        self.host.written = sink.join(self.host.written, ready);
        self.stats.written += 1;
        Ok(sink.join(ready, self.host.ready))
    }

    /// Copies a chunk that is not in the host's segment.
    fn copy_chunk(&mut self, sink: &mut Sink, chunk: u32, into: &mut [u8], after: Tok) -> Result<Tok> {
        let entry = self.entries[chunk as usize];
        if entry.object == self.moved.id {
            into.copy_from_slice(self.moved.contents(entry.index, self.chunk_len()));
            return Ok(sink.join(after, self.moved.written));
        }
        let len = self.chunk_len() as u32;
        let into = if into.is_empty() { ReadTarget::Len(len) } else { ReadTarget::Bytes(into) };
        self.get_chunks(sink, chunk, into, Cause::Merge, after)
    }

    /// Makes room for a segment: commits, which deletes the objects without live chunks, and cleans.
    ///
    /// # Errors
    /// A failure of the store or of the map's device; a store without chunks to clean.
    pub(super) fn make_room(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        while self.space.objects() >= self.shape.unreserved {
            if self.space.garbage() == 0 {
                // An object takes the space of a full one.
                let all = self.shape.per_object;
                let victims = self.space.victims(all, all.into(), |s| Some(all.saturating_sub(s.live)));
                let Some(victims) = victims else {
                    return Err(Error::NoSpace {
                        what: format!(
                            "the store has {} objects with {} of live chunks, and nothing to clean: objects that \
                             cannot be read are in the way; check the volume",
                            self.space.objects(),
                            size::format(self.space.live() * self.shape.volume.chunk)
                        ),
                    });
                };
                self.clean(sink, &victims, after)?;
            }
            let (garbage, deleted) = (self.space.garbage(), self.stats.deleted);
            self.commit(sink, after)?;
            if garbage > 0 && self.stats.deleted == deleted {
                let what = "the store is full of objects that it does not delete".into();
                return Err(Error::NoSpace { what });
            }
        }
        Ok(())
    }
}
