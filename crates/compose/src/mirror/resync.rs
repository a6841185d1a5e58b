//! Copies of regions to sides that may differ, and the return of stale sides to service.

use super::{Mirror, each};
use crate::planted::MirrorBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, ReadTarget, Result, Sink, Tok, WriteData};

/// Number of bytes that one step copies. The lock of a volume is held for the time of it.
const COPY_BYTES: u64 = 256 << 10;

impl Mirror {
    /// Copies the next part of a region from the source to the other sides. Returns `None` if
    /// nothing is to be copied.
    pub(super) fn copy_next(&mut self, sink: &mut Sink) -> Result<Option<Tok>> {
        let (region, at) = match self.copying {
            Some(copying) => copying,
            None => match self.regions.next_copy() {
                Some(region) => (region, self.layout.bytes_of(region).start),
                None => return Ok(None),
            },
        };
        let end = self.layout.bytes_of(region).end;
        let len = (end - at).min(COPY_BYTES);
        self.copying = if at + len < end { Some((region, at + len)) } else { None };
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        bytes.resize(len as usize, 0);
        let copied = self.copy_part(sink, at, &mut bytes);
        self.buffer = bytes;
        let Some(tok) = copied? else {
            // The regions that can be copied are copied all the same.
            self.counts.copy_errors += 1;
            self.copying = None;
            self.regions.stuck(region);
            return Ok(Some(sink.start()));
        };
        if at + len == end {
            self.regions.copied(region);
        }
        Ok(Some(tok))
    }

    /// Copies bytes from the source. Returns `None` if they cannot be read.
    fn copy_part(&mut self, sink: &mut Sink, at: u64, bytes: &mut [u8]) -> Result<Option<Tok>> {
        let start = sink.start();
        let start = sink.join(start, self.superblocks);
        let Ok(read) = self.read_part(sink, self.copied_side(), at, ReadTarget::Bytes(bytes), start) else {
            return Ok(None);
        };
        let targets = self.active() & !(1 << self.copied_side());
        let outcome = self.on_sides(sink, targets, read, |device, sink, after| {
            device.write(sink, at, WriteData::Bytes(bytes), Cause::Migrate, after)
        });
        self.pending = sink.join(self.pending, outcome.done);
        self.counts.bytes_copied += bytes.len() as u64 * u64::from((targets & !outcome.failed).count_ones());
        self.handle_failure(sink, outcome, start, |_| {}).map(Some)
    }

    /// Returns the side from which regions are copied.
    fn copied_side(&self) -> usize {
        if is_planted(MirrorBug::CopiedFromOtherSide) {
            return each(self.active()).last().unwrap_or(self.source);
        }
        self.source
    }

    /// Puts sides into service that hold all data now. Returns `None` if there are none.
    ///
    /// The sides in service forget first that these sides are stale, and then these sides get their
    /// new superblocks. Until then their event counters are older, so they stay stale after a crash.
    pub(super) fn join_sides(&mut self, sink: &mut Sink) -> Result<Option<Tok>> {
        if self.joining == 0 || self.regions.copies() > 0 {
            return Ok(None);
        }
        let start = sink.start();
        let start = sink.join(start, self.cleared);
        let outcome = self.put_bitmap(sink, self.joining, 0..self.layout.bitmap_sectors(), start);
        self.pending = sink.join(self.pending, outcome.done);
        self.handle_failure(sink, outcome, start, |_| {})?;
        let flushed = self.flush_sides(sink, Cause::Meta, start)?;
        self.stale &= !self.joining;
        self.events += 1;
        self.noted = false;
        let noted = self.note(sink, flushed)?;
        let (events, mut done) = (self.events, noted);
        for i in each(self.joining) {
            match self.put_superblock(sink, i, self.stale, noted) {
                Ok(tok) => done = sink.join(done, tok),
                Err(e) => {
                    self.take_out(1 << i, &e);
                    self.note(sink, noted)?;
                }
            }
        }
        self.superblocks = sink.join(self.superblocks, done);
        // After the failure of one of them the others have older event counters again, and the next
        // step repeats this.
        if self.events == events {
            let joined = std::mem::take(&mut self.joining);
            self.set_serving(self.serving | joined);
        }
        Ok(Some(done))
    }
}
