//! Durability interface of HFSL: format, halt, recovery, and the medium of each extent.

use super::Hfsl;
use super::entry::PageLocation;
use super::layout::ENTRY_BYTES;
use frit_core::extents::merge_runs;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, Durable, Error, Extent, Finding, Lpn, MediumKind, Quiesce, Recovery,
    Result, SECTOR_BYTES, Sector, Sink,
};

impl Hfsl {
    fn medium_of(&self, lpn: Lpn) -> Option<MediumKind> {
        match self.map.get(lpn).place() {
            // A lost page is not reported as a hole: a copy by extents must read it and get the
            // error.
            PageLocation::Unmapped if self.is_mapped(lpn) => Some(MediumKind::Nand),
            PageLocation::Unmapped => None,
            PageLocation::Nand(_) => Some(MediumKind::Nand),
            PageLocation::Pcm(_) => Some(MediumKind::Pcm),
        }
    }
}

impl Quiesce for Hfsl {
    fn halt(&mut self, sink: &mut Sink) -> Result<()> {
        self.shut_down(sink)
    }

    fn boot(&mut self, sink: &mut Sink) -> Result<()> {
        let recovery = self.recover_from_media(sink, CrashKind::Process)?;
        match recovery.lost.first() {
            Some(lost) => Err(Error::Corrupt {
                medium: MediumKind::Pcm,
                at: u64::from(lost.lpn) * ENTRY_BYTES,
                what: format!("{} pages are lost; page {}: {}", recovery.lost.len(), lost.lpn, lost.why),
            }),
            None => Ok(()),
        }
    }
}

impl Durable for Hfsl {
    fn format(&mut self, sink: &mut Sink) -> Result<()> {
        if !self.map.each() {
            let why = "does not survive a crash or a power loss; a volume needs \"each\"";
            return Err(Error::param("map_persist", "halt", why));
        }
        self.write_usage(sink, true)?;
        sink.ack(self.map.redo_barrier);
        Ok(())
    }

    fn recover(&mut self, sink: &mut Sink, stop: CrashKind) -> Result<Recovery> {
        self.recover_from_media(sink, stop)
    }

    /// Without a map in PCM, a boot finds the discarded pages in the spare areas of NAND.
    fn keeps_discards(&self) -> bool {
        self.map.pcm.is_some()
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
        self.check_range(at.0.saturating_mul(SECTOR_BYTES), sectors.saturating_mul(SECTOR_BYTES))?;
        let page = u64::from(self.page_bytes);
        merge_runs(at.bytes()..at.bytes() + sectors * SECTOR_BYTES, each, |byte| {
            let lpn = byte / page;
            ((lpn + 1) * page, self.medium_of(Lpn(lpn as u32)))
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
