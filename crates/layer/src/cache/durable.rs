//! Durability interface of the cache: format, halt, recovery, guarantees, and the medium of each
//! extent.

use super::config::CacheMode;
use super::directory::BUCKET_BLOCKS;
use super::layer::Cache;
use super::{BLOCK_BYTES, BLOCK_LEN};
use crate::numbers::Lbn;
use frit_core::convert::bounded_u32;
use frit_core::extents::merge_runs;
use frit_core::{
    BlockDevice, CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Extent, Finding, MediumKind,
    Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Sink, WriteGuarantee,
};

impl<D: BlockDevice + ?Sized> Quiesce for Cache<D> {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        self.shut_down(sink)?;
        self.disk.halt(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.disk.boot(sink)?;
        self.recover_blocks(sink, CrashKind::Process).map(|_| ())
    }
}

impl<D: BlockDevice + ?Sized> Durable for Cache<D> {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.disk.format(sink)?;
        self.write_head(sink)
    }

    fn recover(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<Recovery> {
        // The cache accepts requests only after the layers below it have recovered.
        let below = self.disk.recover(sink, stop)?;
        let mut own = self.recover_blocks(sink, stop)?;
        own.clean &= below.iter().all(|b| b.recovery.clean);
        own.below.extend(below);
        Ok(own)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        if self.config.bypasses() {
            // Not the guarantee of the disk itself: a write that bypasses the cache in part is made of several.
            return WriteGuarantee {
                durable_at: DurabilityPoint::OnFlush,
                atomic_bytes: bounded_u32(SECTOR_BYTES),
                ..WriteGuarantee::default()
            };
        }
        // Over files, a write-through block can reach the disk in part before the PCM is synced.
        let torn = self.config.mode == CacheMode::WriteThrough && self.space.volatile();
        let atomic_bytes = if torn { bounded_u32(SECTOR_BYTES) } else { BLOCK_LEN };
        WriteGuarantee { atomic_bytes, ..WriteGuarantee::default() }
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let below = self.disk.check(sink, scope, found)?;
        Ok(self.run_check(sink, scope, found)? + below)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            let block = Lbn::at_byte(byte);
            let bucket = self.dir.bucket(block.bucket());
            // A bucket without cached blocks is one run.
            let run = if bucket.count == 0 { BLOCK_BYTES * u64::from(BUCKET_BLOCKS) } else { BLOCK_BYTES };
            let end = (byte / run + 1) * run;
            if self.dir.get(block).is_some() {
                return (end, Some(MediumKind::Pcm));
            }
            let (device_end, place) = self.disk.place(byte);
            // A block whose record may be missing is no hole: a read of it returns an error.
            let place = place.or(self.health.has_missing().then_some(MediumKind::Disk));
            (end.min(device_end), place)
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        // A disk that refuses writes is a disk that fails: dirty blocks stay in PCM.
        self.health.refusal().map(str::to_owned)
    }

    fn refuse(&mut self, why: String) {
        self.disk.refuse(&why);
        self.health.refuse(why);
    }
}
