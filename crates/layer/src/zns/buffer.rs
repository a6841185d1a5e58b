//! Write buffer of an open zone: a ring of program units.

use frit_core::{Sink, Tok};
use std::collections::VecDeque;

/// A write buffer. Its program units are free again once they are programmed.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    /// Bytes of the program unit that is being filled; empty if the media hold no bytes.
    pub(super) bytes: Vec<u8>,
    /// Tokens of the program units that are being programmed, the oldest first.
    in_flight: VecDeque<Tok>,
    /// Program units of the buffer.
    units: usize,
    /// Token that is done when the program unit that is being filled was free.
    pub(super) free: Tok,
    /// Token that is done when its first pages were read from the log.
    pub(super) read: Tok,
}

impl WriteBuffer {
    /// Creates a buffer. Program units of a former buffer, `in_flight`, still take its space.
    pub(super) fn new(units: u32, unit_bytes: usize, in_flight: VecDeque<Tok>) -> WriteBuffer {
        let units = units as usize;
        WriteBuffer {
            bytes: vec![0; unit_bytes],
            in_flight,
            units,
            free: Tok::default(),
            read: Tok::default(),
        }
    }

    /// Begins to fill a program unit, which needs space.
    pub(super) fn begin_unit(&mut self, sink: &mut Sink) {
        self.read = Tok::default();
        self.free = Tok::default();
        while self.in_flight.len() >= self.units {
            let Some(oldest) = self.in_flight.pop_front() else { break };
            self.free = sink.join(self.free, oldest);
        }
    }

    /// Notes that the program unit that was filled is being programmed.
    pub(super) fn programming(&mut self, done: Tok) {
        self.in_flight.push_back(done);
    }

    /// Ends the use by this zone. Returns the program units that still take space.
    pub(super) fn into_in_flight(self) -> VecDeque<Tok> {
        self.in_flight
    }
}
