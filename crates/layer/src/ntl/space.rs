//! Pages and their records: reads, writes, verification, and the fences that make them durable.
//!
//! Without protection a page has only data. With protection a page also has a record (number,
//! sequence number, digest) in two copies on its chip. The record is written together with the
//! data, and both are fenced before the request is acknowledged; the digest detects a torn pair.
//! `docs/design/durability.md` has the order and its reasons.

use super::config::{NtlConfig, Protect};
use super::layout::{COPIES, MemoryShape, NtlLayout};
use crate::fences::Fences;
use crate::numbers::Place;
use crate::planted::NtlBug;
use crate::record::{
    CombinedState, CopyState, RECORD_LEN, Record, RecordAddr, RecordBytes, RecordEnd, STATE_WORD_AT,
};
use crate::summary::SummaryEntry;
use frit_core::Lpn;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, MediumKind, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::checksum::digest;
use frit_media::{Pcm, Store};
use frit_wear::{Leveled, WearKeys};

/// Write state of the cells of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CellState {
    /// Refreshed, as far as is known: a clean write.
    Fresh,
    /// Written before: a dirty write.
    Used,
}

/// A write of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageWrite<'a> {
    pub(super) data: WriteData<'a>,
    pub(super) cells: CellState,
    pub(super) cause: Cause,
    /// Completion that the write waits for.
    pub(super) after: Tok,
}

impl<'a> PageWrite<'a> {
    /// Returns a write of host data.
    #[inline]
    pub(super) fn of_host(data: WriteData<'a>, cells: CellState, after: Tok) -> PageWrite<'a> {
        PageWrite { data, cells, cause: Cause::Host, after }
    }
}

/// The memory of the layer.
#[derive(Debug)]
pub(super) struct NtlMemory {
    pub(super) pcm: Leveled,
    pub(super) layout: NtlLayout,
    pub(super) protected: bool,
    /// `true` if no leveler moves pages, so that the chip of a place is fixed.
    plain: bool,
    pub(super) fences: Fences,
    /// The highest sequence number given to a record.
    pub(super) seq: u64,
    /// Records up to this sequence number are known to be complete and durable.
    pub(super) mark: u64,
    pub(super) marks: u64,
    /// Log records up to this sequence number are invalid.
    pub(super) tail: u64,
    pub(super) tails: u64,
}

impl NtlMemory {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.pcm.stores_bytes()
    }

    pub(super) fn new(config: &NtlConfig, pcm: Pcm) -> Result<NtlMemory> {
        let wear = config.wear.config()?;
        let plain = config.wear.wear_leveling == "none";
        let pcm = Leveled::new(pcm, wear).map_err(WearKeys::in_table)?;
        let below = MemoryShape {
            geometry: *pcm.geometry(),
            bytes: pcm.bytes(),
            refresh_bytes: pcm.refresh_bytes(),
            cells_refresh_bytes: pcm.config().refresh_bytes,
        };
        Ok(NtlMemory {
            layout: NtlLayout::new(config, &below)?,
            protected: config.protect == Protect::Redo,
            plain,
            seq: 0,
            mark: 0,
            marks: 0,
            tail: 0,
            tails: 0,
            fences: Fences::new(),
            pcm,
        })
    }

    /// Returns `true` if the store may lose data that is not synced.
    pub(super) fn volatile(&self) -> bool {
        self.stores_bytes() && self.pcm.store().volatile()
    }

    /// Returns the chip on which a place currently lies.
    #[inline]
    pub(super) fn chip(&self, place: Place) -> u32 {
        if self.plain {
            return self.layout.chip(place);
        }
        u32::from(self.pcm.unit_of(self.layout.data(place)).0 - self.pcm.unit_id(0).0)
    }

    /// Prefetches the memory that a write to a place accesses.
    #[inline]
    pub(super) fn prefetch(&self, place: Place) {
        self.pcm.prefetch_wear(self.layout.data(place));
    }

