//! Receive buffer of a client, reused for all its requests.

use super::wire::OPTION_BYTES;
use crate::resource_limits::{Grant, MappedBuffer, Share};

/// Buffer length that each client may use in any case, in bytes. It holds the longest option, or a
/// piece of a write for which no more memory is available.
const BASE: usize = (64 << 10) + OPTION_BYTES;
/// Buffer length of a busy client, in bytes. A Unix socket holds about 200 KiB; larger buffers only
/// exceed the processor's cache.
const BUSY: usize = 512 << 10;
/// Maximum length of a buffer that is kept for the next request, in bytes.
const KEPT: usize = 4 << 20;
/// Minimum free space for a read from the socket, in bytes.
const READ_SPACE_MIN: usize = 128 << 10;

/// Received bytes that are not consumed yet. Memory beyond a small base belongs to the shared
/// budget. It grows as bytes arrive, so that a request header alone takes none.
#[derive(Debug)]
pub(super) struct ReceiveBuffer {
    buffer: MappedBuffer,
    grant: Grant,
    from: usize,
    to: usize,
    /// The last read filled all free space.
    filled: bool,
}

impl ReceiveBuffer {
    pub(super) fn new(share: &Share) -> ReceiveBuffer {
        ReceiveBuffer {
            buffer: MappedBuffer::default(),
            grant: Grant::none(share),
            from: 0,
            to: 0,
            filled: false,
        }
    }

    /// Returns the bytes that are not consumed yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Removes the first `n` bytes, which were consumed.
    pub(super) fn consume(&mut self, n: usize) {
        self.from += n;
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Returns free space to read into, towards a total of `whole` bytes. It is empty if the buffer
    /// is full and neither the budget nor the system has more memory.
    pub(super) fn free_space(&mut self, whole: usize) -> &mut [u8] {
        let held = self.to - self.from;
        // A buffer that a very large request has needed is not kept.
        if held == 0 && self.buffer.len() > KEPT && whole <= BUSY {
            self.resize(BUSY);
        }
        if self.buffer.is_empty() || (self.filled && self.buffer.len() < BUSY) {
            let len = if self.buffer.is_empty() { BASE } else { BUSY };
            self.resize(len);
        }
        let len = self.buffer.len();
        if whole > len && held == len {
            // Doubling bounds the number of times that the received bytes are copied.
            self.resize(whole.min((2 * len).max(BUSY)));
        }
        let len = self.buffer.len();
        let needed = (whole.min(len) - held.min(whole.min(len))).max(READ_SPACE_MIN.min(len - held));
        // The bytes are moved only if the space behind them is too small, since moving costs a
        // copy.
        if self.to + needed > len {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, held);
        }
        &mut self.buffer[self.to..]
    }

    /// Appends the `n` bytes that were read into the free space.
    pub(super) fn commit(&mut self, n: usize) {
        self.to += n;
        self.filled = self.to == self.buffer.len();
    }

    /// Frees the buffer of an idle client, if it is empty.
    pub(super) fn release(&mut self) {
        if self.from == self.to {
            self.resize(0);
        }
    }

    /// Changes the length of the buffer if memory is available. The bytes in it are kept.
    fn resize(&mut self, len: usize) {
        if len > self.buffer.len() && !self.grant.resize(len.saturating_sub(BASE)) {
            return;
        }
        if self.buffer.resize(len, self.from..self.to).is_ok() {
            (self.from, self.to) = (0, self.to - self.from);
        }
        // If the system has no memory, the buffer keeps its length, and the grant must follow it.
        self.grant.resize(self.buffer.len().saturating_sub(BASE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_limits::{Budget, Peer};

    const ROOT: Peer = Peer::User(0);

    #[test]
    fn bytes_keep_their_order_however_they_come() {
        for budget in [0, 1 << 20, 1 << 30] {
            let mut input = ReceiveBuffer::new(&Budget::new(budget, 0).share(ROOT));
            let (mut next_in, mut next_out) = (0u8, 0u8);
            for round in 1..4000usize {
                let free_space = input.free_space(round * 97 % 300_000 + 1);
                let n = (round * 7919 % 90_000).min(free_space.len());
                for b in &mut free_space[..n] {
                    *b = next_in;
                    next_in = next_in.wrapping_add(1);
                }
                input.commit(n);
                let n = input.bytes().len() * (round % 5) / 4;
                for b in &input.bytes()[..n] {
                    assert_eq!(*b, next_out);
                    next_out = next_out.wrapping_add(1);
                }
                input.consume(n);
            }
        }
    }

    /// Fills all free space, towards a request of `whole` bytes, until there is none. Returns the
    /// number of bytes held.
    fn fill(input: &mut ReceiveBuffer, whole: usize) -> usize {
        while input.bytes().len() < whole {
            let free_space = input.free_space(whole).len();
            if free_space == 0 {
                break;
            }
            input.commit(free_space.min(whole - input.bytes().len()));
        }
        input.bytes().len()
    }

    #[test]
    fn a_large_request_is_held_whole_and_the_room_given_back() {
        let budget = Budget::new(64 << 20, 0);
        let mut input = ReceiveBuffer::new(&budget.share(ROOT));
        let whole = (32 << 20) + 28;
        assert_eq!(input.free_space(whole).len(), BASE, "a request header alone takes no memory");
        assert_eq!(budget.used(), 0);
        input.commit(BASE);
        assert_eq!(input.free_space(whole).len(), BUSY - BASE);
        assert_eq!(budget.used(), BUSY - BASE);
        assert_eq!(fill(&mut input, whole), whole);
        assert_eq!(budget.used(), whole - BASE);
        input.consume(whole);
        assert_eq!(input.free_space(28).len(), BUSY);
        input.release();
        assert_eq!((budget.used(), input.buffer.len()), (0, 0));
    }

    #[test]
    fn without_memory_a_client_has_its_base_and_no_more() {
        let budget = Budget::new(BUSY, 0).share(ROOT);
        let mut first = ReceiveBuffer::new(&budget);
        let mut second = ReceiveBuffer::new(&budget);
        assert_eq!(fill(&mut first, 1 << 20), BUSY);
        assert_eq!(fill(&mut second, 1 << 20), BASE);
        second.consume(BASE - 100);
        assert_eq!(second.free_space(1 << 20).len(), BASE - 100, "the client continues with its base buffer");
        drop(first);
        assert_eq!(fill(&mut second, BUSY), BUSY);
    }
}
