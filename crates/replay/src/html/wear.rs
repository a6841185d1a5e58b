//! Wear of media: distribution over addresses, and evenness.

use super::draw::{Axes, PlotAxis, Rect, field, figure, svg};
use super::heat_map::{ColourScale, cells};
use super::numbers::{px, tick, tick_percent};
use super::scale::Scale;
use crate::report::show::{count, figure as number};
use crate::report::{MediumReport, Report, WearBucket};
use frit_core::MediumKind;
use maud::{Markup, html};
use serde_json::json;

/// Number of columns of a map whose rows have no meaning.
const COLUMNS: usize = 64;
/// Maximum number of units that get a row each; with more units, rows have no meaning.
const ROWS: usize = 64;
const WIDTH: f64 = 1080.0;

/// Draws maps and histograms of all media that wear.
pub(super) fn section(r: &Report) -> Markup {
    let media: Vec<&MediumReport> = r.media.iter().filter(|m| !m.wear.map.mean.is_empty()).collect();
    html! {
        @if media.is_empty() { p { "No medium of this stack wears." } }
        @for m in media.iter().filter(|m| m.wear.run.max == 0) { p { (unworn(m)) } }
        @for m in media.iter().filter(|m| m.wear.run.max > 0) {
            (figure(&format!("{}: wear by address", m.name), &note(m), &map(m)))
            (figure(&format!("{}: how evenly", m.name), &evenness(m), &histogram(m)))
        }
    }
}

/// Describes a medium without wear in the measured part.
fn unworn(m: &MediumReport) -> String {
    let total = &m.wear.total;
    let before = if total.max > 0 {
        format!("; before that, mean {}, maximum {}", number(total.mean), count(u64::from(total.max)))
    } else {
        String::new()
    };
    format!("{}: no {} in the measured part{before}.", m.name, cycles(m))
}

/// Returns the name of a wear cycle.
fn cycles(m: &MediumReport) -> &'static str {
    if m.kind == MediumKind::Nand { "erases" } else { "writes" }
}

/// Returns the name of a group, without its size.
fn group(m: &MediumReport) -> &str {
    m.wear.per.split(' ').next().unwrap_or("group")
}

fn groups(m: &MediumReport) -> u64 {
    m.wear.histogram.iter().map(|b| b.groups).sum()
}

