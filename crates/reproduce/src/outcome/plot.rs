//! Plots of tables: a self-contained SVG, legible on light and dark backgrounds.

use super::format::seconds;
use super::{Cell, OutcomeTable};
use frit_core::size;
use maud::{Markup, html};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
/// Plot area: left, top, right, bottom.
const AREA: (f64, f64, f64, f64) = (80.0, 50.0, 560.0, 450.0);
/// Distance between entries of the legend.
const LEADING: f64 = 18.0;

/// Colors of Okabe and Ito (2008), *Color Universal Design*.
const HUES: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];
/// Dash patterns that distinguish the lines of a color.
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// A plot of durations over sizes, both on logarithmic scales.
#[derive(Clone, PartialEq, Debug)]
pub struct LogPlot {
    /// Description.
    pub about: String,
    /// Title.
    pub title: String,
    /// Line below the title.
    pub note: String,
    /// Label of the horizontal axis.
    pub axis: String,
    /// Table of the lines: sizes are headings, each row is a line through its durations. The first
    /// name of a row has a color, the second a dash pattern.
    pub table: OutcomeTable,
    /// Lines for comparison: label, and a duration for each size.
    pub marks: Vec<(String, Vec<f64>)>,
}

/// A row of the table.
struct PlotLine {
    names: Vec<String>,
    /// Durations; `None`: the line is interrupted.
    points: Vec<Option<f64>>,
}

impl LogPlot {
    /// Returns the plot as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        drawing(self).into_string()
    }

    /// Returns the values of the horizontal axis, in bytes.
    fn sizes(&self) -> Vec<u64> {
        let size = |c: &Cell| match c {
            Cell::Size(bytes) => Some(*bytes),
            _ => None,
        };
        self.table.head.iter().filter_map(size).collect()
    }

    fn lines(&self) -> Vec<PlotLine> {
        let line = |row: &Vec<Cell>| {
            let (names, points) = row.split_at(self.table.names.min(row.len()));
            PlotLine {
                names: names.iter().map(Cell::to_string).collect(),
                points: points.iter().map(Cell::duration).collect(),
            }
        };
        self.table.rows.iter().map(line).collect()
    }
}

/// Logarithmic ranges of both axes, in powers of two and of ten.
struct Scales {
    sizes: (f64, f64),
    durations: (f64, f64),
}

impl Scales {
    fn of(p: &LogPlot, sizes: &[u64], lines: &[PlotLine]) -> Scales {
        let ends = |all: &mut dyn Iterator<Item = f64>| {
            all.filter(|v| *v > 0.0).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)))
        };
        let sizes = ends(&mut sizes.iter().map(|v| *v as f64));
        let marks = p.marks.iter().flat_map(|m| m.1.iter().copied());
        let points = lines.iter().flat_map(|l| l.points.iter().copied().flatten());
        let (low, high) = ends(&mut points.chain(marks));
        let decade = |v: f64, up: bool| 10f64.powf(if up { v.log10().ceil() } else { v.log10().floor() });
        match low <= high {
            true => Scales { sizes, durations: (decade(low, false), decade(high, true)) },
            false => Scales { sizes, durations: (1e-6, 1.0) },
        }
    }

    fn x(&self, v: f64) -> f64 {
        let (from, to) = self.sizes;
        let share = if to > from { (v / from).ln() / (to / from).ln() } else { 0.5 };
        AREA.0 + share * (AREA.2 - AREA.0)
    }

    fn y(&self, v: f64) -> f64 {
        let (from, to) = self.durations;
        let share = if to > from { (v / from).ln() / (to / from).ln() } else { 0.5 };
        AREA.3 - share * (AREA.3 - AREA.1)
    }

    fn decades(&self) -> Vec<f64> {
        let (from, to) = self.durations;
        let (low, high) = (from.log10().round() as i32, to.log10().round() as i32);
        (low..=high).map(|d| 10f64.powi(d)).collect()
    }
}

fn drawing(p: &LogPlot) -> Markup {
    let (sizes, plotted) = (p.sizes(), p.lines());
    let s = Scales::of(p, &sizes, &plotted);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT)
            font-family="sans-serif" font-size="12" role="img" aria-label=(p.about) {
            rect width="100%" height="100%" fill="#ffffff" {}
            text x=(AREA.0) y="20" font-size="14" fill="#000000" { (p.title) }
            text x=(AREA.0) y="38" fill="#444444" { (p.note) }
            (axes(p, &sizes, &s))
            @for (i, (name, durations)) in p.marks.iter().enumerate() {
                path fill="none" stroke="#000000" stroke-dasharray=(DASHES[1 + i % 3])
                    d=(path(sizes.iter().zip(durations).map(|(v, d)| Some((s.x(*v as f64), s.y(*d)))))) {}
                (entry(i, "#000000", DASHES[1 + i % 3], name))
            }
            (lines(p, &sizes, &plotted, &s))
        }
    }
}

