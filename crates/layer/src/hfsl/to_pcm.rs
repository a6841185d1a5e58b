//! Writing a page to PCM, in sub-pages.
//!
//! A page lies wholly in one medium: what part of it lies in NAND is read, merged and moved (section
//! 3.3.1). Under `map_persist = halt` sub-pages are updated in place, as PCM allows; under `each` a
//! changed sub-page goes to a new slot and the page to a new descriptor, so that a power cut leaves
//! the old page or the new one.

use super::entry::Place;
use super::layer::Span;
use super::pcm::{DESC_BYTES, Desc, Joined, NONE, PcmSpace, Region};
use super::read::{SubSpan, sub_spans};
use super::to_nand::overlay;
use super::{Hfsl, MapPersist};
use crate::Token;
use frit_core::{Cause, Lpn, Result, Sink, Source, Target};
use frit_media::Store;

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Writes part of a page, or all of it, to PCM. Room has been made.
    pub(crate) fn write_to_pcm<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        data: Source<'_>,
        region: Region,
    ) -> Result<()> {
        let done = match self.map.get(span.lpn).place() {
            Place::Pcm(desc) if self.config.map_persist == MapPersist::Halt => {
                self.update_in_place(sink, desc, span, data, region)?
            }
            Place::Pcm(desc) => self.update_shadow(sink, desc, span, data, region)?,
            place @ (Place::Nand(_) | Place::Unmapped) => {
                self.bring_to_pcm(sink, place, span, data, region)?
            }
        };
        sink.ack(done);
        Ok(())
    }

    /// A page that is not in PCM yet.
    fn bring_to_pcm<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        place: Place,
        span: Span,
        data: Source<'_>,
        region: Region,
    ) -> Result<T> {
        let partial = span.len < self.page_bytes;
        let from_nand = matches!(place, Place::Nand(_));
        let mut page = std::mem::take(&mut self.scratch);
        let fetched = if partial {
            self.stats.flash_updates += u64::from(from_nand);
            self.fetch(sink, span.lpn, &mut page, Cause::Merge)
        } else {
            Ok(sink.start())
        };
        let done = fetched.and_then(|read| {
            overlay(&mut page, span.offset, data);
            // A page that was nowhere needs only the sub-pages that were written.
            let (from, to) =
                if from_nand { (0, self.page_bytes) } else { (span.offset, span.offset + span.len) };
            self.fill_subs(sink, span, &page, (from, to), region, read)
        });
        self.scratch = page;
        let (desc, written) = done?;
        self.stats.to_pcm += u64::from(from_nand);
        self.publish(sink, span.lpn, desc, written)
    }

    /// Writes the sub-pages that cover bytes `range` of a page into a new descriptor.
    fn fill_subs<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        span: Span,
        page: &[u8],
        range: (u32, u32),
        region: Region,
        after: T,
    ) -> Result<(u32, T)> {
        let Some(pcm) = &mut self.map.pcm else { return Ok((NONE, after)) };
        let desc = pcm.admit(span.lpn, region)?;
        let sub_bytes = pcm.sub_bytes;
        let mut all = Joined::new();
        for part in sub_spans(range.0, range.1 - range.0, sub_bytes) {
            let start = part.sub as u32 * sub_bytes;
            let host = start < span.offset + span.len && span.offset < start + sub_bytes;
            let cause = if host { Cause::Host } else { Cause::Migrate };
            let (slot, ready) = pcm.take_slot()?;
            pcm.attach(desc, part.sub, slot);
            let bytes = if P::HOLDS {
                Source::Bytes(&page[start as usize..(start + sub_bytes) as usize])
            } else {
                Source::Len(sub_bytes)
            };
            let after = sink.join(after, ready);
            let at = pcm.slot_at(slot);
            let done = pcm.medium.write(sink, at, bytes, cause, after)?;
            all.add(sink, done);
        }
        Ok((desc, all.get(sink)))
    }

    /// Maps a page to its new descriptor and gives up its old place.
    fn publish<S: Sink<Tok = T>>(&mut self, sink: &mut S, lpn: Lpn, desc: u32, written: T) -> Result<T> {
        let done = self.map_desc(sink, lpn, desc, written)?;
        let (old, done) = done;
        self.leave(old, done);
        Ok(done)
    }

    /// Maps a page to a descriptor; returns the old place and when the change is durable.
    fn map_desc<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        lpn: Lpn,
        desc: u32,
        written: T,
    ) -> Result<(Place, T)> {
        let seq = self.flash.next_seq();
        let Some(pcm) = &mut self.map.pcm else { return Ok((Place::Unmapped, written)) };
        pcm.desc[desc as usize].seq = seq;
        let state = pcm.desc[desc as usize].state();
        let mut durable = written;
        if self.map.persist == MapPersist::Each {
            let described = pcm.write_desc(sink, desc, written)?;
            durable = pcm.medium.fence(sink, described);
        }
        let old = self.map.get(lpn);
        let done = self.map.set(sink, lpn, old.moved(Place::Pcm(desc), state, seq), durable)?;
        Ok((old.place(), done))
    }

    /// Overwrites sub-pages where they are; new ones are added.
    fn update_in_place<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        desc: u32,
        span: Span,
        data: Source<'_>,
        region: Region,
    ) -> Result<T> {
        let gran = self.config.addr_gran_pcm as u32;
        let Some(pcm) = &mut self.map.pcm else { return Ok(sink.start()) };
        pcm.touch(desc, region);
        let mut all = Joined::new();
        let mut grown = false;
        for part in sub_spans(span.offset, span.len, pcm.sub_bytes) {
            let piece = data.part(part.from, part.len);
            let slot = pcm.desc[desc as usize].subs[part.sub];
            let done = if slot == NONE {
                grown = true;
                pcm.write_new_sub(sink, desc, part, piece, None)?
            } else {
                pcm.overwrite_sub(sink, slot, part, piece, gran)?
            };
            all.add(sink, done);
        }
        let written = all.get(sink);
        if grown {
            return Ok(self.map_desc(sink, span.lpn, desc, written)?.1);
        }
        Ok(written)
    }

    /// Writes changed sub-pages to new slots and the page to a new descriptor.
    fn update_shadow<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        old: u32,
        span: Span,
        data: Source<'_>,
        region: Region,
    ) -> Result<T> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(sink.start()) };
        let before = pcm.desc[old as usize];
        let new = pcm.admit(span.lpn, region)?;
        let mut all = Joined::new();
        let mut replaced = 0u8;
        for part in sub_spans(span.offset, span.len, pcm.sub_bytes) {
            replaced |= 1 << part.sub;
            let old_slot = Some(before.subs[part.sub]).filter(|&s| s != NONE);
            let done = pcm.write_new_sub(sink, new, part, data.part(part.from, part.len), old_slot)?;
            all.add(sink, done);
        }
        for (sub, &slot) in before.subs.iter().enumerate() {
            if slot != NONE && replaced & (1 << sub) == 0 {
                pcm.attach(new, sub, slot);
            }
        }
        let written = all.get(sink);
        let (_, done) = self.map_desc(sink, span.lpn, new, written)?;
        if let Some(pcm) = &mut self.map.pcm {
            pcm.release(old, !replaced, done);
        }
        Ok(done)
    }
}

