//! Recovery from the contents of the media.
//!
//! Only the map defines the current pages: a page that no entry names was never acknowledged. A
//! crash or a power loss can leave a redo record whose entries are partly written, blocks with an
//! interrupted program or erase and, behind a page cache, a map that is ahead of its data. Recovery
//! only adds to this state (padding, or the same entries again), so an interrupted recovery can be
//! repeated.
//!
//! Without PCM the map is not stored. Each page is then found by the spare areas of NAND, and the
//! newest version counts.

use super::Hfsl;
use super::entry::{MapEntry, PageLocation};
use super::header::{IN_USE, RESTORING, SUSPECTS};
use super::layout::{CHUNK, DESC_BYTES, DESC_LEN, ENTRY_BYTES, ENTRY_LEN};
use super::pcm::{Desc, NONE, PcmSpace};
use crate::planted::HfslBug;
use frit_core::planted::is_planted;
use frit_core::{
    BlockId, Cause, CrashKind, Error, LostPage, Lpn, MediumKind, ReadTarget, Recovery, Result, Sink, Tok,
};
use frit_media::SPARE_RECORD_BYTES;
use frit_wear::PcmWearKeys;

impl Hfsl {
    /// Recovers from the media after the given kind of stop.
    pub(super) fn recover_from_media(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<Recovery> {
        if !self.stores_bytes() {
            let why = "media without bytes hold nothing to recover from";
            return Err(Error::param("store", "none", why));
        }
        self.reset_state()?;
        let each = self.map.each();
        let Some(pcm) = &mut self.map.pcm else { return self.recover_without_pcm() };
        // The wear leveler comes first: addresses are valid only after its recovery.
        pcm.medium.recover(sink, stop).map_err(in_table)?;
        let head = pcm.read_header(sink)?;
        let clean = head.flags & (IN_USE | RESTORING) == 0;
        if !clean && !each {
            let what = "it was not shut down cleanly, and map_persist = \"halt\" writes the map only then";
            return Err(damaged(pcm.layout.header_at, what.into()));
        }
        let machine = stop == CrashKind::PowerLoss || head.flags & RESTORING != 0;
        let machine = machine && !is_planted(HfslBug::FlushedMapIgnored);
        // After a power loss the current map may name data that was never synced; the second map
        // does not.
        let from_flush = pcm.layout.flush_map_at.filter(|_| !clean && machine);
        let mut r = Recovery { clean, from_flush: from_flush.is_some(), ..Recovery::default() };
        // Both change the map in PCM, so they precede its reading.
        match from_flush {
            Some(flushed) => self.restore_flush_map(sink, flushed)?,
            None => r.redone = self.redo(sink, clean, head.map_initialised)?,
        }
        self.read_map(sink, head.map_initialised, &mut r)?;
        self.adopt_all(sink, &mut r)?;
        if !clean {
            r.padded = self.flash.pad_partial_blocks(sink)?;
        }
        let suspect = !clean || head.flags & SUSPECTS != 0;
        // Numbers continue after the limit: no page can have a higher one, whatever the crash left
        // behind.
        self.flash.adopted(if is_planted(HfslBug::SeqRestarts) { 0 } else { head.seq_limit }, suspect);
        r.suspect_blocks = self.flash.suspect_blocks();
        self.resume(sink, head, clean)?;
        Ok(r)
    }

    /// Recovers without a map: the newest version of each page, by the sequence numbers in the
    /// spare areas. Discards are recorded in the map only, so they are lost.
    fn recover_without_pcm(&mut self) -> Result<Recovery> {
        let g = *self.flash.nand().geometry();
        let mut newest = vec![0u64; self.pages as usize];
        for block in (0..g.blocks()).map(BlockId) {
            for page in 0..self.flash.nand().next_page(block) {
                let ppn = g.ppn(block, page);
                // A page whose program failed has no valid spare area, and was never the newest
                // version.
                let spare = match self.flash.nand().spare(ppn) {
                    Err(Error::Corrupt { .. }) | Ok(None) => continue,
                    Ok(Some(spare)) => spare,
                    Err(e) => return Err(e),
                };
                let lpn = spare.lpn as usize;
                if lpn < newest.len() && spare.seq > newest[lpn] {
                    newest[lpn] = spare.seq;
                    self.map.table[lpn] =
                        MapEntry::default().moved(PageLocation::Nand(ppn), 0, spare.seq).clean().0;
                }
            }
        }
        let mut pages = 0;
        for lpn in (0..self.pages).map(Lpn) {
            if let PageLocation::Nand(ppn) = self.map.get(lpn).place() {
                self.flash.adopt(lpn, ppn, self.map.get(lpn).tag(), false)?;
                pages += 1;
            }
        }
        self.flash.adopted(newest.into_iter().max().unwrap_or(0), true);
        Ok(Recovery { pages, ..Recovery::default() })
    }

    fn reset_state(&mut self) -> Result<()> {
        self.map.table.fill(0);
        self.map.lost.clear();
        (self.map.redo_barrier, self.map.written) = (Tok::default(), Tok::default());
        self.flash.reset();
        if let Some(pcm) = &mut self.map.pcm {
            pcm.reset();
        }
        match &mut self.dram {
            Some(dram) => dram.drop_all(),
            None => Ok(()),
        }
    }

    /// Replaces the current map, which is ahead of its data, by the map as of the last flush.
    fn restore_flush_map(&mut self, sink: &mut Sink, flushed: u64) -> Result<()> {
        // The flag makes an interrupted copy start over, whatever kind of stop interrupts it.
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let start = sink.start();
        let mut done = pcm.write_flags(sink, RESTORING | IN_USE, start)?;
        pcm.medium.flush(sink)?;
        let (mut then, mut now) = (vec![0; CHUNK * 8], vec![0; CHUNK * 8]);
        for at in (0..pcm.layout.map_bytes).step_by(CHUNK * 8) {
            let len = (pcm.layout.map_bytes - at).min((CHUNK * 8) as u64) as usize;
            let (then, now) = (&mut then[..len], &mut now[..len]);
            pcm.medium.read(sink, flushed + at, ReadTarget::Bytes(then), Cause::Meta, start)?;
            pcm.medium.read(sink, pcm.layout.map_at + at, ReadTarget::Bytes(now), Cause::Meta, start)?;
            if then != now {
                let to = pcm.layout.map_at + at;
                let one = pcm.meta(sink, to, then, done)?;
                done = sink.join(done, one);
            }
        }
        done = pcm.medium.fence(sink, done);
        // A redo record belongs to the current map, not to the restored one.
        done = pcm.clear_redo(sink, done)?;
        sink.ack(done);
        pcm.medium.flush(sink)
    }

    fn read_map(&mut self, sink: &mut Sink, map_initialised: bool, r: &mut Recovery) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let mut bytes = vec![0u8; CHUNK * ENTRY_LEN];
        let mut bad = Vec::new();
        for (i, chunk) in self.map.table.chunks_mut(CHUNK).enumerate() {
            let bytes = &mut bytes[..chunk.len() * ENTRY_LEN];
            let at = pcm.layout.map_at + (i * CHUNK) as u64 * ENTRY_BYTES;
            let start = sink.start();
            let done = pcm.medium.read(sink, at, ReadTarget::Bytes(bytes), Cause::Meta, start)?;
            sink.ack(done);
            r.bytes_read += bytes.len() as u64;
            for (j, (e, b)) in chunk.iter_mut().zip(bytes.chunks_exact(ENTRY_LEN)).enumerate() {
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
    fn adopt_all(&mut self, sink: &mut Sink, r: &mut Recovery) -> Result<()> {
        let mut used = vec![false; self.map.pcm.as_ref().map_or(0, |p| p.layout.slots as usize)];
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

    fn adopt_desc(&mut self, sink: &mut Sink, lpn: Lpn, desc: u32, used: &mut [bool]) -> Result<()> {
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

impl PcmSpace {
    /// Reads the descriptor of a page and the checksums of its sub-pages.
    ///
    /// # Errors
    /// `Corrupt` if the descriptor is damaged, or does not belong to this version of the page.
    pub(super) fn read_desc(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        desc: u32,
        tag: u16,
    ) -> Result<(Desc, [u32; 8])> {
        let at = self.layout.desc_at + u64::from(desc) * DESC_BYTES;
        if desc >= self.layout.slots {
            return Err(damaged(
                at,
                format!("page {} names descriptor {desc} of {}", lpn.0, self.layout.slots),
            ));
        }
        let mut bytes = [0u8; DESC_LEN];
        let start = sink.start();
        let done = self.medium.read(sink, at, ReadTarget::Bytes(&mut bytes), Cause::Meta, start)?;
        sink.ack(done);
        let slots = self.layout.slots;
        let fits = |d: &Desc| {
            let named = d.subs.iter().filter(|&&s| s != NONE).all(|&s| s < slots);
            d.lpn == lpn.0 && d.seq as u16 == tag && named
        };
        let found = Desc::decode(&bytes).filter(|(d, _)| fits(d));
        found.ok_or_else(|| damaged(at, format!("the descriptor of page {} is not valid", lpn.0)))
    }
}

/// Translates an error of the wear leveler to the parameters of HFSL.
fn in_table(error: Error) -> Error {
    match PcmWearKeys::in_table(error) {
        // The second map and the registers as of the last flush are kept together.
        Error::Param { key, value, why } if key == "over_files" => {
            Error::Param { key: "flush_map".into(), value, why }
        }
        other => other,
    }
}

pub(super) fn damaged(at: u64, what: String) -> Error {
    Error::Corrupt { medium: MediumKind::Pcm, at, what }
}
