//! Comparison of garbage collection with theory.

use super::{Measure, Present, Subject};
use crate::Result;
use crate::outcome::{Cell, JudgedAspect, Judgement, Outcome, OutcomePart, OutcomeTable};
use crate::theory::{CaseResult, InitialState, MeasuredLayer, Policy, TheoryCase, run};
use crate::workbench::Workbench;
use serde::{Deserialize, Serialize};

/// Seed of the random choices.
const SEED: u64 = 1;

/// Runs of [`crate::theory`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TheoryPlan {
    /// Layer whose garbage collection is measured.
    #[serde(default)]
    pub layer: MeasuredLayer,
    /// Garbage collection policy.
    pub policy: Policy,
    /// Numbers of pages in a block.
    pub pages_per_block: Vec<u32>,
    /// Values of the over-provisioning T/U − 1.
    pub over_provisioning: Vec<f64>,
    /// Initial states of runs.
    pub starts: Vec<InitialState>,
    /// Numbers of blocks and units.
    pub shapes: Vec<DeviceShape>,
    /// Maximum relative difference from theory that counts as agreement.
    pub within: f64,
}

/// Dimensions of a device of [`TheoryPlan`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceShape {
    /// Number of blocks of all units.
    pub blocks: u32,
    /// Number of units.
    pub units: u32,
    /// Number of pages that are programmed together.
    #[serde(default = "one")]
    pub program_pages: u32,
}

fn one() -> u32 {
    1
}

/// Garbage collection compared with theory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TheoryOutcome {
    /// Maximum relative difference that counts as agreement.
    pub within: f64,
    /// Results of the runs.
    pub cases: Vec<CaseResult>,
}

impl TheoryPlan {
    fn cases(&self) -> Vec<TheoryCase> {
        let mut cases = Vec::new();
        for shape in &self.shapes {
            for &pages_per_block in &self.pages_per_block {
                for &over_provisioning in &self.over_provisioning {
                    cases.extend(self.starts.iter().map(|&start| TheoryCase {
                        layer: self.layer,
                        policy: self.policy,
                        blocks: shape.blocks,
                        units: shape.units,
                        pages_per_block,
                        program_pages: shape.program_pages,
                        over_provisioning,
                        start,
                        seed: SEED,
                    }));
                }
            }
        }
        cases
    }
}

impl Measure for TheoryPlan {
    type Data = TheoryOutcome;

    fn measure(
        &self,
        _: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<TheoryOutcome> {
        let mut cases = self.cases();
        if bench.options.quick {
            // The cheapest meaningful case: the last over-provisioning of the first shape.
            cases.truncate(self.over_provisioning.len() * self.starts.len());
            cases.drain(..cases.len().saturating_sub(1));
        }
        let mut done = Vec::new();
        for case in cases {
            let percent = case.over_provisioning * 100.0;
            done.push(run(case, &mut |round| note(&format!("{percent:.0} %, round {round}")))?);
        }
        Ok(TheoryOutcome { within: self.within, cases: done })
    }
}

impl Present for TheoryOutcome {
    fn present(&self) -> Outcome {
        let head = [
            "blocks",
            "units",
            "pages a block",
            "pages a program",
            "from",
            "over-prov.",
            "free",
            "open",
            "rounds",
            "theory",
            "measured",
            "distance",
            "largest difference of a share",
            "Kolmogorov",
            "verdict",
        ];
        let rows = self.cases.iter().map(|c| case_row(c, self.within)).collect();
        let within = Cell::percent(self.within, 1);
        Outcome::of(vec![
            OutcomePart::Table(OutcomeTable::new(0, &head, rows)),
            OutcomePart::Text(format!(
                "The theory is computed for the measured over-provisioning. Values within {within} of it agree."
            )),
        ])
    }
}

fn case_row(c: &CaseResult, within: f64) -> Vec<Cell> {
    let from = if c.case.start == InitialState::Fill { "fill" } else { "steady" };
    let unsettled = if c.settled { "" } else { ", not settled" };
    let agrees = c.distance().abs() <= within;
    vec![
        Cell::Count(u64::from(c.case.blocks)),
        Cell::number(f64::from(c.case.units), 0),
        Cell::number(f64::from(c.case.pages_per_block), 0),
        Cell::number(f64::from(c.case.program_pages), 0),
        Cell::text(from),
        Cell::percent(c.over_provisioning, 2),
        Cell::number(c.free_blocks, 1),
        Cell::number(c.open_blocks, 1),
        Cell::Text(format!("{}{unsettled}", c.rounds)),
        Cell::number(c.theory, 3),
        Cell::number(c.measured, 3),
        Cell::Difference(c.distance() * 100.0),
        Cell::Text(format!("{:+.4} at {}", c.worst_share, c.worst_at)),
        Cell::number(c.kolmogorov, 4),
        Cell::verdict(vec![Judgement::of(JudgedAspect::Claim, Some(agrees))]),
    ]
}
