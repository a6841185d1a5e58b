//! Halt and boot: the map goes to PCM and comes back (section 2.6.1). Without PCM there is nowhere to
//! write it; boot then finds each page by the spare areas of NAND, where the newest version counts.

use super::Hfsl;
use super::buffer::BufferPolicy;
use super::entry::{Entry, Place};
use super::mapping::ENTRY_BYTES;
use super::pcm::{DESC_BYTES, Desc, NONE, Region};
use crate::Token;
use frit_core::{BlockId, Cause, Error, Lpn, MediumKind, Quiesce, Result, Sink, Source, Target};
use frit_media::Store;

/// Entries that halt and boot move with one command: 4 KiB of map.
const CHUNK: usize = 512;

impl<S: Sink, N: Store, P: Store> Quiesce<S> for Hfsl<S::Tok, N, P> {
    fn halt(&mut self, sink: &mut S) -> Result<()> {
        let done = self.write_descs(sink)?;
        self.write_map(sink, done)
    }

    fn boot(&mut self, sink: &mut S) -> Result<()> {
        if !N::HOLDS {
            let why = "a volume without bytes has nothing to boot from";
            return Err(Error::param("store", "none", why));
        }
        self.map.table.fill(0);
        self.flash.reset();
        if let Some(dram) = &mut self.dram {
            dram.lose()?;
        }
        if self.map.pcm.is_some() {
            self.read_map(sink)?;
        } else {
            self.scan_spares()?;
        }
        self.adopt_all(sink)
    }
}

impl<T: Token, N: Store, P: Store> Hfsl<T, N, P> {
    /// Descriptors first: an entry must never point to one that is not there.
    fn write_descs<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<T> {
        let mut done = sink.start();
        let Some(pcm) = &mut self.map.pcm else { return Ok(done) };
        for desc in 0..pcm.desc.len() as u32 {
            let lpn = pcm.desc[desc as usize].lpn;
            if lpn != NONE && Entry(self.map.table[lpn as usize]).changed() {
                let start = sink.start();
                let written = pcm.write_desc(sink, desc, start)?;
                done = sink.join(done, written);
            }
        }
        Ok(pcm.medium.fence(sink, done))
    }

