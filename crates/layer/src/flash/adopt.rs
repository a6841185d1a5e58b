//! A space that is not new: pages that a map names after a boot, or that preconditioning puts there.

use super::BlockState;
use super::space::{Flash, Open, Stream};
use crate::Token;
use frit_core::planted::{Bug, is};
use frit_core::{BlockId, Cause, Error, Lpn, MediumKind, Ppn, Result, Sink, Source};
use frit_media::{Expected, Spare, Store};

impl<T: Token, N: Store> Flash<T, N> {
    /// Takes note of a page that the map names. With `look`, its spare area has to say the same.
    pub(crate) fn adopt(&mut self, lpn: Lpn, ppn: Ppn, tag: u16, look: bool) -> Result<()> {
        let damaged = |what: String| Error::Corrupt { medium: MediumKind::Nand, at: u64::from(ppn.0), what };
        let g = *self.nand.geometry();
        if ppn.0 >= g.pages() || self.nand.next_page(g.block_of(ppn)) <= ppn.0 % g.pages_per_block {
            return Err(damaged(format!("the map names it for page {}, and it holds none", lpn.0)));
        }
        if let Some(other) = self.lpn_of(ppn) {
            return Err(damaged(format!("the map names it for pages {} and {}", lpn.0, other.0)));
        }
        if look {
            match self.version(ppn, lpn, tag) {
                Err(Error::Corrupt { .. }) if is(Bug::AdoptAnyVersion) => {}
                found => drop(found?),
            }
        }
        let unit = g.unit_of_block(g.block_of(ppn));
        self.note_valid(unit, ppn, lpn);
        Ok(())
    }

    /// The sequence number of a page, which has to be a certain version.
    pub(crate) fn version(&self, ppn: Ppn, lpn: Lpn, tag: u16) -> Result<u64> {
        let spare = self.nand.spare(ppn)?.filter(|s| Expected { lpn: lpn.0, tag }.is(*s));
        spare.map(|s| s.seq).ok_or_else(|| Error::Corrupt {
            medium: MediumKind::Nand,
            at: u64::from(ppn.0),
            what: format!("it should hold page {}, version {tag} (modulo 65536), and does not", lpn.0),
        })
    }

    /// After all pages were adopted: blocks that were written are sealed, and those begun are filled
    /// on by the streams. `suspect`: free blocks are erased again before use.
    pub(crate) fn adopted(&mut self, seq: u64, suspect: bool) {
        self.seq = seq;
        let pages = self.blocks.pages_per_block();
        for unit in 0..self.units.len() as u32 {
            let mut begun = Vec::new();
            self.units[unit as usize].free.clear();
            for b in self.blocks.of_unit(unit) {
                let next = match self.nand.next_page(BlockId(b)) {
                    // An erase may have been cut off in it, whatever it looks like.
                    _ if suspect && self.blocks.valid(b) == 0 => 0,
                    next => next,
                };
                match next {
                    _ if self.blocks.state(b) == BlockState::Bad => {}
                    0 => {
                        self.blocks.block[b as usize].suspect = suspect;
                        self.units[unit as usize].free.push_back(b);
                    }
                    n if n < pages => begun.push(Open { block: b, next: n }),
                    _ => self.seal(b),
                }
            }
            // The emptiest for cleaning, which must not run out of room, and so all beyond three.
            begun.sort_by_key(|open| open.next);
            let slots = [Stream::Gc as usize, Stream::Host as usize, Stream::Cold as usize];
            let rest = begun.split_off(begun.len().min(slots.len()));
            for open in begun.iter().chain(&rest) {
                self.blocks.block[open.block as usize].state = BlockState::Open;
            }
            for (slot, open) in slots.into_iter().zip(begun) {
                self.units[unit as usize].open[slot] = Some(open);
            }
            self.units[unit as usize].begun = rest;
            self.degrade(unit);
        }
    }

    /// After a stop, once all pages were adopted: pads each block that is filled on, since the program of its next page may have been cut
    /// off. Returns how many pages that took.
    pub(crate) fn pad_begun<S: Sink<Tok = T>>(&mut self, sink: &mut S) -> Result<u32> {
        let mut padded = 0;
        for b in 0..self.blocks.count() {
            let next = self.nand.next_page(BlockId(b));
            let resumed = self.blocks.valid(b) > 0 && next < self.blocks.pages_per_block();
            if is(Bug::ResumeTornPage) || self.nand.is_bad(BlockId(b)) || !resumed {
                continue;
            }
            let (ppn, start) = (self.nand.geometry().ppn(BlockId(b), next), sink.start());
            let done = self.nand.pad(sink, ppn, Cause::Meta, start)?;
            sink.ack(done);
            padded += 1;
        }
        Ok(padded)
    }

    /// Keeps a block that was to be erased, since a page in it is wanted after all.
    pub(crate) fn rescue(&mut self, ppn: Ppn) {
        let block = self.nand.geometry().block_of(ppn).0;
        if self.blocks.state(block) == BlockState::Free {
            self.units[self.blocks.unit_of(block) as usize].free.retain(|&b| b != block);
            self.blocks.block[block as usize].suspect = false;
            self.seal(block);
        }
    }

    /// Free blocks that are erased again before use.
    pub(crate) fn suspects(&self) -> u32 {
        (0..self.blocks.count()).filter(|&b| self.blocks.is_suspect(b)).count() as u32
    }

    /// Free blocks that preconditioning may fill in a unit, in order.
    pub(crate) fn fillable(&self, unit: u32) -> Vec<u32> {
        let free = &self.units[unit as usize].free;
        free.iter().copied().take(free.len().saturating_sub(self.reserve)).collect()
    }

    /// Preconditioning: fills a free block with pages, 0 for one that is invalid, else LPN + 1, and
    /// seals it. Nothing is emitted or counted. `moved` hears of each valid page.
    pub(crate) fn preset_block(
        &mut self,
        unit: u32,
        block: u32,
        pages: &[u32],
        moved: &mut impl FnMut(Lpn, Ppn, u64),
    ) -> Result<()> {
        let first = self.nand.geometry().ppn(BlockId(block), 0).0;
        let mut valid = 0;
        for (i, &page) in pages.iter().enumerate() {
            let ppn = Ppn(first + i as u32);
            self.next_seq();
            if page != 0 {
                self.reverse[ppn.idx()] = page;
                valid += 1;
                moved(Lpn(page - 1), ppn, self.seq);
            }
            if N::HOLDS {
                let lpn = if page == 0 { u32::MAX } else { page - 1 };
                let data = Source::Bytes(&self.scratch);
                self.nand.preset_page(ppn, data, Spare { lpn, seq: self.seq })?;
            }
        }
        self.nand.preset(BlockId(block), pages.len() as u32, self.nand.erases(BlockId(block)));
        self.blocks.block[block as usize].valid = valid;
        self.units[unit as usize].valid_pages += u32::from(valid);
        if pages.len() as u32 == self.blocks.pages_per_block() {
            self.seal(block);
        } else {
            self.blocks.block[block as usize].state = BlockState::Open;
            let open = Open { block, next: pages.len() as u32 };
            self.units[unit as usize].open[Stream::Host as usize] = Some(open);
        }
        Ok(())
    }

    /// Takes blocks out of the pool of a unit that were filled.
    pub(crate) fn filled(&mut self, unit: u32, blocks: usize) {
        self.units[unit as usize].free.drain(..blocks);
    }

    /// Zeros for the pages that preconditioning writes.
    pub(crate) fn zero_scratch(&mut self) {
        self.scratch.fill(0);
    }
}
