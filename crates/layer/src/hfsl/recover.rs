//! Recovery from the contents of the media.
//!
//! Only the map defines the current pages: a page that no entry names was never acknowledged. A
//! crash or a power loss can leave a redo record whose entries are partly written, blocks with an
//! interrupted program or erase and, behind a page cache, a map that is ahead of its data. Recovery
//! only adds to this state (padding, or the same entries again), so an interrupted recovery can be
//! repeated.

use super::Hfsl;
use super::entry::{MapEntry, PageLocation};
use super::header::{Header, IN_USE, RESTORING, SUSPECTS};
use super::mapping::ENTRY_BYTES;
use super::pcm::{DESC_BYTES, Desc, NONE, PcmSpace};
use crate::Token;
use crate::planted::HfslBug;
use frit_core::planted::is;
use frit_core::{Cause, CrashKind, Error, LostPage, Lpn, MediumKind, Recovery, Result, Sink, Target};
use frit_media::{SPARE_RECORD_BYTES, Store};

/// Number of entries transferred by one command: 4 KiB of map.
pub(super) const CHUNK: usize = 512;
/// Number of sequence numbers reserved at a time. The margin is the largest number that one request
/// may use before the next reservation: more than 32 MiB in pages of 512 bytes, with all garbage
/// collection that they cause.
const SEQ_STEP: u64 = 1 << 24;
const SEQ_MARGIN: u64 = 1 << 20;

