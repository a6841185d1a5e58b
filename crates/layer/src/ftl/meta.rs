//! Pages of metadata. They have numbers behind the pages of the volume, and lie in NAND as pages of
//! data do: garbage collection moves them, and recovery finds them by their records.
//!
//! Page 0 is the *mark*, written at a flush and at a halt. Pages 1 and up are the *discard maps*, with
//! a bit for each page of the volume. There are two copies of each discard map.
//!
//! ```text
//! mark                                      discard map
//!  0  magic "fritFMK1" (8)                   0  magic "fritFDM1" (8)
//!  8  sequence number up to which all        8  sequence number up to which all versions of the
//!     versions were durable before (8)          pages whose bit is set are discarded (8)
//! 16  1 at a halt, else 0 (8)               16  number of the discard map (8)
//! 24  mapped pages at a halt (8)            24  zero (8)
//! 32  parity of the map at a halt (8)       32  bits of the pages, from the first one on
//! 40  number of interrupted pages (8)
//! 48  highest sequence number (8)
//! 56  number of lost pages (8)
//! 64  physical page numbers (4) and sequence
//!     numbers (8) of the interrupted pages
//! ..  logical page numbers of the lost
//!     pages (4)
//! ```
//! Numbers are little endian. The rest of the mark is zero.

use super::page_map::PageEntry;
use frit_core::convert::to_usize;
use frit_core::{Lpn, Ppn};

const MARK: &[u8; 8] = b"fritFMK1";
const DISCARDS: &[u8; 8] = b"fritFDM1";
const HEADER_BYTES: usize = 32;
const MARK_BYTES: usize = 64;

/// Copies of each discard map.
pub(super) const MAP_COPIES: u32 = 2;

/// Numbers of the pages of metadata of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MetaPages {
    /// Pages of the volume.
    pages: u32,
    /// First page of metadata.
    first: u32,
    /// Pages of the volume that a discard map covers.
    covered: u32,
}

impl MetaPages {
    /// Numbers for a volume of `pages` pages, with `others` pages between those of the volume and these.
    pub(super) fn new(pages: u32, others: u32, page_bytes: u32) -> MetaPages {
        MetaPages { pages, first: pages + others, covered: (page_bytes - HEADER_BYTES as u32) * 8 }
    }

    /// Number of pages of metadata for a volume.
    pub(super) fn count(self) -> u32 {
        1 + MAP_COPIES * self.maps()
    }

    /// Number of discard maps.
    pub(super) fn maps(self) -> u32 {
        self.pages.div_ceil(self.covered)
    }

    /// Number of the mark.
    pub(super) fn mark(self) -> Lpn {
        Lpn(self.first)
    }

    /// Numbers of the copies of a discard map.
    pub(super) fn copies(self, index: u32) -> impl Iterator<Item = Lpn> {
        (0..MAP_COPIES).map(move |copy| Lpn(self.first + 1 + copy * self.maps() + index))
    }

    /// Index of a discard map, if the page is a copy of one.
    pub(super) fn index_of(self, lpn: Lpn) -> Option<u32> {
        let maps = self.maps();
        lpn.0.checked_sub(self.first + 1).filter(|&copy| copy < MAP_COPIES * maps).map(|copy| copy % maps)
    }

    /// Index of the discard map that covers a page.
    pub(super) fn map_of(self, lpn: Lpn) -> u32 {
        lpn.0 / self.covered
    }

    /// Pages that a discard map covers.
    pub(super) fn covered_by(self, index: u32) -> std::ops::Range<u32> {
        let first = index * self.covered;
        first..(first + self.covered).min(self.pages)
    }
}

/// Contents of the mark.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Mark {
    /// Sequence number up to which all versions were durable before the mark was written.
    pub(super) durable: u64,
    /// `true` at a halt.
    pub(super) halted: bool,
    /// Summary of the map at a halt.
    pub(super) summary: MapSummary,
    /// Interrupted pages in blocks that are in use. A later recovery must not take them for lost
    /// pages.
    pub(super) interrupted: Vec<InterruptedPage>,
    /// Highest sequence number before the mark.
    pub(super) seq: u64,
    /// Logical pages of the volume that were lost, and not written since.
    pub(super) lost: Vec<u32>,
    /// There are more lost pages than the mark has room for.
    pub(super) more_lost: bool,
}

/// Page whose program a crash interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InterruptedPage {
    pub(super) ppn: Ppn,
    /// Sequence number, if its record is valid; else 0.
    pub(super) seq: u64,
}

/// Size of an interrupted page in a mark, in bytes.
const INTERRUPTED_BYTES: usize = 12;
/// Size of a lost page in a mark, in bytes.
const LOST_BYTES: usize = 4;

/// Number of mapped pages, and a parity over their versions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct MapSummary {
    pub(super) pages: u64,
    pub(super) parity: u64,
}

impl MapSummary {
    /// Adds a page, whose place does not count: garbage collection changes it after a halt. The
    /// multiplier is that of Knuth's MMIX generator, which is odd: the sum over the
    /// pages changes with every entry.
    pub(super) fn add(&mut self, lpn: Lpn, entry: PageEntry) {
        if entry.ppn().is_none() {
            return;
        }
        let word = u64::from(lpn.0) << 16 | u64::from(entry.tag());
        self.pages += 1;
        // The middle bits of the square make the term depend on every bit of the word.
        let term = word.wrapping_mul(6_364_136_223_846_793_005);
        self.parity = self.parity.wrapping_add(term ^ term.wrapping_mul(term) >> 32);
    }
}

