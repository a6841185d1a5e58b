//! Direct search for the least loss: Hooke and Jeeves, "Direct Search Solution of Numerical and
//! Statistical Problems", Journal of the ACM 8, 1961.
//!
//! The loss is a step function of the values (times are whole nanoseconds, requests are queued), so it
//! has no gradient. Some parameters have lists of values. The method needs neither, is deterministic,
//! and takes a page; a crate of optimisers would be the largest dependency of the program.

use crate::error::Result;
use crate::evaluate::{Evaluation, Evaluator};
use crate::parameters::{Parameter, Point};

/// A point with its losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) point: Point,
    pub(crate) evaluation: Evaluation,
}

/// Extent of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// First step, in octaves (for lists: in values, at least 1).
    pub(crate) step: f64,
    /// The search ends when the step is below this.
    pub(crate) least_step: f64,
    /// Maximum number of replays.
    pub(crate) evaluations: u64,
}

/// The losses that end a search before its last step: none.
pub(crate) fn never(_: &Evaluation) -> bool {
    false
}

/// Searches from a point for the least loss, changing only the parameters of `free`. Returns `None` if
/// the limit does not allow the evaluation of the first point. The search also ends once the losses are
/// `enough`.
pub(crate) fn search(
    evaluator: &mut Evaluator<'_>,
    start: &Point,
    free: &[Parameter],
    effort: Effort,
    enough: impl Fn(&Evaluation) -> bool,
) -> Result<Option<Found>> {
    let Some(evaluation) = evaluator.evaluate(start)? else { return Ok(None) };
    let mut best = Found { point: *start, evaluation };
    let end = evaluator.done + effort.evaluations;
    let mut step = effort.step;
    while step >= effort.least_step && evaluator.done < end && !enough(&best.evaluation) {
        let from = best;
        let explored = explore(evaluator, from, free, step, end)?;
        if explored.evaluation.loss < from.evaluation.loss {
            best = follow(evaluator, from, explored, free, step, end)?;
        } else {
            step /= 2.0;
        }
        if evaluator.left() == 0 {
            break;
        }
    }
    Ok(Some(best))
}

/// Tries a step in each direction of each parameter, and keeps each that reduces the loss.
fn explore(
    evaluator: &mut Evaluator<'_>,
    from: Found,
    free: &[Parameter],
    step: f64,
    end: u64,
) -> Result<Found> {
    let mut best = from;
    for p in free {
        let (low, high) = evaluator.model.space.bounds(*p);
        let size = if p.is_discrete() { step.round().max(1.0) } else { step };
        for direction in [1.0, -1.0] {
            let mut point = best.point;
            point[p.index()] = (point[p.index()] + direction * size).clamp(low, high);
            if evaluator.done >= end || point == best.point {
                continue;
            }
            if let Some(evaluation) = evaluator.evaluate(&point)?
                && evaluation.loss < best.evaluation.loss
            {
                best = Found { point, evaluation };
                break;
            }
        }
    }
    Ok(best)
}

/// Repeats the change from one base point to the next as long as it reduces the loss: the pattern move.
fn follow(
    evaluator: &mut Evaluator<'_>,
    mut from: Found,
    mut to: Found,
    free: &[Parameter],
    step: f64,
    end: u64,
) -> Result<Found> {
    while evaluator.done < end {
        let mut ahead = to.point;
        for p in free {
            let (low, high) = evaluator.model.space.bounds(*p);
            let i = p.index();
            ahead[i] = (2.0 * to.point[i] - from.point[i]).clamp(low, high);
        }
        let Some(evaluation) = evaluator.evaluate(&ahead)? else { break };
        let next = explore(evaluator, Found { point: ahead, evaluation }, free, step, end)?;
        if next.evaluation.loss >= to.evaluation.loss {
            break;
        }
        (from, to) = (to, next);
    }
    Ok(to)
}
