//! Disks: what they had to do, and how far their requests are apart.

use super::draw::{Area, Axes, Axis, figure, svg};
use super::numbers::{px, tick, tick_percent};
use super::scale::Scale;
use crate::report::show::{count, figure as number, maybe, percent, time};
use crate::report::{DiskReport, DistanceBucket, MediumReport, Report};
use maud::{Markup, html};

const WIDTH: f64 = 1080.0;
/// The least that the axis of distances reaches to, in powers of two: fewer would have ticks between them.
const POWERS: u32 = 10;

/// The disks of a stack, if it has any.
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
                th class="num" { "busy" } th class="num" { "a request" } th class="num" { "requests/s" }
                th class="num" { "MB/s" } th class="num" { "mean distance" } th class="num" { "sequential" }
                th class="num" { "traffic rate" }
            } }
            tbody { @for (m, d) in all { tr {
                td { (m.name) } td class="num" { (count(m.reads.commands)) } td class="num" { (count(m.writes.commands)) }
                td class="num" { (count(d.flushes)) } td class="num" { (time(d.busy_ns as f64)) }
                td class="num" { (shown(d.served_mean_ns, time)) } td class="num" { (number(d.requests_per_s)) }
                td class="num" { (number(d.mb_per_s)) } td class="num" { (shown(d.distance_mean_sectors, number)) }
                td class="num" { (shown(d.sequential(), percent)) } td class="num" { (maybe(d.traffic_rate)) }
            } } }
        } }
        p class="soft" {
            "Busy is the time in commands that the host waited for; the traffic rate is sectors accessed on the disk for \
             each sector that the host read or wrote."
        }
    }
}

fn note(d: &DiskReport) -> String {
    let mean = d.distance_mean_sectors.map_or_else(|| "–".into(), number);
    format!(
        "From behind a request to the first sector of the next one served, in sectors of 512 bytes, either way. Mean {mean}."
    )
}

/// Two to the power of a place on the axis.
fn sectors(power: f64) -> String {
    tick(power.exp2())
}

/// Which bucket it is: the power of two that its distances are below.
fn power(b: &DistanceBucket) -> u32 {
    u64::BITS - b.to_sectors.leading_zeros()
}

fn distances(m: &MediumReport, d: &DiskReport) -> Markup {
    let all = d.distances.iter().map(|b| b.count).sum::<u64>();
    if all == 0 {
        return html! { p { "There were no two requests." } };
    }
    let share = |b: &DistanceBucket| b.count as f64 / all as f64;
    let most = d.distances.iter().map(share).fold(0.0, f64::max);
    let last = d.distances.iter().map(power).max().unwrap_or(0).max(POWERS);
    let scale = Scale::Linear { from: -1.0, to: f64::from(last) };
    let axes = Axes {
        area: Area { left: 62.0, top: 26.0, width: WIDTH - 70.0, height: 150.0 },
        x: Axis { scale, name: "distance, below so many sectors", label: sectors, ticks: 12 },
        y: Axis { scale: Scale::up_to(most), name: "requests", label: tick_percent, ticks: 5 },
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
        0 => "none: it continues the request before".into(),
        1 => "1 sector".into(),
        to => format!("{} to {} sectors", count(to / 2 + 1), count(to)),
    }
}
