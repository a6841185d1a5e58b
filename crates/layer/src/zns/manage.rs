//! Open, close, finish and reset, and the limits of open and active zones.

use super::layer::Zns;
use super::log::{expected, log_spare};
use super::read::lost;
use super::zone::{NO_BLOCK, ZoneBlock};
use crate::planted::ZnsBug;
use frit_core::convert::{count_u32, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Ppn, ReadTarget, Result, SECTOR_BYTES, Sink, ZoneFault, ZoneState};

impl Zns {
    /// Changes the state of a zone.
    pub(super) fn set_state(&mut self, number: u32, state: ZoneState) {
        let zone = &mut self.zones[to_usize(number)];
        self.open = self.open + u32::from(state.is_open()) - u32::from(zone.state.is_open());
        self.active = self.active + u32::from(state.is_active()) - u32::from(zone.state.is_active());
        zone.state = state;
    }

    /// Returns an error of a zone, which names its state and its write pointer.
    #[cold]
    pub(super) fn zone_error(&self, zone: u32, fault: ZoneFault, what: &str) -> Error {
        let Some(info) = self.info_of(zone) else {
            let why = format!("has to be less than {}", self.sizes.zones);
            return Error::param("zone", zone, why);
        };
        let what = format!(
            "{what} (state {}, sectors {} to {}, write pointer {})",
            info.state.name(),
            info.start.0,
            info.start.0 + self.sizes.zone_bytes() / SECTOR_BYTES - 1,
            info.write_pointer.0
        );
        Error::Zone { zone, fault, what }
    }

    /// Checks that a zone accepts writes in its state.
    pub(super) fn check_writable(&self, number: u32) -> Result<()> {
        let (fault, what) = match self.zones[to_usize(number)].state {
            ZoneState::Full => (ZoneFault::IsFull, "is full; reset it, or write to an empty zone"),
            ZoneState::ReadOnly => (ZoneFault::IsReadOnly, "is read-only; write to another zone"),
            ZoneState::Offline => (ZoneFault::IsOffline, "is offline; write to another zone"),
            _ => return Ok(()),
        };
        Err(self.zone_error(number, fault, what))
    }

    /// Opens a zone for a write, implicitly if it is not open.
    pub(super) fn open_for_write(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        self.check_writable(number)?;
        if self.zones[to_usize(number)].state.is_open() {
            return Ok(());
        }
        self.open_zone(sink, number, ZoneState::ImplicitlyOpen)
    }

    /// Opens an empty or closed zone.
    fn open_zone(&mut self, sink: &mut Sink, number: u32, state: ZoneState) -> Result<()> {
        let empty = self.zones[to_usize(number)].state == ZoneState::Empty;
        if empty && self.active >= self.config.active_limit() {
            let what = "cannot be opened, as too many zones are active; finish or reset another zone";
            return Err(self.zone_error(number, ZoneFault::TooManyActive, what));
        }
        if self.open >= self.config.open_limit() {
            self.close_oldest(sink, number)?;
        }
        self.load_buffer(sink, number)?;
        self.set_state(number, state);
        Ok(())
    }

    /// Gives a zone a buffer, with the part of a program unit that was saved when the zone was closed.
    ///
    /// # Errors
    /// `Corrupt` if a page of it is lost, which would leave a gap.
    fn load_buffer(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        let mut buffer = self.new_buffer();
        let zone = &self.zones[to_usize(number)];
        buffer.begin_unit(sink);
        let after = sink.join(buffer.free, zone.saved_done);
        let after = sink.join(after, self.in_use);
        let unit = |ppn: Ppn| ppn.0 / self.sizes.unit_pages;
        let places = (zone.programmed..zone.written)
            .map(|page| zone.saved_at(page).ok_or_else(|| lost(self.sizes.lpn(number, page))))
            .collect::<Result<Vec<Ppn>>>()?;
        // Pages that were saved together lie in one program unit.
        for run in places.chunk_by(|&a, &b| a.plus(1) == b && unit(a) == unit(b)) {
            let read = self.nand.read_unit(sink, run[0], count_u32(run.len()), Cause::Merge, after)?;
            buffer.read = sink.join(buffer.read, read);
        }
        let pages = buffer.bytes.chunks_exact_mut(to_usize(self.sizes.page_bytes));
        for ((page, &ppn), bytes) in (zone.programmed..).zip(&places).zip(pages) {
            let expect = expected(log_spare(self.sizes.lpn(number, page), zone.epoch));
            self.nand.copy_out(ppn, 0, ReadTarget::Bytes(bytes), Some(expect))?;
        }
        self.zones[to_usize(number)].buffer = Some(buffer);
        Ok(())
    }

