//! The steps of a calibration: search, intervals, values of the profile that are kept, scores.

use crate::delays::Delays;
use crate::error::{Error, Result};
use crate::evaluate::{Evaluation, Evaluator};
use crate::identify::{Interval, Verdict, examine, is_worse};
use crate::model::{Model, Settings};
use crate::newton::refine;
use crate::parameters::{COUNT, Parameter, Point, Unit};
use crate::sample::Sample;
use crate::score::{Loss, PartScores, Predictions, QuantileRow, SizeRow, constant, quantile_us};
use crate::search::{Effort, Found, never, search};
use frit_trace::{ReqOp, WorkloadIdentity};
use serde::Serialize;
use strum::IntoEnumIterator;

/// Least limit of evaluations.
const EVALUATIONS_MIN: u64 = 200;
/// Numbers of units from which searches start, in addition to that of the profile.
const START_UNITS: [f64; 4] = [1.0, 2.0, 4.0, 16.0];
/// Size of the write cache in some of the starts, in NAND pages.
const START_BUFFER: f64 = 4.0;
/// Steps of the refinement of a start.
const START_STEPS: usize = 3;
/// Searches that are continued from the best starts.
const CONTINUED: usize = 3;
/// Requests of a size that are needed for its row in the results.
const SIZE_ROW_LEAST: usize = 20;
/// Relative reduction of the loss from which a fit that was found on the way becomes the best one.
const REDUCTION: f64 = 1e-4;
/// Steps of a refinement.
const REFINEMENTS: usize = 4;
/// Replays of a search from such a fit.
const POLISH: u64 = 60;

/// Options of a fit.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Maximum number of replays.
    pub evaluations: u64,
    /// The parameters that are fitted; the others keep the values of the profile.
    pub parameters: Vec<Parameter>,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions { evaluations: 5000, parameters: Parameter::iter().collect() }
    }
}

/// Result for one parameter.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FittedParameter {
    /// The parameter.
    pub name: Parameter,
    /// Unit of its values.
    pub unit: Unit,
    /// Value of the profile.
    pub profile: f64,
    /// Value of the calibrated drive.
    pub fitted: f64,
    /// `true` if the value of the profile is kept: the trace does not exclude it.
    pub kept: bool,
    /// Kind of the interval.
    pub verdict: Verdict,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// A drive that was fitted to a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// Name of the profile.
    pub profile: String,
    /// Identity of the trace.
    pub trace: WorkloadIdentity,
    /// Requests that the host had outstanding at most, and the model gets at most.
    pub queue_depth: u32,
    /// Share of the requests that were issued while another one was outstanding.
    pub overlapping: f64,
    /// Requests of the trace that are left out.
    pub left_out: u64,
    /// Signs of delays that the model does not have; then the values are those of the fastest requests.
    pub delays: Option<Delays>,
    /// Replays of the fitted part.
    pub evaluations: u64,
    /// The parameters.
    pub parameters: Vec<FittedParameter>,
    /// Scores on the fitted part.
    pub fitted_part: PartScores,
    /// Scores on the part that was held out.
    pub held_out_part: PartScores,
    /// Quantiles of the part that was held out.
    pub held_out_quantiles: Vec<QuantileRow>,
    /// Medians of the fitted part by operation and size.
    pub sizes: Vec<SizeRow>,
    /// Values of the calibrated drive.
    #[serde(skip)]
    pub settings: Settings,
}

