//! The update buffer: as many pages as there are chips, which are written to the log together
//! (section IV.C.1).

use frit_core::Lpn;
use frit_core::Tok;
use frit_core::convert::{to_u64, to_usize};

/// Updates that wait in DRAM.
#[derive(Clone, Debug)]
pub(super) struct UpdateBuffer {
    page: usize,
    lpns: Vec<Lpn>,
    /// Contents of the pages; empty if the store holds no bytes.
    bytes: Vec<u8>,
    limit: usize,
    /// Completion of the last write of the buffer to the log. The buffer accepts no page before.
    pub(super) ready: Tok,
}

impl UpdateBuffer {
    /// Creates a buffer for `pages` pages; 0: no buffer.
    pub(super) fn new(pages: u32, page_bytes: u32, holds: bool) -> UpdateBuffer {
        let page = to_usize(page_bytes);
        UpdateBuffer {
            page,
            lpns: Vec::with_capacity(to_usize(pages)),
            bytes: vec![0; if holds { to_usize(pages) * page } else { 0 }],
            limit: to_usize(pages),
            ready: Tok::default(),
        }
    }

    /// Returns `true` if the layer has a buffer.
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        self.limit > 0
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.lpns.len() == self.limit
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lpns.is_empty()
    }

    /// Returns the index of a page in the buffer.
    #[inline]
    pub(super) fn find(&self, lpn: Lpn) -> Option<usize> {
        self.lpns.iter().position(|&l| l == lpn)
    }

    /// Returns the buffered pages in order.
    pub(super) fn lpns(&self) -> &[Lpn] {
        &self.lpns
    }

    /// Adds a page that is not in the buffer, and returns its index. The buffer must not be full.
    pub(super) fn push(&mut self, lpn: Lpn) -> usize {
        self.lpns.push(lpn);
        self.lpns.len() - 1
    }

    /// Returns the contents of a page, if bytes are held.
    pub(super) fn bytes(&self, i: usize) -> Option<&[u8]> {
        self.bytes.get(i * self.page..(i + 1) * self.page)
    }

    /// Returns the contents of a page for changes, if bytes are held.
    pub(super) fn bytes_mut(&mut self, i: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(i * self.page..(i + 1) * self.page)
    }

    /// Removes a page.
    pub(super) fn remove(&mut self, i: usize) {
        let last = self.lpns.len() - 1;
        self.lpns.swap_remove(i);
        if i < last && !self.bytes.is_empty() {
            self.bytes.copy_within(last * self.page..(last + 1) * self.page, i * self.page);
        }
    }

    pub(super) fn clear(&mut self) {
        self.lpns.clear();
    }

    /// Returns the DRAM used, in bytes.
    pub(super) fn dram_bytes(&self) -> u64 {
        to_u64(self.limit * (self.page + size_of::<Lpn>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_leaves_the_rest() {
        let mut b: UpdateBuffer = UpdateBuffer::new(3, 512, true);
        for lpn in [5_u8, 6, 7] {
            let i = b.push(Lpn(lpn.into()));
            b.bytes_mut(i).unwrap().fill(lpn);
        }
        assert!(b.is_full());
        b.remove(0);
        for lpn in [6_u8, 7] {
            let i = b.find(Lpn(lpn.into())).unwrap();
            assert!(b.bytes(i).unwrap().iter().all(|&x| x == lpn));
        }
        assert_eq!((b.find(Lpn(5)), b.lpns().len()), (None, 2));
        b.remove(1);
        b.clear();
        assert!(b.is_empty());
    }
}
