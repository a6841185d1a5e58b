//! Bookkeeping of hazards: the links and counters that each command and each unit keeps. The rules
//! that update them are in `hazard`.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Last command of each chain, by unit and hazard; and programs that have not started, by unit and program
/// unit.
pub(super) type Chains = HashMap<u64, u32, BuildHasherDefault<FibonacciHasher>>;

/// A hash for keys that are evenly distributed except in their high bits: one multiplication
/// (Fibonacci hashing, Knuth, The Art of Computer Programming 3, section 6.4).
#[derive(Default)]
pub(super) struct FibonacciHasher(u64);

impl Hasher for FibonacciHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        let h = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = h ^ (h >> 32);
    }
}

/// Links and counters of the commands that a command must follow.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct HazardLinks {
    /// Number of the command in order of emission.
    pub(super) seq: u64,
    /// Neighbours that have not started, in the chain of its hazard. Of a read of NAND: the command that it
    /// follows, and the next read that follows this command.
    pub(super) chain_prev: u32,
    pub(super) chain_next: u32,
    /// First of the reads of NAND that follow the command.
    pub(super) readers: u32,
    /// For an erase: number of earlier reads that have not started.
    pub(super) unstarted: u32,
    /// Number of these reads that are not released.
    pub(super) unreleased: u32,
    /// For a fence: number of commands that do not read and were emitted to the unit before it.
    pub(super) entered: u64,
}

/// Counters over the commands of a unit.
#[derive(Clone, Default, Debug)]
pub(super) struct UnitHazards {
    pub(super) unstarted_reads: u32,
    pub(super) unreleased_reads: u32,
    /// Erases that have not started, in order of emission.
    pub(super) erases: Vec<u32>,
    /// Commands that do not read: number emitted, and of these released and started.
    pub(super) entered: u64,
    pub(super) released: u64,
    pub(super) started: u64,
    /// Fences that have not started, in order of emission, and how many of them are released
    /// (always the first ones).
    pub(super) fences: VecDeque<u32>,
    pub(super) fences_released: usize,
}