fn axes(p: &LogPlot, sizes: &[u64], s: &Scales) -> Markup {
    html! {
        @for v in s.decades() {
            line x1=(AREA.0) x2=(AREA.2) y1=(px(s.y(v))) y2=(px(s.y(v))) stroke="#dddddd" {}
            text x=(AREA.0 - 8.0) y=(px(s.y(v) + 4.0)) text-anchor="end" fill="#000000" { (seconds(v)) }
        }
        @for v in sizes.iter().map(|v| *v as f64) {
            line x1=(px(s.x(v))) x2=(px(s.x(v))) y1=(AREA.1) y2=(AREA.3) stroke="#dddddd" {}
            text x=(px(s.x(v))) y=(AREA.3 + 18.0) text-anchor="middle" fill="#000000" { (size::format(v as u64)) }
        }
        rect x=(AREA.0) y=(AREA.1) width=(AREA.2 - AREA.0) height=(AREA.3 - AREA.1) fill="none" stroke="#000000" {}
        text x=(px((AREA.0 + AREA.2) / 2.0)) y=(AREA.3 + 40.0) text-anchor="middle" fill="#000000" { (p.axis) }
    }
}

/// Draws the rows that have a duration.
fn lines(p: &LogPlot, sizes: &[u64], all: &[PlotLine], s: &Scales) -> Markup {
    let (mut first, mut second): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut shown = Vec::new();
    for l in all.iter().filter(|l| l.points.iter().any(Option::is_some)) {
        let name = |i: usize| l.names.get(i).map_or("", String::as_str);
        let (hue, dash) = (place(&mut first, name(0)), place(&mut second, name(1)));
        shown.push((l, HUES[hue % HUES.len()], DASHES[dash % DASHES.len()]));
    }
    html! {
        @for (i, (l, hue, dash)) in shown.iter().enumerate() {
            path fill="none" stroke=(hue) stroke-width="2" stroke-dasharray=(dash)
                d=(path(sizes.iter().zip(&l.points).map(|(v, d)| d.map(|d| (s.x(*v as f64), s.y(d)))))) {}
            (entry(p.marks.len() + i, hue, dash, &l.names.join(", ")))
        }
    }
}

/// Returns the index of a name, which is appended if it is new.
fn place<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    names.iter().position(|n| *n == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

fn entry(i: usize, hue: &str, dash: &str, name: &str) -> Markup {
    let (x, y) = (AREA.2 + 15.0, AREA.1 + 8.0 + i as f64 * LEADING);
    html! {
        line x1=(x) x2=(x + 26.0) y1=(y) y2=(y) stroke=(hue) stroke-width="2" stroke-dasharray=(dash) {}
        text x=(x + 32.0) y=(y + 4.0) font-size="11" fill="#000000" { (name) }
    }
}

/// Returns the SVG path through points, interrupted at missing ones.
fn path(points: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let (mut out, mut pen) = (String::new(), 'M');
    for p in points {
        match p {
            Some((x, y)) => {
                out += &format!("{pen}{} {}", px(x), px(y));
                pen = 'L';
            }
            None => pen = 'M',
        }
    }
    out
}

fn px(v: f64) -> String {
    format!("{v:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines_through_their_durations() {
        let row = |name: &str, points: [Cell; 3]| {
            [Cell::text(name), Cell::text("log")].into_iter().chain(points).collect::<Vec<_>>()
        };
        let never = || Cell::text("never");
        let mut table = OutcomeTable::new(2, &["workload", "variant"], Vec::new());
        table.head.extend([4096, 8192, 16384].map(Cell::Size));
        table.rows.push(row("crosses", [Cell::Duration(0.001), Cell::Duration(0.01), never()]));
        table.rows.push(row("does not", [never(), never(), never()]));
        let plot = LogPlot {
            about: "a < b".into(),
            title: "durations".into(),
            note: String::new(),
            axis: "unit".into(),
            table,
            marks: vec![("100 ms".into(), vec![0.1; 3])],
        };
        let svg = plot.svg();
        // Sizes are in powers of two, durations in powers of ten, with steps of equal length.
        assert!(svg.contains("M80.0 450.0L320.0 250.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("crosses, log") && !svg.contains("does not, log"));
        assert!(svg.contains("100 ms") && svg.contains("8 KiB"));
    }
}
