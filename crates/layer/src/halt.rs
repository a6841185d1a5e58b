//! Comparison of the records of a layer with the summary of its clean shutdown, at an opening.
//!
//! After a clean shutdown all data is durable, so a missing record is damage and never a torn
//! write.

use crate::header::UsageState;
use crate::health::Health;
use crate::record::Copies;
use crate::summary::{RecordSummary, SummaryEntry};
use frit_core::planted::{PlantedBug, is_planted};
use frit_core::{Recovery, Result, Sink};

/// Layer with records, of which a clean shutdown writes a [`RecordSummary`].
pub(crate) trait SummarizedRecords {
    /// Result of a scan of the records.
    type Scan;

    /// Returns the summary of the scanned records.
    fn summary_of(scan: &Self::Scan) -> RecordSummary;

    /// Reads the summary of the shutdown. Returns `None` if it does not describe the scanned
    /// records: it is damaged, or older than one of them.
    fn written_summary(&mut self, scan: &Self::Scan) -> Result<Option<RecordSummary>>;

    /// Returns the number of copies of each record.
    fn record_copies(&self) -> u32;

    /// Reads the records again, after they or the copies that count have changed.
    fn scan_again(&mut self, sink: &mut Sink, which: Copies, recovery: &mut Recovery) -> Result<Self::Scan>;

    /// Ends the scans of single copies, none of which matched the summary. Returns the result of a
    /// scan of all copies, for which `first` is the one before these scans.
    fn end_trials(
        &mut self,
        sink: &mut Sink,
        first: Self::Scan,
        recovery: &mut Recovery,
    ) -> Result<Self::Scan>;

    /// Makes all copies of the records equal to one of them. The change is durable afterwards.
    fn copy_records(&mut self, sink: &mut Sink, from: u32) -> Result<()>;

    /// Returns `true` if a record is plausible for a slot that has none.
    fn fits(&self, entry: &SummaryEntry, scan: &Self::Scan) -> Result<bool>;

    /// Writes a record that is missing. It is durable afterwards.
    fn restore_record(&mut self, sink: &mut Sink, entry: &SummaryEntry) -> Result<()>;

    /// Describes the loss of at least `records` records, and the remedies.
    fn describe_missing(&self, records: u32, scan: &Self::Scan) -> Result<String>;

    /// Returns the health of the layer.
    fn health_mut(&mut self) -> &mut Health;
}

/// Compares the scanned records with the summary, and notes in `recovery` if the layer was shut
/// down cleanly. Records that are outdated in one copy, or one that is missing, are restored if the
/// summary determines their contents. Otherwise the missing records are noted. `bug` is the planted
/// bug that does not compare.
pub(crate) fn compare_with_summary<L: SummarizedRecords>(
    layer: &mut L,
    sink: &mut Sink,
    state: UsageState,
    bug: impl PlantedBug,
    scan: L::Scan,
    recovery: &mut Recovery,
) -> Result<L::Scan> {
    recovery.clean = state != UsageState::InUse;
    if state != UsageState::HaltedWithSummary || is_planted(bug) {
        return Ok(scan);
    }
    let Some(summary) = layer.written_summary(&scan)? else {
        recovery.clean = false;
        return Ok(scan);
    };
    if summary.same_records(&L::summary_of(&scan)) {
        return Ok(scan);
    }
    // If all records of one copy are outdated, the other copy alone matches the summary.
    for copy in 0..layer.record_copies() {
        let one = layer.scan_again(sink, Copies::One(copy), recovery)?;
        if summary.same_records(&L::summary_of(&one)) {
            layer.copy_records(sink, copy)?;
            return layer.scan_again(sink, Copies::All, recovery);
        }
    }
    let scan = layer.end_trials(sink, scan, recovery)?;
    let found = L::summary_of(&scan);
    if let Some(entry) = summary.missing_one(&found)
        && layer.fits(&entry, &scan)?
    {
        layer.restore_record(sink, &entry)?;
        return layer.scan_again(sink, Copies::All, recovery);
    }
    let what = layer.describe_missing(summary.missing_at_least(&found), &scan)?;
    layer.health_mut().note_missing(what, recovery);
    Ok(scan)
}