    fn write_map<S: Sink<Tok = T>>(&mut self, sink: &mut S, after: T) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        let mut bytes = Vec::with_capacity(CHUNK * ENTRY_BYTES as usize);
        let mut done = after;
        for (i, chunk) in self.map.table.chunks_mut(CHUNK).enumerate() {
            if !chunk.iter().any(|&e| Entry(e).changed()) {
                continue;
            }
            bytes.clear();
            for e in chunk.iter_mut() {
                *e = Entry(*e).clean().0;
                bytes.extend_from_slice(&e.to_le_bytes());
            }
            let at = pcm.map_at + (i * CHUNK) as u64 * ENTRY_BYTES;
            let data = if P::HOLDS { Source::Bytes(&bytes) } else { Source::Len(bytes.len() as u32) };
            let written = pcm.medium.write(sink, at, data, Cause::Meta, after)?;
            done = sink.join(done, written);
        }
        let done = pcm.medium.fence(sink, done);
        sink.ack(done);
        Ok(())
    }

    fn read_map<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let Some(pcm) = &mut self.map.pcm else { return Ok(()) };
        pcm.reset();
        let mut bytes = vec![0u8; CHUNK * ENTRY_BYTES as usize];
        for (i, chunk) in self.map.table.chunks_mut(CHUNK).enumerate() {
            let bytes = &mut bytes[..chunk.len() * ENTRY_BYTES as usize];
            let at = pcm.map_at + (i * CHUNK) as u64 * ENTRY_BYTES;
            let start = sink.start();
            let done = pcm.medium.read(sink, at, Target::Bytes(bytes), Cause::Meta, start)?;
            sink.ack(done);
            for (e, b) in chunk.iter_mut().zip(bytes.chunks_exact(ENTRY_BYTES as usize)) {
                *e = u64::from_le_bytes(b.try_into().unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Without a map: each page's newest version, by the sequence numbers in the spare areas. Discards
    /// are in the map only and are forgotten.
    fn scan_spares(&mut self) -> Result<()> {
        let g = *self.flash.nand().geometry();
        let mut newest = vec![0u64; self.pages as usize];
        for block in (0..g.blocks()).map(BlockId) {
            for page in 0..self.flash.nand().next_page(block) {
                let ppn = g.ppn(block, page);
                // A page whose program failed has no valid spare area, and never was the newest.
                let spare = match self.flash.nand().spare(ppn) {
                    Err(Error::Corrupt { .. }) | Ok(None) => continue,
                    Ok(Some(spare)) => spare,
                    Err(e) => return Err(e),
                };
                let lpn = spare.lpn as usize;
                if lpn < newest.len() && spare.seq > newest[lpn] {
                    newest[lpn] = spare.seq;
                    self.map.table[lpn] = Entry::default().moved(Place::Nand(ppn), 0, spare.seq).clean().0;
                }
            }
        }
        Ok(())
    }

    /// Rebuilds all that follows from the map: reverse map, pools, descriptors, slots.
    fn adopt_all<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<()> {
        let mut seq = self.flash.last_seq();
        for lpn in (0..self.pages).map(Lpn) {
            match self.map.get(lpn).place() {
                Place::Unmapped => {}
                Place::Nand(ppn) => {
                    let found = self.flash.adopt(lpn, ppn, self.map.get(lpn).tag())?;
                    seq = seq.max(found);
                }
                Place::Pcm(desc) => seq = seq.max(self.adopt_desc(sink, lpn, desc)?),
            }
        }
        if let Some(pcm) = &mut self.map.pcm {
            pcm.rebuild_free();
        }
        self.flash.adopted(seq);
        Ok(())
    }

    fn adopt_desc<S: Sink<Tok = T>>(&mut self, sink: &mut S, lpn: Lpn, desc: u32) -> Result<u64> {
        let tag = self.map.get(lpn).tag();
        let Some(pcm) = &mut self.map.pcm else {
            return Err(damaged(u64::from(lpn.0), "the map names PCM and there is none".into()));
        };
        let at = pcm.desc_at + u64::from(desc) * DESC_BYTES;
        if desc >= pcm.slots {
            return Err(damaged(at, format!("page {} names descriptor {desc} of {}", lpn.0, pcm.slots)));
        }
        let mut bytes = [0u8; DESC_BYTES as usize];
        let start = sink.start();
        let done = pcm.medium.read(sink, at, Target::Bytes(&mut bytes), Cause::Meta, start)?;
        sink.ack(done);
        let found = Desc::decode(&bytes).filter(|d| {
            d.lpn == lpn.0 && d.seq as u16 == tag && d.subs.iter().all(|&s| s == NONE || s < pcm.slots)
        });
        let Some(d) = found else {
            return Err(damaged(at, format!("the descriptor of page {} is not valid", lpn.0)));
        };
        pcm.desc[desc as usize] = d;
        let region = &mut pcm.regions[d.region as usize];
        region.buffer.admitted(desc, lpn);
        region.pages += 1;
        region.used += d.count();
        Ok(d.seq)
    }
}

fn damaged(at: u64, what: String) -> Error {
    Error::Corrupt { medium: MediumKind::Pcm, at, what }
}

impl Desc {
    fn decode(b: &[u8; DESC_BYTES as usize]) -> Option<Desc> {
        let word = |at: usize| Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?));
        if word(60)? != crc32c::crc32c(&b[..60]) {
            return None;
        }
        let mut subs = [NONE; 8];
        for (i, s) in subs.iter_mut().enumerate() {
            *s = word(16 + 4 * i)?;
        }
        let region = Region::ALL.get(usize::from(b[4])).copied()?;
        let seq = u64::from(word(8)?) | u64::from(word(12)?) << 32;
        Some(Desc { lpn: word(0)?, region, seq, subs })
    }
}
