//! What came from a client and is not used yet: one buffer that is used again and again.

use super::wire::OPTION_BYTES;
use crate::guard::{Budget, Buffer, Grant};
use std::sync::Arc;

/// Bytes of the buffer that each client has in any case: the longest option fits, and so does a piece of
/// a write that finds no more memory.
const BASE: usize = (64 << 10) + OPTION_BYTES;
/// Bytes of the buffer of a client that sends much. A Unix socket holds about 200 KiB; larger buffers
/// only leave the processor's cache.
const BUSY: usize = 512 << 10;
/// The largest buffer that is kept for the next request, in bytes.
const KEPT: usize = 4 << 20;
/// Least room for a read of the socket, in bytes.
const ROOM: usize = 128 << 10;

/// Bytes from a client. Beyond a small base its memory is part of the server's budget, and grows as bytes
/// come: what a request only announces takes none.
#[derive(Debug)]
pub(super) struct Input {
    buffer: Buffer,
    grant: Grant,
    from: usize,
    to: usize,
    /// The last read filled all the room that there was.
    filled: bool,
}

impl Input {
    pub(super) fn new(budget: &Arc<Budget>) -> Input {
        Input { buffer: Buffer::default(), grant: Grant::none(budget), from: 0, to: 0, filled: false }
    }

    /// The bytes that are not used yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// `n` of them were used.
    pub(super) fn used(&mut self, n: usize) {
        self.from += n;
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Returns room to read into, towards holding `whole` bytes together. It is empty when the buffer is
    /// full and neither the budget nor the system gives more memory.
    pub(super) fn room(&mut self, whole: usize) -> &mut [u8] {
        let held = self.to - self.from;
        if held == 0 && self.buffer.len() > KEPT && whole <= BUSY {
            self.resize(BUSY);
        }
        if self.buffer.is_empty() || (self.filled && self.buffer.len() < BUSY) {
            let len = if self.buffer.is_empty() { BASE } else { BUSY };
            self.resize(len);
        }
        let len = self.buffer.len();
        if whole > len && held == len {
            // Twice what came, so that the bytes are moved only a few times.
            self.resize(whole.min((2 * len).max(BUSY)));
        }
        let len = self.buffer.len();
        let needed = (whole.min(len) - held.min(whole.min(len))).max(ROOM.min(len - held));
        if self.to + needed > len {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, held);
        }
        &mut self.buffer[self.to..]
    }

    /// `n` bytes were read.
    pub(super) fn came(&mut self, n: usize) {
        self.to += n;
        self.filled = self.to == self.buffer.len();
    }

    /// Gives memory back while the client is silent.
    pub(super) fn rest(&mut self) {
        if self.from == self.to {
            self.resize(0);
        }
    }

    /// Changes the buffer if it can be; the bytes that are held stay.
    fn resize(&mut self, len: usize) {
        if len > self.buffer.len() && !self.grant.resize(len.saturating_sub(BASE)) {
            return;
        }
        if self.buffer.resize(len, self.from..self.to).is_ok() {
            (self.from, self.to) = (0, self.to - self.from);
        }
        self.grant.resize(self.buffer.len().saturating_sub(BASE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_their_order_however_they_come() {
        for budget in [0, 1 << 20, 1 << 30] {
            let mut input = Input::new(&Budget::new(budget));
            let (mut next_in, mut next_out) = (0u8, 0u8);
            for round in 1..4000usize {
                let room = input.room(round * 97 % 300_000 + 1);
                let n = (round * 7919 % 90_000).min(room.len());
                for b in &mut room[..n] {
                    *b = next_in;
                    next_in = next_in.wrapping_add(1);
                }
                input.came(n);
                let n = input.bytes().len() * (round % 5) / 4;
                for b in &input.bytes()[..n] {
                    assert_eq!(*b, next_out);
                    next_out = next_out.wrapping_add(1);
                }
                input.used(n);
            }
        }
    }

    /// Fills all the room that there is, towards a whole request, until there is none.
    fn fill(input: &mut Input, whole: usize) -> usize {
        while input.bytes().len() < whole {
            let room = input.room(whole).len();
            if room == 0 {
                break;
            }
            input.came(room.min(whole - input.bytes().len()));
        }
        input.bytes().len()
    }

    #[test]
    fn a_large_request_is_held_whole_and_the_room_given_back() {
        let budget = Budget::new(64 << 20);
        let mut input = Input::new(&budget);
        let whole = (32 << 20) + 28;
        assert_eq!(input.room(whole).len(), BASE, "what is only announced takes no memory");
        assert_eq!(budget.used(), 0);
        input.came(BASE);
        assert_eq!(input.room(whole).len(), BUSY - BASE);
        assert_eq!(budget.used(), BUSY - BASE);
        assert_eq!(fill(&mut input, whole), whole);
        assert_eq!(budget.used(), whole - BASE);
        input.used(whole);
        assert_eq!(input.room(28).len(), BUSY);
        input.rest();
        assert_eq!((budget.used(), input.buffer.len()), (0, 0));
    }

    #[test]
    fn without_memory_a_client_has_its_base_and_no_more() {
        let budget = Budget::new(BUSY);
        let mut first = Input::new(&budget);
        let mut second = Input::new(&budget);
        assert_eq!(fill(&mut first, 1 << 20), BUSY);
        assert_eq!(fill(&mut second, 1 << 20), BASE);
        second.used(BASE - 100);
        assert_eq!(second.room(1 << 20).len(), BASE - 100, "it goes on with what it has");
        drop(first);
        assert_eq!(fill(&mut second, BUSY), BUSY);
    }
}
