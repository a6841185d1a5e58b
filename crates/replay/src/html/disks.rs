//! Load of the disks, and distances between their requests.

use super::draw::{Axes, PlotAxis, Rect, figure, svg};
use super::numbers::{px, tick, tick_percent};
use super::scale::Scale;
use crate::report::show::{count, figure as number, percent, ratio_or_dash, time};
use crate::report::{DiskReport, DistanceBucket, MediumReport, Report};
use maud::{Markup, html};

const WIDTH: f64 = 1080.0;
/// Minimum length of the axis of distances, in powers of two: a shorter one would have fractional
/// ticks.
const POWERS: u32 = 10;

/// Draws the section of the disks, if the stack has any.
pub(super) fn section(r: &Report) -> Option<Markup> {
    let all: Vec<(&MediumReport, &DiskReport)> =
        r.media.iter().filter_map(|m| Some((m, m.disk.as_ref()?))).collect();
    let section = html! {
        (table(&all))
        @for (m, d) in &all {
            (figure(&format!("{}: distances between requests", m.name), &note(d), &distances(m, d)))
        }
    };
    (!all.is_empty()).then_some(section)
}

fn table(all: &[(&MediumReport, &DiskReport)]) -> Markup {
    let shown = |v: Option<f64>, show: fn(f64) -> String| v.map_or_else(|| "–".into(), show);
    html! {
        div class="scroll" { table {
            thead { tr {
                th { "disk" } th class="num" { "reads" } th class="num" { "writes" } th class="num" { "flushes" }
                th class="num" { "busy" } th class="num" { "time per request" } th class="num" { "requests/s" }
                th class="num" { "MB/s" } th class="num" { "mean distance" } th class="num" { "sequential" }
                th class="num" { "traffic rate" }
            } }
            tbody { @for (m, d) in all { tr {
                td { (m.name) } td class="num" { (count(m.reads.commands)) } td class="num" { (count(m.writes.commands)) }
                td class="num" { (count(d.flushes)) } td class="num" { (time(d.busy_ns as f64)) }
                td class="num" { (shown(d.served_mean_ns, time)) } td class="num" { (number(d.requests_per_s)) }
                td class="num" { (number(d.mb_per_s)) } td class="num" { (shown(d.distance_mean_sectors, number)) }
                td class="num" { (shown(d.sequential(), percent)) } td class="num" { (ratio_or_dash(d.traffic_rate)) }
            } } }
        } }
        p class="soft" {
            "Busy is the time of commands that the host waited for; the traffic rate is the number of sectors accessed on the disk for \
             each sector that the host read or wrote."
        }
    }
}

fn note(d: &DiskReport) -> String {
    let mean = d.distance_mean_sectors.map_or_else(|| "–".into(), number);
    format!(
        "From the end of a request to the first sector of the next one served, in sectors of 512 bytes, in either direction. Mean {mean}."
    )
}

/// Formats the number of sectors at a position of the axis, which is a power of two.
fn sectors(power: f64) -> String {
    tick(power.exp2())
}

/// Returns the power of two that is above all distances of a bucket.
fn power(b: &DistanceBucket) -> u32 {
    u64::BITS - b.to_sectors.leading_zeros()
}

fn distances(m: &MediumReport, d: &DiskReport) -> Markup {
    let all = d.distances.iter().map(|b| b.count).sum::<u64>();
    if all == 0 {
        return html! { p { "There were fewer than two requests." } };
    }
    let share = |b: &DistanceBucket| b.count as f64 / all as f64;
    let most = d.distances.iter().map(share).fold(0.0, f64::max);
    let last = d.distances.iter().map(power).max().unwrap_or(0).max(POWERS);
    let scale = Scale::Linear { from: -1.0, to: f64::from(last) };
    let axes = Axes {
        area: Rect { left: 62.0, top: 26.0, width: WIDTH - 70.0, height: 150.0 },
        x: PlotAxis { scale, name: "distance, below this number of sectors", label: sectors, ticks: 12 },
        y: PlotAxis { scale: Scale::up_to(most), name: "requests", label: tick_percent, ticks: 5 },
    };
    svg(
        WIDTH,
        222.0,
        &format!("distances between requests of {}", m.name),
        &html! {
            (axes.draw())
            @for b in &d.distances {
                @let (left, right) = (axes.x(f64::from(power(b)) - 0.95), axes.x(f64::from(power(b)) - 0.05));
                @let top = axes.y(share(b));
                rect class="bar f-blue" x=(px(left)) y=(px(top)) width=(px((right - left).max(1.0))) height=(px(axes.area.bottom() - top)) {
                    title { (span(b)) ": " (count(b.count)) " requests, " (percent(share(b))) }
                }
            }
        },
    )
}

fn span(b: &DistanceBucket) -> String {
    match b.to_sectors {
        0 => "0: continues the previous request".into(),
        1 => "1 sector".into(),
        to => format!("{} to {} sectors", count(to / 2 + 1), count(to)),
    }
}
