//! Bytes of a file: written pages, and holes.

use frit_fs::{Error, FileExtent, Result, Seek};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;
const PAGE64: u64 = PAGE as u64;

/// Pages by number. Copies of the model share them until one copy changes them. Bytes beyond the
/// size are zeros.
#[derive(Clone, Default, Debug)]
pub(super) struct Contents {
    pub(super) size: u64,
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

/// Splits a range at page boundaries into parts: page number, first byte within it, length.
fn parts(at: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = at;
    std::iter::from_fn(move || {
        let first = (at % PAGE64) as usize;
        let len = (PAGE - first).min(usize::try_from(end.checked_sub(at)?).unwrap_or(PAGE));
        let part = (at / PAGE64, first, len);
        at += len as u64;
        (len > 0).then_some(part)
    })
}

impl Contents {
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let end = at.saturating_add(into.len() as u64).min(self.size);
        let mut done = 0;
        for (page, first, len) in parts(at, end) {
            match self.pages.get(&page) {
                Some(p) => into[done..done + len].copy_from_slice(&p[first..first + len]),
                None => into[done..done + len].fill(0),
            }
            done += len;
        }
        done
    }

    /// Writes a range that does not end beyond [`FILE_MAX`](frit_fs::FILE_MAX).
    pub(super) fn write(&mut self, at: u64, data: &[u8]) {
        let end = at + data.len() as u64;
        let mut done = 0;
        for (page, first, len) in parts(at, end) {
            let page = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[first..first + len].copy_from_slice(&data[done..done + len]);
            done += len;
        }
        self.size = self.size.max(end);
    }

    /// Sets a range to zeros; whole pages become holes.
    pub(super) fn zero(&mut self, at: u64, end: u64) {
        let touched: Vec<u64> = if at < end {
            self.pages.range(at / PAGE64..end.div_ceil(PAGE64)).map(|(&p, _)| p).collect()
        } else {
            Vec::new()
        };
        for page in touched {
            let start = page * PAGE64;
            let from = at.max(start) - start;
            let to = end.min(start + PAGE64) - start;
            if (from, to) == (0, PAGE64) {
                self.pages.remove(&page);
            } else if let Some(p) = self.pages.get_mut(&page) {
                Arc::make_mut(p)[from as usize..to as usize].fill(0);
            }
        }
    }

    pub(super) fn resize(&mut self, size: u64) {
        // Bytes beyond the size must be zeros, also within the last page.
        if size < self.size {
            self.zero(size, self.size.next_multiple_of(PAGE64));
        }
        self.size = size;
    }

    pub(super) fn seek(&self, what: Seek, at: u64) -> Result<u64> {
        if at >= self.size {
            return Err(Error::BeyondEnd);
        }
        match what {
            Seek::Data => {
                let (&page, _) = self.pages.range(at / PAGE64..).next().ok_or(Error::BeyondEnd)?;
                Ok(at.max(page * PAGE64))
            }
            Seek::Hole => {
                let mut page = at / PAGE64;
                while self.pages.contains_key(&page) {
                    page += 1;
                }
                Ok(at.max(page * PAGE64).min(self.size))
            }
        }
    }

    pub(super) fn byte(&self, at: u64) -> u8 {
        self.pages.get(&(at / PAGE64)).map_or(0, |p| p[(at % PAGE64) as usize])
    }

    /// Returns the position of the first byte from `at` on that is not zero.
    pub(super) fn first_nonzero(&self, at: u64) -> Option<u64> {
        self.pages.range(at / PAGE64..).find_map(|(&page, bytes)| {
            let start = page * PAGE64;
            let first = at.max(start);
            let i = bytes[(first - start) as usize..].iter().position(|&b| b != 0)?;
            Some(first + i as u64)
        })
    }

    /// Returns the written pages as extents. The model has no medium, so positions on it equal
    /// those in the file.
    pub(super) fn pieces(&self, at: u64) -> Vec<FileExtent> {
        let place =
            |(&page, _)| FileExtent { at: page * PAGE64, len: PAGE64, medium: page * PAGE64, written: true };
        self.pages.range(at / PAGE64..).map(place).collect()
    }

    pub(super) fn sectors(&self) -> u64 {
        self.pages.len() as u64 * (PAGE64 / 512)
    }
}
