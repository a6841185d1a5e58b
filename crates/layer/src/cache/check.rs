//! Consistency check of records and data, and its repairs.

use super::directory::PINNED;
use super::in_flight::{DAMAGED, EVICT};
use super::layer::Cache;
use super::layout::RECORDS_AT;
use super::policy::EvictionPolicy;
use crate::numbers::{CacheSlot, Lbn};
use crate::planted::CacheBug;
use crate::record::{Record, RecordEnd};
use frit_core::planted::is_planted;
use frit_core::{
    BlockDevice, CheckCounts, CheckScope, Error, Finding, MediumKind, Result, SECTOR_BYTES, Severity, Sink,
};

impl<D: BlockDevice + ?Sized> Cache<D> {
    /// Compares the records with the directory, and the data with the records.
    pub(super) fn run_check(
        &mut self,
        sink: &mut Sink,
        scope: CheckScope,
        found: &mut dyn FnMut(Finding),
    ) -> Result<CheckCounts> {
        let mut checked = CheckCounts::default();
        let accepted = scope.repair && scope.older;
        if let Some(missing) = self.health.missing_finding(RECORDS_AT, accepted) {
            if accepted {
                self.accept_missing(sink)?;
            }
            found(missing);
        }
        let mut blocks: Vec<(Lbn, CacheSlot)> = self.dir.iter().collect();
        blocks.sort_unstable();
        for (lbn, slot) in blocks {
            checked.entries += 1;
            checked.records += 1;
            let verdict = self.space.record_state(slot)?;
            let own = verdict.block.filter(|r| r.lbn() == lbn && r.valid == self.dir.valid(slot));
            if let Some(record) = own.filter(|_| !verdict.agreed) {
                let repaired = scope.repair && self.rewrite_record(sink, slot, &record)?;
                found(Finding {
                    layer: String::new(),
                    kind: "bad-copy",
                    severity: Severity::Minor,
                    lpn: Some(lbn.0),
                    medium: MediumKind::Pcm,
                    at: self.space.layout.data(slot),
                    what: format!("a copy of the record of slot {slot} is damaged; the other is intact"),
                    repaired,
                });
            }
            let bad = if own.is_none() {
                Some(("bad-descriptor", format!("the record of slot {slot} is not that of block {lbn}")))
            } else if scope.data {
                checked.pages_read += 1;
                checked.bytes_verified += u64::from(self.dir.valid(slot).count_ones()) * SECTOR_BYTES;
                match self.load(lbn, slot) {
                    Ok(()) => None,
                    Err(Error::Corrupt { what, .. }) => Some(("bad-data", what)),
                    Err(e) => return Err(e),
                }
            } else {
                None
            };
            let Some((kind, what)) = bad else { continue };
            let repaired = scope.repair && self.drop_damaged(sink, lbn, slot, scope.older)?;
            found(Finding {
                layer: String::new(),
                kind,
                severity: Severity::Major,
                lpn: Some(lbn.0),
                medium: MediumKind::Pcm,
                at: self.space.layout.data(slot),
                what,
                repaired,
            });
        }
        Ok(checked)
    }

    /// Rewrites all copies of a record.
    fn rewrite_record(&mut self, sink: &mut Sink, slot: CacheSlot, record: &Record) -> Result<bool> {
        let start = sink.start();
        self.space.put_record(sink, slot, record, start)?;
        self.space.fence(sink);
        Ok(true)
    }

    /// Removes a damaged block from the cache, so that reads return the disk's version. A clean
    /// block is removed at once, a dirty one only if `older` permits an older version.
    fn drop_damaged(&mut self, sink: &mut Sink, lbn: Lbn, slot: CacheSlot, older: bool) -> Result<bool> {
        let flags = self.dir.flags(slot);
        let older = older || is_planted(CacheBug::RepairDiscards);
        if self.dir.dirty(slot) && !older || flags & PINNED != 0 && flags & DAMAGED == 0 {
            return Ok(false);
        }
        if flags & (EVICT | DAMAGED) == 0 {
            self.policy.remove(slot, lbn);
        }
        self.dir.remove(lbn);
        let start = sink.start();
        let done = self.space.end_record(sink, slot, RecordEnd::Evicted, start)?;
        let done = self.space.settle(sink, done);
        self.give_back(slot, done, false);
        Ok(true)
    }
}
