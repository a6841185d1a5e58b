//! Section on steady state: the verdict and the rounds of the run.

use super::colour::Colour;
use super::draw::{Axes, PlotAxis, Rect, figure, line, svg};
use super::numbers::{px, tick};
use super::scale::Scale;
use crate::report::Report;
use crate::report::show::{count, figure as number, percent};
use crate::steady::{RANGE_MAX, Round, SLOPE_MAX, SteadyState, SteadyVerdict, Test, WINDOW};
use maud::{Markup, html};

/// Draws the verdict, the metrics it is based on, and the rounds.
pub(super) fn section(r: &Report) -> Markup {
    let s = &r.steady_state;
    html! {
        p { strong { (verdict(s)) } " " (rule()) }
        @if let Some(w) = &s.window {
            p class="soft" { "The last five rounds: "
                (test("write amplification", w.write_amplification)) "; " (test("requests/s", w.requests_per_s)) "." }
        }
        @if s.rounds.len() > 1 {
            div class="pair" {
                @if s.rounds.iter().any(|r| r.write_amplification.is_some()) {
                (rounds(s, "Write amplification, NAND", "NAND bytes programmed per byte of the host", "verm", |r| r.write_amplification))
                }
                (rounds(s, "Throughput", "requests a second", "blue", |r| r.requests_per_s))
            }
        }
    }
}

/// Returns the verdict as a sentence.
pub(super) fn verdict(s: &SteadyState) -> String {
    let of = format!("{} rounds of {} requests", s.rounds.len(), count(s.requests_a_round));
    match (s.verdict, s.round) {
        (SteadyVerdict::TooShort, _) => format!("Too short to tell: {of}, {WINDOW} are needed."),
        (SteadyVerdict::Reached, Some(k)) => format!("Reached at round {k} of {of}."),
        _ => format!("Not reached in {of}."),
    }
}

fn rule() -> String {
    format!(
        "The rule of SNIA's performance test specification: over {WINDOW} rounds both figures range over at most {} of \
         their mean, and the line through them changes by at most {}, from some round on to the end.",
        percent(RANGE_MAX),
        percent(SLOPE_MAX)
    )
}

fn test(name: &str, t: Option<Test>) -> String {
    match t {
        Some(t) => {
            format!("{name} {}, range {}, slope {}", number(t.mean), percent(t.range), percent(t.slope))
        }
        None => format!("no {name}"),
    }
}

fn rounds(s: &SteadyState, name: &str, unit: &str, colour: Colour, of: fn(&Round) -> Option<f64>) -> Markup {
    let values: Vec<(f64, f64)> =
        s.rounds.iter().enumerate().filter_map(|(i, r)| Some((i as f64 + 1.0, of(r)?))).collect();
    if values.is_empty() {
        return figure(name, "No round has this figure.", &html! {});
    }
    let axes = Axes {
        area: Rect { left: 52.0, top: 26.0, width: 470.0, height: 150.0 },
        x: PlotAxis {
            scale: Scale::Linear { from: 0.5, to: s.rounds.len() as f64 + 0.5 },
            name: "round",
            label: tick,
            ticks: 10,
        },
        y: PlotAxis {
            scale: Scale::up_to(values.iter().fold(0.0, |m, v| v.1.max(m))),
            name: unit,
            label: tick,
            ticks: 5,
        },
    };
    let from = s.round.map(|k| axes.x(f64::from(k) - WINDOW as f64 + 0.5));
    figure(
        name,
        "",
        &svg(
            540.0,
            222.0,
            name,
            &html! {
                @if let Some(from) = from {
                    rect fill="var(--zero)" x=(px(from)) y=(px(axes.area.top)) width=(px(axes.area.right() - from)) height=(px(axes.area.height)) {
                        title { "steady" }
                    }
                }
                (axes.draw())
                path class={ "series k-" (colour) } d=(line(values.iter().map(|&(x, y)| (axes.x(x), axes.y(y))))) {}
                @for &(x, y) in &values {
                    circle class={ "f-" (colour) } cx=(px(axes.x(x))) cy=(px(axes.y(y))) r="3" { title { "round " (x) ": " (number(y)) } }
                }
            },
        ),
    )
}
