//! Expressions over metrics of runs, and the rules by which claims judge them.

use crate::sweep::RunMetrics;
use serde::Deserialize;

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
    /// Baseline workload: the value is divided by that workload's, in the same view.
    pub against_workload: Option<String>,
}

impl MetricExpr {
    /// Returns `true` if a metric of the expression is a time, or depends on one.
    #[must_use]
    pub fn is_about_time(&self) -> bool {
        self.of
            .split(" + ")
            .chain(self.by.iter().flat_map(|by| by.split(" + ")))
            .any(RunMetrics::is_about_time)
    }
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
    /// Metric that is zero if the run has nothing to judge.
    pub needs: Option<String>,
    /// Published value.
    pub published: Option<f64>,
    /// Tolerance, as a share of the published value.
    pub within: Option<f64>,
    /// Lower bound.
    pub least: Option<f64>,
    /// Upper bound.
    pub most: Option<f64>,
    /// `true` if a profile is derived from the published value, so that the value is no evidence.
    #[serde(default)]
    pub input: bool,
}

fn once() -> f64 {
    1.0
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

/// Conditions of a rule about one value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bounds {
    /// Published value.
    pub(crate) published: Option<f64>,
    /// Tolerance, as a share of the published value.
    pub(crate) within: Option<f64>,
    /// Lower bound.
    pub(crate) least: Option<f64>,
    /// Upper bound.
    pub(crate) most: Option<f64>,
}

impl Bounds {
    /// Returns the conditions as text.
    pub(crate) fn words(self) -> Vec<String> {
        let mut words = Vec::new();
        if let (Some(p), Some(w)) = (self.published, self.within) {
            words.push(format!("within {} % of {p}", w * 100.0));
        }
        words.extend(self.least.map(|l| format!("at least {l}")));
        words.extend(self.most.map(|m| format!("at most {m}")));
        words
    }

    /// Returns `true` if a value meets them.
    pub(crate) fn holds(self, value: f64) -> bool {
        let near = match (self.published, self.within) {
            (Some(p), Some(w)) => (value - p).abs() <= w * p.abs(),
            _ => true,
        };
        near && self.least.is_none_or(|l| value >= l) && self.most.is_none_or(|m| value <= m)
    }
}

impl Check {
    fn bounds(&self) -> Bounds {
        let Self { published, within, least, most, .. } = *self;
        Bounds { published, within, least, most }
    }

    /// Returns the rule as text.
    #[must_use]
    pub fn rule(&self) -> String {
        let input = self.input.then(|| "an input of the profile".to_owned());
        input.into_iter().chain(self.bounds().words()).collect::<Vec<_>>().join(", ")
    }

    /// Returns `true` if a value agrees.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.bounds().holds(value)
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
}
