//! Durability interface.

use super::layer::Zns;
use super::read::PagePlace;
use frit_core::convert::bounded_u32;
use frit_core::extents::merge_runs;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Error, Extent, Finding, MediumKind,
    Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Sink, WriteGuarantee,
};

impl Quiesce for Zns {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        self.flush_all(sink, true).map_err(|e| self.refuse_after(e))
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.recover_from_media(sink, CrashKind::Process).map(|_| ())
    }
}

impl Durable for Zns {
    /// Blank NAND needs no format: without a table, all zones are empty.
    fn format(&mut self, _: &mut Sink) -> Result<()> {
        if !self.config.scans() {
            let why = "does not survive a crash or a power loss; a volume needs \"scan\"";
            return Err(Error::param("recovery", "none", why));
        }
        Ok(())
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        self.recover_from_media(sink, crash)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee {
            durable_at: DurabilityPoint::OnFlush,
            atomic_bytes: self.sizes.page_bytes,
            ..WriteGuarantee::default()
        }
    }

    fn keeps_discards(&self) -> bool {
        self.config.scans()
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.run_check(sink, scope, found)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let page = u64::from(self.sizes.page_bytes);
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            // A lost page is not reported as a hole: a copy by extents must read it and get the error.
            let held =
                self.find(bounded_u32(byte / page)) != PagePlace::Unwritten || self.health.has_missing();
            ((byte / page + 1) * page, held.then_some(MediumKind::Nand))
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.health.refusal().map(str::to_owned)
    }

    fn refuse(&mut self, why: String) {
        self.health.refuse(why);
    }
}
