//! Verdicts on claims over all rows of an experiment, and their table.

use crate::outcome::{Cell, JudgedAspect, Judgement, OutcomeTable};
use serde::Serialize;

/// Verdict on a rule of a claim.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClaimVerdict {
    /// ID of the claim.
    pub claim: String,
    /// The rule as text.
    pub rule: String,
    /// Measured values, or the number of rows that follow the rule.
    pub measured: String,
    /// `true` if the claim agrees; `None` without a row to judge.
    pub holds: Option<bool>,
}

/// Returns the table of verdicts.
pub(super) fn claim_table(all: &[ClaimVerdict]) -> OutcomeTable {
    let row = |c: &ClaimVerdict| {
        let verdict = Cell::verdict(vec![Judgement::of(JudgedAspect::Claim, c.holds)]);
        vec![Cell::text(&c.claim), Cell::text(&c.rule), Cell::text(&c.measured), verdict]
    };
    OutcomeTable::new(4, &["claim", "rule", "measured", "verdict"], all.iter().map(row).collect())
}
