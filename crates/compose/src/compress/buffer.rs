//! Chunks in DRAM.

use frit_core::Tok;

/// A chunk in DRAM.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) chunk: u32,
    /// The contents; empty in a simulation without bytes.
    pub(super) bytes: Vec<u8>,
    /// `true` if the contents are newer than those of the device.
    pub(super) dirty: bool,
    /// Sectors that the chunk may need in addition to those of its old run.
    pub(super) pledged: u64,
    /// The read that the contents wait for.
    pub(super) ready: Tok,
    /// The write of the contents to the device, which uses the memory until it is done.
    pub(super) written: Tok,
    /// Time of the last use, in uses of the buffer.
    used: u64,
}

/// Chunks in DRAM, a limited number.
#[derive(Debug)]
pub(super) struct ChunkBuffer {
    slots: Vec<Slot>,
    limit: usize,
    uses: u64,
    /// Sum of the pledged sectors.
    pub(super) pledged: u64,
}

impl ChunkBuffer {
    pub(super) fn new(limit: u32) -> ChunkBuffer {
        ChunkBuffer { slots: Vec::new(), limit: limit as usize, uses: 0, pledged: 0 }
    }

    /// Returns the index of a chunk.
    pub(super) fn find(&mut self, chunk: u32) -> Option<usize> {
        let i = self.slots.iter().position(|s| s.chunk == chunk)?;
        self.uses += 1;
        self.slots[i].used = self.uses;
        Some(i)
    }

    /// Returns `true` if a chunk is in the buffer and newer than on the device.
    pub(super) fn is_dirty(&self, chunk: u32) -> bool {
        self.slots.iter().any(|s| s.chunk == chunk && s.dirty)
    }

    pub(super) fn get(&self, i: usize) -> &Slot {
        &self.slots[i]
    }

    pub(super) fn get_mut(&mut self, i: usize) -> &mut Slot {
        &mut self.slots[i]
    }

    /// Returns the dirty chunks in ascending order.
    pub(super) fn dirty(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.slots.iter().filter(|s| s.dirty).map(|s| s.chunk).collect();
        all.sort_unstable();
        all
    }

    /// Returns the dirty chunk that was not used for the longest time, if no slot is free or clean.
    pub(super) fn to_store(&self) -> Option<u32> {
        if self.slots.len() < self.limit || self.slots.iter().any(|s| !s.dirty) {
            return None;
        }
        self.slots.iter().min_by_key(|s| s.used).map(|s| s.chunk)
    }

    /// Adds a clean chunk in place of the clean one that was not used for the longest time. Returns
    /// its index, or the contents if all slots are dirty.
    pub(super) fn add(&mut self, chunk: u32, bytes: Vec<u8>, ready: Tok) -> Result<usize, Vec<u8>> {
        self.uses += 1;
        let slot =
            Slot { chunk, bytes, dirty: false, pledged: 0, ready, written: Tok::default(), used: self.uses };
        if self.slots.len() < self.limit {
            self.slots.push(slot);
            return Ok(self.slots.len() - 1);
        }
        match self.replaceable() {
            Some(i) => {
                self.slots[i] = slot;
                Ok(i)
            }
            None => Err(slot.bytes),
        }
    }

    /// Returns the clean slot that was not used for the longest time.
    fn replaceable(&self) -> Option<usize> {
        let clean = self.slots.iter().enumerate().filter(|(_, s)| !s.dirty);
        clean.min_by_key(|(_, s)| s.used).map(|(i, _)| i)
    }

    /// Returns what the next chunk waits for: the write of the contents whose memory it uses.
    pub(super) fn memory(&self) -> Tok {
        let full = self.slots.len() == self.limit;
        self.replaceable().filter(|_| full).map_or_else(Tok::default, |i| self.slots[i].written)
    }

    /// Marks a chunk as newer than on the device.
    pub(super) fn soil(&mut self, i: usize, pledged: u64) {
        self.slots[i].dirty = true;
        self.slots[i].pledged = pledged;
        self.pledged += pledged;
    }

    /// Marks a chunk as stored, by this write.
    pub(super) fn stored(&mut self, i: usize, written: Tok) {
        self.slots[i].written = written;
        self.slots[i].dirty = false;
        self.pledged -= std::mem::take(&mut self.slots[i].pledged);
    }

    /// Removes a chunk.
    pub(super) fn remove(&mut self, chunk: u32) {
        if let Some(i) = self.slots.iter().position(|s| s.chunk == chunk) {
            self.pledged -= self.slots.swap_remove(i).pledged;
        }
    }

    /// Removes all chunks.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.pledged = 0;
    }
}
