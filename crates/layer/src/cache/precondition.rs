//! Preconditioned caches: full of dirty blocks at random addresses.

use super::BLOCK_BYTES;
use super::layer::Cache;
use super::policy::EvictionPolicy;
use crate::numbers::Lbn;
use crate::record::Record;
use frit_core::convert::{floor_u32, size_in_memory};
use frit_core::{BlockDevice, Error, Precondition, Preconditioning, Result, split_mix};
use frit_media::checksum::digest;

impl<D: BlockDevice + ?Sized> Preconditioning for Cache<D> {
    /// Brings the cache into a stationary state. `Fill` changes nothing in the cache: the disk counts as filled.
    /// `Steady` fills the cache up to its threshold with dirty blocks at random addresses.
    fn precondition(&mut self, how: Precondition) -> Result<()> {
        self.disk.precondition(how)?;
        let Precondition::Steady { seed } = how else { return Ok(()) };
        if !self.dir.is_empty() || self.space.seq > 0 {
            return Err(Error::param("precondition", "steady", "the volume is not new"));
        }
        let slots = floor_u32(f64::from(self.dir.capacity()) * self.config.threshold);
        let blocks = u64::from(self.dir.disk_blocks());
        let zeros = digest(&[0; size_in_memory(BLOCK_BYTES)]);
        let mut state = seed;
        // At most half of the disk, so that random choices find uncached blocks soon.
        let most = slots.min(self.dir.disk_blocks() / 2);
        while self.dir.len() < most {
            let hash = u128::from(split_mix::next(&mut state));
            // The upper half of the product is below `blocks`.
            let lbn = Lbn(((hash * u128::from(blocks)) >> 64) as u32);
            if self.dir.get(lbn).is_some() {
                continue;
            }
            let Some(slot) = self.dir.alloc() else { break };
            self.space.seq += 1;
            if self.stores_bytes() {
                let record = Record { lbn: lbn.0, valid: 0xFF, seq: self.space.seq, digest: zeros };
                for place in self.space.layout.places(slot) {
                    self.space.pcm.preset(self.space.layout.record(place), &record.bytes(place))?;
                }
            }
            self.dir.insert(lbn, slot, 0xFF, true);
            self.tick();
            let access = self.access(lbn, true);
            self.policy.insert(slot, &access);
            self.dir.touch(lbn, self.clock);
        }
        Ok(())
    }
}