    /// Closes the implicitly open zone that was written least recently, so that another one can be opened.
    fn close_oldest(&mut self, sink: &mut Sink, for_zone: u32) -> Result<()> {
        let implicit = |z: &(usize, u64, ZoneState)| z.2 == ZoneState::ImplicitlyOpen;
        let all = self.zones.iter().enumerate().map(|(n, z)| (n, z.used, z.state));
        let Some((oldest, ..)) = all.filter(implicit).min_by_key(|&(_, used, _)| used) else {
            let what =
                "cannot be opened, as too many zones were opened by commands; close or finish another zone";
            return Err(self.zone_error(for_zone, ZoneFault::TooManyOpen, what));
        };
        self.stats.implicit_closes += 1;
        self.close(sink, count_u32(oldest))
    }

    /// Closes an open zone. Its part of a program unit is saved.
    fn close(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        let saved = self.save_partial(sink, number)?;
        if let (Some(saved), Some(buffer)) = (saved, &mut self.zones[to_usize(number)].buffer) {
            buffer.programming(saved);
        }
        self.drop_buffer(number);
        self.set_state(number, ZoneState::Closed);
        Ok(())
    }

    /// Ends the use of the buffer of a zone. What is being programmed still takes its space.
    pub(super) fn drop_buffer(&mut self, number: u32) {
        if let Some(buffer) = self.zones[to_usize(number)].buffer.take() {
            self.drained.push_back(buffer.into_in_flight());
            if self.drained.len() > to_usize(self.config.open_limit().min(1 << 16)) {
                self.drained.pop_front();
            }
        }
    }

    /// Opens a zone by a command.
    pub(super) fn open_explicitly(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        self.check_writable(number)?;
        match self.zones[to_usize(number)].state {
            ZoneState::ExplicitlyOpen => Ok(()),
            ZoneState::ImplicitlyOpen => {
                self.set_state(number, ZoneState::ExplicitlyOpen);
                Ok(())
            }
            _ => self.open_zone(sink, number, ZoneState::ExplicitlyOpen),
        }
    }

    /// Closes a zone by a command.
    pub(super) fn close_explicitly(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        match self.zones[to_usize(number)].state {
            ZoneState::Closed => Ok(()),
            state if state.is_open() => {
                self.close(sink, number)?;
                sink.ack(self.programmed);
                Ok(())
            }
            _ => {
                let what = "cannot be closed, as it is not open";
                Err(self.zone_error(number, ZoneFault::InvalidTransition, what))
            }
        }
    }

    /// Makes a zone full. A program unit that is not full is programmed with padding.
    pub(super) fn finish(&mut self, sink: &mut Sink, number: u32) -> Result<()> {
        match self.zones[to_usize(number)].state {
            ZoneState::Full => return Ok(()),
            ZoneState::ReadOnly | ZoneState::Offline => return self.check_writable(number),
            _ => {}
        }
        if self.zones[to_usize(number)].written > self.zones[to_usize(number)].programmed {
            // The limit of open zones does not apply: the buffer is in use during the command only.
            if self.zones[to_usize(number)].buffer.is_none() {
                self.load_buffer(sink, number)?;
            }
            self.program_buffer(sink, number)?;
        }
        self.drop_buffer(number);
        self.zones[to_usize(number)].finished = true;
        self.set_state(number, ZoneState::Full);
        self.stats.finishes += 1;
        self.changed.insert(number);
        self.halted = false;
        if self.config.scans() {
            self.record_zones(sink, &[number], self.programmed)?;
        }
        sink.ack(self.programmed);
        Ok(())
    }

    /// Makes zones empty. The resets are durable when they are acknowledged; only then are the blocks
    /// erased, and the zones written.
    pub(super) fn reset_zones(&mut self, sink: &mut Sink, zones: &[u32]) -> Result<()> {
        let mut blocks: Vec<u32> = Vec::new();
        let mut reset = Vec::new();
        for &number in zones {
            let state = self.zones[to_usize(number)].state;
            if matches!(state, ZoneState::Empty | ZoneState::ReadOnly | ZoneState::Offline) {
                continue;
            }
            self.drop_buffer(number);
            if !is_planted(ZnsBug::EpochKept) {
                self.epoch += 1;
            }
            let epoch = self.epoch;
            let zone = &mut self.zones[to_usize(number)];
            blocks.extend(zone.blocks.iter().map(|b| b.block).filter(|&b| b != NO_BLOCK));
            zone.blocks.fill(ZoneBlock::default());
            zone.saved.clear();
            (zone.epoch, zone.written, zone.programmed, zone.finished) = (epoch, 0, 0, false);
            self.changed.remove(&number);
            self.set_state(number, ZoneState::Empty);
            reset.push(number);
        }
        if reset.is_empty() {
            return Ok(());
        }
        self.halted = false;
        self.stats.resets += reset.len() as u64;
        self.retire_zones();
        let mut durable = sink.start();
        if self.config.scans() {
            self.record_zones(sink, &reset, durable)?;
            durable = self.programmed;
        }
        for &number in &reset {
            self.zones[to_usize(number)].ready = durable;
        }
        let erasable = if is_planted(ZnsBug::ErasedBeforeReset) { sink.start() } else { durable };
        blocks.into_iter().for_each(|block| self.release(block, erasable));
        sink.ack(durable);
        Ok(())
    }
}