fn note(m: &MediumReport) -> String {
    let l = WearMapLayout::of(m);
    let order = match &l.units {
        Some(_) => "one row per unit, in order of address from left to right",
        None => "in order of address, left to right, row by row",
    };
    let share = match m.wear.map.groups {
        1 => format!("Each cell is a {}", m.wear.per),
        n => format!("Each cell is the mean of {} groups (a {} each)", count(u64::from(n)), m.wear.per),
    };
    let bad = match (m.wear.bad, m.kind) {
        (0, _) => String::new(),
        (n, MediumKind::Nand) => format!(" {} out of use.", count(u64::from(n))),
        (n, _) => format!(" {} written beyond the endurance and still in use.", count(u64::from(n))),
    };
    format!("{share}; {order}. {} in the measured part.{bad}", capital(cycles(m)))
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

fn evenness(m: &MediumReport) -> String {
    let (run, total) = (&m.wear.run, &m.wear.total);
    format!(
        "Measured part: mean {} {} per {}, minimum {}, maximum {}, standard deviation {}. Since new: mean {}, maximum {} of {} specified ({}).",
        number(run.mean),
        cycles(m),
        group(m),
        count(u64::from(run.min)),
        count(u64::from(run.max)),
        number(run.deviation),
        number(total.mean),
        count(u64::from(total.max)),
        count(m.wear.limit),
        tick_percent(f64::from(total.max) / m.wear.limit.max(1) as f64)
    )
}

/// Arrangement of the cells of a map.
struct WearMapLayout {
    columns: usize,
    rows: usize,
    /// Names of the rows, if each row is a unit.
    units: Option<Vec<String>>,
}

impl WearMapLayout {
    fn of(m: &MediumReport) -> WearMapLayout {
        let places = m.wear.map.mean.len();
        let units = m.geometry.get("units").map_or(0, |&u| u as usize);
        let channels = m.geometry.get("channels").map_or(1, |&c| c.max(1));
        let even = groups(m) == places as u64 * u64::from(m.wear.map.groups);
        // Only NAND numbers its blocks through a unit; PCM stripes its lines over channels.
        if m.kind == MediumKind::Nand && even && (1..=ROWS).contains(&units) && places.is_multiple_of(units) {
            let name = |u| format!("unit {u}, channel {}", u as u64 % channels);
            return WearMapLayout {
                columns: places / units,
                rows: units,
                units: Some((0..units).map(name).collect()),
            };
        }
        let columns = COLUMNS.min(places).max(1);
        WearMapLayout { columns, rows: places.div_ceil(columns), units: None }
    }

    /// Returns the label of a row.
    fn name(&self, m: &MediumReport, row: usize) -> String {
        match &self.units {
            Some(_) => format!("unit {row}"),
            None => count(row as u64 * self.columns as u64 * u64::from(m.wear.map.groups)),
        }
    }
}

fn map(m: &MediumReport) -> Markup {
    let layout = WearMapLayout::of(m);
    let map = &m.wear.map;
    let ramp = ColourScale::of(map.mean.iter().map(|&v| f64::from(v)));
    let levels: Vec<usize> = map.mean.iter().map(|&v| ramp.level(f64::from(v))).collect();
    let row = if layout.rows > 24 { 9.0 } else { 15.0 };
    let a = Rect { left: 78.0, top: 22.0, width: WIDTH - 80.0, height: row * layout.rows as f64 };
    let every = if row < 12.0 { 4 } else { 1 };
    let values = json!({
        "columns": layout.columns, "groups": map.groups, "total": groups(m), "what": group(m), "cycles": cycles(m),
        "named": layout.units.is_some(),
        "rows": layout.units.clone().unwrap_or_else(|| vec![String::new(); layout.rows]),
        "mean": map.mean, "max": map.max,
    });
    let head = if layout.units.is_some() {
        format!("{}s of the unit, in order of address →", group(m))
    } else {
        format!("first {} of the row", group(m))
    };
    html! {
        (svg(WIDTH, a.bottom() + 6.0, &format!("wear map of {}", m.name), &html! {
            text x=(px(if layout.units.is_some() { a.left } else { 0.0 })) y="13" { (head) }
            @for i in (0..layout.rows).step_by(every) {
                text class="end" x=(px(a.left - 8.0)) y=(px(a.top + row * (i as f64 + 0.5) + 4.0)) { (layout.name(m, i)) }
            }
            (cells(&a, layout.columns, levels.chunks(layout.columns), layout.rows))
            (field(&a, "wear", &values))
        }))
        (ramp.legend(|v| format!("{} {} per {}", number(v), cycles(m), group(m))))
    }
}

fn histogram(m: &MediumReport) -> Markup {
    let buckets = &m.wear.histogram;
    let most = buckets.iter().map(|b| b.groups).max().unwrap_or(0);
    // A linear axis would hide the few groups with the most wear, which are the important ones.
    let rare = buckets.iter().any(|b| b.groups > 0 && b.groups * 100 < most);
    let scale = match rare {
        true => Scale::Log { from: 0.5, to: super::numbers::ceiling(most as f64) },
        false => Scale::up_to(most as f64),
    };
    let (from, to) = (buckets.first().map_or(0, |b| b.from), buckets.last().map_or(0, |b| b.to));
    let x = Scale::Linear { from: f64::from(from) - 0.5, to: f64::from(to) + 0.5 };
    let x_name = format!("{} per {} in the measured part", cycles(m), group(m));
    let y_name = format!("{}s{}", group(m), if rare { " (logarithmic)" } else { "" });
    let axes = Axes {
        area: Rect { left: 62.0, top: 26.0, width: WIDTH - 70.0, height: 150.0 },
        x: PlotAxis { scale: x, name: &x_name, label: tick, ticks: 12.min((to - from) as usize + 1) },
        y: PlotAxis { scale, name: &y_name, label: tick, ticks: if rare { 7 } else { 5.min(most as usize) } },
    };
    svg(
        WIDTH,
        222.0,
        &format!("wear histogram of {}", m.name),
        &html! {
            (axes.draw())
            @for b in buckets.iter().filter(|b| b.groups > 0) { (column(b, &axes, m)) }
        },
    )
}

fn column(b: &WearBucket, axes: &Axes<'_>, m: &MediumReport) -> Markup {
    let (left, right) = (axes.x(f64::from(b.from) - 0.5), axes.x(f64::from(b.to) + 0.5));
    let top = axes.y(b.groups as f64);
    let span = if b.from == b.to {
        count(u64::from(b.from))
    } else {
        format!("{} to {}", count(u64::from(b.from)), count(u64::from(b.to)))
    };
    html! {
        rect class="bar f-blue" x=(px(left)) y=(px(top)) width=(px((right - left).max(1.0))) height=(px(axes.area.bottom() - top)) {
            title { (span) " " (cycles(m)) ": " (count(b.groups)) " " (group(m)) "s" }
        }
    }
}
