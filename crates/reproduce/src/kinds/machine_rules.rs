//! Rules about values of machines, modelled and measured ones, and their verdicts.

use super::this_machine::Spread;
use crate::describe::Bounds;
use crate::outcome::{Cell, JudgedAspect, Judgement, OutcomeTable};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A modelled machine: a memory behind a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelledMachine {
    /// Name in tables.
    pub name: String,
    /// Profile of the memory, with overrides after commas.
    pub profile: String,
    /// Host, with overrides after commas.
    pub host: String,
    /// Reads of the host beside a query: size and rate.
    pub foreground: Option<String>,
}

/// A rule about one value of a machine, declared in the description of the experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineRule {
    /// ID of the claim.
    pub claim: String,
    /// Description of the value.
    pub what: String,
    /// Name of the machine.
    pub machine: String,
    /// Name of the value; left out with `not_measured`.
    #[serde(default)]
    pub value: String,
    /// Published value.
    pub published: Option<f64>,
    /// Tolerance, as a share of the published value.
    pub within: Option<f64>,
    /// Lower bound.
    pub least: Option<f64>,
    /// Upper bound.
    pub most: Option<f64>,
    /// `true` if the model is made from the published value, so that the value is no evidence.
    #[serde(default)]
    pub input: bool,
    /// Reason why the value cannot be compared with the published one; there is no verdict then.
    pub not_comparable: Option<String>,
    /// Reason why the value is not measured.
    pub not_measured: Option<String>,
}

/// A value of a machine.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum RuleValue {
    /// A value of a model, which is the same in every run.
    Modelled(f64),
    /// A value that was measured in several rounds.
    Measured(Spread),
    /// No value, with the reason.
    NotMeasured(String),
}

/// Verdict on a rule.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineVerdict {
    /// ID of the claim.
    pub claim: String,
    /// Description of the value.
    pub what: String,
    /// Name of the machine.
    pub machine: String,
    /// Published value.
    pub published: Option<f64>,
    /// Value of the model, or the median of the measured ones; `None` if it was not measured.
    pub value: Option<f64>,
    /// Range of the measured values.
    pub range: Option<(f64, f64)>,
    /// The rule as text, or the reason why there is none.
    pub rule: String,
    /// `true` if the model is made from the published value.
    pub input: bool,
    /// `true` if the value agrees; `None` if it cannot be compared.
    pub holds: Option<bool>,
}

impl MachineRule {
    fn bounds(&self) -> Bounds {
        let Self { published, within, least, most, .. } = *self;
        Bounds { published, within, least, most }
    }

    /// Returns the rule as text.
    fn words(&self) -> String {
        if let Some(why) = &self.not_comparable {
            return format!("not comparable: {why}");
        }
        self.bounds().words().join(", ")
    }

    /// Returns the verdict on a value. Of several rounds, the median is judged.
    fn verdict(&self, found: &RuleValue) -> MachineVerdict {
        let (value, range) = match found {
            RuleValue::Modelled(value) => (Some(*value), None),
            RuleValue::Measured(spread) => (Some(spread.median), Some((spread.least, spread.most))),
            RuleValue::NotMeasured(_) => (None, None),
        };
        MachineVerdict {
            claim: self.claim.clone(),
            what: self.what.clone(),
            machine: self.machine.clone(),
            published: self.published,
            value,
            range,
            rule: match found {
                RuleValue::NotMeasured(why) => format!("not measured: {why}"),
                _ => self.words(),
            },
            input: self.input,
            holds: value.and_then(|value| self.holds(value)),
        }
    }

    /// Judges a value.
    fn holds(&self, value: f64) -> Option<bool> {
        self.not_comparable.is_none().then(|| self.bounds().holds(value))
    }
}

/// Returns the verdicts on the rules of the claims. `value` returns a value of a machine by name.
///
/// # Errors
/// A rule without a condition, or about an unknown machine or value.
pub(super) fn verdicts(
    id: &str,
    rules: &[MachineRule],
    is_wanted: impl Fn(&str) -> bool,
    value: impl Fn(&str, &str) -> Option<RuleValue>,
) -> Result<Vec<MachineVerdict>> {
    let bad = |why: String| Error::Description { name: id.into(), why };
    let judged = rules.iter().filter(|rule| is_wanted(&rule.claim)).map(|rule| {
        let found = match &rule.not_measured {
            Some(why) => Some(RuleValue::NotMeasured(why.clone())),
            None => value(&rule.machine, &rule.value),
        };
        let found = found
            .ok_or_else(|| bad(format!("the machine '{}' has no value '{}'", rule.machine, rule.value)))?;
        if rule.not_measured.is_none() && rule.words().is_empty() {
            return Err(bad(format!("the rule '{}' cannot fail", rule.what)));
        }
        Ok(rule.verdict(&found))
    });
    judged.collect()
}

