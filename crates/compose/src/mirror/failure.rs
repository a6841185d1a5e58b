//! Sides that fail, and the notes of it in the superblocks of the others.

use super::sector::Superblock;
use super::side_device::is_misuse;
use super::write::Outcome;
use super::{Mirror, each};
use crate::planted::MirrorBug;
use frit_core::BlockDevice;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Result, Sink, Tok, WriteData};

impl Mirror {
    /// Takes the sides out of service that failed in an access, and notes it on the others. Returns
    /// the token of the acknowledgement.
    ///
    /// If no side remains that is up to date, the request failed, and no side is taken out: the
    /// last sides are as good as each other. `diverge` notes then that they may differ.
    ///
    /// # Errors
    /// The failure, if no side remains that is up to date.
    pub(super) fn handle_failure(
        &mut self,
        sink: &mut Sink,
        outcome: Outcome,
        after: Tok,
        diverge: impl FnOnce(&mut Self),
    ) -> Result<Tok> {
        let Outcome { done, failed, error } = outcome;
        let Some(error) = error else { return Ok(done) };
        if is_misuse(&error) {
            diverge(self);
            return Err(error);
        }
        if self.serving & !failed == 0 {
            self.take_out(failed & !self.serving, &error);
            diverge(self);
            return Err(error);
        }
        self.take_out(failed, &error);
        if is_planted(MirrorBug::FailureNotNoted) {
            self.noted = true;
            return Ok(done);
        }
        let noted = self.note(sink, after)?;
        Ok(sink.join(done, noted))
    }

    /// Takes sides out of service.
    pub(super) fn take_out(&mut self, sides: u32, error: &Error) {
        if sides == 0 {
            return;
        }
        for i in each(sides) {
            self.out.push((i, error.to_string()));
            self.counts.side_failures += 1;
        }
        if self.stale & sides != sides {
            self.stale |= sides;
            self.events += 1;
            self.noted = false;
        }
        self.joining &= !sides;
        self.set_serving(self.serving & !sides);
    }

    /// Notes that the sides may differ in regions, after a failure of all of them.
    pub(super) fn diverge(&mut self, regions: impl IntoIterator<Item = usize>) {
        if self.active().count_ones() < 2 {
            return;
        }
        for region in regions {
            self.regions.copy(region);
            // Bytes of it that were copied may differ again.
            if self.copying.is_some_and(|(r, _)| r == region) {
                self.copying = None;
            }
        }
    }

    /// Writes the superblocks of the sides that serve, and makes them durable. A side that fails in
    /// this is noted too.
    ///
    /// # Errors
    /// The failure of the last side. The superblocks are written again before the next write.
    pub(super) fn note(&mut self, sink: &mut Sink, after: Tok) -> Result<Tok> {
        while !self.noted {
            let (mut failed, mut error, mut done) = (0, None, self.superblocks);
            for i in each(self.serving) {
                match self.put_superblock(sink, i, self.stale, after) {
                    Ok(tok) => done = sink.join(done, tok),
                    Err(e) => {
                        failed |= 1 << i;
                        error = Some(e);
                    }
                }
            }
            match error {
                Some(e) if self.serving & !failed == 0 => return Err(e),
                Some(e) => self.take_out(failed, &e),
                None => {
                    self.noted = true;
                    self.superblocks = done;
                }
            }
        }
        Ok(self.superblocks)
    }

    /// Writes both copies of the superblock of a side, and makes them durable.
    pub(super) fn put_superblock(
        &mut self,
        sink: &mut Sink,
        side: usize,
        stale: u32,
        after: Tok,
    ) -> Result<Tok> {
        let superblock = Superblock {
            identity: self.identity,
            side: side as u32,
            sides: self.base.devices.len() as u32,
            events: self.events,
            data: self.layout.data,
            region: self.layout.region_bytes(),
            stale,
        };
        let sector = superblock.encode();
        let device = self.base.devices.get_mut(side);
        let [first, last] = self.layout.superblocks();
        let first = device.write(sink, first, WriteData::Bytes(&sector), Cause::Meta, after)?;
        let last = device.write(sink, last, WriteData::Bytes(&sector), Cause::Meta, after)?;
        let written = sink.join(first, last);
        device.flush(sink, Cause::Meta, written)
    }
}
