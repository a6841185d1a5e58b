//! What came from a client and is not used yet: one buffer that is used again and again.

/// Bytes that a client's buffer has at rest. A Unix socket holds about 200 KiB; larger buffers only
/// leave the processor's cache.
const AT_REST: usize = 512 << 10;
/// Least room for a read of the socket, in bytes.
const ROOM: usize = 128 << 10;

/// Bytes from a client.
#[derive(Debug)]
pub(super) struct Input {
    buffer: Vec<u8>,
    from: usize,
    to: usize,
}

impl Input {
    pub(super) fn new() -> Input {
        Input { buffer: vec![0; AT_REST], from: 0, to: 0 }
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

    /// Room to read into, so much that `whole` bytes can be held together.
    pub(super) fn room(&mut self, whole: usize) -> &mut [u8] {
        let held = self.to - self.from;
        if held == 0 && self.buffer.len() > AT_REST && whole <= AT_REST {
            self.buffer = vec![0; AT_REST];
        }
        let needed = (whole - held.min(whole)).max(ROOM.min(self.buffer.len() - held));
        if self.to + needed > self.buffer.len() {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, held);
            if held + needed > self.buffer.len() {
                self.buffer.resize(held + needed, 0);
            }
        }
        &mut self.buffer[self.to..]
    }

    /// `n` bytes were read.
    pub(super) fn came(&mut self, n: usize) {
        self.to += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_their_order_however_they_come() {
        let mut input = Input::new();
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

    #[test]
    fn a_large_request_is_held_whole_and_the_room_given_back() {
        let mut input = Input::new();
        let whole = (32 << 20) + 28;
        input.room(whole);
        input.came(1000);
        assert!(input.room(whole).len() >= whole - 1000);
        input.used(1000);
        assert_eq!(input.room(28).len(), AT_REST);
    }
}
