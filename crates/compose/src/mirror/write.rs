//! Writes and flushes: to all sides at once.

use super::side_device::is_misuse;
use super::{Mirror, each};
use frit_core::{BlockDevice, Cause, Error, Result, Sink, Tok};
use std::ops::Range;

/// Result of an access to several sides.
pub(super) struct Outcome {
    /// Done when all sides that did not fail are.
    pub(super) done: Tok,
    /// Sides that failed, one bit each.
    pub(super) failed: u32,
    /// First failure.
    pub(super) error: Option<Error>,
}

impl Mirror {
    /// Accesses each side of a set. The accesses are independent of each other.
    #[inline]
    pub(super) fn on_sides(
        &mut self,
        sink: &mut Sink,
        sides: u32,
        after: Tok,
        access: impl Fn(&mut (dyn BlockDevice + 'static), &mut Sink, Tok) -> Result<Tok>,
    ) -> Outcome {
        let mut outcome = Outcome { done: after, failed: 0, error: None };
        let mut first = true;
        for i in each(sides) {
            match access(self.base.devices.get_mut(i), sink, after) {
                // The token of an access implies `after`, with which tokens would grow.
                Ok(tok) if std::mem::take(&mut first) => outcome.done = tok,
                Ok(tok) => outcome.done = sink.join(outcome.done, tok),
                Err(e) => {
                    outcome.failed |= 1 << i;
                    // A mistake of the caller says more than a failure.
                    if outcome.error.is_none() || is_misuse(&e) {
                        outcome.error = Some(e);
                    }
                }
            }
        }
        outcome
    }

    /// Changes data on all sides.
    pub(super) fn change(
        &mut self,
        sink: &mut Sink,
        range: Range<u64>,
        after: Tok,
        apply: impl Fn(&mut (dyn BlockDevice + 'static), &mut Sink, Tok) -> Result<Tok>,
    ) -> Result<Tok> {
        if range.is_empty() {
            return Ok(after);
        }
        let after = self.prepare(sink, &range, after)?;
        let outcome = self.on_sides(sink, self.active(), after, apply);
        self.pending = sink.join(self.pending, outcome.done);
        if outcome.failed == 0 {
            return Ok(outcome.done);
        }
        let regions = self.layout.regions_of(&range);
        self.handle_failure(sink, outcome, after, |mirror| mirror.diverge(regions))
    }

    /// Makes a write possible: the superblocks name the sides that miss it, and its regions are
    /// marked. Returns the token for which the write waits.
    #[inline]
    fn prepare(&mut self, sink: &mut Sink, range: &Range<u64>, after: Tok) -> Result<Tok> {
        if !(self.noted && self.formatted) {
            self.write_metadata_first(sink, after)?;
        }
        let regions = self.layout.regions_of(range);
        if !self.regions.write(regions.clone()) {
            self.mark(sink, regions.clone(), after)?;
        }
        let mut after = sink.join(after, self.superblocks);
        for region in regions {
            after = sink.join(after, self.regions.durable(region));
        }
        Ok(after)
    }

    /// Flushes all sides, after all writes.
    pub(super) fn flush_sides(&mut self, sink: &mut Sink, cause: Cause, after: Tok) -> Result<Tok> {
        if !self.noted && self.formatted {
            self.note(sink, after)?;
        }
        let after = sink.join(after, self.pending);
        let after = sink.join(after, self.superblocks);
        let outcome =
            self.on_sides(sink, self.active(), after, |device, sink, after| device.flush(sink, cause, after));
        let done = self.handle_failure(sink, outcome, after, |mirror| {
            // Each side may have lost other writes.
            let marked: Vec<usize> = mirror.regions.marked().collect();
            mirror.diverge(marked);
        })?;
        self.pending = done;
        Ok(done)
    }
}
