//! Consistency check of the map, the records in spare areas, and the data.

use super::layer::Ssc;
use super::map::BlockMap;
use super::records::Change;
use crate::planted::SscBug;
use frit_core::convert::to_usize;
use frit_core::planted::is_planted;
use frit_core::{
    Cause, CheckCounts, CheckScope, Error, Finding, MediumKind, ReadTarget, Result, Severity, Sink,
};
use frit_media::{ExpectedPage, PageState};

impl Ssc {
    /// Compares the map with the records, and with the data if the scope asks for it.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut counts = CheckCounts::default();
        self.check_missing(sink, scope, found)?;
        self.check_copies(sink, scope, found)?;
        let before = self.log.pending.len();
        let mut all = Vec::new();
        self.map.each(&mut |block, entry| all.push((block, entry)));
        all.sort_unstable_by_key(|&(block, _)| block);
        let mut page = vec![0; if self.stores_bytes() { to_usize(self.sizes.page_bytes) } else { 0 }];
        for (block, entry) in all {
            counts.entries += 1;
            let Some(ppn) = entry.ppn() else { continue };
            counts.records += 1;
            let expect = ExpectedPage { lpn: block, tag: entry.tag() };
            let what = if scope.data && self.stores_bytes() {
                counts.pages_read += 1;
                counts.bytes_verified += u64::from(self.sizes.page_bytes);
                let (into, start) = (ReadTarget::Bytes(&mut page), sink.start());
                match self.nand.read_expected(sink, ppn, 0, into, Some(expect), Cause::Meta, start) {
                    Ok(_) => None,
                    Err(e @ (Error::Corrupt { .. } | Error::Rule { .. })) => Some(e.to_string()),
                    Err(e) => return Err(e),
                }
            } else {
                match self.nand.page_state(ppn)? {
                    PageState::Programmed(spare) if expect.is(spare) => None,
                    _ if !self.stores_bytes() => None,
                    other => Some(format!("its page is {other:?}")),
                }
            };
            let Some(what) = what else { continue };
            // The disk has the data of a clean block.
            let clean = !entry.is_dirty_in_nand();
            let severity = if clean { Severity::Minor } else { Severity::Major };
            let drops = scope.repair && (clean || scope.older || is_planted(SscBug::RepairDiscards));
            let repaired = drops && self.health.refusal().is_none();
            if repaired {
                self.set_entry(block, entry.dropped());
                let start = sink.start();
                self.record(sink, Change::Evicted { block }, start);
            }
            found(finding("bad-page", severity, Some(block), u64::from(ppn.0), what, repaired));
        }
        if self.log.pending.len() > before {
            self.make_room_for_log(sink)?;
            self.write_log(sink)?;
            self.sync()?;
            sink.ack(self.log.written);
        }
        Ok(counts)
    }

    /// Reports missing metadata, and accepts the older state if the scope permits it.
    fn check_missing(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        let accept = scope.repair && scope.older;
        if let Some(missing) = self.health.missing_finding(0, accept) {
            found(Finding { medium: MediumKind::Nand, ..missing });
            if accept {
                self.health.accept_missing();
                self.refuse_if_too_small();
                self.renew_checkpoint(sink)?;
            }
        }
        Ok(())
    }

    /// Verifies that all copies of the metadata in force can be read.
    fn check_copies(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        if !self.has_copies() || !self.stores_bytes() || self.health.refusal().is_some() {
            return Ok(());
        }
        let first = self.checkpoint.first_seq;
        let bad = self.scan()?.single_copies(first);
        for &seq in &bad {
            let what = format!("a copy of page {seq} of the metadata cannot be read; the other is intact");
            found(finding("bad-copy", Severity::Minor, None, 0, what, scope.repair));
        }
        if scope.repair && !bad.is_empty() {
            self.renew_checkpoint(sink)?;
        }
        Ok(())
    }

    /// Writes a checkpoint, which takes the place of all metadata before.
    fn renew_checkpoint(&mut self, sink: &mut Sink) -> Result<()> {
        if self.health.refusal().is_none() {
            self.write_checkpoint(sink, false)?;
            self.sync()?;
            sink.ack(self.log.written);
        }
        Ok(())
    }
}

fn finding(
    kind: &'static str,
    severity: Severity,
    block: Option<u32>,
    at: u64,
    what: String,
    repaired: bool,
) -> Finding {
    Finding { layer: String::new(), kind, severity, lpn: block, medium: MediumKind::Nand, at, what, repaired }
}
