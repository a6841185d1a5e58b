//! Buffers in aligned memory, through which data of the caller is copied.

use std::sync::{Mutex, PoisonError};

/// Size of a buffer in bytes: a multiple of every block size that is accepted.
pub(super) const BOUNCE_BYTES: usize = 1 << 20;
/// Number of unused buffers that are kept.
const KEPT: usize = 16;

/// A buffer of [`BOUNCE_BYTES`] aligned bytes.
#[derive(Debug)]
pub(super) struct Bounce {
    /// Longer than the buffer by the alignment. It is never reallocated.
    memory: Vec<u8>,
    start: usize,
}

impl Bounce {
    fn new(align: usize) -> Bounce {
        let memory = vec![0; BOUNCE_BYTES + align];
        let start = (memory.as_ptr() as usize).next_multiple_of(align) - memory.as_ptr() as usize;
        Bounce { memory, start }
    }

    /// The first `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> &mut [u8] {
        &mut self.memory[self.start..self.start + len]
    }
}

/// Unused buffers. Memory that was used before needs no page faults.
#[derive(Debug)]
pub(super) struct BouncePool {
    align: usize,
    unused: Mutex<Vec<Bounce>>,
}

impl BouncePool {
    /// Creates a pool of buffers with this alignment, a power of two.
    pub(super) fn new(align: u32) -> BouncePool {
        BouncePool { align: align as usize, unused: Mutex::new(Vec::new()) }
    }

    pub(super) fn take(&self) -> Bounce {
        let unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner).pop();
        unused.unwrap_or_else(|| Bounce::new(self.align))
    }

    pub(super) fn give_back(&self, buffer: Bounce) {
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.len() < KEPT {
            unused.push(buffer);
        }
    }
}
