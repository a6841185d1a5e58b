//! Claims of a paper, and the rules by which a measurement agrees with them.

use super::Check;
use serde::Deserialize;

/// A claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// ID, as in `published-results`.
    pub id: String,
    /// Text of the paper.
    pub published: String,
    /// Workloads of the paper that the claim is about; empty: all, and any other workload.
    #[serde(default)]
    pub of: Vec<String>,
    /// Change of the metric from column to column.
    pub direction: Option<Direction>,
    /// Ranges of values.
    #[serde(rename = "band", default)]
    pub bands: Vec<Band>,
    /// Rules about metrics of a comparison.
    #[serde(rename = "check", default)]
    pub checks: Vec<Check>,
    /// Share of the rows that have to be inside a band, in a study of caches: for claims about most
    /// workloads. Absent: all.
    pub agree: Option<f64>,
}

/// Direction of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrendDirection {
    /// The metric falls.
    Down,
    /// The metric grows.
    Up,
}

/// Rule about the change of a metric over columns: no step goes the other way by more than `slack`
/// of the value before it, and the last value is beyond the first by more than `change` of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Direction.
    pub goes: TrendDirection,
    /// Columns, in order.
    pub over: Vec<String>,
    /// Tolerance of a step in the other direction, as a share of the value before it.
    pub slack: f64,
    /// Minimum total change, as a share of the first value.
    pub change: f64,
}

/// Range in which a value agrees.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Column.
    pub column: String,
    /// Lower bound.
    #[serde(default)]
    pub least: f64,
    /// Upper bound.
    #[serde(default = "unbounded")]
    pub most: f64,
    /// Workloads of the paper that the band is about; empty: those of the claim.
    #[serde(default)]
    pub of: Vec<String>,
    /// `true` if the band is about the mean over those workloads, instead of each.
    #[serde(default)]
    pub mean: bool,
    /// Column that the value is divided by, in a study of caches.
    pub against: Option<String>,
    /// Sizes of caches that the band is about, as multiples of the workload's, in a study of caches;
    /// empty: all.
    #[serde(default)]
    pub sizes: Vec<f64>,
}

fn unbounded() -> f64 {
    f64::INFINITY
}

impl Claim {
    /// Returns `true` if the claim is about a workload that stands for this one of the paper's, or
    /// for none.
    #[must_use]
    pub fn is_about(&self, stands_for: Option<&str>) -> bool {
        self.of.is_empty() || stands_for.is_some_and(|s| self.of.iter().any(|o| o == s))
    }
}

impl Band {
    /// Returns `true` if the band is about this workload.
    #[must_use]
    pub fn is_about(&self, claim: &Claim, stands_for: Option<&str>) -> bool {
        let of = if self.of.is_empty() { &claim.of } else { &self.of };
        stands_for.is_some_and(|s| of.iter().any(|o| o == s))
    }

    /// Returns the rule as text.
    #[must_use]
    pub fn words(&self) -> String {
        let column = match &self.against {
            Some(base) => format!("{} / {base}", self.column),
            None => self.column.clone(),
        };
        let range = match (self.least > 0.0, self.most.is_finite()) {
            (true, true) => format!("{} to {}", self.least, self.most),
            (true, false) => format!("at least {}", self.least),
            (false, _) => format!("at most {}", self.most),
        };
        format!("{column}: {range}")
    }

    /// Returns `true` if a value is inside the band.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.least..=self.most).contains(&value)
    }
}

impl Direction {
    /// Returns the rule as text.
    #[must_use]
    pub fn words(&self) -> String {
        let (way, other, last) = match self.goes {
            TrendDirection::Down => ("falls", "rises", "below"),
            TrendDirection::Up => ("grows", "falls", "above"),
        };
        format!(
            "{way} over the columns {}: no step {other} by more than {} %, and the last value is more than {} % {last} the first",
            self.over.join(", "),
            self.slack * 100.0,
            self.change * 100.0
        )
    }

    /// Returns `true` if the values follow the rule. Returns `None` if there is nothing to judge:
    /// all values are zero, or the first is and the rule says down.
    #[must_use]
    pub fn holds(&self, values: &[f64]) -> Option<bool> {
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return None };
        let steps = || values.windows(2);
        match self.goes {
            TrendDirection::Down if first == 0.0 => None,
            TrendDirection::Down => {
                let falls = steps().all(|w| w[1] <= w[0] * (1.0 + self.slack));
                Some(falls && last < first * (1.0 - self.change))
            }
            TrendDirection::Up if values.iter().all(|v| *v == 0.0) => None,
            TrendDirection::Up => {
                let grows = steps().all(|w| w[1] >= w[0] * (1.0 - self.slack));
                Some(grows && last > first * (1.0 + self.change))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_judged_by_their_rule() {
        let rule = |goes| Direction { goes, over: Vec::new(), slack: 0.01, change: 0.05 };
        let down = rule(TrendDirection::Down);
        assert_eq!(down.holds(&[1.0, 0.9, 0.905, 0.5]), Some(true));
        assert_eq!(down.holds(&[1.0, 0.5, 0.6, 0.4]), Some(false), "a step back");
        assert_eq!(down.holds(&[1.0, 1.0, 0.96]), Some(false), "too little");
        assert_eq!(down.holds(&[0.0, 0.0]), None, "nothing to count");
        let up = rule(TrendDirection::Up);
        assert_eq!(up.holds(&[0.0, 0.0, 7.0]), Some(true));
        assert_eq!(up.holds(&[0.0, 0.0]), None);
        assert_eq!(up.holds(&[5.0, 4.0, 7.0]), Some(false));
    }

    #[test]
    fn bands_are_about_the_workloads_they_name() {
        let claim = Claim {
            id: "x".into(),
            published: String::new(),
            of: vec!["A".into(), "B".into()],
            direction: None,
            bands: Vec::new(),
            checks: Vec::new(),
            agree: None,
        };
        let band = Band {
            column: "c".into(),
            least: 0.5,
            most: 0.7,
            of: vec!["A".into()],
            mean: false,
            against: Some("b".into()),
            sizes: Vec::new(),
        };
        assert_eq!(band.words(), "c / b: 0.5 to 0.7");
        assert!(band.is_about(&claim, Some("A")) && !band.is_about(&claim, Some("B")));
        assert!(claim.is_about(Some("B")) && !claim.is_about(None));
        assert!(band.holds(0.6) && !band.holds(0.75));
    }
}
