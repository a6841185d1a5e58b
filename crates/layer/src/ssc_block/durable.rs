//! Durability interface, and recovery.

use super::layer::SscBlock;
use crate::health::Health;
use frit_core::extents::merge_runs;
use frit_core::{
    CacheDevice, CheckCounts, CheckScope, CrashKind, Durable, Extent, Finding, MediumKind, Quiesce, Recovery,
    Result, SECTOR_BYTES, Sector, Sink, WriteGuarantee,
};

impl<C: CacheDevice> SscBlock<C> {
    fn recover_device(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        let recovered = self.ssc.recover(sink, crash)?;
        self.ready = recovered.ready;
        self.health = Health::default();
        sink.ack(self.ready);
        if let Some(why) = self.ssc.refuses() {
            self.health.refuse(why);
        }
        Ok(recovered.recovery)
    }
}

impl<C: CacheDevice> Quiesce for SscBlock<C> {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.health.writable()?;
        let start = sink.start();
        self.ssc.halt(sink, start).map_err(|e| self.refuse_after(e))
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        self.recover_device(sink, CrashKind::Process).map(|_| ())
    }
}

impl<C: CacheDevice> Durable for SscBlock<C> {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        self.ssc.format(sink)
    }

    fn recover(&mut self, sink: &mut Sink, crash: CrashKind) -> Result<Recovery> {
        self.recover_device(sink, crash)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        WriteGuarantee {
            durable_at: self.ssc.durable_at(),
            atomic_bytes: self.page,
            ..WriteGuarantee::default()
        }
    }

    fn keeps_discards(&self) -> bool {
        true
    }

    fn check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let counts = self.ssc.check(sink, scope, found)?;
        if scope.repair && scope.older && self.ssc.refuses().is_none() {
            self.health.accept_missing();
        }
        Ok(counts)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let from = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let page = u64::from(self.page);
        merge_runs(from..from + sectors * SECTOR_BYTES, each, |byte| {
            // A block that cannot be read is not reported as a hole: a copy by extents must read it and get
            // the error.
            let present = self.ssc.has_missing() || self.ssc.state((byte / page) as u32).is_some();
            ((byte / page + 1) * page, present.then_some(MediumKind::Nand))
        });
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.health.refusal().map(str::to_owned).or_else(|| self.ssc.refuses())
    }

    fn refuse(&mut self, why: String) {
        self.ssc.refuse(why.clone());
        self.health.refuse(why);
    }
}
