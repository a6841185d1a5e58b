//! Waiting and service times of media commands, by operation and cause.

use super::colour;
use super::draw::{PlotAxis, Rect, figure, svg, x_axis};
use super::numbers::{px, tick_time};
use super::scale::Scale;
use crate::report::show::{count, percent, time};
use crate::report::{CommandTimeRow, Report};
use maud::{Markup, html};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 178.0;
const ROW: f64 = 24.0;
/// Shortest wait that is drawn, as a fraction of the shortest service time. Shorter waits would
/// stretch the axis over an empty range.
const WAIT_DRAWN_MIN: f64 = 0.05;

/// Draws mean waiting and service times on a logarithmic axis, and the same values as a table.
pub(super) fn section(r: &Report) -> Markup {
    let rows = &r.command_times;
    if rows.is_empty() {
        return html! { p { "No command was issued." } };
    }
    figure(
        "Mean time of commands by operation and cause",
        "Filled: mean service time, from the time at which a command got its unit to its end. Hollow: mean waiting time for the unit \
         before that; waits far shorter than any service time are not drawn.",
        &html! { (dots(rows)) (table(rows)) },
    )
}

fn name(c: &CommandTimeRow) -> String {
    format!("{}, {}", c.op, c.cause)
}

fn dots(rows: &[CommandTimeRow]) -> Markup {
    let served = rows.iter().map(|c| c.served_mean_ns).filter(|t| *t >= 1.0);
    let least = served.clone().fold(f64::MAX, f64::min) * WAIT_DRAWN_MIN;
    let waits = rows.iter().map(|c| c.waited_mean_ns).filter(|t| *t >= least.max(1.0));
    let scale = Scale::log(served.chain(waits));
    let axis = PlotAxis { scale, name: "mean time of a command", label: tick_time, ticks: 16 };
    let a = Rect { left: LEFT, top: 6.0, width: WIDTH - LEFT - 40.0, height: ROW * rows.len() as f64 };
    let x = |t: f64| px(a.left + axis.scale.at(t) * a.width);
    svg(
        WIDTH,
        a.bottom() + 44.0,
        "mean time of commands",
        &html! {
            (x_axis(&a, &axis, true))
            @for (i, c) in rows.iter().enumerate() {
                @let y = px(a.top + ROW * (i as f64 + 0.5));
                @let colour = colour::cause(c.cause);
                text class="end ink" x=(px(LEFT - 10.0)) y=(px(a.top + ROW * (i as f64 + 0.5) + 4.0)) { (name(c)) }
                line class="gridline" x1=(px(a.left)) x2=(px(a.right())) y1=(y) y2=(y) {}
                @if c.waited_mean_ns >= scale.ends().0 {
                    circle class={ "hollow k-" (colour) } cx=(x(c.waited_mean_ns)) cy=(y) r="5.5" {
                        title { (name(c)) ": mean waiting time " (time(c.waited_mean_ns)) }
                    }
                }
                @if c.served_mean_ns >= 1.0 {
                    circle class={ "bar f-" (colour) } cx=(x(c.served_mean_ns)) cy=(y) r="5.5" {
                        title { (name(c)) ": mean service time " (time(c.served_mean_ns)) }
                    }
                }
            }
        },
    )
}

/// Returns the total service time of the commands of a row.
fn work(c: &CommandTimeRow) -> f64 {
    c.served_mean_ns * c.commands as f64
}

fn table(rows: &[CommandTimeRow]) -> Markup {
    let all = rows.iter().map(work).sum::<f64>().max(1.0);
    html! {
        details {
            summary { "Table, with the share of each row in the total service time" }
            div class="scroll" { table {
                thead { tr {
                    th { "operation" } th { "cause" } th class="num" { "commands" } th class="num" { "waited, mean" }
                    th class="num" { "served, mean" } th class="num" { "served, in all" } th class="num" { "share" }
                } }
                tbody { @for c in rows { tr {
                    td { (c.op) } td { (c.cause) } td class="num" { (count(c.commands)) }
                    td class="num" { (time(c.waited_mean_ns)) } td class="num" { (time(c.served_mean_ns)) }
                    td class="num" { (time(work(c))) } td class="num" { (percent(work(c) / all)) }
                } } }
            } }
        }
    }
}
