//! Durability interface of NTL: format, recovery, guarantees, checks.

use super::layer::Ntl;
use super::mapping::Mapping;
use super::page_bitmap::PageBitmap;
use crate::Token;
use crate::record::{Record, RecordAddr};
use frit_core::{
    CheckCounts, CheckScope, CrashKind, DurabilityPoint, Durable, Error, Extent, Finding, MediumKind,
    Precondition, Preconditioning, Quiesce, Recovery, Result, SECTOR_BYTES, Sector, Severity, Sink,
    WriteGuarantee,
};
use frit_media::Store;
use frit_media::checksum::digest;

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
        let mut checked = CheckCounts::default();
        if !self.space.protected {
            return Ok(checked);
        }
        if let Some(what) = self.missing.clone() {
            let repaired = scope.repair && scope.older;
            if repaired {
                self.accept_missing(sink)?;
            }
            let (medium, at) = (MediumKind::Pcm, self.space.layout.record(0, 0));
            let (kind, severity) = ("missing-records", Severity::Major);
            found(Finding { kind, severity, lpn: None, medium, at, what, repaired });
        }
        let mut next = 0;
        while let Some(lpn) = self.used.next(next) {
            next = lpn + 1;
            let Some(place) = self.place_of(lpn) else { continue };
            checked.records += 1;
            if self.live.has(lpn) {
                checked.entries += 1;
                // A page that waits in DRAM has no newest version in memory yet.
                if self.buffer.find(lpn).is_none() {
                    self.check_page(sink, (lpn, place), scope, &mut checked, found)?;
                }
            } else {
                self.check_discarded(sink, (lpn, place), scope, found)?;
            }
        }
        self.commit(sink);
        Ok(checked)
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

impl<T: Token, P: Store> Ntl<T, P> {
    fn check_page<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        (lpn, place): (u32, u32),
        scope: CheckScope,
        checked: &mut CheckCounts,
        found: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        let at = self.space.layout.data(place);
        let finding = |kind, severity, what, repaired| Finding {
            kind,
            severity,
            lpn: Some(lpn),
            medium: MediumKind::Pcm,
            at,
            what,
            repaired,
        };
        let verdict = self.space.record_state(place)?;
        let own = verdict.block.filter(|r| r.lbn == lpn);
        if own.is_some() && !verdict.agreed {
            if scope.repair {
                let start = sink.start();
                self.rewrite_record(sink, place, start)?;
            }
            let what = "a copy of the record is damaged; the other is intact".into();
            found(finding("bad-copy", Severity::Minor, what, scope.repair));
        }
        let bad = if own.is_none() {
            Some(("bad-descriptor", format!("the record is not that of page {lpn}")))
        } else if scope.data {
            checked.pages_read += 1;
            checked.bytes_verified += u64::from(self.page_bytes());
            self.space.load(place, &mut self.copy)?;
            match self.space.verify(place, lpn, &self.copy) {
                Ok(()) => None,
                Err(Error::Corrupt { what, .. }) => Some(("bad-data", what)),
                Err(e) => return Err(e),
            }
        } else {
            None
        };
        if let Some((kind, what)) = bad {
            let repaired = scope.repair && scope.older && self.restore_older(sink, lpn, place)?;
            found(finding(kind, Severity::Major, what, repaired));
        }
        Ok(())
    }

    /// Checks that the record of a discarded page notes the discard.
    fn check_discarded<S: Sink<Tok = T>>(
        &mut self,
        sink: &mut S,
        (lpn, place): (u32, u32),
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        if self.space.record_state(place)?.block.is_none_or(|r| r.lbn != lpn) {
            return Ok(());
        }
        if scope.repair {
            let start = sink.start();
            self.space.end_record(sink, place, start)?;
        }
        found(Finding {
            kind: "stale-entry",
            severity: Severity::Major,
            lpn: Some(lpn),
            medium: MediumKind::Pcm,
            at: self.space.layout.data(place),
            what: "the page was discarded, but its record does not note it".into(),
            repaired: scope.repair,
        });
        Ok(())
    }

    /// Replaces a damaged page in the log by its older version at home, if there is a valid one.
    fn restore_older<S: Sink<Tok = T>>(&mut self, sink: &mut S, lpn: u32, place: u32) -> Result<bool> {
        if !self.is_logged(lpn) {
            return Ok(false);
        }
        let Some(home) = self.mapping.home(lpn) else { return Ok(false) };
        let older = self.space.record_state(home)?.block.is_some_and(|r| r.lbn == lpn);
        self.space.load(home, &mut self.copy)?;
        if !older || self.space.verify(home, lpn, &self.copy).is_err() {
            return Ok(false);
        }
        let start = sink.start();
        self.space.wipe_record(sink, place, start)?;
        self.forget_logged(lpn);
        Ok(true)
    }
}

impl<T: Token, P: Store> Preconditioning for Ntl<T, P> {
    /// Marks every page as written once, in order. Except for the log, which starts empty, this
    /// state is also stationary.
    fn precondition(&mut self, _: Precondition) -> Result<()> {
        if self.used != PageBitmap::new(self.pages()) {
            return Err(Error::param("precondition", "fill", "the volume is not new"));
        }
        self.mapping.fill();
        let pages = self.pages();
        self.used.fill(pages, true);
        self.live.fill(pages, true);
        if P::HOLDS && self.space.protected {
            // The buffer of a new layer is zero, like its pages.
            let digest = digest(&self.copy);
            for lpn in 0..pages {
                let Some(place) = self.mapping.home(lpn) else { continue };
                self.space.seq += 1;
                let record = Record { lbn: lpn, valid: u8::MAX, seq: self.space.seq, digest };
                for copy in 0..super::layout::COPIES {
                    let bytes = record.bytes(RecordAddr { slot: place, copy });
                    self.space.pcm.preset(self.space.layout.record(place, copy), &bytes)?;
                }
            }
        }
        Ok(())
    }
}
