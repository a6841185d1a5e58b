//! DRAM buffer for pages read from NAND (HFSL paper, section 2.3, Fig. 2a: PCM and DRAM compose the
//! cache). It holds clean copies only, so its loss loses no data.

use super::buffer::{BufferPolicy, PcmBuffer};
use frit_core::{Cause, Error, Lpn, ReadTarget, Result, Sink, Tok, WriteData};
use frit_media::Dram;
use std::collections::HashMap;

/// Buffer of whole pages, indexed by logical page number and evicted by a buffer policy.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    pub(crate) medium: Dram,
    slots: HashMap<u32, u32>,
    owner: Vec<u32>,
    free: Vec<u32>,
    policy: PcmBuffer,
    page_bytes: u32,
    /// Reads of pages in NAND that hit the buffer.
    /// Reads of pages in NAND that missed the buffer.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

impl ReadBuffer {
    pub(crate) fn new(medium: Dram, page_bytes: u32, policy: PcmBuffer) -> Result<ReadBuffer> {
        let slots = u32::try_from(medium.bytes() / u64::from(page_bytes)).unwrap_or(u32::MAX - 1);
        if slots == 0 {
            let why = format!("the DRAM buffer has to hold at least a page of {page_bytes} bytes");
            return Err(Error::param("bytes", medium.bytes(), why));
        }
        let owner = vec![0; slots as usize];
        let mut b = ReadBuffer {
            medium,
            slots: HashMap::new(),
            owner,
            free: Vec::new(),
            policy,
            page_bytes,
            hits: 0,
            misses: 0,
        };
        b.clear();
        Ok(b)
    }

    fn clear(&mut self) {
        let n = self.owner.len() as u32;
        self.slots.clear();
        self.free = (0..n).rev().collect();
        self.policy.reset(n);
    }

    /// Drops all contents, as after a crash or a power loss.
    pub(crate) fn drop_all(&mut self) -> Result<()> {
        self.clear();
        self.medium.power_loss()
    }

    /// Reads part of a page if the buffer holds it.
    pub(crate) fn read(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        offset: u32,
        into: ReadTarget<'_>,
    ) -> Result<Option<Tok>> {
        let Some(&slot) = self.slots.get(&lpn.0) else {
            self.misses += 1;
            return Ok(None);
        };
        self.hits += 1;
        self.policy.touched(slot);
        let at = u64::from(slot) * u64::from(self.page_bytes) + u64::from(offset);
        let after = sink.start();
        self.medium.read(sink, at, into, Cause::Host, after).map(Some)
    }

    /// Keeps a copy of a page after its read. No request waits for this write.
    pub(crate) fn insert_copy(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        page: WriteData<'_>,
        read: Tok,
    ) -> Result<()> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let Some(slot) = self.policy.victim() else { return Ok(()) };
                let owner = self.owner[slot as usize];
                self.policy.removed(slot, Lpn(owner));
                self.slots.remove(&owner);
                slot
            }
        };
        self.owner[slot as usize] = lpn.0;
        self.slots.insert(lpn.0, slot);
        self.policy.admitted(slot, lpn);
        let at = u64::from(slot) * u64::from(self.page_bytes);
        self.medium.write(sink, at, page, Cause::Host, read)?;
        Ok(())
    }

    /// Drops the copy of a page, which is about to become stale.
    #[inline]
    pub(crate) fn invalidate(&mut self, lpn: Lpn) {
        if let Some(slot) = self.slots.remove(&lpn.0) {
            self.policy.removed(slot, lpn);
            self.free.push(slot);
        }
    }

    /// DRAM used by the index of the buffer, in bytes, without the pages.
    pub(crate) fn dram_bytes(&self) -> u64 {
        // Estimate: 4 bytes each for owner and free list, and a slot of the hash map.
        self.owner.len() as u64 * 32
    }
}
