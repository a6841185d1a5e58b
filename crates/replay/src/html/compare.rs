//! Comparison of several runs: one chart per workload, relative to the first run.

use super::colour;
use super::distribution::{self, Curve};
use super::draw::{Rect, figure, legend, svg};
use super::findings;
use super::head;
use super::numbers::{ceiling, px, tick};
use super::scale::Scale;
use crate::report::Report;
use crate::report::compare::{ComparedRow, compared_rows, numbered};
use maud::{Markup, html};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 300.0;
/// Width of the values to the right of the bars.
const RIGHT: f64 = 190.0;
/// Height of one bar.
const BAR: f64 = 15.0;
/// Limit of the drawn ratios, in both directions. Larger ratios are drawn at the limit; their
/// values are printed.
const RATIO_MAX: f64 = 1000.0;

/// Draws the comparisons of all groups of runs.
pub(super) fn all(reports: &[Report]) -> Markup {
    html! {
        section id="compare" {
            @for runs in reports.chunk_by(|a, b| a.workload.identity == b.workload.identity) { (group(runs)) }
        }
    }
}

/// Draws the comparison of the runs of one workload.
fn group(runs: &[Report]) -> Markup {
    let Some((first, others)) = runs.split_first() else { return html! {} };
    let stacks: Vec<&str> = runs.iter().map(|r| head::stack(&r.stack.name)).collect();
    let names = numbered(&stacks);
    let entries: Vec<_> = names.iter().enumerate().map(|(i, n)| (colour::run(i), n.clone())).collect();
    let curves: Vec<Curve<'_>> = runs
        .iter()
        .enumerate()
        .filter_map(|(i, r)| {
            Some(Curve {
                name: names[i].clone(),
                colour: colour::run(i),
                dashed: false,
                of: &r.class("all")?.response,
            })
        })
        .collect();
    let note = format!(
        "The values of {} are on the left. Bars show the other runs relative to it, on a logarithmic axis. Lower is better, except for requests/s and MB/s.",
        names[0]
    );
    html! {
        h3 { (first.workload.identity.name) " " (head::kind(first)) }
        (findings::of_runs(runs))
        (legend(&entries))
        @if others.is_empty() {
            p { "There is only one run, so there is no comparison." }
        } @else {
            (figure(&format!("Relative to {}", names[0]), &note, &bars(runs, &names)))
        }
        div class="pair" {
            (figure("Latency of reads and writes", "Response, from arrival to acknowledgement.", &distribution::cdf(&curves)))
            (figure("Tail", "The share of requests that take longer.", &distribution::ccdf(&curves)))
        }
    }
}

impl ComparedRow {
    /// Returns the metric of a run relative to the first run.
    fn ratio(&self, i: usize) -> Option<f64> {
        let first = self.values[0].filter(|f| *f != 0.0)?;
        self.values[i].map(|v| v / first)
    }
}

fn bars(runs: &[Report], names: &[String]) -> Markup {
    let rows = compared_rows(runs);
    let others = runs.len() - 1;
    let ratios = rows.iter().flat_map(|r| (1..=others).filter_map(|i| r.ratio(i)));
    let far = ratios.filter(|r| *r > 0.0).map(|r| r.max(1.0 / r)).fold(2.0, f64::max);
    // The margin of 2 % keeps the longest bar away from the end of the axis.
    let far = ceiling(far.min(RATIO_MAX) * 1.02);
    let scale = Scale::Log { from: 1.0 / far, to: far };
    let height = BAR * others as f64 + 11.0;
    let a = Rect { left: LEFT, top: 24.0, width: WIDTH - LEFT - RIGHT, height: height * rows.len() as f64 };
    let x = |v: f64| a.left + scale.at(v) * a.width;
    svg(
        WIDTH,
        a.bottom() + 24.0,
        "metrics of all runs relative to the first",
        &html! {
            @for v in scale.ticks(11) {
                line class="gridline" x1=(px(x(v))) x2=(px(x(v))) y1=(px(a.top)) y2=(px(a.bottom())) {}
                @for y in [a.top - 8.0, a.bottom() + 16.0] { text class="mid" x=(px(x(v))) y=(px(y)) { (tick(v)) "×" } }
            }
            @for (k, row) in rows.iter().enumerate() {
                @let top = a.top + height * k as f64;
                @let middle = px(top + height / 2.0 + 4.0);
                @if k > 0 { line class="gridline" x1="0" x2=(px(WIDTH)) y1=(px(top)) y2=(px(top)) {} }
                text class="ink" x="2" y=(middle) { (row.name) }
                text class="end strong" x=(px(LEFT - 12.0)) y=(middle) { (row.values[0].map_or("–".into(), row.show)) }
                @for i in 1..=others { (ratio_bar(row, i, &names[i], &a, &scale, top + 5.5 + BAR * (i - 1) as f64)) }
            }
            line class="axis" x1=(px(x(1.0))) x2=(px(x(1.0))) y1=(px(a.top)) y2=(px(a.bottom())) {}
        },
    )
}

/// Draws one bar, from 1 to the ratio, with its values.
fn ratio_bar(row: &ComparedRow, i: usize, name: &str, a: &Rect, scale: &Scale, top: f64) -> Markup {
    let Some(value) = row.values[i] else {
        return html! { text class="end" x=(px(WIDTH - 2.0)) y=(px(top + 11.5)) { "–" } };
    };
    let shown = (row.show)(value);
    let ratio = row.ratio(i);
    let text = ratio.map_or("–".into(), |r| format!("{r:.3}×"));
    let x = |v: f64| a.left + scale.at(v) * a.width;
    html! {
        @if let Some(r) = ratio {
            @let (from, to) = (x(r.min(1.0)), x(r.max(1.0)));
            rect class={ "bar f-" (colour::run(i)) } x=(px(from)) y=(px(top)) width=(px((to - from).max(1.5))) height=(px(BAR - 1.0)) {
                title { (row.name) ", " (name) ": " (shown) ", " (text) }
            }
        }
        text class="end ink" x=(px(WIDTH - 100.0)) y=(px(top + 11.5)) { (text) }
        text class="end" x=(px(WIDTH - 2.0)) y=(px(top + 11.5)) { (shown) }
    }
}
