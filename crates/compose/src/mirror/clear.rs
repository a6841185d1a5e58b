//! Marks that are cleared: in the background, and when the mirror is shut down.

use super::Mirror;
use super::layout::REGIONS_PER_SECTOR;
use crate::planted::MirrorBug;
use frit_core::planted::is_planted;
use frit_core::{Cause, Result, Sink, Tok};

impl Mirror {
    /// Returns `true` if the marks are not needed for a copy.
    fn may_clear(&self) -> bool {
        let complete = self.stale == 0 || is_planted(MirrorBug::ClearedDegraded);
        complete && self.noted && self.regions.copies() == 0
    }

    /// Clears marks above `keep_marked`, those of the regions that were not written for the longest
    /// time. Returns `None` if there is nothing to clear.
    pub(super) fn clear_idle(&mut self, sink: &mut Sink) -> Result<Option<Tok>> {
        let keep = self.base.config.keep_marked as usize;
        // Each round costs a flush, so it clears several marks.
        if self.regions.marks() <= keep + keep / 4 || !self.may_clear() {
            return Ok(None);
        }
        let idle = self.regions.idle(self.regions.marks() - keep);
        let start = sink.start();
        let flushed = match is_planted(MirrorBug::ClearedBeforeFlush) {
            true => start,
            false => self.flush_sides(sink, Cause::Meta, start)?,
        };
        if !self.may_clear() {
            return Ok(Some(flushed));
        }
        self.regions.unmark(&idle);
        self.cleared = flushed;
        let mut sectors: Vec<usize> = idle.iter().map(|r| r / REGIONS_PER_SECTOR).collect();
        sectors.sort_unstable();
        sectors.dedup();
        let mut done = flushed;
        for sector in sectors {
            let written = self.clear_in(sink, sector..sector + 1, flushed)?;
            done = sink.join(done, written);
        }
        Ok(Some(done))
    }

    fn clear_in(&mut self, sink: &mut Sink, sectors: std::ops::Range<usize>, after: Tok) -> Result<Tok> {
        let outcome = self.put_bitmap(sink, self.active(), sectors, after);
        self.pending = sink.join(self.pending, outcome.done);
        // A mark that stays on a side only costs a copy.
        self.handle_failure(sink, outcome, after, |_| {})
    }

    /// Flushes the sides and clears all marks that no copy needs.
    pub(super) fn shut_down(&mut self, sink: &mut Sink) -> Result<()> {
        let start = sink.start();
        if !self.formatted {
            self.write_metadata(sink, start)?;
        }
        let flushed = self.flush_sides(sink, Cause::Meta, start)?;
        sink.ack(flushed);
        if self.regions.marks() == 0 || !self.may_clear() {
            return Ok(());
        }
        self.regions.unmark_all();
        self.cleared = flushed;
        let written = self.clear_in(sink, 0..self.layout.bitmap_sectors(), flushed)?;
        let flushed = self.flush_sides(sink, Cause::Meta, written)?;
        sink.ack(flushed);
        Ok(())
    }
}
