//! Recovery after a crash or a power loss.
//!
//! The largest number in a region's ring determines the position of all its stripes: a move without
//! a register has left its stripe at the old position. Recovery changes nothing, except after a
//! power loss with media in files. Then the numbers as of the last flush count, and later ones are
//! removed from their rings. A flag makes an interrupted recovery start over.

use super::area::{HEADER_BYTES, RegisterArea, RegisterRing, WORD_BYTES};
use super::header::{RESTORING, state_word};
use super::{Leveled, Leveler};
use crate::numbers::{LogicalStripe, RegionId};
use crate::planted::WearBug;
use frit_core::convert::{bounded_u32, size_in_memory, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, CrashKind, Error, ReadTarget, Result, Sink};
use frit_media::Store;

/// Result of a recovery of wear leveling.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WearRecovery {
    /// The registers as of the last flush were restored after a power loss.
    pub from_flush: bool,
    /// Number of moves after that flush, which were undone.
    pub undone: u32,
    /// Bytes of registers that were read.
    pub bytes_read: u64,
}

impl Leveled {
    /// Recovers the state from the device. An interrupted or repeated recovery has the same result.
    ///
    /// # Errors
    /// The device was never formatted, or for another configuration; a register is damaged where a
    /// newer number could be; after a power loss there are no registers as of the last flush; the
    /// store fails.
    pub fn recover(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<WearRecovery> {
        if self.passthrough {
            return Ok(WearRecovery::default());
        }
        if !self.stores_bytes() {
            let why = "wear leveling of a medium without bytes has nothing to recover from";
            return Err(Error::param("store", "none", why));
        }
        self.reset_state();
        let mut found = WearRecovery::default();
        let mut head = [0; size_in_memory(HEADER_BYTES)];
        self.read_registers(sink, self.area.header_at(), &mut head, &mut found)?;
        self.check_header(&head)?;
        let mut state = [0; to_usize(WORD_BYTES)];
        self.read_registers(sink, self.area.state_at(), &mut state, &mut found)?;
        let restoring = match u64::from_le_bytes(state) {
            w if w == state_word(0) => false,
            w if w == state_word(RESTORING) => true,
            _ => return self.damaged(self.area.state_at(), "the state of wear leveling is damaged"),
        };
        // Only a volatile store, such as a file behind a page cache, can lose acknowledged
        // registers.
        let machine = restoring || stop == CrashKind::PowerLoss && self.pcm.store().volatile();
        if machine && !self.config.over_files {
            let why = "keeps no registers as of the last flush, which recovery from a power loss needs";
            return Err(Error::param("over_files", false, why));
        }
        for region in RegionId::first(self.leveler.regions()) {
            let number = self.newest(sink, RegisterRing::Current, region, &mut found)?;
            self.leveler.set_number(region, number);
        }
        if self.config.over_files {
            self.recover_flushed(sink, machine && !is_planted(WearBug::SyncedIgnored), &mut found)?;
        }
        Ok(found)
    }

    fn recover_flushed(&mut self, sink: &mut Sink, machine: bool, found: &mut WearRecovery) -> Result<()> {
        for region in RegionId::first(self.leveler.regions()) {
            let current = self.leveler.number(region);
            let synced = self.newest(sink, RegisterRing::Synced, region, found)?;
            // A region moves at most once between two flushes: anything else is damage.
            let once = current == synced || self.leveler.step(region).number == current;
            self.leveler.set_number(region, current);
            if !once {
                let at = self.area.line_at(RegisterRing::Synced, region, self.area.line_of(synced));
                return self
                    .damaged(at, format!("region {region} is at move {current}, flushed at move {synced}"));
            }
            self.regions[region.idx()].synced = synced;
            if current != synced {
                self.moved.push(region);
            }
        }
        if machine { self.undo_moves(sink, found) } else { Ok(()) }
    }

    /// Undoes the moves since the last flush: clears their registers.
    fn undo_moves(&mut self, sink: &mut Sink, found: &mut WearRecovery) -> Result<()> {
        found.from_flush = true;
        let state_at = self.area.state_at();
        let mut done = sink.start();
        // Durable before the first register is cleared, so that an interrupted recovery starts
        // over.
        if !self.moved.is_empty() && !is_planted(WearBug::RestoreUnmarked) {
            let noted = self.word(sink, state_at, state_word(RESTORING).to_le_bytes(), done)?;
            done = self.pcm.fence(sink, noted);
            self.pcm.store_mut().sync()?;
        }
        for region in std::mem::take(&mut self.moved) {
            let line = self.area.line_of(self.leveler.number(region));
            let at = self.area.line_at(RegisterRing::Current, region, line);
            if !is_planted(WearBug::VoidKept) {
                let gone =
                    self.word(sink, at, RegisterArea::never(RegisterRing::Current, region, line), done)?;
                done = self.pcm.fence(sink, gone);
            }
            self.leveler.set_number(region, self.regions[region.idx()].synced);
            found.undone += 1;
        }
        // Also required if an interrupted recovery had already cleared all registers, but not the
        // flag.
        self.pcm.store_mut().sync()?;
        let noted = self.word(sink, state_at, state_word(0).to_le_bytes(), done)?;
        let done = self.pcm.fence(sink, noted);
        self.pcm.store_mut().sync()?;
        for region in &mut self.regions {
            region.move_barrier = done;
        }
        self.ready.fill(done);
        sink.ack(done);
        Ok(())
    }

    /// Finds the largest number in a ring, and sets it as the number of the region.
    fn newest(
        &mut self,
        sink: &mut Sink,
        ring: RegisterRing,
        region: RegionId,
        found: &mut WearRecovery,
    ) -> Result<u64> {
        let area = self.area;
        let scan = area.scan(ring, region, |at, into| self.read_registers(sink, at, into, found))?;
        self.leveler.set_number(region, scan.newest);
        let next = area.line_of(self.leveler.step(region).number);
        if scan.damaged.contains(&next) && !is_planted(WearBug::DamageUnseen) {
            let what = format!("the register of region {region} after move {} is damaged", scan.newest);
            return self.damaged(area.line_at(ring, region, next), what);
        }
        Ok(scan.newest)
    }

    /// Copies bytes of one stripe from the store before a recovery, as they were at the last flush
    /// or later. Without registers as of a flush the stripe is at its current position. Returns
    /// `false` if the registers are damaged, or belong to another configuration.
    ///
    /// The registers as of the last flush are valid after every kind of crash, and nothing
    /// overwrites the position that they name.
    ///
    /// # Errors
    /// `Rule` past the end; the store fails.
    pub fn peek_unrecovered(&mut self, at: u64, into: &mut [u8]) -> Result<bool> {
        if self.passthrough || !self.stores_bytes() {
            return self.pcm.peek(at, into).map(|()| true);
        }
        self.check_range(at, to_u64(into.len()))?;
        let mut head = [0; HEADER_BYTES as usize];
        self.pcm.peek(self.area.header_at(), &mut head)?;
        if head != self.head() {
            return Ok(false);
        }
        let ring = if self.config.over_files { RegisterRing::Synced } else { RegisterRing::Current };
        let stripe = LogicalStripe(bounded_u32(at >> self.stripe_shift));
        // Moves keep a stripe in its region, so the numbers of other regions do not matter.
        let region = self.leveler.map(stripe).region;
        let scan = self.area.scan(ring, region, |at, into| self.pcm.peek(at, into))?;
        let before = self.leveler.number(region);
        self.leveler.set_number(region, scan.newest);
        let (next, place) = (self.leveler.step(region).number, self.leveler.map(stripe));
        self.leveler.set_number(region, before);
        if scan.damaged.contains(&self.area.line_of(next)) {
            return Ok(false);
        }
        let offset = bounded_u32(at & ((1 << self.stripe_shift) - 1));
        let from = place.stripe.byte(self.stripe_shift, offset);
        let len = into.len().min((1 << self.stripe_shift) - to_usize(offset));
        self.pcm.peek(from, &mut into[..len])?;
        Ok(len == into.len())
    }

    fn read_registers(
        &mut self,
        sink: &mut Sink,
        at: u64,
        into: &mut [u8],
        found: &mut WearRecovery,
    ) -> Result<()> {
        found.bytes_read += to_u64(into.len());
        let start = sink.start();
        let done = self.pcm.read(sink, at, ReadTarget::Bytes(into), Cause::WearLevel, start)?;
        sink.ack(done);
        Ok(())
    }
}
