//! Consistency check of records and data, and its repairs.

use super::layer::Ntl;
use super::layout::FIRST_RECORD;
use super::mapping::MappingPolicy;
use crate::numbers::Place;
use frit_core::Lpn;
use frit_core::{CheckCounts, CheckScope, Error, Finding, MediumKind, Result, Severity, Sink};

impl Ntl {
    /// Compares the records with the tables, and the data with the records.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut checked = CheckCounts::default();
        if !self.space.protected {
            return Ok(checked);
        }
        let accepted = scope.repair && scope.older;
        let records_at = self.space.layout.record(FIRST_RECORD);
        if let Some(missing) = self.health.missing_finding(records_at, accepted) {
            if accepted {
                self.accept_missing(sink)?;
            }
            found(missing);
        }
        let mut next = Lpn(0);
        while let Some(lpn) = self.used.next(next) {
            next = lpn.plus(1);
            let Some(place) = self.place_of(lpn) else { continue };
            checked.records += 1;
            if self.live.has(lpn) {
                checked.entries += 1;
                // A page that waits in DRAM has no newest version in memory yet.
                if self.buffer.find(lpn).is_none() {
                    self.check_page(sink, lpn, place, scope, &mut checked, found)?;
                }
            } else {
                self.check_discarded(sink, lpn, place, scope, found)?;
            }
        }
        self.commit(sink);
        Ok(checked)
    }

    fn check_page(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        place: Place,
        scope: CheckScope,
        checked: &mut CheckCounts,
        found: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        let at = self.space.layout.data(place);
        let finding = |kind, severity, what, repaired| Finding {
            layer: String::new(),
            kind,
            severity,
            lpn: Some(lpn.0),
            medium: MediumKind::Pcm,
            at,
            what,
            repaired,
        };
        let verdict = self.space.record_state(place)?;
        let own = verdict.block.filter(|r| r.lpn() == lpn);
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
    fn check_discarded(
        &mut self,
        sink: &mut Sink,
        lpn: Lpn,
        place: Place,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        if self.space.record_state(place)?.block.is_none_or(|r| r.lpn() != lpn) {
            return Ok(());
        }
        if scope.repair {
            let start = sink.start();
            self.space.end_record(sink, place, start)?;
        }
        found(Finding {
            layer: String::new(),
            kind: "stale-entry",
            severity: Severity::Major,
            lpn: Some(lpn.0),
            medium: MediumKind::Pcm,
            at: self.space.layout.data(place),
            what: "the page was discarded, but its record does not note it".into(),
            repaired: scope.repair,
        });
        Ok(())
    }

    /// Replaces a damaged page in the log by its older version at home, if there is a valid one.
    fn restore_older(&mut self, sink: &mut Sink, lpn: Lpn, place: Place) -> Result<bool> {
        if !self.is_logged(lpn) {
            return Ok(false);
        }
        let Some(home) = self.mapping.home(lpn) else { return Ok(false) };
        let older = self.space.record_state(home)?.block.is_some_and(|r| r.lpn() == lpn);
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
