//! Elements that drawings share: figures, legends, axes.

use super::colour::Colour;
use super::numbers::{put, px};
use super::scale::Scale;
use maud::{Markup, html};

/// A drawing with a heading; `note` explains it.
pub(super) fn figure(name: &str, note: &str, body: &Markup) -> Markup {
    html! {
        figure {
            figcaption {
                strong { (name) }
                @if !note.is_empty() { br; span class="soft" { (note) } }
            }
            (body)
        }
    }
}

/// A legend of colours and their meaning.
pub(super) fn legend(entries: &[(Colour, String)]) -> Markup {
    html! {
        ul class="legend" {
            @for (colour, name) in entries {
                li { i class={ "b-" (colour) } {} (name) }
            }
        }
    }
}

/// A drawing of the given size; narrow screens scroll it.
pub(super) fn svg(width: f64, height: f64, name: &str, body: &Markup) -> Markup {
    let size = if width > 600.0 { "wide" } else { "half" };
    html! {
        div class="scroll" {
            svg class=(size) viewBox={ "0 0 " (px(width)) " " (px(height)) } role="img" aria-label=(name) { (body) }
        }
    }
}

/// A rectangle in a drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }
}

/// An axis of a drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotAxis<'a> {
    pub(super) scale: Scale,
    /// Quantity on the axis, with its unit.
    pub(super) name: &'a str,
    pub(super) label: fn(f64) -> String,
    /// Approximate maximum number of ticks.
    pub(super) ticks: usize,
}

/// Two axes around an area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes<'a> {
    pub(super) area: Rect,
    pub(super) x: PlotAxis<'a>,
    pub(super) y: PlotAxis<'a>,
}

impl Axes<'_> {
    pub(super) fn x(&self, v: f64) -> f64 {
        self.area.left + self.x.scale.at(v) * self.area.width
    }

    pub(super) fn y(&self, v: f64) -> f64 {
        self.area.bottom() - self.y.scale.at(v) * self.area.height
    }

    /// Draws lines at the ticks, labels and names.
    pub(super) fn draw(&self) -> Markup {
        let a = &self.area;
        html! {
            @for v in self.y.scale.ticks(self.y.ticks) {
                line class="gridline" x1=(px(a.left)) x2=(px(a.right())) y1=(px(self.y(v))) y2=(px(self.y(v))) {}
                text class="end" x=(px(a.left - 7.0)) y=(px(self.y(v) + 4.0)) { ((self.y.label)(v)) }
            }
            text x=(px(a.left - 44.0)) y=(px(a.top - 10.0)) { (self.y.name) }
            (x_axis(a, &self.x, true))
        }
    }
}

/// Draws a horizontal axis below an area, optionally with grid lines through the area.
pub(super) fn x_axis(a: &Rect, axis: &PlotAxis<'_>, lines: bool) -> Markup {
    let at = |v| a.left + axis.scale.at(v) * a.width;
    let (top, tip) = (if lines { a.top } else { a.bottom() }, a.bottom() + 5.0);
    html! {
        @for v in axis.scale.ticks(axis.ticks) {
            @if lines { line class="gridline" x1=(px(at(v))) x2=(px(at(v))) y1=(px(top)) y2=(px(a.bottom())) {} }
            line class="axis" x1=(px(at(v))) x2=(px(at(v))) y1=(px(a.bottom())) y2=(px(tip)) {}
            text class="mid" x=(px(at(v))) y=(px(a.bottom() + 19.0)) { ((axis.label)(v)) }
        }
        line class="axis" x1=(px(a.left)) x2=(px(a.right())) y1=(px(a.bottom())) y2=(px(a.bottom())) {}
        text class="mid" x=(px(a.left + a.width / 2.0)) y=(px(a.bottom() + 37.0)) { (axis.name) }
    }
}

/// Returns the path of a line through points.
pub(super) fn line(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.enumerate() {
        d.push(if i == 0 { 'M' } else { 'L' });
        put(&mut d, x);
        d.push(' ');
        put(&mut d, y);
    }
    d
}

/// Draws the invisible field over a drawing from which the script takes exact values. `values` is
/// JSON.
pub(super) fn field(a: &Rect, kind: &str, values: &serde_json::Value) -> Markup {
    html! {
        line class="cross" y1=(px(a.top)) y2=(px(a.bottom())) {}
        rect x=(px(a.left)) y=(px(a.top)) width=(px(a.width)) height=(px(a.height)) fill="none" pointer-events="all"
            data-kind=(kind) data-values=(values) {}
    }
}

/// A part of a stacked bar.
#[derive(Clone, Debug)]
pub(super) struct BarSegment {
    pub(super) colour: Colour,
    /// Length, on the scale of the bar.
    pub(super) value: f64,
    /// Tooltip, with exact values.
    pub(super) tip: String,
}

/// Draws a horizontal stacked bar from the left end of an area; `scale` converts values to lengths.
pub(super) fn bar(a: &Rect, scale: &Scale, parts: &[BarSegment]) -> Markup {
    let mut sum = 0.0;
    let mut place = |p: &BarSegment| {
        let (from, to) = (scale.at(sum), scale.at(sum + p.value));
        sum += p.value;
        (a.left + from * a.width, (to - from) * a.width)
    };
    html! {
        @for p in parts {
            @let (x, width) = place(p);
            @if width > 0.0 {
                rect class={ "bar f-" (p.colour) } x=(px(x)) y=(px(a.top)) width=(px(width.max(0.6))) height=(px(a.height)) {
                    title { (p.tip) }
                }
            }
        }
    }
}
