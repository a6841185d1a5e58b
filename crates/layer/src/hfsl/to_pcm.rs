//! Writes of a page to PCM, in sub-pages.
//!
//! A page is entirely in one medium: a partial write to a page in NAND reads, merges and moves the
//! page (section 3.3.1). Under `map_persist = halt` sub-pages are updated in place, as PCM allows.
//! Under `each` a changed sub-page goes to a new slot and the page to a new descriptor, so that a
//! power loss leaves either the old page or the new one.

use super::entry::{MapEntry, PageLocation};
use super::layout::{DESC_BYTES, DESC_LEN};
use super::pcm::{Desc, NONE, PcmRegion, PcmSpace};
use super::read::{SubSpan, sub_spans};
use super::to_nand::overlay;
use super::{Hfsl, MapPersist};
use crate::payload::buffered;
use crate::planted::HfslBug;
use crate::spans::PageSpan;
use crate::tokens::JoinedToken;
use frit_core::planted::is_planted;
use frit_core::{Cause, Error, Lpn, MediumKind, ReadTarget, Result, Sink, Tok, WriteData};
use std::ops::Range;

impl Hfsl {
    /// Writes all or part of a page to PCM. The caller has reserved space.
    pub(crate) fn write_to_pcm(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        data: WriteData<'_>,
        region: PcmRegion,
    ) -> Result<()> {
        let done = match self.map.get(span.lpn).place() {
            PageLocation::Pcm(desc)
                if self.config.map_persist == MapPersist::Halt || is_planted(HfslBug::OverwriteInPlace) =>
            {
                self.update_in_place(sink, desc, span, data, region)?
            }
            PageLocation::Pcm(desc) => self.update_shadow(sink, desc, span, data, region)?,
            place @ (PageLocation::Nand(_) | PageLocation::Unmapped) => {
                self.write_new_to_pcm(sink, place, span, data, region)?
            }
        };
        sink.ack(done);
        Ok(())
    }

    /// Writes a page that is not yet in PCM.
    fn write_new_to_pcm(
        &mut self,
        sink: &mut Sink,
        place: PageLocation,
        span: PageSpan,
        data: WriteData<'_>,
        region: PcmRegion,
    ) -> Result<Tok> {
        let (desc, written) = self.write_to_new_desc(sink, place, span, data, region)?;
        self.map_and_release(sink, span.lpn, desc, written)
    }

    /// Writes a page to a new descriptor, which no entry names yet.
    pub(crate) fn write_to_new_desc(
        &mut self,
        sink: &mut Sink,
        place: PageLocation,
        span: PageSpan,
        data: WriteData<'_>,
        region: PcmRegion,
    ) -> Result<(u32, Tok)> {
        let partial = span.len < self.page_bytes;
        let from_nand = matches!(place, PageLocation::Nand(_));
        let mut page = std::mem::take(&mut self.scratch);
        let fetched = if partial {
            self.stats.flash_updates += u64::from(from_nand);
            self.read_whole(sink, span.lpn, &mut page, Cause::Merge)
        } else {
            Ok(sink.start())
        };
        let done = fetched.and_then(|read| {
            overlay(&mut page, span.offset, data);
            // Of an unmapped page only the written sub-pages are stored; the others read as zeros.
            let range = if from_nand { 0..self.page_bytes } else { span.offset..span.offset + span.len };
            self.fill_subs(sink, span, &page, &range, region, read)
        });
        self.scratch = page;
        let done = done?;
        self.stats.to_pcm += u64::from(from_nand);
        Ok(done)
    }

    /// Writes the sub-pages that cover the bytes `range` of a page into a new descriptor.
    fn fill_subs(
        &mut self,
        sink: &mut Sink,
        span: PageSpan,
        page: &[u8],
        range: &Range<u32>,
        region: PcmRegion,
        after: Tok,
    ) -> Result<(u32, Tok)> {
        let Some(pcm) = &mut self.map.pcm else { return Ok((NONE, after)) };
        let desc = pcm.admit(span.lpn, region)?;
        let sub_bytes = pcm.layout.sub_bytes;
        let mut all = JoinedToken::new();
        for part in sub_spans(range.start, range.end - range.start, sub_bytes) {
            let start = part.sub as u32 * sub_bytes;
            // Sub-pages without new bytes are counted as migration, not as host writes.
            let host = start < span.offset + span.len && span.offset < start + sub_bytes;
            let cause = if host { Cause::Host } else { Cause::Migrate };
            let (slot, ready) = pcm.alloc_slot(sink)?;
            pcm.attach(desc, part.sub, slot);
            let bytes = if pcm.stores_bytes() {
                WriteData::Bytes(&page[start as usize..(start + sub_bytes) as usize])
            } else {
                WriteData::Len(sub_bytes)
            };
            let after = sink.join(after, ready);
            let at = pcm.slot_at(slot);
            let done = pcm.medium.write(sink, at, bytes, cause, after)?;
            if let WriteData::Bytes(bytes) = bytes {
                pcm.record_sum(span.lpn.0, part.sub, slot, bytes);
            }
            pcm.ready.set(slot as usize, done);
            all.add(sink, done);
        }
        Ok((desc, all.get(sink)))
    }

