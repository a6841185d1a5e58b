//! Marks of regions in the bitmaps, which are durable before the regions are written.

use super::layout::REGIONS_PER_SECTOR;
use super::sector::{SECTOR, encode_bitmap};
use super::write::Outcome;
use super::{Mirror, each};
use crate::planted::MirrorBug;
use frit_core::BlockDevice;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Result, SECTOR_BYTES, Sink, Tok, WriteData};
use std::ops::Range;

impl Mirror {
    /// Marks regions on all sides.
    pub(super) fn mark(&mut self, sink: &mut Sink, regions: Range<usize>, after: Tok) -> Result<()> {
        let mut new = std::mem::take(&mut self.new_marks);
        new.clear();
        new.extend(regions.filter(|&r| self.regions.mark(r)));
        self.counts.mark_writes += 1;
        let marked = self.put_marks(sink, &new, after);
        match &marked {
            Ok(tok) => self.regions.set_durable(&new, *tok),
            Err(_) => self.regions.unmark(&new),
        }
        self.new_marks = new;
        marked.map(|_| ())
    }

    fn put_marks(&mut self, sink: &mut Sink, new: &[usize], after: Tok) -> Result<Tok> {
        let (Some(&first), Some(&last)) = (new.first(), new.last()) else { return Ok(after) };
        // A sector also holds regions that were cleared: their data has to be durable before it is.
        let after = sink.join(after, self.cleared);
        let sectors = first / REGIONS_PER_SECTOR..last / REGIONS_PER_SECTOR + 1;
        let outcome = self.put_bitmap(sink, self.active(), sectors, after);
        let written = self.handle_failure(sink, outcome, after, |_| {})?;
        if is_planted(MirrorBug::MarkNotFlushed) {
            return Ok(written);
        }
        let outcome = self.on_sides(sink, self.active(), written, |device, sink, after| {
            device.flush(sink, Cause::Meta, after)
        });
        let flushed = self.handle_failure(sink, outcome, after, |mirror| {
            let marked: Vec<usize> = mirror.regions.marked().collect();
            mirror.diverge(marked);
        })?;
        Ok(if is_planted(MirrorBug::DataBeforeMark) { after } else { flushed })
    }

    /// Writes sectors of the bitmap to the sides of a set.
    pub(super) fn put_bitmap(
        &mut self,
        sink: &mut Sink,
        sides: u32,
        sectors: Range<usize>,
        after: Tok,
    ) -> Outcome {
        self.sequence += 1;
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        for sector in sectors.clone() {
            let first = sector * REGIONS_PER_SECTOR;
            let marked = |i| self.regions.is_marked(first + i);
            bytes.extend_from_slice(&encode_bitmap(self.identity, self.sequence, sector, marked));
        }
        let at = self.layout.bitmap_at(sectors.start);
        let outcome = self.on_sides(sink, sides, after, |device, sink, after| {
            device.write(sink, at, WriteData::Bytes(&bytes), Cause::Meta, after)
        });
        self.buffer = bytes;
        outcome
    }

    /// Writes the metadata that a write relies on and that is not there yet.
    #[cold]
    pub(super) fn write_metadata_first(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        if self.formatted {
            return self.note(sink, after).map(|_| ());
        }
        self.write_metadata(sink, after)
    }

    /// Writes the bitmaps and then the superblocks of a new mirror.
    ///
    /// # Errors
    /// The failure of any side: a mirror begins with all sides.
    pub(super) fn write_metadata(&mut self, sink: &mut Sink, after: Tok) -> Result<()> {
        let all = self.serving;
        let written = whole(self.put_bitmap(sink, all, 0..self.layout.bitmap_sectors(), after))?;
        let mut done = self.superblocks;
        for i in each(all) {
            let flushed = self.base.devices.get_mut(i).flush(sink, Cause::Meta, written)?;
            let tok = self.put_superblock(sink, i, 0, flushed)?;
            done = sink.join(done, tok);
        }
        self.superblocks = done;
        (self.noted, self.formatted) = (true, true);
        Ok(())
    }

    /// Reads a sector of the metadata of a side.
    pub(super) fn read_sector(&mut self, sink: &mut Sink, side: usize, at: u64) -> Result<[u8; SECTOR]> {
        debug_assert_eq!(SECTOR as u64, SECTOR_BYTES);
        let mut sector = [0; SECTOR];
        let into = frit_core::ReadTarget::Bytes(&mut sector);
        let start = sink.start();
        self.base.devices.get_mut(side).read(sink, at, into, Cause::Meta, start)?;
        Ok(sector)
    }
}

/// Requires that no side failed.
fn whole(outcome: Outcome) -> std::result::Result<Tok, Error> {
    outcome.error.map_or(Ok(outcome.done), Err)
}