impl Calibration {
    /// Fits a drive to a sample. `watch` is called with the number of replays so far.
    ///
    /// # Errors
    /// A limit that is too small; a stack that cannot be built, or refuses a request.
    pub fn run(
        model: &Model,
        sample: &Sample,
        options: &FitOptions,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Calibration> {
        let limit = options.evaluations;
        let too_few = || Error::TooFewEvaluations { evaluations: limit, least: EVALUATIONS_MIN };
        if limit < EVALUATIONS_MIN {
            return Err(too_few());
        }
        let free = &options.parameters;
        // A part of the replays is left for the values that are kept and the last search.
        let first = limit - limit / 8;
        let mut evaluator = Evaluator::new(model, sample, first, watch);
        let mut fits = global_search(&mut evaluator, sample, free, first)?.ok_or_else(too_few)?;
        let delays = fits.delays;
        if delays.is_some() {
            evaluator.set_loss(Loss::Delays);
            fits = global_search(&mut evaluator, sample, free, first)?.ok_or_else(too_few)?;
        }
        let (best, mut intervals) = intervals(&mut evaluator, fits.best, free, first)?;
        if delays.is_some() {
            extend(&mut intervals, &fits, &best, free);
        }
        evaluator.set_limit(limit);
        let (last, kept) = keep(&mut evaluator, best, free, &intervals)?;
        // The last fit is not significantly worse than the best one, so its values are not excluded.
        for p in free {
            let interval = &mut intervals[p.index()];
            *interval = interval.map(|i| i.with(last.point[p.index()]));
        }
        let evaluations = evaluator.done;
        let settings = model.settings(&last.point);
        let parameters = parameters(model, &settings, free, &intervals, &kept);
        let all = sample.requests.len();
        let predictions = Predictions {
            sample,
            calibrated: model.service_times(&settings, sample, all)?,
            profile: model.service_times(&model.profile_settings(), sample, all)?,
            constant: constant(sample),
        };
        Ok(Calibration {
            profile: model.profile.clone(),
            trace: sample.identity.clone(),
            queue_depth: sample.depth,
            overlapping: sample.overlapping,
            left_out: sample.left_out,
            delays: delays.map(|d| d.beside(model, sample, &settings)).transpose()?,
            evaluations,
            parameters,
            fitted_part: predictions.scores(0..sample.fitted),
            held_out_part: predictions.scores(sample.fitted..all),
            held_out_quantiles: predictions.quantiles(sample.fitted..all),
            sizes: predictions.sizes(SIZE_ROW_LEAST),
            settings,
        })
    }
}

/// Returns the points from which searches start: numbers of units, with and without a write cache, with
/// the times of the profile and with times near the measured ones.
fn starts(model: &Model, sample: &Sample, free: &[Parameter]) -> Vec<Point> {
    let quantile = |op: ReqOp, q: f64| {
        let fitted = sample.requests.iter().zip(&sample.measured).take(sample.fitted);
        let mut times: Vec<u64> = fitted.filter(|(r, _)| r.op == op).map(|(_, t)| *t).collect();
        times.sort_unstable();
        quantile_us(&times, q)
    };
    let (read, write) = (quantile(ReqOp::Read, 0.05), quantile(ReqOp::Write, 0.05));
    let own = model.space.value(Parameter::Units, model.space.profile[Parameter::Units.index()]);
    // Half of the time of a short request outside of the NAND, or in the NAND.
    let outside = [(Parameter::ReadUs, read / 2.0), (Parameter::WriteUs, write / 2.0)];
    let inside = [(Parameter::TRead, read / 2.0 * 1e6), (Parameter::TProg, write / 2.0 * 1e6)];
    let mut points: Vec<Point> = Vec::new();
    for units in std::iter::once(own).chain(START_UNITS) {
        for (values, buffer) in [(outside, 0.0), (inside, 0.0), (outside, START_BUFFER)] {
            let mut point = model.space.profile;
            let lists = [(Parameter::Units, units), (Parameter::MergeBuffer, buffer)];
            for (p, value) in values.into_iter().chain(lists) {
                if value > 0.0 && free.contains(&p) {
                    point[p.index()] = model.space.place(p, value);
                }
            }
            if !points.contains(&point) {
                points.push(point);
            }
        }
    }
    points
}

/// Fits of a search.
struct Fits {
    /// The fit with the least loss.
    best: Found,
    /// All fits.
    all: Vec<Found>,
    /// Signs of delays that the model does not have, by which the search ended early.
    delays: Option<Delays>,
}

/// Refines all starts, and searches from the best ones.
fn global_search(
    evaluator: &mut Evaluator<'_>,
    sample: &Sample,
    free: &[Parameter],
    limit: u64,
) -> Result<Option<Fits>> {
    evaluator.set_limit((evaluator.done + limit / 4).min(limit));
    let mut found = Vec::new();
    for start in starts(evaluator.model, sample, free) {
        found.extend(refine(evaluator, &start, free, START_STEPS, never)?);
    }
    found.sort_by(|a, b| a.evaluation.loss.total_cmp(&b.evaluation.loss));
    evaluator.set_limit(limit);
    let fine = Effort { step: 0.5, least_step: 1.0 / 64.0, evaluations: limit / 12 };
    let Some(first) = found.first() else { return Ok(None) };
    let mut fits = Fits { best: *first, all: found.clone(), delays: None };
    for start in found.iter().take(CONTINUED) {
        let Some(next) = search(evaluator, &start.point, free, fine, never)? else { break };
        let next = refine(evaluator, &next.point, free, REFINEMENTS, never)?.unwrap_or(next);
        fits.all.push(next);
        if next.evaluation.loss < fits.best.evaluation.loss {
            fits.best = next;
        }
        if evaluator.loss() == Loss::Symmetric {
            let settings = evaluator.model.settings(&fits.best.point);
            fits.delays = Delays::find(evaluator.model, sample, &settings)?;
            if fits.delays.is_some() {
                break;
            }
        }
    }
    Ok(Some(fits))
}

/// Adds the values of all fits that are not significantly worse than the best one. Delays hide the
/// differences between fits with other lists of values, which a walk from the best one does not find.
fn extend(intervals: &mut Intervals, fits: &Fits, best: &Found, free: &[Parameter]) {
    for other in fits.all.iter().filter(|f| !is_worse(Loss::Delays, &f.evaluation, &best.evaluation)) {
        for p in free {
            let interval = &mut intervals[p.index()];
            *interval = interval.map(|i| i.with(other.point[p.index()]));
        }
    }
}

/// Intervals of all parameters; `None` if a parameter was not examined.
type Intervals = [Option<Interval>; COUNT];

/// Determines the intervals of all parameters. If a fit on the way has less loss, it becomes the best
/// one. An interval around an earlier fit is not too short: less loss would exclude more values.
fn intervals(
    evaluator: &mut Evaluator<'_>,
    mut best: Found,
    free: &[Parameter],
    limit: u64,
) -> Result<(Found, Intervals)> {
    let mut intervals = [None; COUNT];
    for (i, p) in free.iter().enumerate() {
        // Few parameters need many replays: each may use twice its share of what is left.
        evaluator.set_limit(limit);
        let share = (2 * evaluator.left() / (free.len() - i) as u64).min(evaluator.left());
        evaluator.set_limit(evaluator.done + share);
        let examined = examine(evaluator, &best, *p, free)?;
        intervals[p.index()] = examined.interval;
        let least = best.evaluation.loss * (1.0 - REDUCTION);
        let Some(from) = examined.better.filter(|b| b.evaluation.loss < least) else { continue };
        evaluator.set_limit(limit);
        let fine = Effort { step: 0.25, least_step: 1.0 / 64.0, evaluations: POLISH };
        best = search(evaluator, &from.point, free, fine, never)?.unwrap_or(from);
        best = refine(evaluator, &best.point, free, REFINEMENTS, never)?.unwrap_or(best);
    }
    Ok((best, intervals))
}

/// Returns to the values of the profile that the trace does not exclude, one parameter after the other,
/// as long as the fit does not become significantly worse.
fn keep(
    evaluator: &mut Evaluator<'_>,
    best: Found,
    free: &[Parameter],
    intervals: &Intervals,
) -> Result<(Found, [bool; COUNT])> {
    let (mut at, mut kept) = (best, [false; COUNT]);
    let mut left: Vec<Parameter> = free.to_vec();
    let loss = evaluator.loss();
    let refit = Effort { step: 0.5, least_step: 1.0 / 64.0, evaluations: 60 };
    for p in Parameter::iter().filter(|p| free.contains(p)) {
        let i = p.index();
        let own = evaluator.model.space.profile[i];
        if !intervals[i].is_some_and(|interval| interval.contains(own)) {
            continue;
        }
        let mut start = at.point;
        start[i] = own;
        let others: Vec<Parameter> = left.iter().copied().filter(|f| *f != p).collect();
        let inside = |e: &Evaluation| !is_worse(loss, e, &best.evaluation);
        let Some(refined) = refine(evaluator, &start, &others, REFINEMENTS, inside)? else { break };
        let Some(found) = search(evaluator, &refined.point, &others, refit, inside)? else { break };
        if !is_worse(loss, &found.evaluation, &best.evaluation) {
            (at, left, kept[i]) = (found, others, true);
        }
    }
    let fine = Effort { step: 0.125, least_step: 1.0 / 256.0, evaluations: evaluator.left() };
    let refined = refine(evaluator, &at.point, &left, REFINEMENTS, never)?.unwrap_or(at);
    let last = search(evaluator, &refined.point, &left, fine, never)?;
    Ok((last.unwrap_or(refined), kept))
}

fn parameters(
    model: &Model,
    settings: &Settings,
    free: &[Parameter],
    intervals: &Intervals,
    kept: &[bool; COUNT],
) -> Vec<FittedParameter> {
    let own = model.profile_settings();
    let one = |p: Parameter| {
        let interval = intervals[p.index()];
        let end = |at: Option<f64>| at.map(|at| model.space.value(p, at));
        let verdict = match (free.contains(&p), interval) {
            (false, _) => Verdict::Fixed,
            (true, None) => Verdict::NotExamined,
            (true, Some(interval)) => interval.verdict(),
        };
        FittedParameter {
            name: p,
            unit: p.unit(),
            profile: own.get(p) as f64,
            fitted: settings.get(p) as f64,
            kept: kept[p.index()],
            verdict,
            low: interval.and_then(|i| end(i.low)),
            high: interval.and_then(|i| end(i.high)),
        }
    };
    Parameter::iter().map(one).collect()
}
