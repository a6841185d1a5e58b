//! Parts of the map of virtual blocks, for atomic flushes.
//!
//! A checkpoint does not contain the whole map there: it names the versions of the parts of the map, and
//! the parts name the versions of virtual blocks. A flush writes the parts that have changed, and a
//! checkpoint of a page or a few. Parts are pages with numbers behind the virtual blocks. The version of
//! a part that the last checkpoint names stays until the next checkpoint is durable, as that of a virtual
//! block does.
//!
//! ```text
//! part of the map
//!  0  magic "fritNLM1" (8)
//!  8  index of the part (4), zero (4)
//! 16  addresses of the virtual blocks of the part (8 each), as in a checkpoint
//! ```
//! Numbers are little endian. The rest of the page is zero.

use super::HostFtl;
use super::VIRTUAL;
use super::maps::{LOST, tag_of};
use frit_core::convert::{count_u32, to_usize};
use frit_core::{Error, PhysicalAddress, Ppn, Result, Sink, WriteData};
use std::ops::Range;

const MAGIC: &[u8; 8] = b"fritNLM1";
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 8;

/// Number of virtual blocks of a part.
pub(super) fn part_blocks(page_bytes: u32) -> u32 {
    count_u32((to_usize(page_bytes) - HEADER_BYTES) / ENTRY_BYTES)
}

/// Number of parts of a map.
pub(super) fn map_parts(virtual_blocks: u32, page_bytes: u32) -> u32 {
    virtual_blocks.div_ceil(part_blocks(page_bytes))
}

fn encode(index: u32, entries: impl Iterator<Item = PhysicalAddress>, page: &mut [u8]) {
    page.fill(0);
    page[..8].copy_from_slice(MAGIC);
    page[8..12].copy_from_slice(&index.to_le_bytes());
    for (place, entry) in page[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES).zip(entries) {
        place.copy_from_slice(&entry.to_word().to_le_bytes());
    }
}

/// Entries of a part; `None` if the page holds another part or none.
fn decode(index: u32, page: &[u8]) -> Option<impl Iterator<Item = PhysicalAddress>> {
    if page.get(..8)? != MAGIC || page.get(8..12)? != index.to_le_bytes() {
        return None;
    }
    let entry = |b: &[u8]| b.try_into().map_or(0, u64::from_le_bytes);
    let (entries, _) = page.get(HEADER_BYTES..)?.as_chunks::<ENTRY_BYTES>();
    Some(entries.iter().map(move |b| PhysicalAddress::from_word(entry(b))))
}

impl HostFtl {
    /// Number of the first part, and of all parts.
    fn parts(&self) -> Range<u32> {
        let first = self.maps.virtual_blocks();
        first..self.maps.first_of_checkpoints()
    }

    /// Virtual blocks of a part.
    fn blocks_of(&self, index: u32) -> Range<u32> {
        let n = part_blocks(self.page_bytes);
        index * n..((index + 1) * n).min(self.maps.virtual_blocks())
    }

    /// Writes the parts that differ from those that the last checkpoint names.
    pub(super) fn write_map_parts(&mut self, sink: &mut Sink) -> Result<()> {
        let parts = self.parts();
        let lost = |index: u32| self.maps.why_lost(parts.start + index).is_some();
        let outdated: Vec<u32> = (0..count_u32(parts.len()))
            .filter(|&index| self.maps.differs(self.blocks_of(index)) || lost(index))
            .collect();
        let page = to_usize(self.page_bytes);
        let mut bytes = vec![0; if self.stores_bytes() { page * to_usize(self.unit_pages) } else { 0 }];
        for queue in outdated.chunks(to_usize(self.unit_pages)) {
            for (place, &index) in bytes.chunks_exact_mut(page).zip(queue) {
                encode(index, self.blocks_of(index).map(|block| self.maps.entry(block)), place);
            }
            let len = queue.len() * page;
            let data = match bytes.get(..len) {
                Some(bytes) => WriteData::Bytes(bytes),
                None => WriteData::Len(count_u32(len)),
            };
            let numbers: Vec<u32> = queue.iter().map(|index| parts.start + index).collect();
            let start = sink.start();
            self.program_metadata(sink, &numbers, data, start)?;
            self.stats.map_parts += u64::from(count_u32(queue.len()));
        }
        Ok(())
    }

    /// Reads the parts, which were mapped before. Returns the addresses of all virtual blocks. The blocks of
    /// a part that is lost are lost.
    pub(super) fn read_map_parts(&mut self) -> Result<Vec<PhysicalAddress>> {
        let mut all = vec![PhysicalAddress::default(); to_usize(self.maps.virtual_blocks())];
        let mut page = vec![0; to_usize(self.page_bytes)];
        for (index, number) in (0..).zip(self.parts()) {
            let blocks = self.blocks_of(index);
            let why = match self.maps.get(number) {
                None => self.maps.why_lost(number).map(str::to_owned),
                Some(at) => match self.read_version(Ppn(at.page), VIRTUAL + number, tag_of(at), &mut page) {
                    Ok(()) => None,
                    Err(e @ Error::Corrupt { .. }) => Some(e.to_string()),
                    Err(e) => return Err(e),
                },
            };
            let why = match why {
                None if self.maps.get(number).is_none() => continue,
                None => match decode(index, &page) {
                    Some(entries) => {
                        let places = &mut all[to_usize(blocks.start)..to_usize(blocks.end)];
                        places.iter_mut().zip(entries).for_each(|(place, entry)| *place = entry);
                        continue;
                    }
                    None => "it has other contents".to_owned(),
                },
                Some(why) => why,
            };
            for block in blocks {
                all[to_usize(block)] = LOST;
                self.maps.note_lost(block, format!("part {index} of the map is lost: {why}"));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_back_as_it_was() {
        let entries = [PhysicalAddress { page: 3, version: 9 }, PhysicalAddress::default(), LOST];
        let mut page = vec![0xEE; 512];
        encode(7, entries.into_iter(), &mut page);
        assert!(decode(6, &page).is_none());
        let decoded: Vec<_> = decode(7, &page).unwrap().collect();
        assert_eq!((decoded.len(), &decoded[..3]), (part_blocks(512) as usize, &entries[..]));
        page[0] ^= 1;
        assert!(decode(7, &page).is_none());
        assert_eq!((map_parts(62, 512), map_parts(63, 512)), (1, 2));
    }
}
