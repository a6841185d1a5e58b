//! Moves of runs, which join free sectors to a run that is long enough.
//!
//! Only the runs in the part of the device with the fewest sectors in use move, towards its begin.
//! A run that would overlap its old place moves through an area that holds one chunk. Each move is
//! committed before the next one, so a crash leaves every run in one of its places.

use super::entry::Entry;
use super::layer::Compress;
use frit_core::BlockDevice;
use frit_core::{Cause, Error, ReadTarget, Result, SECTOR_BYTES, Sink, Tok, WriteData};

impl Compress {
    /// Makes a free run of at least `sectors`.
    pub(super) fn compact(&mut self, sink: &mut Sink, sectors: u64, after: Tok) -> Result<()> {
        self.empty_exchange(sink)?;
        let Some((start, end)) = self.space.part_to_compact(sectors) else { return Ok(()) };
        let mut runs: Vec<u32> = (0..self.entries.len() as u32)
            .filter(|&i| {
                let e = &self.entries[i as usize];
                e.sectors > 0 && (start..end).contains(&e.first)
            })
            .collect();
        runs.sort_unstable_by_key(|&i| self.entries[i as usize].first);
        let mut to = start;
        for chunk in runs {
            let e = self.entries[chunk as usize];
            let n = u64::from(e.sectors);
            if e.first > to {
                if e.first < to + n {
                    self.move_run(sink, chunk, self.shape.exchange, after)?;
                }
                if !self.space.take_at(to, n) {
                    return Err(overlap(to));
                }
                self.move_run(sink, chunk, to, after)?;
            }
            to += n;
        }
        Ok(())
    }

    /// Moves the run out of the area of exchanges, where a crash or a failed write may have left it.
    pub(super) fn empty_exchange(&mut self, sink: &mut Sink) -> Result<()> {
        let Some(chunk) = self.entries.iter().position(|e| self.in_exchange(e)) else { return Ok(()) };
        let sectors = u64::from(self.entries[chunk].sectors);
        let to = self.space.take(sectors).ok_or_else(|| Error::NoSpace {
            what: format!("compress has no free run of {sectors} sectors; discard what is not needed"),
        })?;
        self.move_run(sink, chunk as u32, to, Tok::default())
    }

    /// Copies the run of a chunk to a place that was taken for it, and commits.
    fn move_run(&mut self, sink: &mut Sink, chunk: u32, to: u64, after: Tok) -> Result<()> {
        let e = self.entries[chunk as usize];
        if let Err(error) = self.copy_run(sink, &e, to, after) {
            if to >= self.shape.runs.0 {
                self.space.give_back(to, u64::from(e.sectors));
            }
            return Err(error);
        }
        self.usage.moved += 1;
        self.replace(chunk, Entry { first: to, ..e });
        // A later use of the old place waits for the commit, also in the area of exchanges.
        let done = self.commit(sink, after)?;
        self.freed_by = sink.join(self.freed_by, done);
        Ok(())
    }

    fn copy_run(&mut self, sink: &mut Sink, e: &Entry, to: u64, after: Tok) -> Result<Tok> {
        let len = usize::from(e.sectors) * SECTOR_BYTES as usize;
        let (from, to) = (e.first * SECTOR_BYTES, to * SECTOR_BYTES);
        let device = self.base.devices.get_mut(0);
        // The stored form is moved as it is: its digest is verified when it is read.
        if self.without_bytes {
            let read = device.read(sink, from, ReadTarget::Len(len as u32), Cause::Gc, after)?;
            let ready = sink.join(read, self.freed_by);
            return device.write(sink, to, WriteData::Len(len as u32), Cause::Gc, ready);
        }
        let mut run = vec![0; len];
        let read = device.read(sink, from, ReadTarget::Bytes(&mut run), Cause::Gc, after)?;
        let ready = sink.join(read, self.freed_by);
        device.write(sink, to, WriteData::Bytes(&run), Cause::Gc, ready)
    }
}

fn overlap(at: u64) -> Error {
    Error::Medium { what: format!("compress: the sectors from {at} on are in use twice; check the volume") }
}