/// Returns the table of verdicts.
pub(super) fn verdict_table(all: &[MachineVerdict]) -> OutcomeTable {
    let row = |v: &MachineVerdict| {
        let aspect = if v.input { JudgedAspect::Input } else { JudgedAspect::Claim };
        let verdict = match v.holds {
            Some(_) => Cell::verdict(vec![Judgement::of(aspect, v.holds)]),
            None => Cell::Missing,
        };
        vec![
            Cell::text(&v.claim),
            Cell::text(&v.machine),
            Cell::text(&v.what),
            v.published.map_or(Cell::Missing, Cell::Value),
            v.value.map_or(Cell::Missing, Cell::Value),
            v.range.map_or(Cell::Missing, |(least, most)| {
                Cell::Text(format!("{}–{}", Cell::Value(least), Cell::Value(most)))
            }),
            Cell::text(&v.rule),
            verdict,
        ]
    };
    let head = ["claim", "variant", "value", "published", "measured", "range", "rule", "verdict"];
    OutcomeTable::new(3, &head, all.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rest: &str) -> MachineRule {
        let head = "claim = \"c\"\nwhat = \"w\"\nmachine = \"m\"\nvalue = \"v\"\n";
        toml::from_str(&format!("{head}{rest}")).unwrap()
    }

    #[test]
    fn rules_judge_and_say_what_they_judge() {
        let near = rule("published = 74.0\nwithin = 0.1");
        assert_eq!([66.7, 81.3, 82.0].map(|v| near.holds(v)), [Some(true), Some(true), Some(false)]);
        assert_eq!(near.words(), "within 10 % of 74");
        let band = rule("least = 0.95\nmost = 1.0");
        assert_eq!([0.95, 0.9].map(|v| band.holds(v)), [Some(true), Some(false)]);
        let none = rule("published = 4.1\nnot_comparable = \"x\"");
        assert_eq!((none.holds(4.1), none.words()), (None, "not comparable: x".to_owned()));
    }

    #[test]
    fn rules_that_cannot_fail_or_name_nothing_are_refused() {
        let value = |_: &str, name: &str| (name == "v").then_some(RuleValue::Modelled(1.0));
        let of = |rules: &[MachineRule]| verdicts("id", rules, |_| true, value);
        assert!(of(&[rule("")]).unwrap_err().to_string().contains("cannot fail"));
        let other = MachineRule { value: "x".into(), ..rule("least = 1.0") };
        assert!(of(&[other]).unwrap_err().to_string().contains("no value 'x'"));
        assert_eq!(of(&[rule("least = 1.0")]).unwrap()[0].holds, Some(true));
        assert!(verdicts("id", &[rule("least = 1.0")], |claim| claim != "c", value).unwrap().is_empty());
    }

    #[test]
    fn medians_are_judged_and_missing_values_are_not() {
        let spread = Spread { median: 20.0, least: 10.0, most: 30.0 };
        let at_least = rule("published = 19.0\nleast = 19.0");
        let judged = at_least.verdict(&RuleValue::Measured(spread));
        assert_eq!((judged.value, judged.range, judged.holds), (Some(20.0), Some((10.0, 30.0)), Some(true)));
        let none = at_least.verdict(&RuleValue::NotMeasured("no loop device".into()));
        assert_eq!((none.value, none.holds), (None, None));
        assert_eq!(none.rule, "not measured: no loop device");
        let shown = verdict_table(&[judged, none]).rows;
        assert_eq!(shown[0][5].to_string(), "10–30");
        assert_eq!((shown[1][4].to_string(), shown[1][7].to_string()), ("–".into(), "–".into()));
        // A rule that says why nothing is measured needs no value.
        let text = "claim = \"c\"\nwhat = \"w\"\nmachine = \"m\"\nnot_measured = \"x\"";
        let said = verdicts("id", &[toml::from_str(text).unwrap()], |_| true, |_, _| None).unwrap();
        assert_eq!((said[0].value, said[0].rule.as_str()), (None, "not measured: x"));
    }
}
