//! A comparison: variants of a stack × workloads × views, any figure of the runs. Several experiments read from one.

use super::WorkloadSpec;
use crate::{Error, Result};
use frit_core::size;
use serde::Deserialize;

/// A comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Its name, by which experiments refer to it.
    pub name: String,
    /// The stack that all runs start from.
    pub stack: String,
    /// Overrides of every run.
    #[serde(default)]
    pub set: Vec<String>,
    /// How what the paper leaves open is taken.
    pub readings: Vec<String>,
    /// The first so many requests of each workload; absent: all.
    pub limit: Option<u64>,
    /// Bytes of a page, by which partial writes are told.
    #[serde(deserialize_with = "size::deserialize")]
    pub page: u64,
    /// Write sizes, in bytes, whose shares are told of each workload.
    pub sizes: Vec<u32>,
    /// How runs are made.
    #[serde(rename = "view")]
    pub views: Vec<RunView>,
    /// What is compared.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// What is run.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// What `--quick` leaves.
    pub quick: super::Quick,
}

/// How runs are made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunView {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Requests outstanding (closed loop).
    pub depth: u32,
    /// Overrides.
    #[serde(default)]
    pub set: Vec<String>,
    /// PCM sized to the workload; absent: as the stack has it.
    pub packed: Option<PackedSpace>,
}

/// Addresses packed, and PCM sized to them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedSpace {
    /// Chunks of so many bytes that are touched are packed, in order of address.
    #[serde(deserialize_with = "size::deserialize")]
    pub chunk: u64,
    /// Bytes of PCM for each byte of the chunks.
    pub times: f64,
}

/// A variant of the stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name and head.
    pub name: String,
    /// Overrides.
    pub set: Vec<String>,
}

/// A figure of runs, see [`crate::sweep::Figures`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// Its name, or several with ` + ` between them: their sum.
    pub of: String,
    /// What it is divided by; named likewise.
    pub by: Option<String>,
    /// What it is multiplied with.
    #[serde(default = "once")]
    pub times: f64,
    /// The variant by whose value it is divided, in the same view and workload.
    pub against: Option<String>,
}

/// What an experiment shows of a comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonPlan {
    /// The comparison, by name.
    pub of: String,
    /// Tables.
    #[serde(rename = "table", default)]
    pub tables: Vec<TablePlan>,
    /// Prices at which two variants cost the same.
    #[serde(rename = "crossing", default)]
    pub crossings: Vec<CrossingPlan>,
}

/// A table: a row for each workload, view and variant, a column for each figure; or, with a single figure and
/// `wide`, a row for each workload and view, a column for each variant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablePlan {
    /// What is shown, in a sentence.
    pub about: String,
    /// Views.
    pub views: Vec<String>,
    /// Variants.
    pub variants: Vec<String>,
    /// Workloads; absent: all.
    pub workloads: Option<Vec<String>>,
    /// Whether variants are columns.
    #[serde(default)]
    pub wide: bool,
    /// Figures.
    #[serde(rename = "column")]
    pub columns: Vec<FigureColumn>,
}

/// A figure with its head.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureColumn {
    /// The head.
    pub head: String,
    /// Decimals.
    #[serde(default)]
    pub digits: usize,
    /// The figure.
    pub value: Value,
}

/// Where one variant begins to cost less than another: a cost that grows by a price for each of something that is counted.
/// Counts do not change with the price, so each run gives the price exactly at which both cost the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossingPlan {
    /// What is shown, in a sentence.
    pub about: String,
    /// The view.
    pub view: String,
    /// Workloads; absent: all.
    pub workloads: Option<Vec<String>>,
    /// The variant that others are compared with.
    pub base: String,
    /// The others.
    pub variants: Vec<String>,
    /// Overrides of the others, which make the price nothing.
    #[serde(default)]
    pub set: Vec<String>,
    /// What is varied.
    pub axis: Axis,
    /// The cost without the price.
    pub cost: Value,
    /// What is counted, for each of which the price is paid.
    pub per: Value,
    /// What the price is, with its unit.
    pub price: String,
    /// Prices for which the cost by that of the base is shown.
    pub prices: Vec<f64>,
    /// Prices that are drawn beside the crossings.
    #[serde(rename = "mark", default)]
    pub marks: Vec<Mark>,
}

/// What is varied along the plot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it is, with its unit.
    pub name: String,
    /// The parameter of the stack.
    pub key: String,
    /// Its values: sizes.
    pub values: Vec<String>,
}

/// A price that depends on the axis: `price · (value / at)^power`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// What it is.
    pub name: String,
    /// The value of the axis that `price` is for: a size.
    #[serde(deserialize_with = "size::deserialize")]
    pub at: u64,
    /// The price there.
    pub price: f64,
    /// 0: the same everywhere; 1: proportional.
    pub power: f64,
}

/// A rule about one figure: it lies between `least` and `most`, or within a share of what is published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What it is.
    pub what: String,
    /// The view.
    pub view: String,
    /// The variant.
    pub variant: String,
    /// The workloads, by name.
    pub workloads: Vec<String>,
    /// The figure.
    pub value: Value,
    /// Published.
    pub published: Option<f64>,
    /// The share of what is published within which a value agrees.
    pub within: Option<f64>,
    /// The least that agrees.
    pub least: Option<f64>,
    /// The most that agrees.
    pub most: Option<f64>,
}

fn once() -> f64 {
    1.0
}

impl Comparison {
    /// Reads a comparison; `name` is what errors call it.
    ///
    /// # Errors
    /// What is no comparison, with the line.
    pub fn parse(name: &str, text: &str) -> Result<Comparison> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let c: Comparison = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        for w in &c.workloads {
            w.check().map_err(bad)?;
        }
        Ok(c)
    }

    /// A view by name.
    ///
    /// # Errors
    /// A name that none has.
    pub fn view(&self, name: &str) -> Result<&RunView> {
        self.views.iter().find(|v| v.name == name).ok_or_else(|| self.unknown("view", name))
    }

    /// A variant by name.
    ///
    /// # Errors
    /// A name that none has.
    pub fn variant(&self, name: &str) -> Result<&Variant> {
        self.variants.iter().find(|v| v.name == name).ok_or_else(|| self.unknown("variant", name))
    }

    fn unknown(&self, what: &str, name: &str) -> Error {
        Error::Description { name: self.name.clone(), why: format!("there is no {what} '{name}'") }
    }
}

impl Value {
    /// The names of all figures in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let by = self.by.as_deref().into_iter().flat_map(|b| b.split(" + "));
        self.of.split(" + ").chain(by)
    }

    /// Its value, where `figure` gives figures and `base` those of the variant that it is against. None where it would
    /// divide by zero.
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
    /// The rule in words.
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

    /// Whether a value agrees.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        let near = match (self.published, self.within) {
            (Some(p), Some(w)) => (value - p).abs() <= w * p.abs(),
            _ => true,
        };
        near && self.least.is_none_or(|l| value >= l) && self.most.is_none_or(|m| value <= m)
    }
}

impl Mark {
    /// The price at a value of the axis.
    #[must_use]
    pub fn price(&self, value: f64) -> f64 {
        self.price * (value / self.at as f64).powf(self.power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
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
        let mark = |power| Mark { name: String::new(), at: 512, price: 0.1, power };
        assert!(
            (mark(0.0).price(64.0) - 0.1).abs() < 1e-12 && (mark(1.0).price(64.0) - 0.0125).abs() < 1e-12
        );
    }
}
