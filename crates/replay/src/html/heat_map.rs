//! Heat maps: a grid of cells in nine colours from low to high, and one colour for zero.

use super::draw::Rect;
use super::numbers::px;
use maud::{Markup, html};
use std::fmt::Write;

/// Number of colours above zero; `style.css` defines them as `q1` to `q9` for drawings, `r1` to
/// `r9` for legends.
const LEVELS: usize = 9;
/// Ratio of the largest to the median value above which colours are logarithmic: otherwise almost
/// all cells would have the same colour.
const LOG_SCALE_RATIO: f64 = 50.0;

/// Mapping of values to colours.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ColourScale {
    least: f64,
    most: f64,
    log: bool,
}

impl ColourScale {
    /// Creates a mapping from 0 to `most`, in equal steps.
    pub(super) fn linear(most: f64) -> ColourScale {
        ColourScale { least: 0.0, most: if most > 0.0 { most } else { 1.0 }, log: false }
    }

    /// Creates a mapping from 0 to the largest value; it is logarithmic if the values are very
    /// unequal.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> ColourScale {
        let mut above: Vec<f64> = values.filter(|v| *v > 0.0 && v.is_finite()).collect();
        above.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (above.first(), above.last()) else {
            return ColourScale::linear(1.0);
        };
        match most / above[above.len() / 2] > LOG_SCALE_RATIO {
            true => ColourScale { least, most, log: true },
            false => ColourScale::linear(most),
        }
    }

    /// Returns 0 for a value of zero or less, else 1 to 9.
    pub(super) fn level(&self, v: f64) -> usize {
        if v <= 0.0 || v.is_nan() {
            return 0;
        }
        let place = match self.log {
            true => (v / self.least).ln() / (self.most / self.least).ln(),
            false => v / self.most,
        };
        ((place * LEVELS as f64).ceil() as usize).clamp(1, LEVELS)
    }

    /// Draws the legend; `label` formats a value with its unit.
    pub(super) fn legend(&self, label: impl Fn(f64) -> String) -> Markup {
        html! {
            div class="ramp" {
                span class="steps" { i class="r0" {} } span { "none" }
                span { @if self.log { (label(self.least)) } @else { "more than 0" } }
                span class="steps" { @for level in 1..=LEVELS { i class={ "r" (level) } {} } }
                span { (label(self.most)) @if self.log { ", in equal ratios" } }
            }
        }
    }
}

/// Draws the cells of a grid, row by row. A row that is shorter than the others ends early. One
/// path per colour keeps a map of a thousand cells at some kilobytes.
pub(super) fn cells<'a>(
    a: &Rect,
    columns: usize,
    rows: impl Iterator<Item = &'a [usize]>,
    height: usize,
) -> Markup {
    let mut paths = vec![String::new(); LEVELS + 1];
    for (y, row) in rows.enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|a, b| a == b) {
            let n = run.len();
            // Writing to a String cannot fail.
            let _ = write!(paths[run[0].min(LEVELS)], "M{x} {y}h{n}v1h-{n}z");
            x += n;
        }
    }
    let scale = |part: f64, of: usize| part / of.max(1) as f64;
    let (sx, sy) = (scale(a.width, columns), scale(a.height, height));
    let transform = format!("translate({} {}) scale({sx:.5} {sy:.5})", px(a.left), px(a.top));
    html! {
        g class="cells" transform=(transform) {
            @for (level, d) in paths.iter().enumerate().filter(|(_, d)| !d.is_empty()) {
                path class={ "q" (level) } d=(d) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_cover_the_range() {
        let r = ColourScale::linear(9.0);
        assert_eq!([0.0, 0.1, 1.0, 1.1, 9.0, 20.0, f64::NAN].map(|v| r.level(v)), [0, 1, 1, 2, 9, 9, 0]);
        let even = ColourScale::of([1.0, 2.0, 3.0].into_iter());
        assert_eq!(even, ColourScale::linear(3.0));
        let skewed = ColourScale::of([0.0, 1.0, 1.0, 1.0, 1e9].into_iter());
        assert_eq!([0.0, 1.0, 10.0, 100.0, 1e9].map(|v| skewed.level(v)), [0, 1, 1, 2, 9]);
        assert_eq!(ColourScale::of(std::iter::empty()), ColourScale::linear(1.0));
        assert_eq!(ColourScale::of(std::iter::once(7.0)), ColourScale::linear(7.0));
    }

    #[test]
    fn cells_of_one_colour_are_one_path() {
        let a = Rect { left: 0.0, top: 0.0, width: 8.0, height: 4.0 };
        let rows: [&[usize]; 2] = [&[1, 1, 0, 1], &[1, 1]];
        let svg = cells(&a, 4, rows.into_iter(), 2).into_string();
        assert!(svg.contains("M0 0h2v1h-2zM3 0h1v1h-1zM0 1h2v1h-2z"), "{svg}");
        assert_eq!(svg.matches("<path").count(), 2);
        assert!(svg.contains("scale(2.00000 2.00000)"), "{svg}");
    }
}
