//! Bytes and times of external contents in memory.

use frit_fs::{ContentId, ContentMetadata, Time};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// Bytes and times of a content file.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct StoredContent {
    pub(super) size: u64,
    /// Written pages, by number.
    pub(super) pages: BTreeMap<u64, Vec<u8>>,
    pub(super) atime: i64,
    pub(super) mtime: i64,
}

/// Contents by ID.
pub(super) type ContentSnapshot = BTreeMap<ContentId, StoredContent>;

/// The part of an access that lies within one page.
struct PagePart {
    page: u64,
    /// Bytes within the page.
    within: Range<usize>,
    /// The same bytes within the buffer of the access.
    bytes: Range<usize>,
}

/// Splits an access at the borders of pages.
fn pages_of(at: u64, len: u64) -> impl Iterator<Item = PagePart> {
    let end = at + len;
    let pages = if len == 0 { 0..0 } else { at / PAGE..(end - 1) / PAGE + 1 };
    pages.map(move |page| {
        let first = page * PAGE;
        let (from, to) = (at.max(first), end.min(first + PAGE));
        PagePart {
            page,
            within: (from - first) as usize..(to - first) as usize,
            bytes: (from - at) as usize..(to - at) as usize,
        }
    })
}

impl StoredContent {
    pub(super) fn look(&self) -> ContentMetadata {
        let (atime, mtime) = (Time(self.atime), Time(self.mtime));
        ContentMetadata { size: self.size, sectors: self.pages.len() as u64 * 8, atime, mtime, ctime: mtime }
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(at).min(into.len() as u64);
        for part in pages_of(at, len) {
            let into = &mut into[part.bytes];
            match self.pages.get(&part.page) {
                Some(page) => into.copy_from_slice(&page[part.within]),
                None => into.fill(0),
            }
        }
        len as usize
    }

    pub(super) fn write(&mut self, at: u64, data: &[u8]) {
        for part in pages_of(at, data.len() as u64) {
            let page = self.pages.entry(part.page).or_insert_with(|| vec![0; PAGE as usize]);
            page[part.within].copy_from_slice(&data[part.bytes]);
        }
        self.size = self.size.max(at + data.len() as u64);
    }

    /// Sets a range to zeros, and drops the pages that lie completely within it.
    pub(super) fn zero(&mut self, at: u64, end: u64) {
        self.pages.retain(|number, page| {
            let (first, last) = (number * PAGE, (number + 1) * PAGE);
            if at <= first && last <= end {
                return false;
            }
            let (from, to) = (at.clamp(first, last), end.clamp(first, last));
            if from < to {
                page[(from - first) as usize..(to - first) as usize].fill(0);
            }
            true
        });
    }
}
