//! The medium of metadata: virtual blocks of the device, in DRAM.

use super::device::VirtualBlock;
use crate::error::Result;
use crate::format::BLOCK;
use crate::medium::{Mapped, Medium};
use crate::planted::NamelessBug;
use frit_core::planted::is_planted;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Durability of a changed block at a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durability {
    /// The block is in use.
    Needed,
    /// The block is free. A transaction that is not committed yet may use it.
    Later,
    /// The block plays no part after a crash.
    Never,
}

/// The virtual blocks of a nameless-write device in DRAM, with the set of changed ones. Memory of the
/// system is used only for blocks that were written.
#[derive(Debug)]
pub struct VirtualBlocks {
    memory: Mapped,
    /// A bit for each block that differs from the block of the device.
    changed: Vec<AtomicU64>,
    /// A bit for each block that is not all zeros, or was not since it was loaded.
    used: Vec<AtomicU64>,
}

impl VirtualBlocks {
    /// Creates blocks of zeros.
    ///
    /// # Errors
    /// Not enough memory is available.
    pub(crate) fn new(blocks: u32) -> Result<Self> {
        let bits = || (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { memory: Mapped::anonymous(u64::from(blocks) * BLOCK)?, changed: bits(), used: bits() })
    }

    /// Sets the contents of a block to those of the device.
    pub(crate) fn load(&self, block: u32, data: &[u8]) {
        self.memory.write(u64::from(block) * BLOCK, data);
        set(&self.used, u64::from(block)..u64::from(block) + 1);
    }

    fn note(&self, at: u64, len: usize) {
        if len > 0 {
            let blocks = at / BLOCK..(at + len as u64).div_ceil(BLOCK);
            set(&self.used, blocks.clone());
            set(&self.changed, blocks);
            if is_planted(NamelessBug::FreeBlocksForgotten) {
                // On a busy machine no other thread would sync between a write and its transaction.
                std::thread::sleep(Duration::from_micros(1));
            }
        }
    }

    /// Returns the changed blocks that are [`Durability::Needed`]. No transaction is applied meanwhile.
    pub(crate) fn take_changed(&self, durability: impl Fn(u64) -> Durability) -> Vec<VirtualBlock> {
        let mut taken = Vec::new();
        for (i, word) in self.changed.iter().enumerate() {
            let mut bits = word.swap(0, Ordering::Relaxed);
            while bits != 0 {
                let block = i as u64 * 64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                match durability(block) {
                    Durability::Needed => {
                        let mut data = vec![0; BLOCK as usize].into_boxed_slice();
                        self.memory.read(block * BLOCK, &mut data);
                        taken.push((block as u32, data));
                    }
                    Durability::Later => set(&self.changed, block..block + 1),
                    Durability::Never => {}
                }
            }
        }
        taken
    }

    /// Notes again that blocks have changed.
    pub(crate) fn changed_again(&self, blocks: &[VirtualBlock]) {
        for (block, _) in blocks {
            set(&self.changed, u64::from(*block)..u64::from(*block) + 1);
        }
    }

    /// Returns the number of changed blocks.
    #[cfg(test)]
    #[cfg(not(feature = "shuttle"))]
    fn changed_blocks(&self) -> u64 {
        self.changed.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}

/// Sets the bits of a range. The write that follows is ordered by the locks of the file system.
fn set(bits: &[AtomicU64], blocks: Range<u64>) {
    for block in blocks {
        let (word, bit) = (&bits[(block / 64) as usize], 1 << (block % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

impl Medium for VirtualBlocks {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    #[inline]
    fn read(&self, at: u64, into: &mut [u8]) {
        self.memory.read(at, into);
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        self.memory.write(at, data);
        self.note(at, data.len());
    }

    #[inline]
    fn write_data(&self, at: u64, data: &[u8]) {
        self.memory.write_data(at, data);
        self.note(at, data.len());
    }

    fn zero(&self, at: u64, len: u64) {
        // Blocks that were never used are zero, and need no memory.
        let mut from = at;
        while from < at + len {
            let block = from / BLOCK;
            let to = (at + len).min((block + 1) * BLOCK);
            if self.used[(block / 64) as usize].load(Ordering::Relaxed) >> (block % 64) & 1 == 1 {
                self.memory.zero(from, to - from);
                self.note(from, (to - from) as usize);
            }
            from = to;
        }
    }

    fn fence(&self) {
        self.memory.fence();
    }

    /// Does nothing: a commit makes all blocks durable together.
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn changes_are_taken_once() {
        let blocks = VirtualBlocks::new(200).unwrap();
        blocks.zero(0, 200 * BLOCK);
        assert_eq!(blocks.changed_blocks(), 0);
        blocks.write(BLOCK - 8, &[1; 16]);
        blocks.write_data(150 * BLOCK + 5, &[2; 3]);
        blocks.load(7, &[3; BLOCK as usize]);
        blocks.zero(7 * BLOCK, 1);
        assert_eq!(blocks.changed_blocks(), 4);
        let taken = blocks.take_changed(|block| match block {
            0 => Durability::Later,
            1 => Durability::Never,
            _ => Durability::Needed,
        });
        assert_eq!(taken.iter().map(|(block, _)| *block).collect::<Vec<_>>(), [7, 150]);
        assert_eq!(taken[0].1[..2], [0, 3]);
        assert_eq!(blocks.changed_blocks(), 1);
        assert_eq!(blocks.take_changed(|_| Durability::Needed).len(), 1);
        blocks.changed_again(&taken);
        assert_eq!(blocks.take_changed(|_| Durability::Needed), taken);
    }
}
