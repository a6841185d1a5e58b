//! Rules about values of modelled machines, and their verdicts.

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
    /// Name of the value.
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
    /// Value of the model.
    pub value: f64,
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
    value: impl Fn(&str, &str) -> Option<f64>,
) -> Result<Vec<MachineVerdict>> {
    let bad = |why: String| Error::Description { name: id.into(), why };
    let judged = rules.iter().filter(|rule| is_wanted(&rule.claim)).map(|rule| {
        let found = value(&rule.machine, &rule.value);
        let found = found
            .ok_or_else(|| bad(format!("the machine '{}' has no value '{}'", rule.machine, rule.value)))?;
        let words = rule.words();
        if words.is_empty() {
            return Err(bad(format!("the rule '{}' cannot fail", rule.what)));
        }
        Ok(MachineVerdict {
            claim: rule.claim.clone(),
            what: rule.what.clone(),
            machine: rule.machine.clone(),
            published: rule.published,
            value: found,
            rule: words,
            input: rule.input,
            holds: rule.holds(found),
        })
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
            Cell::Value(v.value),
            Cell::text(&v.rule),
            verdict,
        ]
    };
    let head = ["claim", "variant", "value", "published", "modelled", "rule", "verdict"];
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
        let value = |_: &str, name: &str| (name == "v").then_some(1.0);
        let of = |rules: &[MachineRule]| verdicts("id", rules, |_| true, value);
        assert!(of(&[rule("")]).unwrap_err().to_string().contains("cannot fail"));
        let other = MachineRule { value: "x".into(), ..rule("least = 1.0") };
        assert!(of(&[other]).unwrap_err().to_string().contains("no value 'x'"));
        assert_eq!(of(&[rule("least = 1.0")]).unwrap()[0].holds, Some(true));
        assert!(verdicts("id", &[rule("least = 1.0")], |claim| claim != "c", value).unwrap().is_empty());
    }
}
