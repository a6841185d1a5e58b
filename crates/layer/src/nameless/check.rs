//! Consistency check of the map, the virtual blocks, the records in spare areas, and the data.

use super::layer::Nameless;
use frit_core::{
    CheckCounts, CheckScope, Error, Finding, MediumKind, NamelessDevice, OwnedBlock, Result, Severity, Sink,
};

impl<D: NamelessDevice> Nameless<D> {
    /// Compares the maps with the records, and with the data if the scope asks for it.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut counts = CheckCounts::default();
        for (&lpn, why) in self.map.lost() {
            found(finding("lost", Some(lpn), 0, why.clone()));
        }
        let blocks: Vec<OwnedBlock> =
            self.map.entries().filter_map(|(lpn, at)| at.map(|at| OwnedBlock { owner: lpn.0, at })).collect();
        counts.entries += u64::from(self.pages);
        for block in blocks {
            self.count(&mut counts, scope);
            match self.device.verify(sink, block, scope.data) {
                Err(e @ Error::Corrupt { .. }) => {
                    found(finding("bad-page", Some(block.owner), block.at.page, e.to_string()));
                }
                verified => verified?,
            }
        }
        for block in 0..self.device.virtual_blocks() {
            self.count(&mut counts, scope);
            match self.device.verify_virtual(sink, block, scope.data) {
                Err(e @ Error::Corrupt { .. }) => {
                    let what = format!("virtual block {block}: {e}");
                    found(finding("bad-metadata", None, block, what));
                }
                verified => verified?,
            }
        }
        Ok(counts)
    }

    fn count(&self, counts: &mut CheckCounts, scope: CheckScope) {
        counts.records += 1;
        if scope.data && self.device.holds_bytes() {
            counts.pages_read += 1;
            counts.bytes_verified += u64::from(self.page_bytes);
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