    /// Maps a page to its new descriptor and releases its old location.
    fn map_and_release(&mut self, sink: &mut Sink, lpn: Lpn, desc: u32, written: Tok) -> Result<Tok> {
        let (old, done) = self.map_desc(sink, lpn, desc, written)?;
        self.release_location(sink, old, done);
        Ok(done)
    }

    /// Maps a page to a descriptor. Returns the old location, and a token for the durability of the
    /// change.
    fn map_desc(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        desc: u32,
        written: Tok,
    ) -> Result<(PageLocation, Tok)> {
        let (entry, durable) = self.number_desc(sink, lpn, desc, written)?;
        let old = self.map.get(lpn).place();
        let done = self.map.set(sink, lpn, entry, durable)?;
        Ok((old, done))
    }

    /// Assigns a sequence number to a descriptor and, under `map_persist = each`, writes it to PCM.
    /// Returns the entry for it, and a token that completes when data and descriptor are durable.
    pub(crate) fn number_desc(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        desc: u32,
        written: Tok,
    ) -> Result<(MapEntry, Tok)> {
        let seq = self.flash.next_seq();
        let each = self.map.each();
        let old = self.map.get(lpn);
        let Some(pcm) = &mut self.map.pcm else { return Ok((old, written)) };
        pcm.desc[desc as usize].seq = seq;
        let entry = old.moved(PageLocation::Pcm(desc), pcm.desc[desc as usize].state(), seq);
        if !each {
            return Ok((entry, written));
        }
        let described = pcm.write_desc(sink, desc, written)?;
        if is_planted(HfslBug::EntryBeforeDesc) {
            return Ok((entry, written));
        }
        // The entry must not be written before the data and the descriptor that it names.
        Ok((entry, pcm.medium.fence(sink, described)))
    }

    /// Overwrites stored sub-pages in place, and adds slots for the others. A slot that is worn
    /// more than the next free one gives way to it.
    fn update_in_place(
        &mut self,
        sink: &mut Sink,
        desc: u32,
        span: PageSpan,
        data: WriteData<'_>,
        region: PcmRegion,
    ) -> Result<Tok> {
        let gran = self.config.addr_gran_pcm as u32;
        let spread = self.config.pcm_slot_spread;
        let Some(pcm) = &mut self.map.pcm else { return Ok(sink.start()) };
        pcm.touch(desc, region);
        let mut all = JoinedToken::new();
        let mut grown = false;
        for part in sub_spans(span.offset, span.len, pcm.layout.sub_bytes) {
            let piece = data.part(part.from, part.len);
            let slot = pcm.desc[desc as usize].subs[part.sub];
            let done = if slot == NONE {
                grown = true;
                pcm.write_new_sub(sink, desc, part, piece, None)?
            } else if spread > 0 && pcm.is_worn_beyond(slot, part.offset, spread) {
                self.stats.slots_moved += 1;
                pcm.move_sub(sink, desc, part, piece, slot)?
            } else {
                let done = pcm.overwrite_sub(sink, span.lpn.0, slot, part, piece, gran)?;
                pcm.refresh_sum(span.lpn.0, part.sub, slot)?;
                done
            };
            all.add(sink, done);
        }
        let written = all.get(sink);
        // New slots change the descriptor and the state bits, so the page gets a new entry.
        if grown {
            return Ok(self.map_desc(sink, span.lpn, desc, written)?.1);
        }
        // The checksums in the descriptor changed, so the descriptor must be written at the next
        // halt.
        self.map.note(span.lpn, self.map.get(span.lpn).marked_dirty());
        Ok(written)
    }

    /// Writes changed sub-pages to new slots, and the page to a new descriptor.
    fn update_shadow(
        &mut self,
        sink: &mut Sink,
        old: u32,
        span: PageSpan,
        data: WriteData<'_>,
        region: PcmRegion,
    ) -> Result<Tok> {
        let shadow = self.shadow(sink, old, span, data, region)?;
        let (_, done) = self.map_desc(sink, span.lpn, shadow.desc, shadow.written)?;
        if let Some(pcm) = &mut self.map.pcm {
            pcm.release(old, shadow.kept, done);
        }
        Ok(done)
    }

