//! Intervals of the fitted values: the profile likelihood, with a paired test over blocks of the trace.
//!
//! For each value of a parameter, the others are fitted again (Raue et al., "Structural and practical
//! identifiability analysis of partially observed dynamical models by exploiting the profile
//! likelihood", Bioinformatics 25, 2009). The value is *excluded* if its loss is significantly larger
//! than that of the best fit. The test compares the means of 20 blocks of consecutive requests pairwise
//! (Student's t, 95 %), since the losses of neighbouring requests depend on each other. A parameter
//! whose bounds are both not excluded is not told by the trace: either it has no effect, or another
//! parameter compensates for it.

use crate::error::Result;
use crate::evaluate::{BLOCKS, Evaluation, Evaluator};
use crate::newton::refine;
use crate::parameters::Parameter;
use crate::score::Loss;
use crate::search::{Effort, Found, search};
use serde::Serialize;

/// The 97.5 % quantile of Student's t with 19 degrees of freedom.
const STUDENT_T: f64 = 2.093;
/// Difference of the mean loss below which a value is not excluded, so that rounding does not exclude
/// (assumed).
const LEAST_DIFFERENCE: f64 = 1e-7;
/// First step away from the best value, in octaves. Each further one is twice as long.
const FIRST_STEP: f64 = 0.05;
/// Bisections between the last value inside and the first value outside.
const BISECTIONS: usize = 3;
/// Fit of the other parameters at a value.
const REFIT: Effort = Effort { step: 0.5, least_step: 0.25, evaluations: 24 };
/// Steps of its refinement before.
const REFIT_STEPS: usize = 3;

/// Kind of the interval of a parameter, at 95 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Smaller and larger values are excluded.
    Told,
    /// Only larger values are excluded.
    AtMost,
    /// Only smaller values are excluded.
    AtLeast,
    /// No value between the bounds of the search is excluded.
    NotTold,
    /// The limit of evaluations was reached before the interval was known.
    NotExamined,
    /// The parameter was not fitted.
    Fixed,
}

/// Returns `true` if a value is significantly worse than another one, and by more than the margin of the
/// loss.
pub(crate) fn is_worse(loss: Loss, value: &Evaluation, best: &Evaluation) -> bool {
    let n = BLOCKS as f64;
    let differences: Vec<f64> = value.blocks.iter().zip(best.blocks).map(|(a, b)| a - b).collect();
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    mean > LEAST_DIFFERENCE.max(loss.margin() * best.loss) && mean > STUDENT_T * (variance / n).sqrt()
}

/// An interval on the scale of the search; a side without a value is open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Interval {
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Interval {
    /// Returns `true` if a place on the scale is inside.
    pub(crate) fn contains(&self, at: f64) -> bool {
        self.low.is_none_or(|low| low <= at) && self.high.is_none_or(|high| at <= high)
    }

    /// Returns the interval with a place added.
    pub(crate) fn with(self, at: f64) -> Interval {
        Interval { low: self.low.map(|low| low.min(at)), high: self.high.map(|high| high.max(at)) }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match (self.low, self.high) {
            (Some(_), Some(_)) => Verdict::Told,
            (None, Some(_)) => Verdict::AtMost,
            (Some(_), None) => Verdict::AtLeast,
            (None, None) => Verdict::NotTold,
        }
    }
}

/// Result of the examination of one parameter.
pub(crate) struct Examined {
    /// `None` at the limit of evaluations.
    pub(crate) interval: Option<Interval>,
    /// A point with less loss than the best one, if one was found on the way.
    pub(crate) better: Option<Found>,
}

/// Determines the interval of a parameter around the best point.
pub(crate) fn examine(
    evaluator: &mut Evaluator<'_>,
    best: &Found,
    p: Parameter,
    free: &[Parameter],
) -> Result<Examined> {
    let others: Vec<Parameter> = free.iter().copied().filter(|f| *f != p).collect();
    let mut walk = Walk { evaluator, best, p, others, better: None };
    let low = walk.side(-1.0)?;
    let high = walk.side(1.0)?;
    let interval = low.zip(high).map(|(low, high)| Interval { low, high });
    Ok(Examined { interval, better: walk.better })
}

/// A walk from the best value of a parameter to the end of its interval.
struct Walk<'a, 'b> {
    evaluator: &'a mut Evaluator<'b>,
    best: &'a Found,
    p: Parameter,
    others: Vec<Parameter>,
    better: Option<Found>,
}

impl Walk<'_, '_> {
    fn is_worse(&self, value: &Evaluation) -> bool {
        is_worse(self.evaluator.loss(), value, &self.best.evaluation)
    }

