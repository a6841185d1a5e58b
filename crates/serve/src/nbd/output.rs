//! Replies that wait to be sent: one buffer that is used again and again.

use std::time::Instant;

/// A buffer above this is given back once it is empty, in bytes.
const KEPT: usize = 4 << 20;

/// Bytes for a client, in order.
#[derive(Default, Debug)]
pub struct Output {
    /// As long as it ever had to be: growing it once costs less than zeroing each reply's place.
    buffer: Vec<u8>,
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
        self.buffer.capacity()
    }

    /// Forgets all: it was sent.
    pub fn clear(&mut self) {
        self.end = 0;
        self.due.clear();
        if self.buffer.len() > KEPT {
            self.buffer = Vec::new();
        }
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
        self.end += n;
        if self.buffer.len() < self.end {
            self.buffer.resize(self.end, 0);
        }
        &mut self.buffer[from..self.end]
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
