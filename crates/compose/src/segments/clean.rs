//! Cleaning: live chunks of the emptiest objects are copied into new ones.

use super::entry::{Entry, checksum};
use super::layer::Segments;
use super::space::{DEAD, Segment};
use frit_core::{Cause, ObjectId, Progress, ReadTarget, Result, Sink, Tok};
use std::ops::Range;

impl Segments {
    /// Cleans objects with many dead chunks, at most one object's worth of live chunks at a time.
    pub(super) fn clean_when_idle(&mut self, sink: &mut Sink) -> Result<Progress> {
        let (below, per_object) = (self.base.config.clean_below, self.shape.per_object);
        if below == 0 || self.table.writable().is_err() || self.store.refuses().is_some() {
            return Ok(Progress::Idle);
        }
        // The small objects of flushes stay: to copy them costs more than they take.
        let dead = |s: &Segment| {
            let all = s.owners.len() as u32;
            (u64::from(s.live) * 100 <= u64::from(all) * u64::from(below)).then_some(all - s.live)
        };
        let Some(victims) = self.space.victims(per_object, per_object.into(), dead) else {
            return Ok(Progress::Idle);
        };
        self.writable(sink)?;
        let start = sink.start();
        self.make_room(sink, start)?;
        self.clean(sink, &victims, start)?;
        Ok(Progress::Busy(self.commit(sink, start)?))
    }

    /// Copies the live chunks of objects. The objects are deleted by the next commit.
    pub(super) fn clean(&mut self, sink: &mut Sink, victims: &[ObjectId], after: Tok) -> Result<()> {
        for &victim in victims {
            let Some(segment) = self.space.get(victim) else { continue };
            let owners = segment.owners.clone();
            for places in runs(&owners) {
                self.move_run(sink, victim, &owners, places, after)?;
            }
        }
        Ok(())
    }

    /// Copies the chunks of places that follow each other. An object that cannot be read stays.
    fn move_run(
        &mut self,
        sink: &mut Sink,
        victim: ObjectId,
        owners: &[u32],
        places: Range<usize>,
        after: Tok,
    ) -> Result<()> {
        let chunk = self.chunk_len();
        let len = places.len() * chunk;
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.resize(if self.without_bytes { 0 } else { len }, 0);
        let into =
            if self.without_bytes { ReadTarget::Len(len as u32) } else { ReadTarget::Bytes(&mut bytes) };
        let after = self.put_of(sink, victim, after);
        let read = self.store.get(sink, victim, (places.start * chunk) as u32, into, Cause::Gc, after);
        let moved = match read {
            Ok(read) => self.place_chunks(sink, victim, owners, places, &bytes, read),
            Err(_) => {
                self.space.set_unreadable(victim);
                Ok(())
            }
        };
        self.scratch = bytes;
        moved
    }

    fn place_chunks(
        &mut self,
        sink: &mut Sink,
        victim: ObjectId,
        owners: &[u32],
        places: Range<usize>,
        bytes: &[u8],
        read: Tok,
    ) -> Result<()> {
        let len = self.chunk_len();
        for (i, place) in places.enumerate() {
            let owner = owners[place];
            let entry = self.entries[owner as usize];
            let contents = bytes.get(i * len..(i + 1) * len).unwrap_or(&[]);
            if !self.without_bytes && checksum(contents, owner) != entry.sum {
                self.space.set_unreadable(victim);
                continue;
            }
            if self.moved.owners.len() == self.shape.per_object as usize {
                self.put(sink, Cause::Gc)?;
            }
            let index = self.moved.push(owner, len, !self.without_bytes);
            self.moved.contents_mut(index, len).copy_from_slice(contents);
            self.moved.written = sink.join(self.moved.written, read);
            self.replace(owner, Entry { object: self.moved.id, index, sum: entry.sum });
            self.stats.moved += 1;
        }
        Ok(())
    }
}

/// Returns the runs of live places.
fn runs(owners: &[u32]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (place, _) in owners.iter().enumerate().filter(|(_, owner)| **owner != DEAD) {
        match runs.last_mut() {
            Some(run) if run.end == place => run.end += 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}
