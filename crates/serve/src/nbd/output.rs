//! Send buffer of a client, reused for all its replies.

use crate::resource_limits::MappedBuffer;
use std::alloc::{Layout, handle_alloc_error};
use std::time::Instant;

/// Length in bytes above which the buffer is freed once it is empty.
const KEPT: usize = 4 << 20;
/// Initial length of the buffer, in bytes.
const FIRST: usize = 4 << 10;
/// Length up to which the buffer doubles when it grows, in bytes. A larger one grows only as far as
/// needed.
const GROWTH_MAX: usize = 256 << 10;

/// Bytes to be sent to a client, in order.
#[derive(Default, Debug)]
pub struct Output {
    /// The buffer never shrinks while it is used: growing once is cheaper than zeroing the space of
    /// each reply.
    buffer: MappedBuffer,
    end: usize,
    /// For paced devices: end of each reply in the buffer, and the time before which it must not be
    /// sent.
    due: Vec<(usize, Option<Instant>)>,
}

impl Output {
    /// Returns the bytes to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    /// Returns the number of bytes to be sent.
    pub fn len(&self) -> usize {
        self.end
    }

    /// Returns `true` if there is nothing to be sent.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Returns the length of the buffer in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Removes all bytes after they were sent.
    pub fn clear(&mut self) {
        self.end = 0;
        self.due.clear();
        if self.buffer.len() > KEPT {
            self.buffer = MappedBuffer::default();
        }
    }

    /// Frees the buffer. The output must be empty.
    pub(super) fn release(&mut self) {
        debug_assert!(self.is_empty());
        self.clear();
        self.buffer = MappedBuffer::default();
    }

    /// Reserves space for exactly `n` more bytes. Returns `false` if the system has no memory.
    pub(super) fn reserve(&mut self, n: usize) -> bool {
        let len = self.end + n;
        len <= self.buffer.len() || self.buffer.resize(len, 0..self.end).is_ok()
    }

    /// Returns the replies of a paced device, with the times before which they must not be sent.
    pub fn timed(&self) -> impl Iterator<Item = (Option<Instant>, &[u8])> {
        let mut from = 0;
        self.due.iter().map(move |&(end, when)| {
            let part = &self.buffer[from..end];
            from = end;
            (when, part)
        })
    }

    /// Sets the time before which the bytes since the last mark must not be sent.
    pub(super) fn mark(&mut self, not_before: Option<Instant>) {
        if self.due.last().map_or(0, |d| d.0) < self.end {
            self.due.push((self.end, not_before));
        }
    }

    /// Appends `n` bytes of unspecified contents. The caller fills them, or removes them with
    /// `truncate`.
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
