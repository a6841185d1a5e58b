//! Format of a comparison: variants of a stack × workloads × views, with any metric of the runs.
//! Several experiments use one comparison.

use super::WorkloadSpec;
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// A comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Name by which experiments refer to the comparison.
    pub name: String,
    /// Base stack of all runs.
    pub stack: String,
    /// Overrides of every run.
    #[serde(default)]
    pub set: Vec<String>,
    /// Assumptions where the paper leaves details open.
    pub readings: Vec<String>,
    /// Number of first requests of each workload; absent: all.
    pub limit: Option<u64>,
    /// Page size in bytes, for the detection of partial writes.
    #[serde(deserialize_with = "size::deserialize")]
    pub page: u64,
    /// Write sizes, in bytes, whose cumulative shares are reported of each workload.
    pub sizes: Vec<u32>,
    /// Methods of running.
    #[serde(rename = "view")]
    pub views: Vec<RunView>,
    /// Variants that are compared.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// Workloads.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// Reduction for `--quick`.
    pub quick: super::QuickPlan,
}

/// A method of running.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunView {
    /// Its name.
    pub name: String,
    /// Description, in a sentence.
    pub about: String,
    /// Queue depth (closed loop).
    pub depth: u32,
    /// Overrides.
    #[serde(default)]
    pub set: Vec<String>,
    /// Sizing of PCM to the workload; absent: size of the stack.
    pub packed: Option<PackedSpace>,
}

/// Packing of addresses, with PCM sized to them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedSpace {
    /// Chunk size in bytes: chunks that are accessed are packed in order of address.
    #[serde(deserialize_with = "size::deserialize")]
    pub chunk: u64,
    /// Bytes of PCM for each byte of the chunks.
    pub times: f64,
}

/// A variant of the stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name and heading.
    pub name: String,
    /// Overrides.
    pub set: Vec<String>,
}

/// An expression over metrics of runs, see [`crate::sweep::RunMetrics`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricExpr {
    /// Name of a metric, or several with ` + ` between them: their sum.
    pub of: String,
    /// Divisor, in the same syntax.
    pub by: Option<String>,
    /// Factor.
    #[serde(default = "once")]
    pub times: f64,
    /// Baseline variant: the value is divided by that variant's, in the same view and workload.
    pub against: Option<String>,
}

/// Output of an experiment over a comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonPlan {
    /// Name of the comparison.
    pub of: String,
    /// Tables.
    #[serde(rename = "table", default)]
    pub tables: Vec<TablePlan>,
    /// Break-even prices of two variants.
    #[serde(rename = "crossing", default)]
    pub crossings: Vec<CrossingPlan>,
}

/// A table with a row for each workload, view and variant, and a column for each metric; or, with a
/// single metric and `wide`, a row for each workload and view, and a column for each variant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablePlan {
    /// Description, in a sentence.
    pub about: String,
    /// Views.
    pub views: Vec<String>,
    /// Variants.
    pub variants: Vec<String>,
    /// Workloads; absent: all.
    pub workloads: Option<Vec<String>>,
    /// `true` if variants are columns.
    #[serde(default)]
    pub wide: bool,
    /// Metrics.
    #[serde(rename = "column")]
    pub columns: Vec<MetricColumn>,
}

/// A metric with its heading.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricColumn {
    /// Heading.
    pub head: String,
    /// Number of decimals.
    #[serde(default)]
    pub digits: usize,
    /// Expression of the value.
    pub value: MetricExpr,
}

/// Break-even point of two variants: a cost that grows by a price for each counted event. Counts do
/// not depend on the price, so each run determines exactly the price at which both cost the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossingPlan {
    /// Description, in a sentence.
    pub about: String,
    /// The view.
    pub view: String,
    /// Workloads; absent: all.
    pub workloads: Option<Vec<String>>,
    /// Baseline variant.
    pub base: String,
    /// Variants that are compared with the baseline.
    pub variants: Vec<String>,
    /// Overrides of those variants, which set the price to zero.
    #[serde(default)]
    pub set: Vec<String>,
    /// Parameter that is varied.
    pub axis: Axis,
    /// Cost without the price.
    pub cost: MetricExpr,
    /// Number of events for each of which the price is paid.
    pub per: MetricExpr,
    /// Description of the price, with its unit.
    pub price: String,
    /// Prices for which the cost relative to the baseline is shown.
    pub prices: Vec<f64>,
    /// Prices that are drawn for comparison.
    #[serde(rename = "mark", default)]
    pub marks: Vec<ReferencePrice>,
}

/// Parameter that is varied along the plot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Label, with the unit.
    pub name: String,
    /// Parameter of the stack.
    pub key: String,
    /// Values of the parameter: sizes.
    pub values: Vec<String>,
}

/// A price that depends on the axis: `price · (value / at)^power`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferencePrice {
    /// Label.
    pub name: String,
    /// Axis value to which `price` belongs: a size.
    #[serde(deserialize_with = "size::deserialize")]
    pub at: u64,
    /// Price at `at`.
    pub price: f64,
    /// Exponent; 0: constant; 1: proportional.
    pub power: f64,
}

