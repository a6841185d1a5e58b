//! Refinement of a fit by Gauss-Newton steps with the weights of Huber's function.
//!
//! Values that compensate for each other (a time of the NAND and one outside of it) form a narrow valley
//! of the loss. The direct search follows it only in short steps. Here, differences between two replays
//! are taken as the derivatives of all modelled times by a parameter, and one linear system gives the
//! change of all parameters together (iteratively reweighted least squares: Holland and Welsch,
//! Communications in Statistics 6, 1977). Steps are damped, and only taken if they reduce the loss, so a
//! wrong derivative costs a replay and does no harm. Parameters with a list of values are not changed.

use crate::error::Result;
use crate::evaluate::{Evaluation, Evaluator};
use crate::parameters::{COUNT, Parameter, Point};
use crate::score::residual;
use crate::search::Found;

/// Change of a parameter for its derivative, in octaves.
const DIFFERENCE: f64 = 0.05;
/// Longest step of a parameter, in octaves.
const STEP_MAX: f64 = 2.0;
/// Damping: share of the diagonal that is added to it (Levenberg and Marquardt).
const DAMPING: f64 = 1e-3;
/// Shares of the step that are tried.
const SHARES: [f64; 4] = [1.0, 0.5, 0.2, 0.05];
/// Relative reduction of the loss below which the refinement ends.
const REDUCTION: f64 = 1e-4;

/// Refines a fit by at most `steps` steps of the parameters in `free`, until the losses are `enough`.
/// Returns `None` if the limit of replays does not allow the first evaluation.
pub(crate) fn refine(
    evaluator: &mut Evaluator<'_>,
    start: &Point,
    free: &[Parameter],
    steps: usize,
    enough: impl Fn(&Evaluation) -> bool,
) -> Result<Option<Found>> {
    let Some(evaluation) = evaluator.evaluate(start)? else { return Ok(None) };
    let mut best = Found { point: *start, evaluation };
    let free: Vec<Parameter> = free.iter().copied().filter(|p| !p.is_discrete()).collect();
    for _ in 0..steps {
        if enough(&best.evaluation) {
            break;
        }
        let Some(system) = System::at(evaluator, &best.point, &free)? else { break };
        let step = system.step(evaluator, &best.point);
        let before = best.evaluation.loss;
        for share in SHARES {
            let mut point = best.point;
            for p in &free {
                let (low, high) = evaluator.model.space.bounds(*p);
                let i = p.index();
                point[i] = (point[i] + share * step[i].clamp(-STEP_MAX, STEP_MAX)).clamp(low, high);
            }
            match evaluator.evaluate(&point)? {
                None => return Ok(Some(best)),
                Some(e) if e.loss < best.evaluation.loss => {
                    best = Found { point, evaluation: e };
                    break;
                }
                Some(_) => {}
            }
        }
        if best.evaluation.loss > before * (1.0 - REDUCTION) {
            break;
        }
    }
    Ok(Some(best))
}

/// The normal equations of a step.
struct System {
    free: Vec<Parameter>,
    matrix: [[f64; COUNT]; COUNT],
    right: [f64; COUNT],
}

impl System {
    /// Computes the equations at a point: a replay for each parameter. Returns `None` at the limit.
    fn at(evaluator: &mut Evaluator<'_>, point: &Point, free: &[Parameter]) -> Result<Option<System>> {
        let Some(base) = evaluator.times(point)? else { return Ok(None) };
        let measured = evaluator.measured();
        let loss = evaluator.loss();
        let base: Vec<f64> = base.iter().zip(measured).map(|(t, m)| residual(*t, *m)).collect();
        let mut columns: Vec<(Parameter, Vec<f64>)> = Vec::new();
        for p in free {
            let mut moved = *point;
            let by = difference(evaluator, point, *p);
            moved[p.index()] += by;
            let Some(times) = evaluator.times(&moved)? else { return Ok(None) };
            let of = |((t, m), r): ((&u64, &u64), &f64)| (residual(*t, *m) - r) / by;
            let column: Vec<f64> = times.iter().zip(measured).zip(&base).map(of).collect();
            // A parameter without effect has no equation.
            if column.iter().any(|x| *x != 0.0) {
                columns.push((*p, column));
            }
        }
        let (mut matrix, mut right) = ([[0.0; COUNT]; COUNT], [0.0; COUNT]);
        for (a, (p, x)) in columns.iter().enumerate() {
            right[p.index()] = -x.iter().zip(&base).map(|(x, r)| loss.weight(*r) * x * r).sum::<f64>();
            for (q, y) in &columns[..=a] {
                let products = x.iter().zip(y).zip(&base);
                let sum: f64 = products.map(|((x, y), r)| loss.weight(*r) * x * y).sum();
                matrix[p.index()][q.index()] = sum;
                matrix[q.index()][p.index()] = sum;
            }
        }
        let free = columns.into_iter().map(|(p, _)| p).collect();
        Ok(Some(System { free, matrix, right }))
    }

