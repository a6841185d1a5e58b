//! Bytes and times of external contents in memory.

use frit_fs::{ContentId, ContentMetadata, Time};
use std::collections::BTreeMap;

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

/// Bodies by ID.
pub(super) type ContentSnapshot = BTreeMap<ContentId, StoredContent>;

impl StoredContent {
    pub(super) fn look(&self) -> ContentMetadata {
        let (atime, mtime) = (Time(self.atime), Time(self.mtime));
        ContentMetadata { size: self.size, sectors: self.pages.len() as u64 * 8, atime, mtime, ctime: mtime }
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(at).min(into.len() as u64);
        for (i, byte) in into[..len as usize].iter_mut().enumerate() {
            let at = at + i as u64;
            *byte = self.pages.get(&(at / PAGE)).map_or(0, |page| page[(at % PAGE) as usize]);
        }
        len as usize
    }

    pub(super) fn write(&mut self, at: u64, data: &[u8]) {
        for (i, byte) in data.iter().enumerate() {
            let at = at + i as u64;
            let page = self.pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[(at % PAGE) as usize] = *byte;
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