/// A rule about one metric: it is between `least` and `most`, or within a share of the published
/// value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Description.
    pub what: String,
    /// The view.
    pub view: String,
    /// The variant.
    pub variant: String,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Expression of the value.
    pub value: MetricExpr,
    /// Published value.
    pub published: Option<f64>,
    /// Tolerance, as a share of the published value.
    pub within: Option<f64>,
    /// Lower bound.
    pub least: Option<f64>,
    /// Upper bound.
    pub most: Option<f64>,
}

fn once() -> f64 {
    1.0
}

impl Comparison {
    /// Parses a comparison. Errors name it `name`.
    ///
    /// # Errors
    /// The comparison is invalid; the error contains the line.
    pub fn parse(name: &str, text: &str) -> Result<Comparison> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let c: Comparison = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        for w in &c.workloads {
            w.check().map_err(bad)?;
        }
        Ok(c)
    }

    /// Returns a view by name.
    ///
    /// # Errors
    /// No view has this name.
    pub fn view(&self, name: &str) -> Result<&RunView> {
        self.views.iter().find(|v| v.name == name).ok_or_else(|| self.unknown("view", name))
    }

    /// Returns a variant by name.
    ///
    /// # Errors
    /// No variant has this name.
    pub fn variant(&self, name: &str) -> Result<&Variant> {
        self.variants.iter().find(|v| v.name == name).ok_or_else(|| self.unknown("variant", name))
    }

    fn unknown(&self, what: &str, name: &str) -> Error {
        Error::Description { name: self.name.clone(), why: format!("there is no {what} '{name}'") }
    }
}

impl MetricExpr {
    /// Returns the names of all metrics in the expression.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let by = self.by.as_deref().into_iter().flat_map(|b| b.split(" + "));
        self.of.split(" + ").chain(by)
    }

    /// Returns the value, where `figure` returns metrics and `base` those of the baseline variant;
    /// `None` for a division by zero.
    pub fn of(&self, figure: &dyn Fn(&str) -> f64, base: Option<&dyn Fn(&str) -> f64>) -> Option<f64> {
        let sum = |names: &str, f: &dyn Fn(&str) -> f64| names.split(" + ").map(f).sum::<f64>();
        let plain = |f: &dyn Fn(&str) -> f64| {
            let by = self.by.as_ref().map_or(1.0, |by| sum(by, f));
            (by != 0.0).then(|| sum(&self.of, f) / by)
        };
        let by = match base {
            Some(base) => plain(base).filter(|b| *b != 0.0)?,
            None => 1.0,
        };
        Some(plain(figure)? / by * self.times)
    }
}

impl Check {
    /// Returns the rule as text.
    #[must_use]
    pub fn rule(&self) -> String {
        let mut words = Vec::new();
        if let (Some(p), Some(w)) = (self.published, self.within) {
            words.push(format!("within {} % of {p}", w * 100.0));
        }
        words.extend(self.least.map(|l| format!("at least {l}")));
        words.extend(self.most.map(|m| format!("at most {m}")));
        words.join(", ")
    }

    /// Returns `true` if a value agrees.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        let near = match (self.published, self.within) {
            (Some(p), Some(w)) => (value - p).abs() <= w * p.abs(),
            _ => true,
        };
        near && self.least.is_none_or(|l| value >= l) && self.most.is_none_or(|m| value <= m)
    }
}

impl ReferencePrice {
    /// Returns the price at a value of the axis.
    #[must_use]
    pub fn price(&self, value: f64) -> f64 {
        self.price * (value / self.at as f64).powf(self.power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> MetricExpr {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn values_add_and_divide_and_say_when_they_cannot() {
        let figures = |n: &str| f64::from(n.len() as u32);
        let base = |n: &str| if n == "zero" { 0.0 } else { 2.0 };
        let v = value("of = \"a + bb\"\nby = \"ccc\"\ntimes = 10.0");
        assert_eq!(v.of(&figures, None), Some(10.0));
        assert_eq!(v.names().collect::<Vec<_>>(), ["a", "bb", "ccc"]);
        assert_eq!(value("of = \"a\"").of(&figures, Some(&base)), Some(0.5));
        assert_eq!(value("of = \"zero\"").of(&figures, Some(&base)), None);
        assert_eq!(value("of = \"a\"\nby = \"zero\"").of(&base, None), None);
    }

    #[test]
    fn checks_judge_by_nearness_and_by_bounds() {
        let check = |rest: &str| -> Check {
            let head =
                "what = \"w\"\nview = \"v\"\nvariant = \"x\"\nworkloads = []\nvalue = { of = \"a\" }\n";
            toml::from_str(&format!("{head}{rest}")).unwrap()
        };
        let near = check("published = 100\nwithin = 0.05");
        assert_eq!([95.0, 105.0, 94.9].map(|v| near.holds(v)), [true, true, false]);
        let band = check("least = 1.5\nmost = 1.8");
        assert_eq!([1.5, 1.8, 1.49, 1.81].map(|v| band.holds(v)), [true, true, false, false]);
        assert_eq!(band.rule(), "at least 1.5, at most 1.8");
    }

    #[test]
    fn marks_are_constant_or_proportional() {
        let mark = |power| ReferencePrice { name: String::new(), at: 512, price: 0.1, power };
        assert!(
            (mark(0.0).price(64.0) - 0.1).abs() < 1e-12 && (mark(1.0).price(64.0) - 0.0125).abs() < 1e-12
        );
    }
}