/// State of use, as recorded in the header in PCM.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct UsageState {
    pub(crate) formatted: bool,
    /// `true` if the map was initialised at format time, so that zeros in it are damage.
    pub(crate) map_initialised: bool,
    pub(crate) in_use: bool,
    /// Sequence numbers below this limit may be in use.
    pub(crate) seq_limit: u64,
    /// Pages with sequence numbers up to this one may have been left without an entry by a crash.
    pub(crate) recovered: u64,
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Prepares for a change: marks the layer as in use in PCM, and reserves sequence numbers.
    #[inline]
    pub(crate) fn ensure_in_use<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        if self.usage.in_use && self.flash.last_seq() + SEQ_MARGIN <= self.usage.seq_limit {
            return Ok(());
        }
        self.write_usage(sink, false)
    }

    /// Writes the state of use. With `fill` the map is new, and is initialised with entries of
    /// pages that were never written.
    #[cold]
    pub(super) fn write_usage<S: Sink<Tok = T>>(&mut self, sink: &mut S, fill: bool) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else {
            self.usage = UsageState { in_use: true, seq_limit: u64::MAX, ..self.usage };
            return Ok(());
        };
        let limit = self.flash.last_seq() + SEQ_STEP;
        let noted = if self.usage.formatted {
            let done = pcm.write_seq_limit(sink, limit)?;
            if self.usage.in_use { done } else { pcm.write_flags(sink, IN_USE, done)? }
        } else {
            pcm.write_header(sink, limit, fill)?
        };
        self.map.redo_barrier = sink.join(self.map.redo_barrier, noted);
        let first = if is(HfslBug::UsedBeforeNoted) { T::default() } else { noted };
        (self.flash.in_use, pcm.in_use) = (first, first);
        // Media behind a page cache are synced as well, before the first data is written.
        pcm.medium.store_mut().sync()?;
        let map_initialised = if self.usage.formatted { self.usage.map_initialised } else { fill };
        self.usage =
            UsageState { formatted: true, map_initialised, in_use: true, seq_limit: limit, ..self.usage };
        Ok(())
    }

    /// Marks the layer as cleanly shut down, so that the next boot has nothing to repair.
    pub(super) fn mark_clean<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        // Stores a limit above all numbers in use, from which the next boot continues.
        self.write_usage(sink, false)?;
        let flags = if self.flash.suspect_blocks() > 0 { SUSPECTS } else { 0 };
        if let Some(pcm) = &mut self.map.pcm {
            // The head says "halted" when nothing is on its way any more: a recovery looks for nothing torn then.
            let entries = sink.join(self.map.redo_barrier, self.map.written);
            let all = sink.join(entries, self.flash.erased);
            let all = if is(HfslBug::HaltedBeforeEntries) { self.map.redo_barrier } else { all };
            let done = pcm.write_flags(sink, flags, all)?;
            sink.ack(done);
            pcm.medium.sync()?;
        }
        self.usage.in_use = false;
        Ok(())
    }

    /// Recovers from the media after the given kind of stop.
    pub(super) fn recover_from_media<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        stop: CrashKind,
    ) -> Result<Recovery> {
        if !N::HOLDS {
            let why = "media without bytes hold nothing to recover from";
            return Err(Error::param("store", "none", why));
        }
        self.reset_state()?;
        let each = self.map.each();
        let Some(pcm) = &mut self.map.pcm else { return self.recover_without_pcm() };
        let head = pcm.read_header(sink)?;
        let clean = head.flags & (IN_USE | RESTORING) == 0;
        if !clean && !each {
            let what = "it was not shut down cleanly, and map_persist = \"halt\" writes the map only then";
            return Err(damaged(pcm.header_at, what.into()));
        }
        let machine = stop == CrashKind::PowerLoss || head.flags & RESTORING != 0;
        let machine = machine && !is(HfslBug::FlushedMapIgnored);
        // After a power loss the current map may name data that was never synced; the second map
        // does not.
        let from_flush = pcm.flush_map_at.filter(|_| !clean && machine);
        let mut r = Recovery { clean, from_flush: from_flush.is_some(), ..Recovery::default() };
        // Both change the map in PCM, so they precede its reading.
        match from_flush {
            Some(flushed) => self.restore_flush_map(sink, flushed)?,
            None => r.redone = self.redo(sink)?,
        }
        self.read_map(sink, head.map_initialised, &mut r)?;
        self.adopt_all(sink, &mut r)?;
        if !clean {
            r.padded = self.flash.pad_partial_blocks(sink)?;
        }
        let suspect = !clean || head.flags & SUSPECTS != 0;
        // Numbers continue after the limit: no page can have a higher one, whatever the crash left
        // behind.
        self.flash.adopted(if is(HfslBug::SeqRestarts) { 0 } else { head.seq_limit }, suspect);
        r.suspect_blocks = self.flash.suspect_blocks();
        self.resume(sink, head, clean)?;
        Ok(r)
    }

    fn reset_state(&mut self) -> Result<()> {
        self.map.table.fill(0);
        self.map.lost.clear();
        (self.map.redo_barrier, self.map.written) = (T::default(), T::default());
        self.flash.reset();
        if let Some(pcm) = &mut self.map.pcm {
            pcm.reset();
        }
        match &mut self.dram {
            Some(dram) => dram.drop_all(),
            None => Ok(()),
        }
    }

    /// Marks the layer as in use, with sequence numbers that no page has.
    fn resume<S: Sink<Tok = T>>(&mut self, sink: &mut S, head: Header, clean: bool) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let limit = head.seq_limit + SEQ_STEP;
        let mut done = pcm.write_seq_limit(sink, limit)?;
        let recovered = if clean { head.recovered } else { head.seq_limit };
        if recovered != head.recovered {
            done = pcm.write_recovered(sink, recovered, done)?;
        }
        done = pcm.write_flags(sink, IN_USE, done)?;
        sink.ack(done);
        (self.flash.in_use, pcm.in_use) = (done, done);
        pcm.medium.store_mut().sync()?;
        self.usage = UsageState {
            formatted: true,
            map_initialised: head.map_initialised,
            in_use: true,
            seq_limit: limit,
            recovered,
        };
        Ok(())
    }

    /// Replaces the current map, which is ahead of its data, by the map as of the last flush.
    fn restore_flush_map<S: Sink<Tok = T>>(&mut self, sink: &mut S, flushed: u64) -> Result<()> {
        // The flag makes an interrupted copy start over, whatever kind of stop interrupts it.
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let start = sink.start();
        let mut done = pcm.write_flags(sink, RESTORING | IN_USE, start)?;
        pcm.medium.store_mut().sync()?;
        let (mut then, mut now) = (vec![0; CHUNK * 8], vec![0; CHUNK * 8]);
        for at in (0..pcm.map_bytes).step_by(CHUNK * 8) {
            let len = (pcm.map_bytes - at).min((CHUNK * 8) as u64) as usize;
            let (then, now) = (&mut then[..len], &mut now[..len]);
            pcm.medium.read(sink, flushed + at, Target::Bytes(then), Cause::Meta, start)?;
            pcm.medium.read(sink, pcm.map_at + at, Target::Bytes(now), Cause::Meta, start)?;
            if then != now {
                let to = pcm.map_at + at;
                let one = pcm.meta(sink, to, then, done)?;
                done = sink.join(done, one);
            }
        }
        done = pcm.medium.fence(sink, done);
        // A redo record belongs to the current map, not to the restored one.
        done = pcm.clear_redo(sink, done)?;
        sink.ack(done);
        pcm.medium.store_mut().sync()
    }

    /// Completes an interrupted change of several entries. Returns the number of entries.
    fn redo<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<u32> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(0) };
        let Some(redo) = pcm.read_redo(sink)?.filter(|_| !is(HfslBug::RedoForgotten)) else { return Ok(0) };
        let start = sink.start();
        let mut done = start;
        for (lpn, raw) in redo.entries() {
            let one = pcm.write_entry(sink, lpn, raw, start)?;
            done = sink.join(done, one);
        }
        done = pcm.medium.fence(sink, done);
        done = pcm.clear_redo(sink, done)?;
        sink.ack(done);
        Ok(redo.entries().count() as u32)
    }

    fn read_map<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        map_initialised: bool,
        r: &mut Recovery,
    ) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let mut bytes = vec![0u8; CHUNK * ENTRY_BYTES as usize];
        let mut bad = Vec::new();
        for (i, chunk) in self.map.table.chunks_mut(CHUNK).enumerate() {
            let bytes = &mut bytes[..chunk.len() * ENTRY_BYTES as usize];
            let at = pcm.map_at + (i * CHUNK) as u64 * ENTRY_BYTES;
            let start = sink.start();
            let done = pcm.medium.read(sink, at, Target::Bytes(bytes), Cause::Meta, start)?;
            sink.ack(done);
            r.bytes_read += bytes.len() as u64;
            for (j, (e, b)) in chunk.iter_mut().zip(bytes.chunks_exact(ENTRY_BYTES as usize)).enumerate() {
                let raw = u64::from_le_bytes(b.try_into().unwrap_or_default());
                let lpn = (i * CHUNK + j) as u32;
                match MapEntry::decode_checked(raw, lpn) {
                    Some(entry) => *e = entry.0,
                    // A map that was not initialised has zeros for pages that were never written.
                    None if raw == 0 && !map_initialised => *e = 0,
                    None => bad.push((lpn, damaged(at + 8 * j as u64, "the map entry is damaged".into()))),
                }
            }
        }
        for (lpn, why) in bad {
            self.record_lost(Lpn(lpn), &why, r);
        }
        Ok(())
    }

    fn record_lost(&mut self, lpn: Lpn, why: &Error, r: &mut Recovery) {
        self.map.mark_lost(lpn, why);
        r.lost.push(LostPage { lpn: lpn.0, why: why.to_string() });
    }

    /// Rebuilds everything that follows from the map: reverse map, free pools, descriptors, slots.
    fn adopt_all<S: Sink<Tok = T>>(&mut self, sink: &mut S, r: &mut Recovery) -> Result<()> {
        let mut used = vec![false; self.map.pcm.as_ref().map_or(0, |p| p.slots as usize)];
        for lpn in (0..self.pages).map(Lpn) {
            let entry = self.map.get(lpn);
            let adopted = match entry.place() {
                PageLocation::Unmapped => continue,
                PageLocation::Nand(ppn) => {
                    r.bytes_read += SPARE_RECORD_BYTES as u64;
                    self.flash.adopt(lpn, ppn, entry.tag(), true)
                }
                PageLocation::Pcm(desc) => {
                    r.bytes_read += DESC_BYTES;
                    r.pages_in_pcm += 1;
                    self.adopt_desc(sink, lpn, desc, &mut used)
                }
            };
            match adopted {
                Ok(()) => r.pages += 1,
                Err(e @ Error::Corrupt { .. }) => {
                    r.pages_in_pcm -= u64::from(matches!(entry.place(), PageLocation::Pcm(_)));
                    self.record_lost(lpn, &e, r);
                }
                Err(e) => return Err(e),
            }
        }
        if let Some(pcm) = &mut self.map.pcm {
            pcm.rebuild_free();
        }
        Ok(())
    }

    fn adopt_desc<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lpn: Lpn,
        desc: u32,
        used: &mut [bool],
    ) -> Result<()> {
        let tag = self.map.get(lpn).tag();
        let Some(pcm) = &mut self.map.pcm else {
            return Err(damaged(u64::from(lpn.0), "the map entry names PCM, and the stack has none".into()));
        };
        let (d, sums) = pcm.read_desc(sink, lpn, desc, tag)?;
        let slots = || d.subs.iter().zip(sums).filter(|(s, _)| **s != NONE);
        if let Some((&slot, _)) = slots().find(|(s, _)| used[**s as usize]) {
            let why = format!("page {} names a sub-page that another page uses", lpn.0);
            return Err(damaged(pcm.slot_at(slot), why));
        }
        for (&slot, sum) in slots() {
            used[slot as usize] = true;
            pcm.sums[slot as usize] = sum;
        }
        pcm.adopt(lpn, desc, d);
        self.map.table[lpn.idx()] = self.map.get(lpn).with_state(d.state()).0;
        Ok(())
    }
}