impl<T: Token, P: Store> PcmSpace<T, P> {
    /// Writes a sub-page into a new slot of `desc`, merged with what `old` holds (or zeros).
    fn write_new_sub<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        desc: u32,
        part: SubSpan,
        data: Source<'_>,
        old: Option<u32>,
    ) -> Result<T> {
        let (slot, ready) = self.take_slot()?;
        self.attach(desc, part.sub, slot);
        let at = self.slot_at(slot);
        if part.len == self.sub_bytes {
            return self.medium.write(sink, at, data, Cause::Host, ready);
        }
        let mut whole = if P::HOLDS { vec![0u8; self.sub_bytes as usize] } else { Vec::new() };
        let mut after = ready;
        if let Some(old) = old {
            let (from, start) = (self.slot_at(old), sink.start());
            let into = if P::HOLDS { Target::Bytes(&mut whole) } else { Target::Len(self.sub_bytes) };
            let read = self.medium.read(sink, from, into, Cause::Merge, start)?;
            after = sink.join(read, ready);
        }
        overlay(&mut whole, part.offset, data);
        let bytes = if P::HOLDS { Source::Bytes(&whole) } else { Source::Len(self.sub_bytes) };
        self.medium.write(sink, at, bytes, Cause::Host, after)
    }

    /// Overwrites part of a sub-page, rounded to the addressing granularity.
    fn overwrite_sub<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        slot: u32,
        part: SubSpan,
        data: Source<'_>,
        gran: u32,
    ) -> Result<T> {
        let (from, to) = (part.offset / gran * gran, (part.offset + part.len).next_multiple_of(gran));
        let base = self.slot_at(slot);
        let start = sink.start();
        if (from, to) == (part.offset, part.offset + part.len) {
            return self.medium.write(sink, base + u64::from(from), data, Cause::Host, start);
        }
        let mut around = if P::HOLDS { vec![0u8; (to - from) as usize] } else { Vec::new() };
        let into = if P::HOLDS { Target::Bytes(&mut around) } else { Target::Len(to - from) };
        let read = self.medium.read(sink, base + u64::from(from), into, Cause::Merge, start)?;
        overlay(&mut around, part.offset - from, data);
        let bytes = if P::HOLDS { Source::Bytes(&around) } else { Source::Len(to - from) };
        self.medium.write(sink, base + u64::from(from), bytes, Cause::Host, read)
    }

    /// Writes a descriptor to PCM.
    pub(crate) fn write_desc<S: Sink<Tok = T>>(&mut self, sink: &mut S, desc: u32, after: T) -> Result<T> {
        let at = self.desc_at + u64::from(desc) * DESC_BYTES;
        if P::HOLDS {
            let bytes = self.desc[desc as usize].encode();
            self.medium.write(sink, at, Source::Bytes(&bytes), Cause::Meta, after)
        } else {
            self.medium.write(sink, at, Source::Len(DESC_BYTES as u32), Cause::Meta, after)
        }
    }
}

impl Desc {
    /// As it lies in PCM: LPN, region, state, sequence number, slots, CRC32C of all that.
    pub(crate) fn encode(&self) -> [u8; DESC_BYTES as usize] {
        let mut b = [0u8; DESC_BYTES as usize];
        b[0..4].copy_from_slice(&self.lpn.to_le_bytes());
        b[4] = self.region as u8;
        b[5] = self.state();
        b[8..16].copy_from_slice(&self.seq.to_le_bytes());
        for (i, slot) in self.subs.iter().enumerate() {
            b[16 + 4 * i..20 + 4 * i].copy_from_slice(&slot.to_le_bytes());
        }
        let crc = crc32c::crc32c(&b[..60]);
        b[60..64].copy_from_slice(&crc.to_le_bytes());
        b
    }
}
