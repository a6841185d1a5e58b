//! Consistency check of the map, the records in spare areas, and the data.

use super::layer::Ftl;
use frit_core::{
    Cause, CheckCounts, CheckScope, Error, Finding, Lpn, MediumKind, Ppn, ReadTarget, Result, Severity, Sink,
};
use frit_media::PageState;

impl Ftl {
    /// Compares the map with the records, and with the data if the scope asks for it.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut counts = CheckCounts::default();
        let accept = scope.repair && scope.older;
        if let Some(mut missing) = self.flash.health.missing_finding(0, accept) {
            missing.medium = MediumKind::Nand;
            found(missing);
            if accept {
                self.flash.health.accept_missing();
                self.stale_below = 0;
            }
        }
        for (&lpn, why) in self.map.lost() {
            found(finding("lost", Some(lpn), 0, why.clone()));
        }
        let mut page = std::mem::take(&mut self.scratch);
        for lpn in (0..self.all_pages()).map(Lpn) {
            counts.entries += 1;
            let entry = self.map.get(lpn);
            let Some(ppn) = entry.ppn() else { continue };
            counts.records += 1;
            let checked = if scope.data && self.stores_bytes() {
                counts.pages_read += 1;
                counts.bytes_verified += u64::from(self.page_bytes);
                let into = ReadTarget::Bytes(&mut page);
                self.flash.read(sink, ppn, 0, into, entry.tag(), Cause::Meta).map(|_| ())
            } else {
                self.flash.version(ppn, lpn, entry.tag()).map(|_| ())
            };
            match checked {
                Ok(()) => {}
                Err(e @ Error::Corrupt { .. }) if lpn.0 < self.pages => {
                    found(finding("bad-page", Some(lpn.0), ppn.0, e.to_string()));
                }
                Err(e @ Error::Corrupt { .. }) => {
                    found(finding("bad-metadata", None, ppn.0, e.to_string()));
                }
                Err(e) => {
                    self.scratch = page;
                    return Err(e);
                }
            }
        }
        self.scratch = page;
        self.check_translations(sink, &mut |lpn, what| {
            found(finding("stale-translation", Some(lpn.0), 0, what));
        })?;
        self.check_newer(found, &mut counts)?;
        Ok(counts)
    }

    /// Finds versions that are newer than those that the map names.
    fn check_newer(&mut self, found: &mut dyn FnMut(Finding), counts: &mut CheckCounts) -> Result<()> {
        let g = *self.flash.nand().geometry();
        for block in (0..g.blocks()).map(frit_core::BlockId) {
            for at in 0..self.flash.nand().next_page(block) {
                let ppn = g.ppn(block, at);
                counts.records += 1;
                let PageState::Programmed(spare) = self.flash.nand().page_state(ppn)? else { continue };
                let known = self.interrupted.iter().any(|(page, _)| page.ppn == ppn);
                if spare.lpn >= self.pages || self.flash.lpn_of(ppn).is_some() || known {
                    continue;
                }
                let Some(named) = self.map.get(Lpn(spare.lpn)).ppn() else { continue };
                if self.seq_of(named).is_some_and(|seq| spare.seq > seq)
                    && !self.map.get(Lpn(spare.lpn)).is_buffered()
                {
                    let what = format!(
                        "version {} of the page lies here, and the map names an older one",
                        spare.seq
                    );
                    found(finding("stale-entry", Some(spare.lpn), ppn.0, what));
                }
            }
        }
        Ok(())
    }

    fn seq_of(&self, ppn: Ppn) -> Option<u64> {
        match self.flash.nand().page_state(ppn) {
            Ok(PageState::Programmed(spare)) => Some(spare.seq),
            _ => None,
        }
    }
}

fn finding(kind: &'static str, lpn: Option<u32>, at: u32, what: String) -> Finding {
    Finding {
        layer: String::new(),
        kind,
        severity: Severity::Major,
        lpn,
        medium: MediumKind::Nand,
        at: u64::from(at),
        what,
        repaired: false,
    }
}
