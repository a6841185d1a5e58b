//! Break-even points: prices at which one variant of a stack begins to cost less than another.

use super::runs::{ComparisonRuns, ComparisonWorkload, RunRequest, includes_workload};
use super::{BreakEven, Crossing, CrossingLine, CrossingPlan, CrossingPoint};
use crate::Result;
use crate::describe::{Comparison, MetricExpr, Variant};
use crate::sweep::RunMetrics;
use frit_core::size;

pub(super) fn crossing<'h>(
    x: &CrossingPlan,
    comparison: &'h Comparison,
    here: &'h [ComparisonWorkload<'h>],
    sheet: &mut ComparisonRuns<'_>,
    quick: bool,
    note: &mut dyn FnMut(&str),
) -> Result<Crossing> {
    let (view, base) = (comparison.view(&x.view)?, comparison.variant(&x.base)?);
    let mut values = x.axis.values.clone();
    if quick {
        values.truncate(2);
    }
    let at = |variant: &Variant, value: &String| {
        let own = [format!("{}={value}", x.axis.key)];
        let set = variant.set.iter().chain(&x.set).cloned().chain(own).collect();
        Variant { set, ..variant.clone() }
    };
    let mut wanted: Vec<RunRequest<'h>> = Vec::new();
    let shown = || here.iter().filter(|h| includes_workload(x.workloads.as_deref(), h));
    for h in shown() {
        // The baseline does not depend on the varied parameter, so one run of it is enough.
        wanted.push((view, h, base.clone()));
        for variant in &x.variants {
            let of = comparison.variant(variant)?;
            wanted.extend(values.iter().map(|v| (view, h, at(of, v))));
        }
    }
    sheet.run(&wanted, note)?;
    let mut lines = Vec::new();
    for h in shown() {
        let cost = figure(&x.cost, &sheet.figures(&(view, h, base.clone()))?);
        for variant in &x.variants {
            let of = comparison.variant(variant)?;
            let points = values.iter().map(|v| {
                let f = sheet.figures(&(view, h, at(of, v)))?;
                Ok(point(cost, figure(&x.cost, &f), figure(&x.per, &f), &x.prices))
            });
            lines.push(CrossingLine {
                workload: h.spec.name.clone(),
                kind: h.input.kind,
                variant: variant.clone(),
                points: points.collect::<Result<_>>()?,
            });
        }
    }
    let values: Vec<u64> = values.iter().filter_map(|v| size::parse(v).ok()).collect();
    let marks = x.marks.iter().map(|m| (m.name.clone(), values.iter().map(|v| m.price(*v as f64)).collect()));
    Ok(Crossing {
        about: x.about.clone(),
        base: x.base.clone(),
        axis: x.axis.name.clone(),
        price: x.price.clone(),
        prices: x.prices.clone(),
        marks: marks.collect(),
        values,
        lines,
    })
}

fn figure(value: &MetricExpr, figures: &RunMetrics) -> f64 {
    value.of(&|n| figures.get(n), None).unwrap_or(0.0)
}

fn point(base: f64, cost: f64, per: f64, prices: &[f64]) -> CrossingPoint {
    let even = match (base - cost, per) {
        (saved, _) if saved <= 0.0 => BreakEven::Never,
        (_, 0.0) => BreakEven::Always,
        (saved, per) => BreakEven::At(saved / per),
    };
    let ratio = |price: f64| if base == 0.0 { 0.0 } else { (cost + price * per) / base };
    CrossingPoint { even, count: per, free: ratio(0.0), ratios: prices.iter().map(|p| ratio(*p)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cost_the_same_at_the_even_price() {
        let p = point(10.0, 8.0, 4.0, &[0.0, 0.5, 1.0]);
        assert_eq!((p.even, p.free), (BreakEven::At(0.5), 0.8));
        assert_eq!(p.ratios, [0.8, 1.0, 1.2]);
        assert_eq!(point(10.0, 11.0, 4.0, &[]).even, BreakEven::Never);
        assert_eq!(point(10.0, 9.0, 0.0, &[]).even, BreakEven::Always);
    }
}
