//! Replies that wait to be sent: one buffer that is used again and again.

use crate::guard::Buffer;
use std::alloc::{Layout, handle_alloc_error};
use std::time::Instant;

/// A buffer above this is given back once it is empty, in bytes.
const KEPT: usize = 4 << 20;
/// The first buffer, in bytes.
const FIRST: usize = 4 << 10;
/// A buffer up to this length doubles when it has to grow; a larger one grows as far as needed.
const GROWTH_MAX: usize = 256 << 10;

/// Bytes for a client, in order.
#[derive(Default, Debug)]
pub struct Output {
    /// As long as it ever had to be: growing it once costs less than zeroing each reply's place.
    buffer: Buffer,
    end: usize,
    /// For paced devices: where each reply ends, and when it may go out.
    due: Vec<(usize, Option<Instant>)>,
}

impl Output {
    /// The bytes that wait.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.end
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Bytes of memory that it holds.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Forgets all: it was sent.
    pub fn clear(&mut self) {
        self.end = 0;
        self.due.clear();
        if self.buffer.len() > KEPT {
            self.buffer = Buffer::default();
        }
    }

    /// Gives all memory back; nothing may wait.
    pub(super) fn rest(&mut self) {
        debug_assert!(self.is_empty());
        self.clear();
        self.buffer = Buffer::default();
    }

    /// Makes room for `n` more bytes, and no more than that; returns `false` if the system has no memory.
    pub(super) fn reserve(&mut self, n: usize) -> bool {
        let len = self.end + n;
        len <= self.buffer.len() || self.buffer.resize(len, 0..self.end).is_ok()
    }

    /// The replies with the moments before which they may not go out; for paced devices.
    pub fn timed(&self) -> impl Iterator<Item = (Option<Instant>, &[u8])> {
        let mut from = 0;
        self.due.iter().map(move |&(end, when)| {
            let part = &self.buffer[from..end];
            from = end;
            (when, part)
        })
    }

    /// What was put since the last mark may not go out before a moment.
    pub(super) fn mark(&mut self, not_before: Option<Instant>) {
        if self.due.last().map_or(0, |d| d.0) < self.end {
            self.due.push((self.end, not_before));
        }
    }

    /// `n` bytes at the end, with whatever they hold: to be filled, or taken back with `truncate`.
    pub(super) fn space(&mut self, n: usize) -> &mut [u8] {
        let from = self.end;
        let needed = from + n;
        if self.buffer.len() < needed {
            let len = needed.max((2 * self.buffer.len()).clamp(FIRST, GROWTH_MAX));
            if self.buffer.resize(len, 0..from).is_err() {
                handle_alloc_error(Layout::new::<u8>());
            }
        }
        self.end = needed;
        &mut self.buffer[from..needed]
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.end = self.end.min(len);
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.space(bytes.len()).copy_from_slice(bytes);
    }

    pub(super) fn u16(&mut self, v: u16) {
        self.put(&v.to_be_bytes());
    }

    pub(super) fn u32(&mut self, v: u32) {
        self.put(&v.to_be_bytes());
    }

    pub(super) fn u64(&mut self, v: u64) {
        self.put(&v.to_be_bytes());
    }
}