    /// Reads a part of a page.
    #[inline]
    pub(super) fn read(
        &mut self,
        sink: &mut Sink,
        place: Place,
        from: u32,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let at = self.layout.data(place) + u64::from(from);
        self.pcm.read(sink, at, into, cause, after)
    }

    /// Writes a page, and its record if the layer is protected.
    #[inline]
    pub(super) fn put(
        &mut self,
        sink: &mut Sink,
        place: Place,
        lpn: Lpn,
        page: PageWrite<'_>,
    ) -> Result<Tok> {
        let tok = self.put_data(sink, place, page)?;
        if !self.protected {
            return Ok(tok);
        }
        let digest = page.data.bytes().map_or(0, digest);
        self.put_new_record(sink, place, lpn, digest, tok, page.after)
    }

    /// Variant of [`NtlMemory::put`] for a page that another record described. The digest is copied,
    /// even if it is wrong, so that damage stays known.
    pub(super) fn put_copy(
        &mut self,
        sink: &mut Sink,
        place: Place,
        lpn: Lpn,
        digest: u64,
        page: PageWrite<'_>,
    ) -> Result<Tok> {
        let tok = self.put_data(sink, place, page)?;
        if self.protected { self.put_new_record(sink, place, lpn, digest, tok, page.after) } else { Ok(tok) }
    }

    #[inline]
    fn put_data(&mut self, sink: &mut Sink, place: Place, page: PageWrite<'_>) -> Result<Tok> {
        let PageWrite { data, cells, cause, after } = page;
        let at = self.layout.data(place);
        match cells {
            CellState::Fresh => self.pcm.write_fresh(sink, at, data, cause, after),
            CellState::Used => self.pcm.write(sink, at, data, cause, after),
        }
    }

    /// Writes the record of a page whose data is complete with the token `data`. Returns the
    /// completion of both.
    fn put_new_record(
        &mut self,
        sink: &mut Sink,
        place: Place,
        lpn: Lpn,
        digest: u64,
        data: Tok,
        after: Tok,
    ) -> Result<Tok> {
        self.fences.wait(sink, data);
        self.seq += 1;
        let record = Record { lbn: lpn.0, valid: u8::MAX, seq: self.seq, digest };
        let noted = self.put_record(sink, place, &record, after)?;
        Ok(sink.join(data, noted))
    }

    /// Writes both copies of a record.
    pub(super) fn put_record(
        &mut self,
        sink: &mut Sink,
        place: Place,
        record: &Record,
        after: Tok,
    ) -> Result<Tok> {
        self.put_copies(sink, place, |p| record.bytes(p), after)
    }

    /// Writes both copies of a record from a summary.
    pub(super) fn put_counted(&mut self, sink: &mut Sink, counted: &SummaryEntry, after: Tok) -> Result<()> {
        let r = &counted.record;
        let bytes = |p| if counted.ended { r.ended_bytes(RecordEnd::Evicted, p) } else { r.bytes(p) };
        self.put_copies(sink, counted.slot.place(), bytes, after).map(|_| ())
    }

    /// Notes a discard in the record at home, with a higher sequence number than the versions in
    /// the log.
    pub(super) fn put_discard(&mut self, sink: &mut Sink, place: Place, lpn: Lpn, after: Tok) -> Result<()> {
        self.seq += 1;
        let record = Record { lbn: lpn.0, valid: u8::MAX, seq: self.seq, digest: 0 };
        self.put_copies(sink, place, |p| record.ended_bytes(RecordEnd::Evicted, p), after).map(|_| ())
    }

    /// Writes both copies of a record, whose bytes are `bytes`.
    pub(super) fn put_copies(
        &mut self,
        sink: &mut Sink,
        place: Place,
        bytes: impl Fn(RecordAddr) -> RecordBytes,
        after: Tok,
    ) -> Result<Tok> {
        let mut done = after;
        for copy in self.layout.places(place) {
            let (at, bytes) = (self.layout.record(copy), bytes(copy));
            let tok = self.pcm.write(sink, at, WriteData::Bytes(&bytes), Cause::Meta, after)?;
            done = sink.join(done, tok);
        }
        self.fences.wait(sink, done);
        Ok(done)
    }

