//! Durability interface of NTL: format, halt, recovery, guarantees, and the extents with data.

use super::layer::Ntl;
use frit_core::Lpn;
use frit_core::extents::merge_runs;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Extent, Finding, MediumKind, Quiesce,
    Recovery, Result, SECTOR_BYTES, Sector, Sink, WriteGuarantee,
};

impl Quiesce for Ntl {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        self.shut_down(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.recover_pages(sink, CrashKind::Process).map(|_| ())
    }
}

impl Durable for Ntl {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.config.durable()?;
        self.put_head(sink)
    }

    fn recover(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<Recovery> {
        self.recover_pages(sink, stop)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        let durable_at =
            if self.buffer.is_there() { DurabilityPoint::OnFlush } else { DurabilityPoint::OnAck };
        WriteGuarantee { durable_at, atomic_bytes: self.page_bytes(), ..WriteGuarantee::default() }
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
        let end = from + sectors * SECTOR_BYTES;
        let page = u64::from(self.page_bytes());
        merge_runs(from..end, each, |byte| {
            let lpn = Lpn::of_u64(byte / page);
            // A range without data is one run.
            let next = match self.live.next(lpn) {
                Some(l) if l == lpn => (u64::from(lpn) + 1) * page,
                Some(l) => u64::from(l) * page,
                None => end,
            };
            // A page whose record may be missing is not a hole, so that a copy by extents reads it
            // and gets the error.
            (next, (self.live.has(lpn) || self.health.has_missing()).then_some(MediumKind::Pcm))
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
