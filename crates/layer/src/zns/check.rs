//! Consistency check.

use super::layer::Zns;
use super::log::expected;
use super::read::{PagePlace, lost};
use frit_core::{
    Cause, CheckCounts, CheckScope, Error, Finding, MediumKind, ReadTarget, Result, Severity, Sink,
};
use frit_media::PageState;

impl Zns {
    /// Compares the spare areas of all written pages, and their data if `scope` asks for it.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut counts = CheckCounts::default();
        if let Some(missing) = self.health.missing_finding(0, false) {
            found(Finding { medium: MediumKind::Nand, ..missing });
        }
        for zone in 0..self.sizes.zones {
            counts.entries += 1;
            let written = self.zones[zone as usize].written;
            for page in 0..written {
                let lpn = self.sizes.lpn(zone, page);
                match self.check_page(sink, lpn, scope, &mut counts) {
                    Err(Error::Corrupt { at, what, .. }) => found(Finding {
                        layer: String::new(),
                        kind: "bad-page",
                        severity: Severity::Major,
                        lpn: Some(lpn),
                        medium: MediumKind::Nand,
                        at,
                        what: format!("page {page} of zone {zone}: {what}"),
                        repaired: false,
                    }),
                    checked => checked?,
                }
            }
        }
        Ok(counts)
    }

    fn check_page(
        &mut self,
        sink: &mut Sink,
        lpn: u32,
        scope: CheckScope,
        counts: &mut CheckCounts,
    ) -> Result<()> {
        let (ppn, spare) = match self.find(lpn) {
            PagePlace::Unwritten | PagePlace::Buffered => return Ok(()),
            PagePlace::Lost => return Err(lost(lpn)),
            PagePlace::Nand(ppn, spare) => (ppn, spare),
        };
        counts.records += 1;
        if !self.stores_bytes() {
            return Ok(());
        }
        if self.nand.page_state(ppn)? != PageState::Programmed(spare) {
            let what = format!("the spare area of physical page {} is not that of this page", ppn.0);
            return Err(Error::Corrupt { medium: MediumKind::Nand, at: u64::from(ppn.0), what });
        }
        if scope.data {
            counts.pages_read += 1;
            counts.bytes_verified += u64::from(self.sizes.page_bytes);
            let mut page = vec![0; self.sizes.page_bytes as usize];
            let into = ReadTarget::Bytes(&mut page);
            self.nand.read_expected(sink, ppn, 0, into, Some(expected(spare)), Cause::Host, self.in_use)?;
        }
        Ok(())
    }
}
