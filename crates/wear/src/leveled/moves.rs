//! Moves of stripes, and the flush of the device.
//!
//! A register is the durable word that holds the number of moves of a region; recovery computes the
//! positions of its stripes from it. With media in files (`over_files`), a flush writes the numbers
//! to a second ring of registers too, because a power loss can leave the first ring ahead of the
//! data.
//!
//! A move consists of copy, fence, register write, fence. The copy waits for all writes to the
//! stripe, and until the destination is free for certain (for the register of the move that freed
//! it). Later accesses to the stripe wait for the register: before it, a recovery would find the
//! stripe at its old position.

use super::area::RegisterRing;
use super::{Leveled, Leveler};
use crate::numbers::{PhysicalStripe, RegionId};
use crate::planted::WearBug;
use frit_core::convert::count_u32;
use frit_core::planted::is_planted;
use frit_core::{Cause, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::Store;

/// Number of times that a stripe is read again when two reads of it differ.
const READ_RETRIES: u32 = 3;

impl Leveled {
    /// Makes the moves that are due in a region.
    #[cold]
    pub(super) fn make_due_moves(&mut self, sink: &mut Sink, region: RegionId) -> Result<()> {
        while self.regions[region.idx()].bytes_since_move >= self.interval_bytes {
            self.regions[region.idx()].bytes_since_move -= self.interval_bytes;
            self.step(sink, region)?;
        }
        Ok(())
    }

    fn step(&mut self, sink: &mut Sink, region: RegionId) -> Result<()> {
        // The destination may be the position that the registers of the last flush name, so a
        // second move flushes first.
        let again = self.regions[region.idx()].synced != self.leveler.number(region);
        if self.config.over_files && again && !is_planted(WearBug::MovedTwice) {
            self.flush(sink)?;
        }
        let step = self.leveler.step(region);
        let (from, to) = (step.from.idx(), step.to.idx());
        let mut after = self.ready.get(from);
        // The copy must contain every earlier write to the stripe.
        if !is_planted(WearBug::CopyEarly) {
            after = sink.join(after, self.last_writes.get(from));
        }
        // A recovery may still find data at the destination until the move that freed it is
        // durable.
        if !is_planted(WearBug::GapEarly) {
            let free = sink.join(self.ready.get(to), self.regions[region.idx()].move_barrier);
            after = sink.join(after, free);
        }
        let copied = self.copy(sink, step.from, step.to, after)?;
        let safe = match (is_planted(WearBug::RegisterEarly), is_planted(WearBug::CopyNotFenced)) {
            (true, _) => self.regions[region.idx()].move_barrier,
            (_, true) => copied,
            _ => self.pcm.fence(sink, copied),
        };
        // After a failed write the register may or may not be in PCM, so the position of the stripe
        // is uncertain: no further writes are accepted.
        let noted = self.write_register(sink, RegisterRing::Current, region, step.number, safe);
        let noted =
            noted.inspect_err(|e| self.refuse_reason = Some(format!("leveling register failed: {e}")))?;
        let done = if is_planted(WearBug::RegisterNotFenced) { noted } else { self.pcm.fence(sink, noted) };
        self.leveler.set_number(region, step.number);
        self.regions[region.idx()].move_barrier = done;
        for stripe in [from, to] {
            self.ready.set(stripe, done);
            // The old writes are part of the copy, whose token everything waits for now.
            self.last_writes.set(stripe, Tok::default());
        }
        self.moves += 1;
        if self.config.over_files {
            self.moved.push(region);
        }
        Ok(())
    }

    fn copy(&mut self, sink: &mut Sink, from: PhysicalStripe, to: PhysicalStripe, after: Tok) -> Result<Tok> {
        let (shift, len) = (self.stripe_shift, self.shape.stripe_bytes);
        let (from, to) = (from.byte(shift, 0), to.byte(shift, 0));
        let into =
            if self.stores_bytes() { ReadTarget::Bytes(&mut self.buffer) } else { ReadTarget::Len(len) };
        let read = self.pcm.read(sink, from, into, Cause::WearLevel, after)?;
        if self.stores_bytes() {
            self.read_until_stable(from)?;
        }
        let data = if self.stores_bytes() { WriteData::Bytes(&self.buffer) } else { WriteData::Len(len) };
        let written = self.pcm.write(sink, to, data, Cause::WearLevel, read)?;
        self.pcm.copy_clean_state(from, to, len)?;
        Ok(written)
    }

    /// Reads a stripe until two reads agree, because a bit flipped in transfer would become
    /// permanent. After [`READ_RETRIES`] further reads the last one is used: the layer above has
    /// checksums for its data.
    fn read_until_stable(&mut self, from: u64) -> Result<()> {
        for _ in 0..READ_RETRIES {
            self.pcm.peek(from, &mut self.again)?;
            if self.again == self.buffer {
                break;
            }
            std::mem::swap(&mut self.again, &mut self.buffer);
        }
        Ok(())
    }

    /// Writes the number of moves of a region to its line of a ring.
    pub(super) fn write_register(
        &mut self,
        sink: &mut Sink,
        ring: RegisterRing,
        region: RegionId,
        number: u64,
        after: Tok,
    ) -> Result<Tok> {
        if is_planted(WearBug::SwapNotNoted) && !number.is_multiple_of(3) {
            return Ok(after);
        }
        let at = self.area.line_at(ring, region, self.area.line_of(number));
        let word = self.area.encode(number, ring, region);
        self.word(sink, at, word, after)
    }

    pub(super) fn word(&mut self, sink: &mut Sink, at: u64, word: [u8; 8], after: Tok) -> Result<Tok> {
        let data =
            if self.stores_bytes() { WriteData::Bytes(&word) } else { WriteData::Len(count_u32(word.len())) };
        self.pcm.write(sink, at, data, Cause::WearLevel, after)
    }

    /// Makes all written data durable against a power loss, together with the registers that locate
    /// it.
    ///
    /// # Errors
    /// The store fails.
    pub fn flush(&mut self, sink: &mut Sink) -> Result<()> {
        // Data is synced before the registers that name it.
        if self.moved.is_empty() || !is_planted(WearBug::SyncedFirst) {
            self.pcm.store_mut().sync()?;
        }
        self.write_synced_registers(sink)
    }

    /// Flushes as [`Leveled::flush`], and stores the wear counters of the device.
    ///
    /// # Errors
    /// The store fails.
    pub fn sync(&mut self, sink: &mut Sink) -> Result<()> {
        self.pcm.sync()?;
        self.write_synced_registers(sink)
    }

    /// Records the numbers of all moved regions as those of a flush. Called after a sync, and syncs
    /// again.
    fn write_synced_registers(&mut self, sink: &mut Sink) -> Result<()> {
        if self.moved.is_empty() {
            return Ok(());
        }
        // The list is kept until the numbers are durable, so that a failed flush is repeated.
        for i in 0..self.moved.len() {
            let region = self.moved[i];
            let (number, move_barrier) =
                (self.leveler.number(region), self.regions[region.idx()].move_barrier);
            let noted = self.write_register(sink, RegisterRing::Synced, region, number, move_barrier)?;
            self.regions[region.idx()].move_barrier = self.pcm.fence(sink, noted);
        }
        self.pcm.store_mut().sync()?;
        for region in self.moved.drain(..) {
            self.regions[region.idx()].synced = self.leveler.number(region);
        }
        Ok(())
    }
}
