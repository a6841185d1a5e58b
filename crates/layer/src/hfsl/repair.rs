//! Repair: mapping a page version that a check has found.

use super::Hfsl;
use super::check::Orphan;
use super::entry::{MapEntry, PageLocation};
use super::pcm::{NONE, sum_of};
use frit_core::{Cause, Error, Lpn, ReadTarget, Result, Sink};
use frit_media::ExpectedPage;

impl Hfsl {
    /// Maps a page to a version that no entry named. Returns `false` if that version is damaged
    /// too.
    pub(super) fn map_orphan(&mut self, sink: &mut Sink, lpn: Lpn, orphan: Orphan) -> Result<bool> {
        let taken = match orphan.place {
            PageLocation::Nand(ppn) => {
                let tag = orphan.seq as u16;
                let expect = Some(ExpectedPage { lpn: lpn.0, tag });
                let mut page = std::mem::take(&mut self.scratch);
                let (start, into) = (sink.start(), ReadTarget::Bytes(&mut page));
                let read =
                    self.flash.nand_mut().read_expected(sink, ppn, 0, into, expect, Cause::Meta, start);
                self.scratch = page;
                // The block may be in the free pool; it must not be erased while the page is
                // mapped.
                self.flash.keep_block(ppn);
                read.and_then(|_| self.flash.adopt(lpn, ppn, tag, true)).map(|()| 0)
            }
            PageLocation::Pcm(desc) => self.adopt_orphan_desc(sink, lpn, desc, orphan.seq as u16),
            PageLocation::Unmapped => return Ok(false),
        };
        let state = match taken {
            Ok(state) => state,
            Err(Error::Corrupt { .. }) => return Ok(false),
            Err(e) => return Err(e),
        };
        self.ensure_in_use(sink)?;
        let old = self.map.get(lpn);
        let entry = MapEntry::default().moved(orphan.place, state, orphan.seq);
        let start = sink.start();
        let done = self.map.set(sink, lpn, entry, start)?;
        self.release_location(sink, old.place(), done);
        sink.ack(done);
        Ok(true)
    }

    /// Adopts a descriptor if its sub-page slots are free and hold unchanged contents.
    fn adopt_orphan_desc(&mut self, sink: &mut Sink, lpn: Lpn, desc: u32, tag: u16) -> Result<u8> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(0) };
        let (d, sums) = pcm.read_desc(sink, lpn, desc, tag)?;
        let slots: Vec<(usize, u32)> =
            d.subs.iter().copied().enumerate().filter(|(_, s)| *s != NONE).collect();
        let damaged = |at, what: &str| super::recover::damaged(at, what.into());
        for &(sub, slot) in &slots {
            if !pcm.free.contains(&slot) {
                return Err(damaged(pcm.slot_at(slot), "another page uses the sub-page"));
            }
            let mut bytes = vec![0; pcm.layout.sub_bytes as usize];
            pcm.medium.peek(pcm.slot_at(slot), &mut bytes)?;
            if sum_of(lpn.0, sub, &bytes) != sums[sub] {
                return Err(damaged(pcm.slot_at(slot), "the sub-page was overwritten since"));
            }
        }
        for &(sub, slot) in &slots {
            pcm.sums[slot as usize] = sums[sub];
        }
        pcm.free.retain(|s| slots.iter().all(|(_, slot)| slot != s));
        pcm.desc_free.retain(|&f| f != desc);
        pcm.adopt(lpn, desc, d);
        Ok(d.state())
    }
}
