//! The map from logical to physical pages, in DRAM: 8 bytes a page.

use crate::flash::{ForwardMap, MovedPage};
use frit_core::convert::to_usize;
use frit_core::{Error, Lpn, MediumKind, Ppn, Result, Sink, Tok};
use std::collections::BTreeMap;

const MAPPED: u64 = 1 << 32;
const BUFFERED: u64 = 1 << 33;
const TAG_SHIFT: u32 = 48;

/// Entry of a page. Bits 0–31: physical page; 32: a physical page holds it; 33: the merge buffer has
/// a newer version; 48–63: low bits of the sequence number of the version in NAND.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct PageEntry(u64);

impl PageEntry {
    /// Entry of a page in NAND.
    #[inline]
    pub(super) fn in_nand(ppn: Ppn, seq: u64) -> PageEntry {
        PageEntry(u64::from(ppn.0) | MAPPED | seq << TAG_SHIFT)
    }

    /// Physical page that holds the page, if there is one.
    #[inline]
    pub(super) fn ppn(self) -> Option<Ppn> {
        (self.0 & MAPPED != 0).then_some(Ppn(self.0 as u32))
    }

    /// Returns `true` if the merge buffer has the newest version.
    #[inline]
    pub(super) fn is_buffered(self) -> bool {
        self.0 & BUFFERED != 0
    }

    /// Returns `true` if the page holds data, in NAND or in the merge buffer.
    #[inline]
    pub(super) fn is_written(self) -> bool {
        self.0 & (MAPPED | BUFFERED) != 0
    }

    /// Low bits of the sequence number of the version in NAND.
    #[inline]
    pub(super) fn tag(self) -> u16 {
        (self.0 >> TAG_SHIFT) as u16
    }

    /// Entry without a version in the merge buffer.
    pub(super) fn unbuffered(self) -> PageEntry {
        PageEntry(self.0 & !BUFFERED)
    }

    #[inline]
    pub(super) fn buffered(self) -> PageEntry {
        PageEntry(self.0 | BUFFERED)
    }
}

/// Map of the pages of a volume, and of its pages of metadata behind them.
#[derive(Debug)]
pub(super) struct PageMap {
    table: Vec<u64>,
    /// First page of metadata.
    meta: u32,
    /// Token that is done when all pages of metadata so far are programmed.
    pub(super) meta_written: Tok,
    /// Pages that garbage collection has moved, if they are recorded.
    pub(super) moves: Vec<(Lpn, Ppn)>,
    record_moves: bool,
    /// Pages whose contents are lost, with the reason. They are unmapped in the table.
    lost: BTreeMap<u32, String>,
}

impl PageMap {
    /// Creates a map of `pages` pages, and of `meta` pages of metadata behind them. `record_moves` states
    /// that moves of pages are recorded.
    pub(super) fn new(pages: u32, meta: u32, record_moves: bool) -> PageMap {
        let table = frit_media::memory::table64(to_usize(pages + meta));
        let (meta_written, lost) = (Tok::default(), BTreeMap::new());
        PageMap { table, meta: pages, meta_written, moves: Vec::new(), record_moves, lost }
    }

    /// Forgets all pages.
    pub(super) fn reset(&mut self) {
        self.table.fill(0);
        self.moves.clear();
        self.lost.clear();
        self.meta_written = Tok::default();
    }

    #[inline]
    pub(super) fn get(&self, lpn: Lpn) -> PageEntry {
        PageEntry(self.table[lpn.idx()])
    }

    /// Entry of a page; `None` past the end.
    pub(super) fn find(&self, lpn: u64) -> Option<PageEntry> {
        self.table.get(usize::try_from(lpn).ok()?).copied().map(PageEntry)
    }

    /// Changes an entry. A new version ends the loss of a page.
    #[inline]
    pub(super) fn set(&mut self, lpn: Lpn, entry: PageEntry) {
        self.table[lpn.idx()] = entry.0;
        if !self.lost.is_empty() {
            self.lost.remove(&lpn.0);
        }
    }

    /// Pages whose contents are lost.
    pub(super) fn lost(&self) -> &BTreeMap<u32, String> {
        &self.lost
    }

    /// Notes that the contents of a page are lost.
    pub(super) fn note_lost(&mut self, lpn: Lpn, why: String) {
        self.lost.insert(lpn.0, why);
    }

    /// Checks that a page that is not mapped was not lost.
    ///
    /// # Errors
    /// `Corrupt`, with the reason of the loss.
    #[inline]
    pub(super) fn check_not_lost(&self, lpn: Lpn) -> Result<()> {
        match self.lost.get(&lpn.0) {
            None => Ok(()),
            Some(why) => Err(Error::Corrupt {
                medium: MediumKind::Nand,
                at: 0,
                what: format!("logical page {} is lost: {why}", lpn.0),
            }),
        }
    }

    /// Iterates over the entries of the first `pages` pages.
    pub(super) fn entries(&self, pages: u32) -> impl Iterator<Item = (Lpn, PageEntry)> + '_ {
        (0..pages).map(Lpn).zip(self.table.iter().copied().map(PageEntry))
    }

    /// DRAM of the table, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        self.table.len() as u64 * 8
    }
}

impl ForwardMap for PageMap {
    #[inline]
    fn moved(&mut self, _: &mut Sink, page: MovedPage) -> Result<Tok> {
        let buffered = self.table[page.lpn.idx()] & BUFFERED;
        self.table[page.lpn.idx()] = PageEntry::in_nand(page.to, page.seq).0 | buffered;
        if self.record_moves {
            self.moves.push((page.lpn, page.to));
        }
        Ok(page.done)
    }

    fn prepare(&self, pages: &[u32]) {
        // Loads the entries without using them, so that their cache misses overlap.
        let entry = |&page: &u32| self.table.get(page.wrapping_sub(1) as usize).copied().unwrap_or(0);
        std::hint::black_box(pages.iter().map(entry).fold(0, |a, e| a ^ e));
    }

    fn tag(&self, lpn: Lpn) -> u16 {
        self.get(lpn).tag()
    }

    fn lost(&mut self, lpn: Lpn, why: &Error) {
        self.table[lpn.idx()] &= BUFFERED;
        if !PageEntry(self.table[lpn.idx()]).is_buffered() {
            self.lost.insert(lpn.0, why.to_string());
        }
    }

    // The order of pages of metadata is part of what they state.
    fn copy_after(&self, lpn: Lpn) -> Tok {
        if lpn.0 < self.meta { Tok::default() } else { self.meta_written }
    }

    fn retires_lost(&self) -> bool {
        true
    }

    fn keeps_versions(&self) -> bool {
        true
    }

    fn make_durable(&mut self, _: &mut Sink) -> Result<()> {
        Ok(())
    }
}
