//! Workloads of a reproduction: the characteristics of those that were run, and the missing ones.

use crate::Result;
use crate::describe::WorkloadSpec;
use crate::outcome::{Cell, SharedEntry, SharedPlace, SharedSection, generated};
use crate::sweep::{AvailableWorkload, Traces, WorkloadLookup, WorkloadStats, WriteCounts, share};
use frit_core::size;
use frit_trace::identity::WorkloadKind;
use serde::Serialize;

/// A missing workload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MissingWorkload {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// A workload that was run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkloadOutcome {
    /// Its name.
    pub name: String,
    /// Description.
    pub about: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// The file's hash, or the generator's whole specification.
    pub identity: String,
    /// Number of requests.
    pub requests: u64,
    /// Share of writes among reads and writes.
    pub write_ratio: f64,
    /// Mean size of a write, in bytes.
    pub mean_write_bytes: f64,
    /// Mean size of a read, in bytes.
    pub mean_read_bytes: f64,
    /// The smallest write, in bytes.
    pub smallest_write_bytes: Option<u64>,
    /// Cumulative shares of writes of at most this many bytes.
    pub write_shares: Vec<(u32, f64)>,
    /// Counts of all writes; pages have `page_bytes`.
    pub writes: WriteCounts,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Number of pages written at least once.
    pub written_pages: u64,
    /// Share of page writes that cover only a part of the page.
    pub partial: f64,
}

/// Workloads of the experiments so far, each once.
#[derive(Default)]
pub(crate) struct WorkloadLog {
    pub(crate) missing: Vec<MissingWorkload>,
    pub(crate) workloads: Vec<WorkloadOutcome>,
}

impl WorkloadLog {
    /// Returns the available ones of these workloads, with their input; missing ones are recorded.
    /// A workload is omitted if an available one contains it.
    pub(crate) fn find<'a>(
        &mut self,
        specs: impl Iterator<Item = &'a WorkloadSpec>,
        traces: &Traces,
        limit: Option<u64>,
    ) -> Result<Vec<(&'a WorkloadSpec, Box<AvailableWorkload>)>> {
        let mut here: Vec<(&WorkloadSpec, Box<AvailableWorkload>)> = Vec::new();
        for spec in specs {
            if spec.unless.as_ref().is_some_and(|whole| here.iter().any(|h| h.0.name == *whole)) {
                continue;
            }
            match traces.find(spec, limit)? {
                WorkloadLookup::Missing(why) => self.note_missing(&spec.name, &why),
                WorkloadLookup::Available(input) => here.push((spec, input)),
            }
        }
        Ok(here)
    }

    /// Records a workload, once.
    pub(crate) fn note(&mut self, w: WorkloadOutcome) {
        if !self.workloads.iter().any(|o| o.name == w.name) {
            self.workloads.push(w);
        }
    }

    /// Records a missing workload, once.
    pub(crate) fn note_missing(&mut self, name: &str, why: &str) {
        let m = MissingWorkload { name: name.to_owned(), why: why.to_owned() };
        if !self.missing.contains(&m) {
            self.missing.push(m);
        }
    }
}

impl WorkloadOutcome {
    /// Returns the description and the characteristics of a workload, with the shares of writes of
    /// at most these sizes.
    pub(crate) fn of(
        sizes: &[u32],
        w: &WorkloadSpec,
        input: &AvailableWorkload,
        f: &WorkloadStats,
    ) -> WorkloadOutcome {
        let all = f.all();
        WorkloadOutcome {
            name: w.name.clone(),
            about: w.about.clone(),
            kind: input.kind,
            stands_for: w.stands_for.clone(),
            identity: input.identity.clone(),
            requests: f.requests,
            write_ratio: f.write_ratio(),
            mean_write_bytes: f.mean_write(),
            mean_read_bytes: f.mean_read(),
            smallest_write_bytes: f.smallest(),
            write_shares: sizes.iter().map(|s| (*s, f.share_up_to(u64::from(*s)))).collect(),
            writes: all,
            page_bytes: f.page_bytes,
            written_pages: f.written_pages,
            partial: share(all.partial, all.parts),
        }
    }

    /// Returns the row of the table and the item of the list.
    fn entry(&self) -> SharedEntry {
        let kb = |bytes: f64| Cell::with_unit(bytes / 1024.0, 2, " KB");
        let mut row = vec![
            Cell::Text(generated(&self.name, self.kind)),
            Cell::name(self.stands_for.as_deref()),
            Cell::Count(self.requests),
            Cell::percent(self.write_ratio, 1),
            kb(self.mean_write_bytes),
            kb(self.mean_read_bytes),
            self.smallest_write_bytes.map_or(Cell::Missing, |b| Cell::Text(format!("{b} B"))),
        ];
        row.extend(self.write_shares.iter().map(|(_, share)| Cell::percent(*share, 1)));
        row.push(Cell::percent(self.partial, 1));
        row.push(Cell::Size(self.written_pages * self.page_bytes));
        let kind = if self.kind == WorkloadKind::Real { "recorded" } else { "GENERATED" };
        let item = format!("{} ({kind}): {}; `{}`", self.name, self.about, self.identity);
        SharedEntry { key: self.name.clone(), row, item }
    }
}

/// Returns the section with the characteristics of workloads.
pub(crate) fn workload_section(all: &[WorkloadOutcome]) -> SharedSection {
    let mut head: Vec<Cell> =
        ["workload", "stands for", "requests", "writes", "mean write", "mean read", "smallest write"]
            .map(Cell::text)
            .into();
    let sizes = all.first().map(|w| w.write_shares.clone()).unwrap_or_default();
    head.extend(sizes.iter().map(|(s, _)| Cell::Text(format!("≤{s}"))));
    head.extend(["partial pages", "written"].map(Cell::text));
    let page = all.first().map_or(0, |w| w.page_bytes);
    let about = format!(
        "≤N: share of the writes with N bytes or less. Partial pages: share of the page writes that cover only a part of a page of {}. Written: \
         pages that are written at least once.",
        size::format(page)
    );
    SharedSection {
        place: SharedPlace::Workloads,
        title: "Workloads".to_owned(),
        about: Some(about),
        names: 2,
        head,
        entries: all.iter().map(WorkloadOutcome::entry).collect(),
    }
}
