//! The cached pages, in the order of their last use.

use frit_core::SECTOR_BYTES;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Bits of sectors of a page.
pub(super) type Sectors = u128;

/// Bits of the sectors of a range of bytes of a page.
pub(super) fn sectors(range: &Range<u64>) -> Sectors {
    let below = |bytes: u64| {
        let n = bytes / SECTOR_BYTES;
        if n >= u64::from(Sectors::BITS) { Sectors::MAX } else { (1 << n) - 1 }
    };
    below(range.end) & !below(range.start)
}

/// Bytes of some sectors.
pub(super) fn bytes_of(sectors: Sectors) -> u64 {
    u64::from(sectors.count_ones()) * SECTOR_BYTES
}

/// Least range of bytes of a page that has all these sectors, of which there are some.
pub(super) fn range_of(sectors: Sectors) -> Range<u64> {
    let first = u64::from(sectors.trailing_zeros());
    let end = u64::from(Sectors::BITS - sectors.leading_zeros());
    first * SECTOR_BYTES..end * SECTOR_BYTES
}

/// A cached page.
#[derive(Clone, Default, Debug)]
pub(super) struct CachedPage {
    /// Sectors that the cache has.
    pub(super) present: Sectors,
    /// Sectors that were not written to the device yet.
    pub(super) dirty: Sectors,
    /// Number of the last write to the page.
    pub(super) version: u64,
    /// Contents, if the stack holds bytes.
    pub(super) bytes: Option<Box<[u8]>>,
    /// Number of its last use.
    used: u64,
}

impl CachedPage {
    /// Copies sectors in.
    pub(super) fn put(&mut self, sectors: Sectors, page_bytes: u64, at: u64, data: Option<&[u8]>) {
        self.present |= sectors;
        if let Some(data) = data {
            let at = at as usize;
            self.bytes_mut(page_bytes)[at..at + data.len()].copy_from_slice(data);
        }
    }

    /// Adds those sectors of an older state of the page that are not present. Returns them.
    pub(super) fn complete_from(&mut self, older: &CachedPage, page_bytes: u64) -> Sectors {
        let added = older.present & !self.present;
        if older.bytes.is_some() {
            older.copy_out(added, 0, self.bytes_mut(page_bytes));
        }
        self.present |= added;
        added
    }

    fn bytes_mut(&mut self, page_bytes: u64) -> &mut [u8] {
        self.bytes.get_or_insert_with(|| vec![0; page_bytes as usize].into())
    }

    /// Copies those of these sectors out to `into`, which begins at byte `from` of the page.
    pub(super) fn copy_out(&self, sectors: Sectors, from: u64, into: &mut [u8]) {
        let Some(page) = &self.bytes else { return };
        for (i, sector) in into.chunks_exact_mut(SECTOR_BYTES as usize).enumerate() {
            let at = from + i as u64 * SECTOR_BYTES;
            if sectors >> (at / SECTOR_BYTES) & 1 == 1 {
                sector.copy_from_slice(&page[at as usize..][..SECTOR_BYTES as usize]);
            }
        }
    }
}

/// The cached pages.
#[derive(Debug)]
pub(super) struct CachedPages {
    limit: usize,
    pages: HashMap<u64, CachedPage>,
    /// Pages by the number of their last use.
    order: BTreeMap<u64, u64>,
    uses: u64,
}

impl CachedPages {
    /// Creates a cache of at most `limit` pages.
    pub(super) fn new(limit: u64) -> CachedPages {
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        CachedPages { limit, pages: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.pages.clear();
        self.order.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.pages.len() >= self.limit
    }

    pub(super) fn get(&self, page: u64) -> Option<&CachedPage> {
        self.pages.get(&page)
    }

    pub(super) fn get_mut(&mut self, page: u64) -> Option<&mut CachedPage> {
        self.pages.get_mut(&page)
    }

    /// Notes a use of a page, and returns it if it is cached.
    pub(super) fn touch(&mut self, page: u64) -> Option<&mut CachedPage> {
        let cached = self.pages.get_mut(&page)?;
        self.uses += 1;
        self.order.remove(&cached.used);
        cached.used = self.uses;
        self.order.insert(self.uses, page);
        Some(cached)
    }

    /// Adds a page as the one that was used last, in the place of an earlier state of it.
    pub(super) fn insert(&mut self, page: u64, mut cached: CachedPage) -> &mut CachedPage {
        self.remove(page);
        self.uses += 1;
        cached.used = self.uses;
        self.order.insert(self.uses, page);
        self.pages.entry(page).or_insert(cached)
    }

    /// Returns a page, which is added as the one that was used last if it is not cached.
    pub(super) fn get_or_insert(&mut self, page: u64) -> &mut CachedPage {
        if !self.pages.contains_key(&page) {
            self.insert(page, CachedPage::default());
        }
        self.pages.entry(page).or_default()
    }

    pub(super) fn remove(&mut self, page: u64) -> Option<CachedPage> {
        let cached = self.pages.remove(&page)?;
        self.order.remove(&cached.used);
        Some(cached)
    }

    /// Removes the page that was not used for the longest time.
    pub(super) fn evict(&mut self) -> Option<(u64, CachedPage)> {
        let (_, page) = self.order.pop_first()?;
        Some((page, self.pages.remove(&page)?))
    }

    /// Returns the dirty pages, in the order of their addresses.
    pub(super) fn dirty(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.pages.iter().filter(|(_, p)| p.dirty != 0).map(|(&at, _)| at).collect();
        all.sort_unstable();
        all
    }

    /// Returns the pages within a range, in the order of their addresses.
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<u64> {
        let mut all: Vec<u64> = self.pages.keys().copied().filter(|page| range.contains(page)).collect();
        all.sort_unstable();
        all
    }

    /// Bytes that were not written to the device yet.
    pub(super) fn dirty_bytes(&self) -> u64 {
        self.pages.values().map(|p| bytes_of(p.dirty)).sum()
    }
}
