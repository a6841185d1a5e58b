//! Saved metadata of the device: a *checkpoint* of the map of virtual blocks, written at a flush, a halt
//! and the end of a recovery.
//!
//! Its parts are pages with fixed numbers behind the virtual blocks. Two sets of them are written in
//! turn, so that one checkpoint is always complete. With atomic flushes, the checkpoint names the parts of
//! the map ([`super::map_parts`]) instead of the virtual blocks, and is written twice, into different
//! virtual pages: without it, a recovery would take the state of an earlier flush for the last one.
//!
//! ```text
//! part of a checkpoint
//!  0  magic "fritNLC1" (8)
//!  8  number of the checkpoint (8)
//! 16  highest sequence number when it was written (8)
//! 24  index of the part (4), number of parts (4)
//! 32  1 at a halt, else 0 (8)
//! 40  addresses of the virtual blocks, or of the parts of the map (8 each): page (4), version (4); 0 for none; page
//!     0xFFFFFFFF and version 0 for a block that is lost
//! ```
//! Numbers are little endian. The rest of the page is zero.

use super::map_parts::map_parts;
use super::{DeviceBlocks, HostFtl};
use crate::planted::NamelessBug;
use frit_core::convert::{count_u32, to_u64, to_usize};
use frit_core::planted::is_planted;
use frit_core::{PhysicalAddress, Ppn, Result, Sink, Tok, WriteData};

const MAGIC: &[u8; 8] = b"fritNLC1";
const HEADER_BYTES: usize = 40;
const ENTRY_BYTES: usize = 8;

/// Numbers of pages of saved metadata.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct MetadataLayout {
    /// Parts of the map.
    pub(super) map_parts: u32,
    /// Parts of a checkpoint.
    parts: u32,
    /// Copies of a checkpoint.
    copies: u32,
}

impl MetadataLayout {
    pub(super) fn new(blocks: &DeviceBlocks, page_bytes: u32) -> MetadataLayout {
        let capacity = Checkpoint::capacity(page_bytes);
        if blocks.atomic_flush {
            let map_parts = map_parts(blocks.virtual_blocks, page_bytes);
            return MetadataLayout { map_parts, parts: map_parts.div_ceil(capacity).max(1), copies: 2 };
        }
        let parts = blocks.virtual_blocks.div_ceil(capacity).max(1);
        MetadataLayout { map_parts: 0, parts, copies: 1 }
    }

    /// Pages of both sets of a checkpoint.
    pub(super) fn checkpoint_pages(&self) -> u32 {
        Checkpoint::SETS * self.copies * self.parts
    }

    /// Pages that can be valid: there are two versions of each part of the map.
    pub(super) fn pages(&self) -> u32 {
        2 * self.map_parts + self.checkpoint_pages()
    }
}

/// State of the checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Checkpoint {
    /// Highest number that was used.
    pub(super) last: u64,
    /// Number of the newest complete one.
    pub(super) complete: u64,
    /// Number of the first part of the first set.
    first: u32,
    parts: u32,
    copies: u32,
    /// Numbers that it names: virtual blocks, or parts of the map.
    named: (u32, u32),
    /// `true` if anything was written since it.
    pub(super) outdated: bool,
}

/// A part of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CheckpointPart {
    pub(super) number: u64,
    pub(super) through: u64,
    pub(super) index: u32,
    pub(super) parts: u32,
    pub(super) halted: bool,
    /// Addresses of the virtual blocks, or of the parts of the map.
    pub(super) entries: Vec<PhysicalAddress>,
}

impl Checkpoint {
    /// Sets of parts, which are written in turn.
    pub(super) const SETS: u32 = 2;

    pub(super) fn new(blocks: &DeviceBlocks, layout: MetadataLayout) -> Checkpoint {
        let MetadataLayout { map_parts, parts, copies } = layout;
        let first = blocks.virtual_blocks + map_parts;
        let named = if blocks.atomic_flush { (blocks.virtual_blocks, first) } else { (0, first) };
        Checkpoint { last: 0, complete: 0, first, parts, copies, named, outdated: true }
    }

