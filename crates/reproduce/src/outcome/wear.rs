//! Wear of a cache's PCM.

use super::format::{count, generated, table};
use frit_core::size;
use frit_trace::identity::WorkloadKind;
use serde::Serialize;
use std::fmt::Write as _;

/// Life rates by workload and leveler.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearOutcome {
    /// The levelers, by column.
    pub levelers: Vec<String>,
    /// Rows, one for each workload.
    pub rows: Vec<WearRow>,
    /// Mean life rates.
    pub means: Vec<f64>,
    /// Published means; `None` for levelers that the paper does not have.
    pub published: Vec<Option<f64>>,
    /// Lifetime factor: mean over the workloads of one leveler's life rate divided by another's.
    pub factor: f64,
    /// The two levelers of the factor.
    pub factor_of: (String, String),
    /// Published lifetime factor.
    pub factor_published: f64,
}

/// Life rates of a workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearRow {
    /// Name of the workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// Size of the cache, in bytes.
    pub cache_bytes: u64,
    /// Number of blocks written to PCM.
    pub writes: u64,
    /// Life rates by leveler: mean writes of a bank divided by those of the most written one.
    pub rates: Vec<f64>,
    /// Lifetime factor of this workload: see [`WearOutcome::factor_of`].
    pub factor: f64,
}

/// Returns the life rates as text.
pub(super) fn wear(o: &WearOutcome) -> String {
    let mut head: Vec<String> = ["workload", "cache", "blocks written"].map(String::from).into();
    head.extend(o.levelers.iter().cloned());
    head.push(format!("{} / {}", o.factor_of.0, o.factor_of.1));
    let rates = |rates: &[f64]| rates.iter().map(|r| format!("{r:.4}")).collect::<Vec<_>>();
    let mut rows = Vec::new();
    for r in &o.rows {
        let mut row =
            vec![generated(&r.workload, r.kind), size::format(r.cache_bytes >> 20 << 20), count(r.writes)];
        row.extend(rates(&r.rates));
        row.push(format!("{:.2}", r.factor));
        rows.push(row);
    }
    let summary = |name: &str, rates: Vec<String>, factor: f64| {
        let mut row = vec![name.to_owned(), String::new(), String::new()];
        row.extend(rates);
        row.push(format!("{factor:.2}"));
        row
    };
    rows.push(summary("mean", rates(&o.means), o.factor));
    let published = o.published.iter().map(|p| p.map_or("–".into(), |p| format!("{p:.4}"))).collect();
    rows.push(summary("published", published, o.factor_published));
    let mut out = String::from("Life rate: mean writes of a bank divided by the maximum.\n\n");
    let _ = writeln!(out, "{}", table(&head, 1, &rows));
    out
}
