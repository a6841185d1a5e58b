//! Detection of sequential streams of writes, several at a time.

use frit_core::convert::to_usize;

/// A sequential stream.
#[derive(Clone, Copy, Default, Debug)]
struct WriteStream {
    /// The byte after its last write.
    next: u64,
    /// Bytes so far.
    bytes: u64,
    /// Number of the request that continued it last.
    met: u64,
}

/// The streams that were continued most recently.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    all: Vec<WriteStream>,
    requests: u64,
}

impl Streams {
    pub(crate) fn new(streams: u32) -> Streams {
        Streams { all: vec![WriteStream::default(); to_usize(streams)], requests: 0 }
    }

    /// Returns the length in bytes that the stream would have after a write.
    pub(crate) fn with(&self, at: u64, len: u64) -> u64 {
        len + self.all.iter().find(|s| s.bytes > 0 && s.next == at).map_or(0, |s| s.bytes)
    }

    /// Adds a write and returns the length in bytes of its stream, the write included. A write that
    /// continues no stream starts a new one, which replaces the least recently continued stream.
    pub(crate) fn write(&mut self, at: u64, len: u64) -> u64 {
        self.requests += 1;
        let met = self.requests;
        if let Some(s) = self.all.iter_mut().find(|s| s.bytes > 0 && s.next == at) {
            *s = WriteStream { next: at + len, bytes: s.bytes + len, met };
            return s.bytes;
        }
        if let Some(s) = self.all.iter_mut().min_by_key(|s| s.met) {
            *s = WriteStream { next: at + len, bytes: len, met };
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_apart_and_forgotten_in_turn() {
        let mut s = Streams::new(2);
        assert_eq!(s.write(0, 10), 10);
        assert_eq!(s.write(1000, 10), 10);
        assert_eq!((s.with(10, 10), s.with(11, 10)), (20, 10), "asking changes nothing");
        assert_eq!((s.write(10, 10), s.write(1010, 5)), (20, 15));
        assert_eq!(s.write(5000, 1), 1);
        assert_eq!(s.write(20, 1), 1, "its stream was the one met longest ago");
        assert_eq!(s.write(5001, 1), 2);
    }
}