    /// Creates the new descriptor of a partially written page in PCM. Unchanged sub-pages are
    /// shared by the old and the new descriptor.
    pub(crate) fn shadow(
        &mut self,
        sink: &mut Sink,
        old: u32,
        span: PageSpan,
        data: WriteData<'_>,
        region: PcmRegion,
    ) -> Result<ShadowPage> {
        let Some(pcm) = &mut self.map.pcm else { return Err(no_pcm()) };
        let before = pcm.desc[old as usize];
        let new = pcm.admit(span.lpn, region)?;
        let mut all = JoinedToken::new();
        let mut replaced = 0u8;
        for part in sub_spans(span.offset, span.len, pcm.layout.sub_bytes) {
            replaced |= 1 << part.sub;
            let old_slot = Some(before.subs[part.sub]).filter(|&s| s != NONE);
            let done = pcm.write_new_sub(sink, new, part, data.part(part.from, part.len), old_slot)?;
            all.add(sink, done);
        }
        for (sub, &slot) in before.subs.iter().enumerate() {
            if slot != NONE && replaced & (1 << sub) == 0 {
                pcm.attach(new, sub, slot);
                // An earlier request may still be writing the shared sub-page.
                all.add(sink, pcm.ready.get(slot as usize));
            }
        }
        Ok(ShadowPage { desc: new, written: all.get(sink), kept: !replaced })
    }
}

/// New version of a page in PCM, not mapped yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShadowPage {
    pub(crate) desc: u32,
    pub(crate) written: Tok,
    /// Sub-pages shared with the old descriptor, one bit each.
    pub(crate) kept: u8,
}

/// New data of a part of a sub-page.
#[derive(Clone, Copy, Debug)]
struct SubWrite<'a> {
    part: SubSpan,
    data: WriteData<'a>,
}

pub(crate) fn no_pcm() -> Error {
    Error::Rule { medium: MediumKind::Pcm, at: 0, what: "a page was routed to PCM, and the stack has no PCM" }
}

impl PcmSpace {
    /// Writes a sub-page into a new slot of `desc`, merged with the contents of `old` (or zeros).
    fn write_new_sub(
        &mut self,
        sink: &mut Sink,
        desc: u32,
        part: SubSpan,
        data: WriteData<'_>,
        old: Option<u32>,
    ) -> Result<Tok> {
        let (slot, ready) = self.alloc_slot(sink)?;
        self.attach(desc, part.sub, slot);
        let done = self.fill_slot(sink, desc, slot, SubWrite { part, data }, old, ready)?;
        self.ready.set(slot as usize, done);
        Ok(done)
    }

    /// Writes a sub-page into a new slot in place of `old`, which becomes free.
    fn move_sub(
        &mut self,
        sink: &mut Sink,
        desc: u32,
        part: SubSpan,
        data: WriteData<'_>,
        old: u32,
    ) -> Result<Tok> {
        // A damaged sub-page stays where it is, so that reads report it.
        if part.len < self.layout.sub_bytes && self.stores_bytes() {
            self.verify(self.desc[desc as usize].lpn, part.sub, old, &[0])?;
        }
        let done = self.write_new_sub(sink, desc, part, data, Some(old))?;
        let region = self.desc[desc as usize].region;
        self.regions[region as usize].used -= 1;
        self.free_slot(old, done);
        Ok(done)
    }

    fn fill_slot(
        &mut self,
        sink: &mut Sink,
        desc: u32,
        slot: u32,
        new: SubWrite<'_>,
        old: Option<u32>,
        ready: Tok,
    ) -> Result<Tok> {
        let SubWrite { part, data } = new;
        let at = self.slot_at(slot);
        let lpn = self.desc[desc as usize].lpn;
        if part.len == self.layout.sub_bytes {
            if let WriteData::Bytes(bytes) = data {
                self.record_sum(lpn, part.sub, slot, bytes);
            }
            return self.medium.write(sink, at, data, Cause::Host, ready);
        }
        let mut whole =
            if self.stores_bytes() { vec![0u8; self.layout.sub_bytes as usize] } else { Vec::new() };
        let mut after = ready;
        if let Some(old) = old.filter(|_| !is_planted(HfslBug::SubPageNotMerged)) {
            let (from, start) = (self.slot_at(old), sink.start());
            let into = if self.stores_bytes() {
                ReadTarget::Bytes(&mut whole)
            } else {
                ReadTarget::Len(self.layout.sub_bytes)
            };
            let read = self.medium.read(sink, from, into, Cause::Merge, start)?;
            self.verify(lpn, part.sub, old, &whole)?;
            after = sink.join(read, ready);
        }
        overlay(&mut whole, part.offset, data);
        self.record_sum(lpn, part.sub, slot, &whole);
        self.medium.write(sink, at, buffered(&whole, self.layout.sub_bytes), Cause::Host, after)
    }

