//! Description of the tables and crossings of an experiment over a comparison.

use crate::describe::MetricExpr;
use frit_core::size;
use serde::Deserialize;

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

    #[test]
    fn marks_are_constant_or_proportional() {
        let mark = |power| ReferencePrice { name: String::new(), at: 512, price: 0.1, power };
        assert!(
            (mark(0.0).price(64.0) - 0.1).abs() < 1e-12 && (mark(1.0).price(64.0) - 0.0125).abs() < 1e-12
        );
    }
}
