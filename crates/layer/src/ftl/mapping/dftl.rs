//! DFTL, a page map of which a part is cached (Gupta et al., "DFTL: a flash translation layer employing
//! demand-based selective caching of page-level address mappings", ASPLOS 2009, section 3).
//!
//! The map lies in NAND as translation pages, whose places a table in DRAM has (global translation
//! directory). Entries in use are in the cached mapping table, a segmented LRU: an entry enters the
//! probationary segment, and a second access moves it to the protected one. The paper states no share
//! of the segments: here each has half. A changed entry is written to its translation page when it is
//! evicted, together with all other changed entries of that page (batch update). A page that garbage
//! collection moves changes only its cached entry, if there is one (lazy copying).

use super::{MappingScheme, MappingSizes, TranslationStep};
use frit_core::Lpn;
use frit_core::convert::{count_u32, to_usize};

const NONE: u32 = u32::MAX;
/// Bytes of an entry of the cached mapping table: a logical and a physical page.
const CACHED_BYTES: u64 = 8;
/// Bytes of an entry of the global translation directory: a physical page.
const DIRECTORY_BYTES: u64 = 4;

/// Segment of the cached mapping table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Segment {
    Probationary,
    Protected,
}

/// Entry of the cached mapping table.
#[derive(Clone, Copy, Debug)]
struct CachedEntry {
    lpn: u32,
    newer: u32,
    older: u32,
    segment: Segment,
    dirty: bool,
}

/// Entries of a segment, from the most to the least recently used.
#[derive(Clone, Copy, Debug)]
struct Order {
    newest: u32,
    oldest: u32,
    len: u32,
}

const EMPTY: Order = Order { newest: NONE, oldest: NONE, len: 0 };

/// Counters of the cached mapping table.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::ftl) struct CacheStats {
    pub(in crate::ftl) hits: u64,
    pub(in crate::ftl) misses: u64,
    pub(in crate::ftl) evictions: u64,
    pub(in crate::ftl) dirty_evictions: u64,
}

/// The cached mapping table.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Dftl {
    entries: Vec<CachedEntry>,
    /// Index in `entries` by logical page.
    slot_of: Vec<u32>,
    order: [Order; 2],
    limit: u32,
    entries_per_page: u32,
    pub(in crate::ftl) stats: CacheStats,
}

impl Dftl {
    pub(super) fn new(sizes: MappingSizes) -> Dftl {
        Dftl {
            entries: Vec::new(),
            slot_of: vec![NONE; to_usize(sizes.pages)],
            order: [EMPTY; 2],
            limit: sizes.cmt_entries,
            entries_per_page: sizes.entries_per_page,
            stats: CacheStats::default(),
        }
    }

    /// Accesses the entry of a page. The accesses to translation pages that this takes are added to
    /// `steps`; [`Dftl::changed`] follows them if the access changes the entry.
    pub(in crate::ftl) fn access(&mut self, lpn: Lpn, steps: &mut Vec<TranslationStep>) {
        let slot = match self.slot_of[lpn.idx()] {
            NONE => {
                self.stats.misses += 1;
                let slot = self.free_slot(steps);
                let page = lpn.0 / self.entries_per_page;
                steps.push(TranslationStep::Load { page });
                self.slot_of[lpn.idx()] = slot;
                let segment = Segment::Probationary;
                let entry = CachedEntry { lpn: lpn.0, newer: NONE, older: NONE, segment, dirty: false };
                match self.entries.get_mut(to_usize(slot)) {
                    Some(place) => *place = entry,
                    None => self.entries.push(entry),
                }
                slot
            }
            slot => {
                self.stats.hits += 1;
                self.unlink(slot);
                self.entries[to_usize(slot)].segment = Segment::Protected;
                slot
            }
        };
        self.link(slot);
        self.demote();
    }

    /// Records that the entry of a page changed. Returns `true` if it is in the cache, otherwise its
    /// translation page has to be written.
    pub(in crate::ftl) fn changed(&mut self, lpn: Lpn) -> bool {
        let slot = self.slot_of[lpn.idx()];
        let Some(entry) = self.entries.get_mut(to_usize(slot)) else { return false };
        entry.dirty = true;
        true
    }

    /// Returns `true` if the cache has a newer version of an entry than its translation page.
    pub(in crate::ftl) fn is_dirty(&self, lpn: Lpn) -> bool {
        self.entries.get(to_usize(self.slot_of[lpn.idx()])).is_some_and(|e| e.dirty)
    }

    /// Records that a translation page was written with all its entries.
    pub(in crate::ftl) fn written(&mut self, page: u32) {
        let first = to_usize(page * self.entries_per_page);
        let end = (first + to_usize(self.entries_per_page)).min(self.slot_of.len());
        for &slot in &self.slot_of[first..end] {
            if let Some(entry) = self.entries.get_mut(to_usize(slot)) {
                entry.dirty = false;
            }
        }
    }

    /// Slot for a new entry: an unused one, or that of the least recently used entry.
    fn free_slot(&mut self, steps: &mut Vec<TranslationStep>) -> u32 {
        if count_u32(self.entries.len()) < self.limit {
            return count_u32(self.entries.len());
        }
        let probationary = self.order[Segment::Probationary as usize].oldest;
        let slot = match probationary {
            NONE => self.order[Segment::Protected as usize].oldest,
            slot => slot,
        };
        let evicted = self.entries[to_usize(slot)];
        self.stats.evictions += 1;
        self.unlink(slot);
        self.slot_of[to_usize(evicted.lpn)] = NONE;
        if evicted.dirty {
            self.stats.dirty_evictions += 1;
            steps.push(TranslationStep::WriteBack { page: evicted.lpn / self.entries_per_page });
        }
        slot
    }

    /// Moves the oldest protected entries to the probationary segment, if there are more than half of
    /// the entries.
    fn demote(&mut self) {
        while self.order[Segment::Protected as usize].len > (self.limit / 2).max(1) {
            let slot = self.order[Segment::Protected as usize].oldest;
            self.unlink(slot);
            self.entries[to_usize(slot)].segment = Segment::Probationary;
            self.link(slot);
        }
    }

    /// Makes an entry the most recently used one of its segment.
    fn link(&mut self, slot: u32) {
        let entry = &mut self.entries[to_usize(slot)];
        let order = &mut self.order[entry.segment as usize];
        (entry.newer, entry.older) = (NONE, order.newest);
        let before = std::mem::replace(&mut order.newest, slot);
        order.len += 1;
        match self.entries.get_mut(to_usize(before)) {
            Some(before) => before.newer = slot,
            None => order.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let CachedEntry { newer, older, segment, .. } = self.entries[to_usize(slot)];
        let order = &mut self.order[segment as usize];
        order.len -= 1;
        match self.entries.get_mut(to_usize(newer)) {
            Some(newer) => newer.older = older,
            None => order.newest = older,
        }
        match self.entries.get_mut(to_usize(older)) {
            Some(older) => older.newer = newer,
            None => order.oldest = newer,
        }
    }
}

impl MappingScheme for Dftl {
    fn reset(&mut self) {
        self.entries.clear();
        self.slot_of.fill(NONE);
        self.order = [EMPTY; 2];
    }

    fn table_bytes(&self) -> u64 {
        let translation_pages = count_u32(self.slot_of.len()).div_ceil(self.entries_per_page);
        u64::from(self.limit) * CACHED_BYTES + u64::from(translation_pages) * DIRECTORY_BYTES
    }
}
