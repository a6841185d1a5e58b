//! Memory of the results of all instructions of an engine.

use crate::outcome::{Failure, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory of instructions in execution, and of results that nobody has read.
#[derive(Debug)]
pub(super) struct ResultMemory {
    used: AtomicU64,
    max: u64,
}

impl ResultMemory {
    pub(super) fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { used: AtomicU64::new(0), max })
    }

    /// Reserves memory for the results of an instruction.
    pub(super) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, Failure> {
        let add = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(Reservation { memory: Arc::clone(self), bytes }),
            Err(used) => Err(Failure::new(
                Status::Busy,
                format!(
                    "results of all instructions may have {} bytes, and {used} are in use: read the results of other \
                     instructions, or set \"memory\" to less than {bytes} bytes",
                    self.max
                ),
            )),
        }
    }
}

/// Memory of one instruction. Dropping it gives the memory back.
#[derive(Debug)]
pub(super) struct Reservation {
    memory: Arc<ResultMemory>,
    bytes: u64,
}

impl Reservation {
    /// Gives back what exceeds `bytes`.
    pub(super) fn shrink(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.memory.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    /// Adds memory that is in use already, also beyond the maximum.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.memory.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}
