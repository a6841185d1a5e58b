//! Latency distributions: cumulative share and tail.

use super::colour::Colour;
use super::draw::{Axes, PlotAxis, Rect, field, line, svg};
use super::numbers::{tick_percent, tick_time};
use super::scale::Scale;
use crate::report::{Distribution, LatencyBucket};
use maud::{Markup, html};
use serde_json::json;

/// Size of a drawing; two fit beside each other.
const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 320.0;
/// Smallest share that the tail shows.
const TAIL_SHARE_MIN: f64 = 1e-6;

/// A curve of a distribution.
#[derive(Clone, Debug)]
pub(super) struct Curve<'a> {
    pub(super) name: String,
    pub(super) colour: Colour,
    /// The curve is dashed: service time beside response time.
    pub(super) dashed: bool,
    pub(super) of: &'a Distribution,
}

impl Curve<'_> {
    fn all(&self) -> u64 {
        self.of.buckets.iter().map(|b| b.count).sum()
    }

    /// Returns the left end of the axis for this curve: 1 % of the times that are not zero are
    /// below it. A flush without pending work takes no time, and must not stretch the axis over six
    /// empty decades.
    fn axis_start(&self) -> Option<f64> {
        let above: Vec<&LatencyBucket> = self.of.buckets.iter().filter(|b| b.to_ns > 1).collect();
        let (all, mut sum) = (above.iter().map(|b| b.count).sum::<u64>(), 0);
        let quick = |b: &&&LatencyBucket| {
            sum += b.count;
            sum * 100 >= all
        };
        above.iter().find(quick).map(|b| b.to_ns as f64)
    }

    fn axis_end(&self) -> Option<f64> {
        self.of.buckets.last().map(|b| b.to_ns.max(1) as f64)
    }

    /// Returns, for each bucket, its upper end in nanoseconds (at least 1) and the share of times
    /// up to it.
    fn steps(&self) -> Vec<(f64, f64)> {
        let (all, mut sum) = (self.all().max(1) as f64, 0);
        let share = |b: &LatencyBucket| {
            sum += b.count;
            (b.to_ns.max(1) as f64, sum as f64 / all)
        };
        self.of.buckets.iter().map(share).collect()
    }
}

/// Draws the legend of the curves.
pub(super) fn legend(curves: &[Curve<'_>]) -> Markup {
    html! {
        ul class="legend" {
            @for c in curves {
                li { i class={ "stroke e-" (c.colour) @if c.dashed { " dashed" } } {} (c.name) }
            }
        }
    }
}

fn axes(curves: &[Curve<'_>], y: PlotAxis<'static>) -> Axes<'static> {
    let ends = curves.iter().flat_map(|c| [c.axis_start(), c.axis_end()]).flatten();
    let x = PlotAxis { scale: Scale::log(ends), name: "time", label: tick_time, ticks: 9 };
    Axes { area: Rect { left: 62.0, top: 26.0, width: WIDTH - 84.0, height: HEIGHT - 70.0 }, x, y }
}

/// Draws the cumulative distribution (CDF): the share of requests that are completed within a time.
pub(super) fn cdf(curves: &[Curve<'_>]) -> Markup {
    let scale = Scale::Linear { from: 0.0, to: 1.0 };
    let y = PlotAxis { scale, name: "requests completed within the time", label: tick_percent, ticks: 5 };
    draw(curves, &axes(curves, y), false)
}

/// Draws the tail (complementary CDF): the share of requests that take longer than a time, down to
/// one in a million.
pub(super) fn ccdf(curves: &[Curve<'_>]) -> Markup {
    let most = curves.iter().map(Curve::all).max().unwrap_or(1).max(10);
    let least = 10f64.powf((1.0 / most as f64).log10().floor()).max(TAIL_SHARE_MIN);
    let scale = Scale::Log { from: least, to: 1.0 };
    let y = PlotAxis { scale, name: "requests that take longer", label: tick_percent, ticks: 7 };
    draw(curves, &axes(curves, y), true)
}

fn draw(curves: &[Curve<'_>], axes: &Axes<'_>, tail: bool) -> Markup {
    let (from, to) = axes.x.scale.ends();
    let series = |c: &Curve<'_>| {
        let of = |f: fn(&LatencyBucket) -> u64| c.of.buckets.iter().map(f).collect::<Vec<_>>();
        json!({ "name": c.name, "all": c.all(), "to": of(|b| b.to_ns), "count": of(|b| b.count) })
    };
    let values = json!({
        "from": from.log10(), "to": to.log10(), "tail": tail,
        "series": curves.iter().map(series).collect::<Vec<_>>(),
    });
    let name = if tail {
        "share of requests that take longer than a time"
    } else {
        "share of requests completed within a time"
    };
    svg(
        WIDTH,
        HEIGHT,
        name,
        &html! {
            (axes.draw())
            @for c in curves {
                path class={ "series k-" (c.colour) @if c.dashed { " dashed" } } d=(curve(c, axes, tail)) {}
            }
            (field(&axes.area, "distribution", &values))
        },
    )
}

/// Returns the path of a step function: between two buckets the share is that of the lower one.
fn curve(c: &Curve<'_>, axes: &Axes<'_>, tail: bool) -> String {
    let steps = c.steps();
    let height = |share: f64| axes.y(if tail { 1.0 - share } else { share });
    let mut share = 0.0;
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * steps.len() + 2);
    points.push((axes.area.left, height(0.0)));
    for (to, after) in steps {
        points.push((axes.x(to), height(share)));
        points.push((axes.x(to), height(after)));
        share = after;
    }
    if !tail && share > 0.0 {
        points.push((axes.area.right(), height(share)));
    }
    line(points.into_iter())
}
