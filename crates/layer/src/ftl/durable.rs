//! Durability interface of the FTL.

use super::layer::Ftl;
use frit_core::extents::merge_runs;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Error, Extent, Finding, Lpn, MediumKind,
    Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Sink, WriteGuarantee,
};

impl Quiesce for Ftl {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.shut_down(sink).map_err(|e| self.refuse_after(e))
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.recover_from_media(sink, CrashKind::Process).map(|_| ())
    }
}

impl Durable for Ftl {
    /// Blank NAND needs no format: a scan of it finds no page.
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
        let durable_at = if self.buffers() { DurabilityPoint::OnFlush } else { DurabilityPoint::OnAck };
        WriteGuarantee { durable_at, atomic_bytes: self.page_bytes, ..WriteGuarantee::default() }
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
        let page = u64::from(self.page_bytes);
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            let lpn = Lpn::of_u64(byte / page);
            // A lost page is not reported as a hole: a copy by extents must read it and get the
            // error.
            let held = self.map.get(lpn).is_written()
                || self.map.lost().contains_key(&lpn.0)
                || self.flash.health.has_missing();
            ((byte / page + 1) * page, held.then_some(MediumKind::Nand))
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.flash.health.refusal().map(str::to_owned)
    }

    fn refuse(&mut self, why: String) {
        self.flash.health.refuse(why);
    }
}