    /// Notes a discard in the record of a page, if it has one.
    pub(super) fn end_record(&mut self, sink: &mut Sink, place: Place, after: Tok) -> Result<()> {
        let verdict = self.record_state(place)?;
        let record = verdict.block.or(verdict.ended.map(|(r, _)| r));
        if self.stores_bytes() && record.is_none() {
            return Ok(());
        }
        for copy in self.layout.places(place) {
            let word = record.map_or([0; 8], |r| r.ended(RecordEnd::Evicted, copy));
            let at = self.layout.record(copy) + STATE_WORD_AT;
            let tok = self.pcm.write(sink, at, WriteData::Bytes(&word), Cause::Meta, after)?;
            self.fences.wait(sink, tok);
        }
        Ok(())
    }

    /// Clears a record.
    pub(super) fn wipe_record(&mut self, sink: &mut Sink, place: Place, after: Tok) -> Result<()> {
        for copy in self.layout.places(place) {
            let zeros = WriteData::Bytes(&[0; RECORD_LEN]);
            let tok = self.pcm.write(sink, self.layout.record(copy), zeros, Cause::Meta, after)?;
            self.fences.wait(sink, tok);
        }
        Ok(())
    }

    /// Fences all data and records written since the last fence. Returns the completion, or `None`
    /// if nothing was written under protection.
    pub(super) fn fence(&mut self, sink: &mut Sink) -> Option<Tok> {
        self.fences.close(&mut self.pcm, sink, NtlBug::NotFenced)
    }

    pub(super) fn fence_after(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        self.fences.after(&mut self.pcm, sink, after)
    }

    /// Returns the completion of all fences so far.
    pub(super) fn fenced(&self) -> Tok {
        self.fences.done()
    }

    /// Returns the combined state of the copies of a page's record. Without bytes both copies are
    /// invalid.
    pub(super) fn record_state(&self, place: Place) -> Result<CombinedState> {
        if !self.stores_bytes() {
            return Ok(CombinedState::of(&[CopyState::Bad; to_usize(COPIES)]));
        }
        CombinedState::of_slot(place, COPIES, |copy| self.copy_state(copy))
    }

    /// Returns the state of one copy of a record.
    #[inline]
    pub(super) fn copy_state(&self, copy: RecordAddr) -> Result<CopyState> {
        let mut bytes = [0; RECORD_LEN];
        self.pcm.peek(self.layout.record(copy), &mut bytes)?;
        Ok(CopyState::read(&bytes, copy))
    }

    /// Loads the contents of a page without a command, to compute the digest beside a read that was
    /// emitted.
    pub(super) fn load(&self, place: Place, into: &mut [u8]) -> Result<()> {
        self.pcm.peek(self.layout.data(place), into)
    }

    /// Verifies the contents of a page against its record.
    pub(super) fn verify(&self, place: Place, lpn: Lpn, page: &[u8]) -> Result<()> {
        let what = match self.record_state(place)?.block {
            Some(r) if r.lpn() == lpn && (r.digest == digest(page) || is_planted(NtlBug::DataUnchecked)) => {
                return Ok(());
            }
            Some(r) if r.lpn() == lpn => "the data does not match its checksum".to_owned(),
            Some(r) => format!("its record is of page {}", r.lbn),
            None => "its record is damaged".to_owned(),
        };
        Err(Error::Corrupt {
            medium: MediumKind::Pcm,
            at: self.layout.data(place),
            what: format!("page {lpn} of the volume: {what}"),
        })
    }

    /// Resets the state in DRAM.
    pub(super) fn forget(&mut self) {
        self.fences = Fences::new();
        (self.seq, self.mark, self.marks, self.tail, self.tails) = (0, 0, 0, 0, 0);
    }
}
