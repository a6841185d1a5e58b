//! The PCM of the cache: allocation and reuse of slots, blocks with their records, and the fences
//! that make them durable.
//!
//! The order of durability (`docs/design/durability.md` has the reasons): a block and its record
//! are written together and fenced before the request is acknowledged; CRC and digest detect a torn
//! pair. The record of a block that was rewritten in another slot ends after that fence. A slot is
//! reused only after the operation that freed it. The record of a block that was written back ends
//! after the flush of the disk, and its end is fenced before the slot is reused.

use super::BLOCK_LEN;
use super::block_span::SpanData;
use super::fragments::{BlockFragments, FRAGMENT, digest_of, runs};
use super::layout::CacheLayout;
use crate::fences::Fences;
use crate::numbers::{CacheSlot, Lbn};
use crate::planted::CacheBug;
use crate::record::{CombinedState, CopyState, RECORD_LEN, Record, RecordAddr, RecordEnd, STATE_WORD_AT};
use crate::tokens::join_into;
use frit_core::convert::{count_u32, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{Cause, ReadTarget, Result, Sink, Tok, TokTable, WriteData};
use frit_media::Store;
use frit_wear::Leveled;
use std::collections::VecDeque;

/// Slots that wait for a sync, over stores that may lose unsynced data in any order.
#[derive(Clone, Default, Debug)]
struct Unsynced {
    /// Slots of blocks that were rewritten in other slots since the last sync. A power loss may
    /// lose the new version, so their records are kept.
    replaced: Vec<CacheSlot>,
    /// Slots whose records ended since the last sync. Such a record also stands for earlier
    /// versions of its block, whose own records may not have ended durably yet.
    closed: Vec<CacheSlot>,
    /// Slots whose records ended before the last sync. The next sync makes sure that the records of
    /// all earlier versions have ended.
    due: Vec<CacheSlot>,
}

/// The PCM of a cache.
#[derive(Debug)]
pub(super) struct CachePcm {
    pub(super) pcm: Leveled,
    pub(super) layout: CacheLayout,
    /// Free slots that may not be written at once, in the order of the free list: number of slots,
    /// and the completion after which they may be written. Slots in the list before these may be
    /// written at once.
    reuse: VecDeque<(u32, Tok)>,
    queued: u32,
    /// For each slot, what its last write waited for. Without virtual time it takes no memory.
    write_gates: TokTable,
    unsynced: Unsynced,
    /// Blocks and records of this request that the next fence must cover.
    pub(super) fences: Fences,
    /// Ends of records that are not fenced yet.
    loose: Option<Tok>,
    /// Completion after which the header durably states that the cache is in use. No slot is
    /// written before, because after a clean shutdown all data is certain, and a block torn by a
    /// crash would be taken for damage.
    pub(super) noted: Tok,
    /// The highest sequence number given to a record.
    pub(super) seq: u64,
    /// The highest sequence number whose data was synced.
    pub(super) synced: u64,
    /// Records up to this sequence number are known to be complete.
    pub(super) mark: u64,
    /// Records up to this sequence number are known to be synced, over files.
    pub(super) synced_mark: u64,
    /// Indexes of the last mark and the last synced mark, which select the lines of the next ones.
    pub(super) marks: u64,
    pub(super) synced_marks: u64,
}

impl CachePcm {
    /// Returns `true` if the media keep the bytes that are written.
    #[inline]
    pub(super) fn stores_bytes(&self) -> bool {
        self.pcm.stores_bytes()
    }

    pub(super) fn new(pcm: Leveled, layout: CacheLayout) -> CachePcm {
        CachePcm {
            fences: Fences::new(),
            pcm,
            layout,
            reuse: VecDeque::new(),
            queued: 0,
            write_gates: TokTable::new(to_usize(layout.slots)),
            unsynced: Unsynced::default(),
            loose: None,
            noted: Tok::default(),
            seq: 0,
            synced: 0,
            mark: 0,
            synced_mark: 0,
            marks: 0,
            synced_marks: 0,
        }
    }

    /// Returns `true` if the store may lose data that is not synced.
    pub(super) fn volatile(&self) -> bool {
        self.stores_bytes() && self.pcm.store().volatile()
    }

    /// Returns the completion after which `slot` may be written, which was just taken from a free
    /// list of `free` slots, the slot included.
    #[inline]
    pub(super) fn usable(&mut self, sink: &mut Sink, slot: CacheSlot, free: u32) -> Tok {
        let gate = self.next_gate(sink, free);
        self.write_gates.set(to_usize(slot.0), gate);
        gate
    }

    /// Returns the completion after which slots may be written that were replaced by blocks which
    /// are durable once `done` is done.
    ///
    /// It includes what the writes of these slots waited for. Such a write may not have begun: then
    /// the slot still holds an earlier block, which a power loss must find until the version that
    /// replaced it is durable.
    pub(super) fn replaced_after(&self, sink: &mut Sink, done: Tok, replaced: &[CacheSlot]) -> Tok {
        replaced.iter().fold(done, |after, slot| sink.join(after, self.write_gates.get(to_usize(slot.0))))
    }

    #[inline]
    fn next_gate(&mut self, sink: &mut Sink, free: u32) -> Tok {
        if is_planted(CacheBug::UseNotedLate) {
            self.noted = sink.start();
        }
        // The queued slots are the last ones of the free list.
        if free > self.queued {
            return self.noted;
        }
        let Some((n, after)) = self.reuse.front_mut() else { return self.noted };
        let after = *after;
        *n -= 1;
        self.queued -= 1;
        if *n == 0 {
            self.reuse.pop_front();
        }
        if is_planted(CacheBug::SlotReuseEarly) { sink.start() } else { sink.join(after, self.noted) }
    }

    /// Prefetches the memory that a write to a slot accesses.
    #[inline]
    pub(super) fn prefetch(&self, slot: CacheSlot) {
        self.pcm.prefetch_wear(self.layout.data(slot));
    }

    /// Frees a slot after `after`. Returns `false` if it has to wait for a sync first.
    #[inline]
    pub(super) fn release(&mut self, slot: CacheSlot, after: Tok, same: bool) -> bool {
        if self.volatile() && !is_planted(CacheBug::ReuseBeforeFlush) {
            self.unsynced.closed.push(slot);
            return false;
        }
        self.queued += 1;
        match self.reuse.back_mut() {
            Some((n, _)) if same => *n += 1,
            _ => self.reuse.push_back((1, after)),
        }
        true
    }

    /// Returns `true` if a slot whose block was rewritten elsewhere has to keep its record until a
    /// sync. The slot is noted then.
    #[inline]
    pub(super) fn keeps(&mut self, slot: CacheSlot) -> bool {
        let keeps = self.volatile() && !is_planted(CacheBug::ReuseBeforeFlush);
        if keeps {
            self.unsynced.replaced.push(slot);
        }
        keeps
    }

    /// Returns `true` if a power loss may lose the contents of a slot.
    pub(super) fn may_be_lost(&self, slot: CacheSlot) -> Result<bool> {
        Ok(self.volatile() && self.record(slot)?.is_some_and(|r| r.seq > self.synced))
    }

    /// Returns the number of slots that wait for a sync.
    pub(super) fn unsynced(&self) -> usize {
        let u = &self.unsynced;
        u.replaced.len() + u.closed.len() + u.due.len()
    }

    /// Makes all free slots writable at once.
    pub(super) fn forget_reuse(&mut self) {
        self.reuse.clear();
        self.queued = 0;
        self.write_gates.fill(Tok::DONE);
        self.unsynced = Unsynced::default();
        self.synced = 0;
        self.fences.forget_open();
        self.loose = None;
    }

    /// Writes a block to a slot: the `valid` fragments of `block`, which contains all eight of them
    /// if it has bytes. The block is not durable before [`CachePcm::fence`].
    pub(super) fn write_block(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        fragments: BlockFragments,
        block: WriteData<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<()> {
        let BlockFragments { lbn, valid } = fragments;
        let at = self.layout.data(slot);
        if valid == 0xFF {
            let tok = self.pcm.write(sink, at, block, cause, after)?;
            self.fences.wait(sink, tok);
        } else {
            for run in runs(valid) {
                let part = block.part(run.offset(), run.bytes());
                let tok = self.pcm.write(sink, at + u64::from(run.offset()), part, cause, after)?;
                self.fences.wait(sink, tok);
            }
        }
        self.write_record(sink, slot, lbn, valid, block, after)
    }

    /// Overwrites fragments of a block in place. `fragments` are those that it has. `block` holds its
    /// contents, as far as bytes are held.
    pub(super) fn write_over(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        fragments: BlockFragments,
        new: SpanData<'_>,
        block: &mut [u8],
        after: Tok,
    ) -> Result<()> {
        let BlockFragments { lbn, valid: old } = fragments;
        let SpanData { span, data } = new;
        let at = self.layout.data(slot) + u64::from(span.first * FRAGMENT);
        let tok = self.pcm.write(sink, at, data, Cause::Host, after)?;
        self.fences.wait(sink, tok);
        let valid = old | span.mask();
        let whole = match data.bytes() {
            Some(bytes) => {
                let from = to_usize(span.first * FRAGMENT);
                block[from..from + bytes.len()].copy_from_slice(bytes);
                WriteData::Bytes(block)
            }
            // The digest changes with the data, but without bytes there is no digest.
            None if valid == old => return Ok(()),
            None => WriteData::Len(BLOCK_LEN),
        };
        self.write_record(sink, slot, lbn, valid, whole, after)
    }

    fn write_record(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        lbn: Lbn,
        valid: u8,
        block: WriteData<'_>,
        after: Tok,
    ) -> Result<()> {
        self.seq += 1;
        if self.stores_bytes() {
            let digest = block.bytes().map_or(0, |b| digest_of(b, valid));
            return self.put_record(sink, slot, &Record { lbn: lbn.0, valid, seq: self.seq, digest }, after);
        }
        for place in self.layout.places(slot) {
            let source = WriteData::Len(count_u32(RECORD_LEN));
            let tok = self.pcm.write(sink, self.layout.record(place), source, Cause::Meta, after)?;
            self.fences.wait(sink, tok);
        }
        Ok(())
    }

    /// Writes all copies of a record. They are not durable before [`CachePcm::fence`].
    pub(super) fn put_record(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        record: &Record,
        after: Tok,
    ) -> Result<()> {
        for place in self.layout.places(slot) {
            let (at, bytes) = (self.layout.record(place), record.bytes(place));
            let tok = self.pcm.write(sink, at, WriteData::Bytes(&bytes), Cause::Meta, after)?;
            self.fences.wait(sink, tok);
        }
        Ok(())
    }

    /// Fences all data written since the last fence. Returns the completion, or `None` if nothing
    /// was written.
    pub(super) fn fence(&mut self, sink: &mut Sink) -> Option<Tok> {
        self.fences.close(&mut self.pcm, sink, CacheBug::RecordNotFenced)
    }

    /// Returns the completion of all fences so far.
    pub(super) fn fenced(&self) -> Tok {
        self.fences.done()
    }

    pub(super) fn fence_after(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        self.fences.after(&mut self.pcm, sink, after)
    }

    /// Marks the record of a slot as ended, after `after`.
    #[inline]
    pub(super) fn end_record(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        end: RecordEnd,
        after: Tok,
    ) -> Result<Tok> {
        let record = if self.stores_bytes() { self.record(slot)? } else { None };
        self.close_record(sink, slot, record.as_ref().map(|r| (r, end)), after)
    }

    /// Clears a record that is not valid: its block is torn, or it is an older version of a cached
    /// block.
    pub(super) fn wipe_record(&mut self, sink: &mut Sink, slot: CacheSlot, after: Tok) -> Result<Tok> {
        self.close_record(sink, slot, None, after)
    }

    /// Writes the last word of a record: the reason of its end, or zero.
    pub(super) fn close_record(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        record: Option<(&Record, RecordEnd)>,
        after: Tok,
    ) -> Result<Tok> {
        // A head that says "halted" vouches for the records as they were then.
        let after = sink.join(after, self.noted);
        let mut tok = after;
        for place in self.layout.places(slot) {
            let at = self.layout.record(place) + STATE_WORD_AT;
            let word = record.map_or([0; 8], |(r, end)| r.ended(end, place));
            let one = self.pcm.write(sink, at, WriteData::Bytes(&word), Cause::Meta, after)?;
            tok = if place.copy == 0 { one } else { sink.join(tok, one) };
        }
        join_into(sink, &mut self.loose, tok);
        Ok(tok)
    }

    /// Makes the ends of all records durable, and waits for `after` too. Ends that an earlier fence
    /// already covers count as well.
    pub(super) fn settle(&mut self, sink: &mut Sink, after: Tok) -> Tok {
        match self.loose.take() {
            Some(loose) if !is_planted(CacheBug::RecordNotSettled) => {
                let both = sink.join(loose, after);
                self.fence_after(sink, both);
            }
            _ => {}
        }
        sink.join(after, self.fences.done())
    }

    /// Reads fragments of a slot from fragment `first` on.
    #[inline]
    pub(super) fn read(
        &mut self,
        sink: &mut Sink,
        slot: CacheSlot,
        first: u32,
        into: ReadTarget<'_>,
        cause: Cause,
        after: Tok,
    ) -> Result<Tok> {
        let at = self.layout.data(slot) + u64::from(first * FRAGMENT);
        self.pcm.read(sink, at, into, cause, after)
    }

    /// Returns the state of one copy of a record.
    #[inline]
    pub(super) fn copy_state(&self, place: RecordAddr) -> Result<CopyState> {
        let mut bytes = [0; RECORD_LEN];
        self.pcm.peek(self.layout.record(place), &mut bytes)?;
        Ok(CopyState::read(&bytes, place))
    }

    /// Returns the combined state of the copies of a slot's record.
    pub(super) fn record_state(&self, slot: CacheSlot) -> Result<CombinedState> {
        CombinedState::of_slot(slot, self.layout.copies, |place| self.copy_state(place))
    }

    /// Returns the record of a slot, if the slot holds a block.
    pub(super) fn record(&self, slot: CacheSlot) -> Result<Option<Record>> {
        Ok(self.record_state(slot)?.block)
    }

    /// Loads the valid fragments of a slot to their positions in `block`. Returns `true` if they
    /// match the digest of the record.
    pub(super) fn load(&self, slot: CacheSlot, record: &Record, block: &mut [u8]) -> Result<bool> {
        let at = self.layout.data(slot);
        for run in runs(record.valid) {
            self.pcm.peek(at + u64::from(run.offset()), &mut block[run.range()])?;
        }
        Ok(is_planted(CacheBug::PcmDataUnchecked) || digest_of(block, record.valid) == record.digest)
    }

    /// Syncs the PCM. Returns the slots that may be reused now.
    pub(super) fn sync(&mut self, sink: &mut Sink) -> Result<Vec<CacheSlot>> {
        self.pcm.flush(sink)?;
        self.synced = self.seq;
        self.set_synced_mark(sink)?;
        // Ends of records that are written after this sync are durable after the next one.
        let free = std::mem::take(&mut self.unsynced.due);
        self.unsynced.due = std::mem::take(&mut self.unsynced.closed);
        let start = sink.start();
        for slot in std::mem::take(&mut self.unsynced.replaced) {
            self.end_record(sink, slot, RecordEnd::Moved, start)?;
            self.unsynced.due.push(slot);
        }
        Ok(free)
    }

    /// Returns the DRAM that it uses, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        to_u64(self.reuse.capacity() * size_of::<(u32, Tok)>() + self.unsynced() * size_of::<CacheSlot>())
    }
}