    /// Solves the equations. Parameters at a bound that the step would cross are left out.
    fn step(mut self, evaluator: &Evaluator<'_>, point: &Point) -> Point {
        loop {
            let step = self.solve();
            let crosses = |p: &Parameter| {
                let (low, high) = evaluator.model.space.bounds(*p);
                let (at, by) = (point[p.index()], step[p.index()]);
                at <= low && by < 0.0 || at >= high && by > 0.0
            };
            let before = self.free.len();
            self.free.retain(|p| !crosses(p));
            if self.free.len() == before {
                return step;
            }
        }
    }

    /// Gaussian elimination with pivots from the diagonal, which is positive.
    fn solve(&self) -> Point {
        let index: Vec<usize> = self.free.iter().map(|p| p.index()).collect();
        let n = index.len();
        let mut a: Vec<Vec<f64>> = Vec::with_capacity(n);
        for &i in &index {
            let mut row: Vec<f64> = index.iter().map(|&j| self.matrix[i][j]).collect();
            row.push(self.right[i]);
            a.push(row);
        }
        for (i, row) in a.iter_mut().enumerate() {
            row[i] *= 1.0 + DAMPING;
        }
        for i in 0..n {
            let pivot = a[i].clone();
            for row in a.iter_mut().skip(i + 1) {
                let factor = row[i] / pivot[i];
                for (x, p) in row.iter_mut().zip(&pivot).skip(i) {
                    *x -= factor * p;
                }
            }
        }
        let mut step = [0.0; COUNT];
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| a[i][j] * step[index[j]]).sum();
            step[index[i]] = (a[i][n] - known) / a[i][i];
        }
        step
    }
}

/// Returns a change that has an effect on the rounded value, away from the nearer bound.
fn difference(evaluator: &Evaluator<'_>, point: &Point, p: Parameter) -> f64 {
    let space = &evaluator.model.space;
    let (low, high) = space.bounds(p);
    let at = point[p.index()];
    let direction = if at - low < high - at { 1.0 } else { -1.0 };
    let mut by = DIFFERENCE;
    // Values of some whole µs change only by longer steps.
    while by < STEP_MAX && (space.value(p, at + direction * by) - space.value(p, at)).abs() < 2.0 {
        by *= 2.0;
    }
    direction * by
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equations_are_solved_for_the_free_parameters() {
        let (a, b) = (Parameter::TRead, Parameter::WriteUs);
        let (mut matrix, mut right) = ([[0.0; COUNT]; COUNT], [0.0; COUNT]);
        // 4x + y = 6 and x + 3y = 7, with the diagonal before the damping.
        matrix[a.index()][a.index()] = 4.0 / (1.0 + DAMPING);
        matrix[a.index()][b.index()] = 1.0;
        matrix[b.index()][a.index()] = 1.0;
        matrix[b.index()][b.index()] = 3.0 / (1.0 + DAMPING);
        (right[a.index()], right[b.index()]) = (6.0, 7.0);
        let step = System { free: vec![a, b], matrix, right }.solve();
        assert!((step[a.index()] - 1.0).abs() < 1e-12 && (step[b.index()] - 2.0).abs() < 1e-12, "{step:?}");
        assert!(step.iter().sum::<f64>() < 3.0 + 1e-9);
    }
}