    /// Overwrites part of a sub-page, rounded to the addressing granularity.
    fn overwrite_sub(
        &mut self,
        sink: &mut Sink,
        lpn: u32,
        slot: u32,
        part: SubSpan,
        data: WriteData<'_>,
        gran: u32,
    ) -> Result<Tok> {
        // The old contents get a new checksum together with the new bytes, so they are verified
        // first: otherwise the new checksum would hide existing damage.
        if part.len < self.layout.sub_bytes && self.stores_bytes() {
            self.verify(lpn, part.sub, slot, &[0])?;
        }
        let (from, to) = (part.offset / gran * gran, (part.offset + part.len).next_multiple_of(gran));
        let base = self.slot_at(slot);
        let start = sink.start();
        if (from, to) == (part.offset, part.offset + part.len) {
            return self.medium.write(sink, base + u64::from(from), data, Cause::Host, start);
        }
        let mut around = if self.stores_bytes() { vec![0u8; (to - from) as usize] } else { Vec::new() };
        let into =
            if self.stores_bytes() { ReadTarget::Bytes(&mut around) } else { ReadTarget::Len(to - from) };
        let read = self.medium.read(sink, base + u64::from(from), into, Cause::Merge, start)?;
        overlay(&mut around, part.offset - from, data);
        self.medium.write(sink, base + u64::from(from), buffered(&around, to - from), Cause::Host, read)
    }

    /// Writes a descriptor to PCM.
    pub(crate) fn write_desc(&mut self, sink: &mut Sink, desc: u32, after: Tok) -> Result<Tok> {
        let at = self.layout.desc_at + u64::from(desc) * DESC_BYTES;
        // A reused descriptor is overwritten only after the entry that released it is durable.
        let after = sink.join(after, self.desc_ready.get(desc as usize));
        let after = sink.join(after, self.in_use);
        if self.stores_bytes() {
            let d = &self.desc[desc as usize];
            let bytes = d.encode(|slot| self.sums[slot as usize]);
            self.medium.write(sink, at, WriteData::Bytes(&bytes), Cause::Meta, after)
        } else {
            self.medium.write(sink, at, WriteData::Len(DESC_BYTES as u32), Cause::Meta, after)
        }
    }
}

impl Desc {
    /// Encodes the descriptor for PCM: LPN (4 bytes), region (1), zero (1), sequence number (6),
    /// eight slots (3 each, all ones for none), checksums of the eight slots (3 each), CRC32C of
    /// all preceding bytes (4).
    pub(crate) fn encode(&self, sum: impl Fn(u32) -> u32) -> [u8; DESC_LEN] {
        let mut b = [0u8; DESC_LEN];
        b[0..4].copy_from_slice(&self.lpn.to_le_bytes());
        b[4] = self.region as u8;
        b[6..12].copy_from_slice(&self.seq.to_le_bytes()[..6]);
        for (i, &slot) in self.subs.iter().enumerate() {
            b[12 + 3 * i..15 + 3 * i].copy_from_slice(&slot.to_le_bytes()[..3]);
            let sum = if slot == NONE { 0 } else { sum(slot) };
            b[36 + 3 * i..39 + 3 * i].copy_from_slice(&sum.to_le_bytes()[..3]);
        }
        let crc = frit_media::checksum::crc32c(&b[..60]);
        b[60..64].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// Decodes a descriptor and the checksums of its slots. `None` if it is damaged.
    pub(crate) fn decode(b: &[u8; DESC_LEN]) -> Option<(Desc, [u32; 8])> {
        let word = |at: usize| Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?));
        let three = |at: usize| Some(word(at)? & 0xFF_FFFF);
        if word(60)? != frit_media::checksum::crc32c(&b[..60]) && !is_planted(HfslBug::DescCheckIgnored) {
            return None;
        }
        let (mut subs, mut sums) = ([NONE; 8], [0; 8]);
        for i in 0..8 {
            subs[i] = three(12 + 3 * i).map(|s| if s == 0xFF_FFFF { NONE } else { s })?;
            sums[i] = three(36 + 3 * i)?;
        }
        let region = PcmRegion::ALL.get(usize::from(b[4])).copied()?;
        let seq = u64::from(word(6)?) | u64::from(word(8)? >> 16) << 32;
        Some((Desc { lpn: word(0)?, region, seq, subs }, sums))
    }
}
