//! The read buffer: NAND pages that were read as a whole (section 3.1).
//!
//! It models the time that a read saves. The bytes of a page come from the store in any case.

use frit_core::{Ppn, Tok};

/// A program unit in the buffer.
#[derive(Clone, Copy, Debug)]
struct BufferedUnit {
    first: Ppn,
    /// Erase count of its block: a program unit that is programmed again after an erase is another
    /// one.
    erases: u32,
    /// Token that is done when the whole program unit is in the buffer.
    filled: Tok,
}

/// The program units that were read last, the most recent one at the end.
#[derive(Clone, Debug)]
pub(super) struct ReadBuffer {
    units: Vec<BufferedUnit>,
    limit: usize,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl ReadBuffer {
    /// Creates a buffer for `limit` program units.
    pub(super) fn new(limit: u32) -> ReadBuffer {
        ReadBuffer { units: Vec::new(), limit: limit as usize, hits: 0, misses: 0 }
    }

    pub(super) fn is_there(&self) -> bool {
        self.limit > 0
    }

    /// Looks for a program unit in the buffer, and counts the look-up. Returns the token that is done
    /// when all of it is there.
    pub(super) fn hit(&mut self, first: Ppn, erases: u32) -> Option<Tok> {
        match self.units.iter().rposition(|u| u.first == first && u.erases == erases) {
            Some(at) => {
                self.units[at..].rotate_left(1);
                self.hits += 1;
                self.units.last().map(|u| u.filled)
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Adds a program unit, all of which is in the buffer when `filled` is done. The one that was not
    /// used for longest leaves the buffer.
    pub(super) fn add(&mut self, first: Ppn, erases: u32, filled: Tok) {
        if self.units.len() == self.limit {
            self.units.remove(0);
        }
        self.units.push(BufferedUnit { first, erases, filled });
    }

    pub(super) fn reset(&mut self) {
        self.units.clear();
    }
}
