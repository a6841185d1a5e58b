//! What came of a comparison.

use frit_trace::identity::Kind;
use serde::Serialize;

/// Tables and verdicts over a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparisonOutcome {
    /// The comparison that they are read from.
    pub of: String,
    /// How it was run.
    pub readings: Vec<String>,
    /// Tables.
    pub tables: Vec<ComparedTable>,
    /// Where one variant begins to cost less than another.
    pub crossings: Vec<Crossing>,
    /// What became of the claims.
    pub checks: Vec<Checked>,
}

/// A table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedTable {
    /// What is shown.
    pub about: String,
    /// Heads and decimals of the figures.
    pub columns: Vec<(String, usize)>,
    /// Rows.
    pub rows: Vec<ComparedRow>,
}

/// A row.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedRow {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: Kind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// The view.
    pub view: String,
    /// The variant; none where variants are columns.
    pub variant: Option<String>,
    /// The figures; none where they would divide by zero.
    pub values: Vec<Option<f64>>,
}

/// A claim about one figure, beside what was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Checked {
    /// The claim.
    pub claim: String,
    /// What the figure is.
    pub what: String,
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: Kind,
    /// The variant.
    pub variant: String,
    /// Measured; none where it would divide by zero.
    pub value: Option<f64>,
    /// Published.
    pub published: Option<f64>,
    /// The rule in words.
    pub rule: String,
    /// Whether it agrees; none without a value.
    pub holds: Option<bool>,
}

/// Prices at which variants cost the same.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Crossing {
    /// What is shown.
    pub about: String,
    /// The variant that others are compared with.
    pub base: String,
    /// What is varied.
    pub axis: String,
    /// Its values, in bytes.
    pub values: Vec<u64>,
    /// What the price is.
    pub price: String,
    /// Prices of [`CrossingPoint::ratios`].
    pub prices: Vec<f64>,
    /// Prices to compare with: name, and one for each value of the axis.
    pub marks: Vec<(String, Vec<f64>)>,
    /// One a workload and variant.
    pub lines: Vec<CrossingLine>,
}

/// A workload and variant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrossingLine {
    /// The workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: Kind,
    /// The variant.
    pub variant: String,
    /// One for each value of the axis.
    pub points: Vec<CrossingPoint>,
}

/// One run beside that of the base.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CrossingPoint {
    /// The price at which both cost the same.
    pub even: Even,
    /// How often the price is paid.
    pub count: f64,
    /// Cost by that of the base when the price is nothing.
    pub free: f64,
    /// Cost by that of the base, at each price.
    pub ratios: Vec<f64>,
}

/// A price at which two variants cost the same.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Even {
    /// This one; below it the variant costs less than the base.
    At(f64),
    /// None: the variant costs as much or more even for nothing.
    Never,
    /// None: the variant costs less at any price, since it is never paid.
    Always,
}
