//! Durability interface of NTL: format, halt, recovery, guarantees, and the extents with data.

use super::layer::Ntl;
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Extent, Finding, MediumKind, Quiesce,
    Recovery, Result, SECTOR_BYTES, Sector, Sink, WriteGuarantee,
};
use frit_media::Store;

impl<S: Sink, P: Store> Quiesce<S> for Ntl<S::Tok, P> {
    fn halt(&mut self, sink: &mut S) -> Result<()> {
        self.writable()?;
        self.shut_down(sink)
    }

    fn boot(&mut self, sink: &mut S) -> Result<()> {
        self.recover_pages(sink, CrashKind::Process).map(|_| ())
    }
}

impl<S: Sink, P: Store> Durable<S> for Ntl<S::Tok, P> {
    fn format(&mut self, sink: &mut S) -> Result<()> {
        self.config.durable()?;
        self.put_head(sink)
    }

    fn recover(&mut self, sink: &mut S, stop: CrashKind) -> Result<Recovery> {
        self.recover_pages(sink, stop)
    }

    fn write_guarantee(&self) -> WriteGuarantee {
        let durable_at =
            if self.buffer.is_there() { DurabilityPoint::OnFlush } else { DurabilityPoint::OnAck };
        WriteGuarantee { durable_at, atomic_bytes: self.page_bytes() }
    }

    fn check(
        &mut self,
        sink: &mut S,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        self.run_check(sink, scope, found)
    }

    fn extents(&self, at: Sector, sectors: u64, each: &mut dyn FnMut(Extent)) -> Result<()> {
        let mut pos = self.check_range(at, sectors.saturating_mul(SECTOR_BYTES))?;
        let end = pos + sectors * SECTOR_BYTES;
        let page = u64::from(self.page_bytes());
        let mut last: Option<Extent> = None;
        while pos < end {
            let lpn = (pos / page) as u32;
            // A range without data is one extent.
            let next = match self.live.next(lpn) {
                Some(l) if l == lpn => (u64::from(lpn) + 1) * page,
                Some(l) => u64::from(l) * page,
                None => end,
            }
            .min(end);
            // A page whose record may be missing is not a hole, so that a copy by extents reads it
            // and gets the error.
            let place = (self.live.has(lpn) || self.missing.is_some()).then_some(MediumKind::Pcm);
            let n = (next - pos) / SECTOR_BYTES;
            last = match last {
                Some(e) if e.place == place => Some(Extent { sectors: e.sectors + n, ..e }),
                other => {
                    other.into_iter().for_each(&mut *each);
                    Some(Extent { sectors: n, place })
                }
            };
            pos = next;
        }
        last.into_iter().for_each(each);
        Ok(())
    }

    fn refuses(&self) -> Option<String> {
        self.refusal.clone()
    }

    fn refuse(&mut self, why: String) {
        self.refusal.get_or_insert(why);
    }
}
