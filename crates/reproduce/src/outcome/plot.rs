//! Plots of break-even prices: a self-contained SVG, legible on light and dark backgrounds.

use super::comparison::{BreakEven, Crossing};
use super::comparison_text::seconds;
use super::format::generated;
use super::{Measured, Reproduction};
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
/// Dash patterns that distinguish the variants of a workload.
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// Returns the plots, each with a file name.
#[must_use]
pub fn plots(r: &Reproduction) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for e in &r.experiments {
        let Measured::Comparison(c) = &e.measured else { continue };
        for (i, x) in c.crossings.iter().enumerate() {
            let number = if i == 0 { String::new() } else { format!("-{}", i + 1) };
            out.push((format!("{}{number}.svg", e.id), drawing(x).into_string()));
        }
    }
    out
}

/// Logarithmic ranges of both axes, in powers of two and of ten.
struct Scales {
    values: (f64, f64),
    prices: (f64, f64),
}

impl Scales {
    fn of(c: &Crossing) -> Scales {
        let ends = |all: &mut dyn Iterator<Item = f64>| {
            all.filter(|v| *v > 0.0).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)))
        };
        let values = ends(&mut c.values.iter().map(|v| *v as f64));
        let marks = c.marks.iter().flat_map(|m| m.1.iter().copied());
        let prices = ends(&mut even_prices(c).chain(marks));
        let decade = |v: f64, up: bool| 10f64.powf(if up { v.log10().ceil() } else { v.log10().floor() });
        match prices.0 <= prices.1 {
            true => Scales { values, prices: (decade(prices.0, false), decade(prices.1, true)) },
            false => Scales { values, prices: (1e-6, 1.0) },
        }
    }

    fn x(&self, v: f64) -> f64 {
        let (from, to) = self.values;
        let share = if to > from { (v / from).ln() / (to / from).ln() } else { 0.5 };
        AREA.0 + share * (AREA.2 - AREA.0)
    }

    fn y(&self, v: f64) -> f64 {
        let (from, to) = self.prices;
        let share = if to > from { (v / from).ln() / (to / from).ln() } else { 0.5 };
        AREA.3 - share * (AREA.3 - AREA.1)
    }

    fn decades(&self) -> Vec<f64> {
        let (low, high) = (self.prices.0.log10().round() as i32, self.prices.1.log10().round() as i32);
        (low..=high).map(|d| 10f64.powi(d)).collect()
    }
}

fn even_prices(c: &Crossing) -> impl Iterator<Item = f64> + '_ {
    c.lines.iter().flat_map(|l| &l.points).filter_map(|p| match p.even {
        BreakEven::At(price) => Some(price),
        BreakEven::Never | BreakEven::Always => None,
    })
}

fn drawing(c: &Crossing) -> Markup {
    let s = Scales::of(c);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT)
            font-family="sans-serif" font-size="12" role="img" aria-label=(c.about) {
            rect width="100%" height="100%" fill="#ffffff" {}
            text x=(AREA.0) y="20" font-size="14" fill="#000000" { (c.price) " at which the variant costs as much as " (c.base) }
            text x=(AREA.0) y="38" fill="#444444" { "a variant costs less below its line, and never without a line" }
            (axes(c, &s))
            @for (i, (name, prices)) in c.marks.iter().enumerate() {
                path fill="none" stroke="#000000" stroke-dasharray=(DASHES[1 + i % 3])
                    d=(path(c.values.iter().zip(prices).map(|(v, p)| Some((s.x(*v as f64), s.y(*p)))))) {}
                (entry(i, "#000000", DASHES[1 + i % 3], name))
            }
            (lines(c, &s))
        }
    }
}

fn axes(c: &Crossing, s: &Scales) -> Markup {
    html! {
        @for v in s.decades() {
            line x1=(AREA.0) x2=(AREA.2) y1=(px(s.y(v))) y2=(px(s.y(v))) stroke="#dddddd" {}
            text x=(AREA.0 - 8.0) y=(px(s.y(v) + 4.0)) text-anchor="end" fill="#000000" { (seconds(v)) }
        }
        @for v in c.values.iter().map(|v| *v as f64) {
            line x1=(px(s.x(v))) x2=(px(s.x(v))) y1=(AREA.1) y2=(AREA.3) stroke="#dddddd" {}
            text x=(px(s.x(v))) y=(AREA.3 + 18.0) text-anchor="middle" fill="#000000" { (size::format(v as u64)) }
        }
        rect x=(AREA.0) y=(AREA.1) width=(AREA.2 - AREA.0) height=(AREA.3 - AREA.1) fill="none" stroke="#000000" {}
        text x=(px((AREA.0 + AREA.2) / 2.0)) y=(AREA.3 + 40.0) text-anchor="middle" fill="#000000" { (c.axis) }
    }
}

/// Draws the lines that cross: a color for each workload, a dash pattern for each variant.
fn lines(c: &Crossing, s: &Scales) -> Markup {
    let (mut workloads, mut variants): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut shown = Vec::new();
    for l in &c.lines {
        let even = |p: &super::CrossingPoint| matches!(p.even, BreakEven::At(_));
        if l.points.iter().any(even) {
            let (w, v) = (place(&mut workloads, &l.workload), place(&mut variants, &l.variant));
            shown.push((l, HUES[w % HUES.len()], DASHES[v % DASHES.len()]));
        }
    }
    html! {
        @for (i, (l, hue, dash)) in shown.iter().enumerate() {
            path fill="none" stroke=(hue) stroke-width="2" stroke-dasharray=(dash)
                d=(path(c.values.iter().zip(&l.points).map(|(v, p)| match p.even {
                    BreakEven::At(price) => Some((s.x(*v as f64), s.y(price))),
                    BreakEven::Never | BreakEven::Always => None,
                }))) {}
            (entry(c.marks.len() + i, hue, dash, &format!("{}, {}", generated(&l.workload, l.kind), l.variant)))
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
    use crate::outcome::{CrossingLine, CrossingPoint};
    use frit_trace::identity::WorkloadKind;

    #[test]
    fn lines_are_drawn_where_costs_cross() {
        let point = |even| CrossingPoint { even, count: 1.0, free: 1.0, ratios: Vec::new() };
        let line = |workload: &str, evens: [BreakEven; 3]| CrossingLine {
            workload: workload.into(),
            kind: WorkloadKind::Real,
            variant: "log".into(),
            points: evens.map(point).into(),
        };
        let c = Crossing {
            about: "a < b".into(),
            base: "base".into(),
            axis: "unit".into(),
            values: vec![4096, 8192, 16384],
            price: "time".into(),
            prices: Vec::new(),
            marks: vec![("100 ms".into(), vec![0.1; 3])],
            lines: vec![
                line("crosses", [BreakEven::At(0.001), BreakEven::At(0.01), BreakEven::Never]),
                line("does not", [BreakEven::Never; 3]),
            ],
        };
        let svg = drawing(&c).into_string();
        // The axis is in powers of two, the prices in powers of ten, with steps of equal length.
        assert!(svg.contains("M80.0 450.0L320.0 250.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("crosses, log") && !svg.contains("does not, log"));
        assert!(svg.contains("100 ms") && svg.contains("8 KiB"));
    }
}
