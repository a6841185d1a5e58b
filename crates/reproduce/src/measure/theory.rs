//! Comparison of garbage collection with theory.

use crate::Result;
use crate::describe::TheoryPlan;
use crate::outcome::TheoryOutcome;
use crate::theory::{TheoryCase, run};

/// Seed of the random choices.
const SEED: u64 = 1;

pub(super) fn theory(plan: &TheoryPlan, quick: bool, note: &mut dyn FnMut(&str)) -> Result<TheoryOutcome> {
    let mut cases = Vec::new();
    for shape in &plan.shapes {
        for &over_provisioning in &plan.over_provisioning {
            for &start in &plan.starts {
                cases.push(TheoryCase {
                    policy: plan.policy,
                    blocks: shape.blocks,
                    units: shape.units,
                    pages_per_block: plan.pages_per_block,
                    over_provisioning,
                    start,
                    seed: SEED,
                });
            }
        }
    }
    if quick {
        // The cheapest meaningful case: the last over-provisioning of the first shape.
        cases.truncate(plan.over_provisioning.len() * plan.starts.len());
        cases.drain(..cases.len().saturating_sub(1));
    }
    let mut done = Vec::new();
    for case in cases {
        let percent = case.over_provisioning * 100.0;
        done.push(run(case, &mut |round| note(&format!("{percent:.0} %, round {round}")))?);
    }
    Ok(TheoryOutcome { within: plan.within, cases: done })
}
