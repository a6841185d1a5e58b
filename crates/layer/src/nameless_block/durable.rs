//! Durability interface, recovery, and check of the virtual blocks.

use super::layer::NamelessBlock;
use frit_core::extents::merge_runs;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Error, Extent, Finding, LostPage,
    MediumKind, NamelessDevice, Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Severity, Sink,
    WriteGuarantee,
};

impl<D: NamelessDevice> NamelessBlock<D> {
    /// Recovers the virtual blocks. A medium without contents needs no claims, so the device resumes then;
    /// otherwise it waits for its owner.
    fn recover_device(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        let mut r = self.device.recover(sink, crash)?;
        self.device.virtual_losses(&mut |block, why| {
            r.lost.push(LostPage { lpn: block, why: why.to_owned() });
        });
        if self.device.found_blocks() == 0 {
            self.device.resume(sink, &mut r)?;
        }
        Ok(r)
    }
}

impl<D: NamelessDevice> Quiesce for NamelessBlock<D> {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.device.halt(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.recover_device(sink, CrashKind::Process).map(|_| ())
    }
}

impl<D: NamelessDevice> Durable for NamelessBlock<D> {
    /// Blank NAND needs no format: it has no checkpoint and no block.
    fn format(&mut self, _: &mut Sink) -> Result<()> {
        if !self.config.device.scans() {
            let why = "does not survive a crash or a power loss; a volume needs \"scan\"";
            return Err(Error::param("recovery", "none", why));
        }
        Ok(())
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        self.recover_device(sink, crash)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: self.block_bytes,
            atomic_flush: self.device.flushes_atomically(),
        }
    }

    fn keeps_discards(&self) -> bool {
        self.config.device.scans()
    }

    /// Verifies the virtual blocks. Contents are verified by their owner, which has their addresses.
    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut counts = CheckCounts::default();
        for block in 0..self.device.virtual_blocks() {
            counts.entries += 1;
            if !self.device.virtual_written(block) {
                continue;
            }
            counts.records += 1;
            if scope.data && self.device.holds_bytes() {
                counts.pages_read += 1;
                counts.bytes_verified += u64::from(self.block_bytes);
            }
            match self.device.verify_virtual(sink, block, scope.data) {
                Err(e @ Error::Corrupt { .. }) => found(Finding {
                    layer: String::new(),
                    kind: "bad-page",
                    severity: Severity::Major,
                    lpn: Some(block),
                    medium: MediumKind::Nand,
                    at: u64::from(block),
                    what: format!("virtual block {block}: {e}"),
                    repaired: false,
                }),
                verified => verified?,
            }
        }
        Ok(counts)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let block = u64::from(self.block_bytes);
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            // A lost block is not reported as a hole: a copy by extents must read it and get the error.
            let number = frit_core::convert::bounded_u32(byte / block);
            let held = self.device.virtual_written(number);
            ((byte / block + 1) * block, held.then_some(MediumKind::Nand))
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.device.refuses()
    }

    fn refuse(&mut self, why: String) {
        self.device.refuse(why);
    }
}
