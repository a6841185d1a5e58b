//! Results of a comparison.

use frit_trace::identity::WorkloadKind;
use serde::Serialize;

/// Tables and verdicts over a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparisonOutcome {
    /// Name of the comparison.
    pub of: String,
    /// Assumptions of the comparison.
    pub readings: Vec<String>,
    /// Tables.
    pub tables: Vec<ComparedTable>,
    /// Break-even points of variants.
    pub crossings: Vec<Crossing>,
    /// Verdicts on the claims.
    pub checks: Vec<CheckVerdict>,
}

/// A table of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedTable {
    /// Description.
    pub about: String,
    /// Headings and numbers of decimals of the metrics.
    pub columns: Vec<(String, usize)>,
    /// Rows.
    pub rows: Vec<ComparedRow>,
}

/// A row of a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedRow {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// The view.
    pub view: String,
    /// Name of the variant; `None` if variants are columns.
    pub variant: Option<String>,
    /// Values of the metrics; `None` for a division by zero.
    pub values: Vec<Option<f64>>,
}

/// Verdict on a claim about one metric.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CheckVerdict {
    /// ID of the claim.
    pub claim: String,
    /// Description of the metric.
    pub what: String,
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The variant.
    pub variant: String,
    /// Measured value; `None` for a division by zero.
    pub value: Option<f64>,
    /// Published value.
    pub published: Option<f64>,
    /// The rule as text.
    pub rule: String,
    /// `true` if a profile is derived from the published value.
    pub input: bool,
    /// `true` if the value agrees; `None` without a value, or if the run has nothing to judge.
    pub holds: Option<bool>,
}

/// Break-even prices of variants.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Crossing {
    /// Description.
    pub about: String,
    /// Baseline variant.
    pub base: String,
    /// Label of the varied parameter.
    pub axis: String,
    /// Values of the parameter, in bytes.
    pub values: Vec<u64>,
    /// Description of the price.
    pub price: String,
    /// Prices of [`CrossingPoint::ratios`].
    pub prices: Vec<f64>,
    /// Prices for comparison: label, and one for each value of the axis.
    pub marks: Vec<(String, Vec<f64>)>,
    /// Lines, one for each workload and variant.
    pub lines: Vec<CrossingLine>,
}

/// Break-even points of a workload and variant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrossingLine {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The variant.
    pub variant: String,
    /// Points, one for each value of the axis.
    pub points: Vec<CrossingPoint>,
}

/// A run compared with that of the baseline.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrossingPoint {
    /// Break-even price.
    pub even: BreakEven,
    /// Number of events for which the price is paid.
    pub count: f64,
    /// Cost relative to the baseline at a price of zero.
    pub free: f64,
    /// Cost relative to the baseline, at each price.
    pub ratios: Vec<f64>,
}

/// Break-even price of two variants.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BreakEven {
    /// This price; below it the variant costs less than the baseline.
    At(f64),
    /// No price: the variant costs as much or more even at a price of zero.
    Never,
    /// Any price: the variant always costs less, since the price is never paid.
    Always,
}