fn put(b: &mut [u8], at: usize, value: u64) {
    b[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn number(b: &[u8], at: usize) -> Option<u64> {
    b.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

impl Mark {
    /// Encodes the mark into a page.
    pub(super) fn encode(&self, page: &mut [u8]) {
        page.fill(0);
        page[..8].copy_from_slice(MARK);
        put(page, 8, self.durable);
        put(page, 16, u64::from(self.halted));
        put(page, 24, self.summary.pages);
        put(page, 32, self.summary.parity);
        let listed = self.interrupted.len().min((page.len() - MARK_BYTES) / INTERRUPTED_BYTES);
        put(page, 40, listed as u64);
        put(page, 48, self.seq);
        put(page, 56, self.lost.len() as u64);
        let (interrupted, lost) = page[MARK_BYTES..].split_at_mut(listed * INTERRUPTED_BYTES);
        for (place, page) in interrupted.chunks_exact_mut(INTERRUPTED_BYTES).zip(&self.interrupted) {
            place[..4].copy_from_slice(&page.ppn.0.to_le_bytes());
            put(place, 4, page.seq);
        }
        for (place, lpn) in lost.chunks_exact_mut(LOST_BYTES).zip(&self.lost) {
            place.copy_from_slice(&lpn.to_le_bytes());
        }
    }

    /// Returns `true` if a page has room for the mark.
    pub(super) fn fits(&self, page_bytes: u32) -> bool {
        let lists = self.interrupted.len() * INTERRUPTED_BYTES + self.lost.len() * LOST_BYTES;
        MARK_BYTES + lists <= to_usize(page_bytes)
    }

    /// Decodes a mark; `None` if the page holds none.
    pub(super) fn decode(page: &[u8]) -> Option<Mark> {
        if page.get(..8)? != MARK {
            return None;
        }
        let summary = MapSummary { pages: number(page, 24)?, parity: number(page, 32)? };
        let listed = usize::try_from(number(page, 40)?).ok()?;
        let places = page.get(MARK_BYTES..)?.chunks_exact(INTERRUPTED_BYTES).take(listed);
        let interrupted = places.filter_map(|b| {
            let ppn = Ppn(b.get(..4)?.try_into().ok().map(u32::from_le_bytes)?);
            Some(InterruptedPage { ppn, seq: number(b, 4)? })
        });
        let interrupted: Vec<_> = interrupted.collect();
        let lost_count = usize::try_from(number(page, 56)?).ok()?;
        let lost = page.get(MARK_BYTES + interrupted.len() * INTERRUPTED_BYTES..)?.chunks_exact(LOST_BYTES);
        let lost: Vec<u32> =
            lost.take(lost_count).filter_map(|b| b.try_into().ok().map(u32::from_le_bytes)).collect();
        Some(Mark {
            durable: number(page, 8)?,
            halted: number(page, 16)? == 1,
            summary,
            more_lost: lost.len() < lost_count,
            interrupted,
            seq: number(page, 48)?,
            lost,
        })
    }
}

/// Encodes a discard map into a page. `discarded` tells whether a page of the volume is discarded.
pub(super) fn encode_discards(
    page: &mut [u8],
    index: u32,
    seq: u64,
    covered: std::ops::Range<u32>,
    discarded: impl Fn(Lpn) -> bool,
) {
    page.fill(0);
    page[..8].copy_from_slice(DISCARDS);
    put(page, 8, seq);
    put(page, 16, u64::from(index));
    for (bit, lpn) in covered.enumerate() {
        if discarded(Lpn(lpn)) {
            page[HEADER_BYTES + bit / 8] |= 1 << (bit % 8);
        }
    }
}

/// Decodes a discard map: the sequence number, and a call of `discarded` for each page whose bit is
/// set. `None` if the page holds no discard map with this number.
pub(super) fn decode_discards(
    page: &[u8],
    index: u32,
    covered: std::ops::Range<u32>,
    mut discarded: impl FnMut(Lpn, u64),
) -> Option<()> {
    if page.get(..8)? != DISCARDS || number(page, 16)? != u64::from(index) {
        return None;
    }
    let seq = number(page, 8)?;
    for (bit, lpn) in covered.enumerate() {
        let byte = page.get(HEADER_BYTES + bit / 8)?;
        if byte >> (bit % 8) & 1 == 1 {
            discarded(Lpn(lpn), seq);
        }
    }
    Some(())
}

/// A set of pages of the volume, a bit each.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet(Vec<u64>);

impl PageSet {
    pub(super) fn new(pages: u32) -> PageSet {
        PageSet(vec![0; to_usize(pages.div_ceil(64))])
    }

    pub(super) fn has(&self, lpn: Lpn) -> bool {
        self.0.get(lpn.idx() / 64).is_some_and(|w| w >> (lpn.0 % 64) & 1 == 1)
    }

    pub(super) fn set(&mut self, lpn: Lpn, on: bool) {
        if let Some(word) = self.0.get_mut(lpn.idx() / 64) {
            let bit = 1 << (lpn.0 % 64);
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.len() as u64 * 8
    }
}