    /// Number of entries of a part.
    pub(super) fn capacity(page_bytes: u32) -> u32 {
        count_u32((to_usize(page_bytes) - HEADER_BYTES) / ENTRY_BYTES)
    }

    /// Number of the next checkpoint: one of the set that does not have the newest complete one.
    fn next(&self) -> u64 {
        let next = self.last + 1;
        next + u64::from(next % 2 == self.complete % 2)
    }

    /// Returns `true` for the number of a page of a second copy.
    pub(super) fn is_second_copy(&self, number: u32) -> bool {
        (number - self.first) / self.parts % self.copies == 1
    }

    /// Numbers of the parts of a copy of a checkpoint.
    pub(super) fn numbers(&self, number: u64, copy: u32) -> std::ops::Range<u32> {
        let set = u32::from(number % 2 == 1);
        let first = self.first + (set * self.copies + copy) * self.parts;
        first..first + self.parts
    }
}

fn number(b: &[u8], at: usize) -> Option<u64> {
    b.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn word(b: &[u8], at: usize) -> Option<u32> {
    b.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

impl CheckpointPart {
    /// Encodes the part into a page.
    pub(super) fn encode(&self, page: &mut [u8]) {
        page.fill(0);
        page[..8].copy_from_slice(MAGIC);
        page[8..16].copy_from_slice(&self.number.to_le_bytes());
        page[16..24].copy_from_slice(&self.through.to_le_bytes());
        page[24..28].copy_from_slice(&self.index.to_le_bytes());
        page[28..32].copy_from_slice(&self.parts.to_le_bytes());
        page[32..40].copy_from_slice(&u64::from(self.halted).to_le_bytes());
        for (place, entry) in page[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES).zip(&self.entries) {
            place.copy_from_slice(&entry.to_word().to_le_bytes());
        }
    }

    /// Decodes a part; `None` if the page holds none.
    pub(super) fn decode(page: &[u8]) -> Option<CheckpointPart> {
        if page.get(..8)? != MAGIC {
            return None;
        }
        let entry = |b: &[u8]| number(b, 0).map(PhysicalAddress::from_word);
        Some(CheckpointPart {
            number: number(page, 8)?,
            through: number(page, 16)?,
            index: word(page, 24)?,
            parts: word(page, 28)?,
            halted: number(page, 32)? == 1,
            entries: page.get(HEADER_BYTES..)?.chunks_exact(ENTRY_BYTES).filter_map(entry).collect(),
        })
    }
}

impl HostFtl {
    /// Saves the metadata. Returns a token that is done when it is durable.
    pub(super) fn write_checkpoint(&mut self, sink: &mut Sink, halted: bool) -> Result<Tok> {
        if self.blocks.atomic_flush {
            self.write_map_parts(sink)?;
        }
        if !is_planted(NamelessBug::CheckpointBeforeSync) {
            self.sync_files()?;
        }
        let number = self.checkpoint.next();
        self.checkpoint.last = number;
        let through = self.flash.last_seq();
        let after = self.all_written(sink);
        let early = is_planted(NamelessBug::CheckpointEarly)
            || self.blocks.atomic_flush && is_planted(NamelessBug::CheckpointUnordered);
        let after = if early { sink.start() } else { after };
        let mut done = after;
        for copy in 0..self.checkpoint.copies {
            let of = CheckpointPart {
                number,
                through,
                index: 0,
                parts: self.checkpoint.parts,
                halted,
                entries: Vec::new(),
            };
            let programmed = self.write_copy(sink, copy, &of, after)?;
            done = sink.join(done, programmed);
        }
        self.free_replaced(sink, done);
        self.checkpoint.complete = number;
        self.checkpoint.outdated = false;
        self.stats.checkpoints += 1;
        Ok(done)
    }

    /// Writes a copy of a checkpoint, whose parts are as `part`.
    fn write_copy(&mut self, sink: &mut Sink, copy: u32, part: &CheckpointPart, after: Tok) -> Result<Tok> {
        let capacity = Checkpoint::capacity(self.page_bytes);
        let (first, end) = self.checkpoint.named;
        let page = to_usize(self.page_bytes);
        let numbers: Vec<u32> = self.checkpoint.numbers(part.number, copy).collect();
        let mut bytes = vec![0; if self.stores_bytes() { page * to_usize(self.unit_pages) } else { 0 }];
        let mut done = after;
        for (chunk, queue) in (0..).zip(numbers.chunks(to_usize(self.unit_pages))) {
            for (i, place) in (0..).zip(bytes.chunks_exact_mut(page).take(queue.len())) {
                let index = chunk * self.unit_pages + i;
                let named = first + index * capacity..(first + (index + 1) * capacity).min(end);
                let entries = named.map(|number| self.maps.entry(number)).collect();
                CheckpointPart { index, entries, ..part.clone() }.encode(place);
            }
            let len = queue.len() * page;
            let data = match self.stores_bytes() {
                true => WriteData::Bytes(&bytes[..len]),
                false => WriteData::Len(count_u32(len)),
            };
            let programmed = self.program_metadata(sink, queue, data, after)?;
            done = sink.join(done, programmed);
        }
        Ok(done)
    }

    /// Frees the versions of virtual blocks that only the checkpoint before has named, once the new one
    /// is durable.
    fn free_replaced(&mut self, sink: &mut Sink, durable: Tok) {
        let durable = if is_planted(NamelessBug::SavedFreedEarly) { sink.start() } else { durable };
        let flash = &mut self.flash;
        self.maps.mark_saved(|old| flash.invalidate_after(sink, Ppn(old.page), durable));
    }

    /// Size of a checkpoint in bytes.
    pub(super) fn checkpoint_bytes(&self) -> u64 {
        u64::from(self.checkpoint.copies * self.checkpoint.parts) * to_u64(to_usize(self.page_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_back_as_it_was() {
        let entries = vec![PhysicalAddress { page: 3, version: 9 }, PhysicalAddress::default()];
        let part = CheckpointPart { number: 5, through: 77, index: 1, parts: 2, halted: true, entries };
        let mut page = vec![0xEE; 512];
        part.encode(&mut page);
        let decoded = CheckpointPart::decode(&page).unwrap();
        assert_eq!(decoded.entries.len(), (512 - HEADER_BYTES) / ENTRY_BYTES);
        assert_eq!(decoded.entries[..2], part.entries);
        assert_eq!(CheckpointPart { entries: part.entries.clone(), ..decoded }, part);
        page[0] ^= 1;
        assert_eq!(CheckpointPart::decode(&page), None);
    }

    #[test]
    fn checkpoints_take_turns() {
        let of = |atomic_flush| {
            let blocks = DeviceBlocks { capacity: 0, waiting: 0, virtual_blocks: 120, atomic_flush };
            Checkpoint::new(&blocks, MetadataLayout::new(&blocks, 512))
        };
        let checkpoint = of(false);
        assert_eq!(checkpoint.numbers(1, 0), 123..126);
        assert_eq!(checkpoint.numbers(2, 0), 120..123);
        let next = |last, complete| Checkpoint { last, complete, ..checkpoint }.next();
        assert_eq!((next(0, 0), next(4, 4)), (1, 5));
        // Checkpoint 5 was interrupted, and 4 must stay.
        assert_eq!(next(5, 4), 7);
        // Two parts of the map precede two copies of a page.
        let checkpoint = of(true);
        assert_eq!((checkpoint.numbers(1, 0), checkpoint.numbers(1, 1)), (124..125, 125..126));
        assert_eq!((checkpoint.numbers(2, 0), checkpoint.numbers(2, 1)), (122..123, 123..124));
    }
}
