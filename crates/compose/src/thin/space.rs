//! Free chunks of the device.

use crate::planted::ThinBug;
use frit_core::planted::is_planted;

/// Chunks of the device: a bit for each chunk, set if it is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChunkSpace {
    bits: Vec<u64>,
    free: u64,
    /// Word before which no chunk is free.
    from: usize,
    /// Chunks that no entry names any more, but that the durable table may still name.
    freed: Vec<u32>,
}

impl ChunkSpace {
    /// Creates a space of free chunks.
    pub(super) fn new(chunks: u64) -> ChunkSpace {
        let mut bits = vec![u64::MAX; chunks.div_ceil(64) as usize];
        if let Some(last) = bits.last_mut().filter(|_| !chunks.is_multiple_of(64)) {
            *last = (1 << (chunks % 64)) - 1;
        }
        ChunkSpace { bits, free: chunks, from: 0, freed: Vec::new() }
    }

    /// Returns the number of free chunks, without those that wait for a commit.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Returns the number of chunks that wait for a commit.
    pub(super) fn freed(&self) -> u64 {
        self.freed.len() as u64
    }

    /// Returns `true` if a chunk is free.
    pub(super) fn is_free(&self, chunk: u32) -> bool {
        self.bits[chunk as usize / 64] >> (chunk % 64) & 1 == 1
    }

    /// Takes the first free chunk: chunks that are written one after the other are adjacent on an
    /// empty device.
    pub(super) fn take(&mut self) -> Option<u32> {
        let word = (self.from..self.bits.len()).find(|&w| self.bits[w] != 0)?;
        self.from = word;
        let chunk = (word * 64) as u32 + self.bits[word].trailing_zeros();
        self.take_one(chunk);
        Some(chunk)
    }

    /// Takes a certain chunk. Returns `false` if it is not free.
    pub(super) fn take_one(&mut self, chunk: u32) -> bool {
        let free = self.is_free(chunk);
        if free {
            self.bits[chunk as usize / 64] &= !(1 << (chunk % 64));
            self.free -= 1;
        }
        free
    }

    /// Gives back a chunk that no entry has named.
    pub(super) fn give_back(&mut self, chunk: u32) {
        self.bits[chunk as usize / 64] |= 1 << (chunk % 64);
        self.free += 1;
        self.from = self.from.min(chunk as usize / 64);
    }

    /// Frees a chunk after the next commit.
    pub(super) fn free_later(&mut self, chunk: u32) {
        if is_planted(ThinBug::ReusedBeforeCommit) {
            return self.give_back(chunk);
        }
        self.freed.push(chunk);
    }

    /// Frees the chunks that waited for a commit.
    pub(super) fn committed(&mut self) {
        for chunk in std::mem::take(&mut self.freed) {
            self.give_back(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_chunk_is_taken_and_freed_chunks_wait_for_a_commit() {
        let mut s = ChunkSpace::new(70);
        assert_eq!((0..70).map(|_| s.take()).collect::<Option<Vec<_>>>(), Some((0..70).collect()));
        assert_eq!((s.take(), s.free()), (None, 0));
        s.free_later(66);
        s.free_later(3);
        assert_eq!((s.take(), s.freed()), (None, 2));
        s.committed();
        assert_eq!((s.free(), s.take(), s.take(), s.take()), (2, Some(3), Some(66), None));
    }
}