    /// Returns the last value inside the interval in a direction, and `Some(None)` if the bound is
    /// inside. Returns `None` at the limit of evaluations.
    fn side(&mut self, direction: f64) -> Result<Option<Option<f64>>> {
        let (low, high) = self.evaluator.model.space.bounds(self.p);
        let bound = if direction < 0.0 { low } else { high };
        let at = self.best.point[self.p.index()];
        if at == bound {
            return Ok(Some(None));
        }
        // Without effect on the loss at the bound there is nothing to walk along.
        let mut far = self.best.point;
        far[self.p.index()] = bound;
        match self.evaluator.evaluate(&far)? {
            None => return Ok(None),
            Some(e) if !self.is_worse(&e) => return Ok(Some(None)),
            Some(_) => {}
        }
        let mut inside = *self.best;
        let mut step = if self.p.is_discrete() { 1.0 } else { FIRST_STEP };
        let outside = loop {
            let next = (at + direction * step).clamp(low, high);
            match self.refit(&inside, next)? {
                None => return Ok(None),
                Some((found, true)) => inside = found,
                Some((_, false)) => break next,
            }
            if next == bound {
                return Ok(Some(None));
            }
            step = if self.p.is_discrete() { step + 1.0 } else { step * 2.0 };
        };
        self.bisect(inside, outside)
    }

    fn bisect(&mut self, mut inside: Found, mut outside: f64) -> Result<Option<Option<f64>>> {
        if !self.p.is_discrete() {
            for _ in 0..BISECTIONS {
                let middle = f64::midpoint(inside.point[self.p.index()], outside);
                match self.refit(&inside, middle)? {
                    None => return Ok(None),
                    Some((found, true)) => inside = found,
                    Some((_, false)) => outside = middle,
                }
            }
        }
        Ok(Some(Some(inside.point[self.p.index()])))
    }

    /// Fits the other parameters at a value; returns the fit, and `true` if the value is inside.
    fn refit(&mut self, from: &Found, value: f64) -> Result<Option<(Found, bool)>> {
        let mut start = from.point;
        start[self.p.index()] = value;
        let Some(evaluation) = self.evaluator.evaluate(&start)? else { return Ok(None) };
        let mut found = Found { point: start, evaluation };
        if self.is_worse(&evaluation) {
            let best = self.best.evaluation;
            let loss = self.evaluator.loss();
            let inside = |e: &Evaluation| !is_worse(loss, e, &best);
            let refined = refine(self.evaluator, &start, &self.others, REFIT_STEPS, inside)?;
            let Some(refined) = refined else { return Ok(None) };
            // Lists of values are changed by the search only.
            match search(self.evaluator, &refined.point, &self.others, REFIT, inside)? {
                Some(f) => found = f,
                None => return Ok(None),
            }
            if self.evaluator.left() == 0 && self.is_worse(&found.evaluation) {
                return Ok(None);
            }
        }
        let least = self.better.map_or(self.best.evaluation.loss, |b| b.evaluation.loss);
        if found.evaluation.loss < least {
            self.better = Some(found);
        }
        Ok(Some((found, !self.is_worse(&found.evaluation))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(block: impl Fn(usize) -> f64) -> Evaluation {
        let mut blocks = [0.0; BLOCKS];
        (0..BLOCKS).for_each(|i| blocks[i] = block(i));
        Evaluation { loss: blocks.iter().sum::<f64>() / BLOCKS as f64, blocks }
    }

    #[test]
    fn a_difference_in_all_blocks_excludes_and_one_in_a_single_block_does_not() {
        let best = evaluation(|i| 0.1 + i as f64);
        assert!(!is_worse(Loss::Symmetric, &best, &best));
        assert!(is_worse(Loss::Symmetric, &evaluation(|i| 0.101 + i as f64 + 1e-5 * (i % 3) as f64), &best));
        // The same mean difference, in one block.
        let one = evaluation(|i| best.blocks[i] + if i == 4 { 0.02 } else { 0.0 });
        assert!(!is_worse(Loss::Symmetric, &one, &best));
        assert!(!is_worse(Loss::Symmetric, &best, &evaluation(|i| 0.2 + i as f64)));
        // Delays have a margin of the loss, which is 9.6 here.
        assert!(!is_worse(Loss::Delays, &evaluation(|i| 0.5 + i as f64), &best));
        assert!(is_worse(Loss::Delays, &evaluation(|i| 0.7 + i as f64), &best));
    }
}
