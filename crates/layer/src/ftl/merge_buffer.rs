//! The merge buffer: writes are collected until they fill a program unit (section 3.1).

use frit_core::convert::{count_u32, to_u64, to_usize};
use frit_core::{Lpn, PAGE_NONE, Sink, Tok};

/// Number of parts of a page whose contents the buffer tracks.
const PARTS: u32 = u64::BITS;

/// Bits of the parts from `from` up to `to`, exclusive.
fn parts(from: u32, to: u32) -> u64 {
    let below = |n: u32| 1u64.checked_shl(n).map_or(u64::MAX, |bit| bit - 1);
    below(to) & !below(from)
}

/// State of a page that waits.
#[derive(Clone, Copy, Debug)]
struct BufferedPage {
    /// Parts that were written since the page is in the buffer, one bit each.
    written: u64,
    /// Token that is done when the other parts were read.
    read: Tok,
}

/// Pages of one program unit that wait in DRAM, and the memory of the program units that are being
/// programmed.
#[derive(Debug)]
pub(crate) struct MergeBuffer {
    page: usize,
    /// Logical pages of the program unit that is being filled.
    lpns: Vec<u32>,
    /// State of these pages. Padding has none.
    pages: Vec<BufferedPage>,
    /// Contents of the program unit. Empty if the store holds no bytes.
    bytes: Vec<u8>,
    /// Pages of a program unit.
    limit: usize,
    /// For each program unit that has memory, the token of its last program: its memory is free
    /// afterwards.
    free: Vec<Tok>,
    turn: usize,
    /// Token that is done when the old contents of partly written pages are read.
    pub(crate) read: Tok,
    /// NAND unit of the last of these reads.
    pub(super) read_unit: Option<u32>,
}

impl MergeBuffer {
    /// Creates a buffer with memory for `units` program units of `limit` pages.
    pub(crate) fn new(units: u32, limit: u32, page_bytes: u32, holds: bool) -> MergeBuffer {
        let (limit, page) = (to_usize(limit), to_usize(page_bytes));
        MergeBuffer {
            page,
            lpns: Vec::with_capacity(limit),
            pages: Vec::with_capacity(limit),
            bytes: vec![0; if holds { limit * page } else { 0 }],
            limit,
            free: vec![Tok::default(); to_usize(units.max(1))],
            turn: 0,
            read: Tok::default(),
            read_unit: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lpns.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lpns.len() == self.limit
    }

    /// Number of pages that wait.
    pub(crate) fn len(&self) -> usize {
        self.lpns.len()
    }

    /// Returns the position of a page that waits.
    pub(crate) fn find(&self, lpn: Lpn) -> Option<usize> {
        self.lpns.iter().position(|&l| l == lpn.0)
    }

    /// Logical pages by position.
    pub(crate) fn lpns(&self) -> &[u32] {
        &self.lpns
    }

    /// Adds a page, and returns its position. The buffer must not be full.
    pub(crate) fn push(&mut self, lpn: Lpn) -> usize {
        self.lpns.push(lpn.0);
        self.pages.push(BufferedPage { written: 0, read: Tok::default() });
        self.lpns.len() - 1
    }

    /// Notes that bytes of a page were written.
    pub(super) fn note_written(&mut self, i: usize, offset: u32, len: u32) {
        let part = self.part_bytes();
        self.pages[i].written |= parts(offset.div_ceil(part), (offset + len) / part);
    }

    /// Notes that the old contents of a page, which lie in a NAND unit, are in the buffer when `read` is
    /// done. The program waits for this.
    pub(super) fn note_read(&mut self, sink: &mut Sink, i: usize, read: Tok, unit: u32) {
        self.pages[i].read = read;
        self.read_unit = Some(unit);
        self.wait_for(sink, read);
    }

    /// Returns the token for which a read of bytes of a page waits.
    pub(super) fn readable(&self, i: usize, offset: u32, len: u32) -> Tok {
        let part = self.part_bytes();
        let needed = parts(offset / part, (offset + len).div_ceil(part));
        let page = self.pages[i];
        if needed & !page.written == 0 { Tok::default() } else { page.read }
    }

    fn part_bytes(&self) -> u32 {
        count_u32(self.page) / PARTS
    }

    /// Returns `true` if all pages that wait were written as a whole.
    pub(super) fn is_whole(&self) -> bool {
        self.pages.iter().all(|page| page.written == u64::MAX)
    }

    /// Removes a page.
    pub(crate) fn remove(&mut self, i: usize) {
        let last = self.lpns.len() - 1;
        self.lpns.swap_remove(i);
        self.pages.swap_remove(i);
        if i < last && !self.bytes.is_empty() {
            self.bytes.copy_within(last * self.page..(last + 1) * self.page, i * self.page);
        }
    }

    /// Removes the page that was added last.
    pub(crate) fn pop(&mut self) {
        self.lpns.pop();
        self.pages.pop();
    }

    /// Contents of a page, if bytes are held.
    pub(crate) fn bytes(&self, i: usize) -> Option<&[u8]> {
        self.bytes.get(i * self.page..(i + 1) * self.page)
    }

    /// Contents of a page for changes, if bytes are held.
    pub(crate) fn bytes_mut(&mut self, i: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(i * self.page..(i + 1) * self.page)
    }

    /// Contents of the whole program unit, if bytes are held.
    pub(crate) fn unit(&self) -> &[u8] {
        &self.bytes
    }

    /// Fills the rest of the program unit with padding.
    pub(crate) fn pad(&mut self) {
        let from = self.lpns.len();
        self.lpns.resize(self.limit, PAGE_NONE);
        if let Some(rest) = self.bytes.get_mut(from * self.page..) {
            rest.fill(0);
        }
    }

    /// Removes the padding again, after a failed program.
    pub(crate) fn unpad(&mut self) {
        while self.lpns.last() == Some(&PAGE_NONE) {
            self.lpns.pop();
        }
    }

    /// Token that is done when the memory of the program unit that is being filled is free.
    #[inline]
    pub(crate) fn ready(&self) -> Tok {
        self.free[self.turn]
    }

    /// Starts the next program unit, after the program of this one, which is done with `done`.
    pub(crate) fn programmed(&mut self, done: Tok) {
        self.reset_unit();
        self.free[self.turn] = done;
        self.turn = (self.turn + 1) % self.free.len();
    }

    /// Forgets the pages of the program unit that is being filled.
    pub(crate) fn reset_unit(&mut self) {
        self.lpns.clear();
        self.pages.clear();
        self.read = Tok::default();
        self.read_unit = None;
    }

    /// Forgets all pages.
    pub(crate) fn reset(&mut self) {
        self.reset_unit();
        self.free.fill(Tok::default());
    }

    /// Makes the program of the unit wait for a read.
    pub(crate) fn wait_for(&mut self, sink: &mut Sink, read: Tok) {
        self.read = sink.join(self.read, read);
    }

    /// DRAM of the buffer, in bytes: one program unit holds data, the others are being programmed.
    pub(crate) fn dram_bytes(&self) -> u64 {
        to_u64(self.free.len() * self.limit * self.page)
    }
}
