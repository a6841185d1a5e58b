//! Discards.

use super::layer::Flashtier;
use crate::payload::zeros_on;
use crate::planted::FlashtierBug;
use crate::spans::divide_range;
use frit_core::convert::bounded_u32;
use frit_core::planted::is_planted;
use frit_core::{BlockDevice, CacheDevice, Cause, DurabilityPoint, Result, Sink};

impl<C: CacheDevice, D: BlockDevice + ?Sized> Flashtier<C, D> {
    /// Makes a range read as zeros. Parts of blocks are overwritten. Whole blocks leave the cache: clean
    /// ones before the disk changes, dirty ones once the zeros are durable there.
    pub(super) fn discard_range(&mut self, sink: &mut Sink, at: u64, bytes: u64) -> Result<()> {
        let divided = divide_range(at, bytes, u64::from(self.page));
        for part in divided.parts {
            self.write_zeros(sink, part.start, bounded_u32(part.end - part.start))?;
        }
        if divided.whole.is_empty() {
            return Ok(());
        }
        self.drop_blocks(sink, divided.whole.start, divided.whole.end)
    }

    /// Overwrites a part of a block with zeros.
    fn write_zeros(&mut self, sink: &mut Sink, at: u64, bytes: u32) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.write_range(sink, at, zeros_on(self.ssc.holds_bytes(), bytes))
    }

    /// Zeros whole blocks on the disk, and removes them from the cache.
    fn drop_blocks(&mut self, sink: &mut Sink, at: u64, end: u64) -> Result<()> {
        let (first, last) = (self.block_of(at), self.block_of(end - 1));
        let start = sink.start();
        let mut after = self.ready;
        // Also blocks that are not present: the device may have dropped them in memory only.
        let mut next = first;
        let dirty: Vec<u32> = self.dirty.range(first..=last).collect();
        let survives = self.ssc.durable_at() == DurabilityPoint::OnAck;
        if survives && !dirty.is_empty() && !is_planted(FlashtierBug::ZeroedEarly) {
            // A power loss can tear the zeros, and an older clean version must not survive it.
            after = self.ssc.flush(sink, after)?;
        }
        for border in dirty.into_iter().chain([last + 1]) {
            if next < border {
                let evicted = self.ssc.evict(sink, next..border, start)?;
                after = sink.join(after, evicted);
            }
            next = border + 1;
        }
        let zeroed = self.disk.zero(sink, at, end - at, Cause::Host, after)?;
        let flushed = self.flush_disk(sink, zeroed)?;
        let evicted = self.ssc.evict(sink, first..last + 1, flushed)?;
        for block in self.dirty.range(first..=last).collect::<Vec<_>>() {
            self.dirty.remove(block);
            self.set_aside.remove(&block);
        }
        let done = sink.join(flushed, evicted);
        sink.ack(done);
        Ok(())
    }
}