impl<T: Token, P: Store> PcmSpace<T, P> {
    /// Reads the descriptor of a page and the checksums of its sub-pages.
    ///
    /// # Errors
    /// `Corrupt` if the descriptor is damaged, or does not belong to this version of the page.
    pub(super) fn read_desc<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lpn: Lpn,
        desc: u32,
        tag: u16,
    ) -> Result<(Desc, [u32; 8])> {
        let at = self.desc_at + u64::from(desc) * DESC_BYTES;
        if desc >= self.slots {
            return Err(damaged(at, format!("page {} names descriptor {desc} of {}", lpn.0, self.slots)));
        }
        let mut bytes = [0u8; DESC_BYTES as usize];
        let start = sink.start();
        let done = self.medium.read(sink, at, Target::Bytes(&mut bytes), Cause::Meta, start)?;
        sink.ack(done);
        let slots = self.slots;
        let fits = |d: &Desc| {
            let named = d.subs.iter().filter(|&&s| s != NONE).all(|&s| s < slots);
            d.lpn == lpn.0 && d.seq as u16 == tag && named
        };
        let found = Desc::decode(&bytes).filter(|(d, _)| fits(d));
        found.ok_or_else(|| damaged(at, format!("the descriptor of page {} is not valid", lpn.0)))
    }
}

pub(super) fn damaged(at: u64, what: String) -> Error {
    Error::Corrupt { medium: MediumKind::Pcm, at, what }
}
