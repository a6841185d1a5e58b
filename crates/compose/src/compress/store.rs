//! Transfer of chunks between the buffer and the device.

use super::entry::Entry;
use super::layer::Compress;
use crate::planted::CompressBug;
use frit_core::BlockDevice;
use frit_core::convert::{floor_u64, to_f64};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, MediumKind, ReadTarget, Result, SECTOR_BYTES, Sink, Tok, WriteData};
use frit_media::checksum::digest;

impl Compress {
    /// Reads a chunk, and verifies its digest. Without bytes (`into` is empty), only the command is
    /// given.
    pub(super) fn fetch(
        &mut self,
        sink: &mut Sink,
        chunk: u32,
        into: &mut [u8],
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let e = self.entries[chunk as usize];
        if e.is_lost() {
            return Err(self.lost(chunk));
        }
        let (at, len) = (e.first * SECTOR_BYTES, u64::from(e.sectors) * SECTOR_BYTES);
        let device = self.base.devices.get_mut(0);
        if into.is_empty() {
            return device.read(sink, at, ReadTarget::Len(len as u32), cause, after);
        }
        self.stored.resize(len as usize, 0);
        let done = device.read(sink, at, ReadTarget::Bytes(&mut self.stored), cause, after)?;
        let stored = self.stored.get(..e.stored as usize);
        let decoded = stored.is_some_and(|b| self.codec.decompress(e.algorithm, b, into));
        let verified = is_planted(CompressBug::ChecksumIgnored) || digest(into) == e.digest;
        if decoded && verified {
            return Ok(done);
        }
        let why = if decoded { "its digest does not match" } else { "it cannot be decompressed" };
        Err(Error::Corrupt {
            medium: MediumKind::Disk,
            at,
            what: format!("chunk {chunk} of compress, {} sectors from sector {}: {why}", e.sectors, e.first),
        })
    }

    /// Stores all dirty chunks, in ascending order.
    pub(super) fn store_all(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        if is_planted(CompressBug::BufferNotWritten) {
            return Ok(());
        }
        for chunk in self.buffer.dirty() {
            self.store(sink, chunk, after)?;
        }
        Ok(())
    }

    /// Stores a chunk of the buffer in a new run. It stays in the buffer, clean.
    pub(super) fn store(&mut self, sink: &mut Sink, chunk: u32, after: Tok) -> Result<()> {
        let Some(i) = self.buffer.find(chunk) else { return Ok(()) };
        let ready = sink.join(after, self.buffer.get(i).ready);
        let mut entry = Entry::default();
        let bytes = &self.buffer.get(i).bytes;
        if bytes.is_empty() {
            let len = to_f64(self.shape.volume.chunk) / self.base.config.modelled_ratio;
            entry.stored = floor_u64(len.ceil()).max(1) as u32;
        } else if bytes.iter().any(|&b| b != 0) {
            entry.algorithm = self.codec.compress(&self.base.config, bytes, &mut self.stored)?;
            entry.stored = self.stored.len() as u32;
            entry.digest = digest(bytes);
        }
        entry.sectors = u64::from(entry.stored).div_ceil(SECTOR_BYTES) as u16;
        let mut written = ready;
        if entry.sectors > 0 {
            let bytes = !self.buffer.get(i).bytes.is_empty();
            written = self.write_run(sink, &mut entry, bytes, ready)?;
        }
        self.buffer.stored(i, written);
        self.replace(chunk, entry);
        Ok(())
    }

    /// Writes the stored form to a free run, and notes the run in the entry.
    fn write_run(&mut self, sink: &mut Sink, entry: &mut Entry, bytes: bool, after: Tok) -> Result<Tok> {
        let sectors = u64::from(entry.sectors);
        // A move of other runs uses the same memory.
        let mut stored = std::mem::take(&mut self.stored);
        let found = self.find_run(sink, sectors, after);
        let len = (sectors * SECTOR_BYTES) as usize;
        let written = found.and_then(|first| {
            let ordered = !is_planted(CompressBug::ReuseNotOrdered);
            let ready = if ordered { sink.join(after, self.freed_by) } else { after };
            stored.resize(if bytes { len } else { 0 }, 0);
            let data = if bytes { WriteData::Bytes(&stored) } else { WriteData::Len(len as u32) };
            let device = self.base.devices.get_mut(0);
            let done = device.write(sink, first * SECTOR_BYTES, data, Cause::Host, ready);
            if done.is_err() {
                self.space.give_back(first, sectors);
            }
            done.map(|done| (first, done))
        });
        self.stored = stored;
        let (first, done) = written?;
        entry.first = first;
        Ok(done)
    }

    /// Takes a free run: after a commit, and after a move of runs, if there is none at first.
    fn find_run(&mut self, sink: &mut Sink, sectors: u64, after: Tok) -> Result<u64> {
        if let Some(first) = self.space.take(sectors) {
            return Ok(first);
        }
        if self.space.waits() {
            self.commit(sink, after)?;
        }
        if self.space.longest() < sectors {
            self.compact(sink, sectors, after)?;
        }
        self.space.take(sectors).ok_or_else(|| Error::NoSpace {
            what: format!("compress has no free run of {sectors} sectors; discard what is not needed"),
        })
    }
}
