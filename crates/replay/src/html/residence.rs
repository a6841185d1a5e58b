//! Placement of data over the address space.

use super::colour::Colour;
use super::draw::{Axes, BarSegment, PlotAxis, Rect, bar, field, figure, legend, line, svg};
use super::numbers::{tick, tick_percent};
use super::scale::Scale;
use crate::report::show::{count, percent};
use crate::report::{LayerReport, PagePlacement, Report};
use frit_core::visible::Residence;
use maud::{Markup, html};
use serde_json::json;

const WIDTH: f64 = 1080.0;
/// If the share of PCM is below this in every slice, PCM gets a drawing of its own.
const PCM_SHARE_SMALL: f64 = 0.2;

/// A place for data, in the order of stacking.
struct ResidencePlace {
    name: &'static str,
    colour: Colour,
    slice: fn(&Residence) -> u32,
    total: fn(&PagePlacement) -> u64,
}

const PLACES: [ResidencePlace; 5] = [
    ResidencePlace { name: "NAND", colour: "blue", slice: |r| r.nand, total: |p| p.nand },
    ResidencePlace {
        name: "PCM as storage",
        colour: "orange",
        slice: |r| r.pcm_level,
        total: |p| p.pcm_level,
    },
    ResidencePlace { name: "PCM as cache", colour: "purple", slice: |r| r.pcm_cache, total: |p| p.pcm_cache },
    ResidencePlace { name: "disk", colour: "grey", slice: |r| r.disk, total: |p| p.disk },
    ResidencePlace {
        name: "unmapped (never written, or discarded)",
        colour: "none",
        slice: |r| r.unmapped,
        total: |p| p.unmapped,
    },
];

/// Draws the placement of data for each layer that reports it.
pub(super) fn section(r: &Report) -> Markup {
    let layers: Vec<&LayerReport> = r.layers.iter().filter(|l| !l.residence.is_empty()).collect();
    html! {
        @if layers.is_empty() { p { "No layer of this stack reports the placement of data." } }
        @for l in layers {
            (figure(&format!("{}: pages by place at the end", l.name),
                "Below, the address space in equal slices: the share of the pages of each slice in each place.",
                &html! { (total(&l.residence_total)) (slices(l, r)) }))
        }
    }
}

fn total(p: &PagePlacement) -> Markup {
    let all = PLACES.iter().map(|k| (k.total)(p)).sum::<u64>();
    let share = |k: &ResidencePlace| (k.total)(p) as f64 / all.max(1) as f64;
    let text =
        |k: &ResidencePlace| format!("{}: {} pages, {}", k.name, count((k.total)(p)), percent(share(k)));
    let parts: Vec<BarSegment> =
        PLACES.iter().map(|k| BarSegment { colour: k.colour, value: share(k), tip: text(k) }).collect();
    let entries: Vec<(Colour, String)> =
        PLACES.iter().filter(|k| (k.total)(p) > 0).map(|k| (k.colour, text(k))).collect();
    let a = Rect { left: 52.0, top: 2.0, width: WIDTH - 60.0, height: 20.0 };
    html! {
        (legend(&entries))
        (svg(WIDTH, 26.0, "pages by place", &bar(&a, &Scale::Linear { from: 0.0, to: 1.0 }, &parts)))
    }
}

/// Equal slices of an address space.
struct AddressSlices<'a> {
    of: &'a [Residence],
    /// Bytes of a slice; the last slice may be smaller.
    bytes: f64,
    volume: f64,
}

impl<'a> AddressSlices<'a> {
    fn new(l: &'a LayerReport, r: &Report) -> AddressSlices<'a> {
        let volume = r.stack.volume_bytes as f64;
        let first = l.residence.first().map_or(0.0, |r| pages(r, &PLACES));
        let (bytes, n) = (first * f64::from(r.memory.page_bytes), l.residence.len().max(1) as f64);
        // If the page size of the layer differs from that of the volume, all slices are assumed to
        // be equal.
        let bytes = if bytes * n >= volume && bytes * (n - 1.0) < volume { bytes } else { volume / n };
        AddressSlices { of: &l.residence, bytes, volume }
    }

    /// Draws the share of the pages of each slice in the given places, one band above another.
    /// `height` is the height of the drawing without its axis.
    fn draw(&self, name: &str, places: &[ResidencePlace], scale: Scale, height: f64) -> Markup {
        let (unit, x_name) = match self.volume {
            v if v >= 2f64.powi(31) => (2f64.powi(30), "address, GiB"),
            v if v >= 2f64.powi(21) => (2f64.powi(20), "address, MiB"),
            _ => (1024.0, "address, KiB"),
        };
        let x = Scale::Linear { from: 0.0, to: (self.volume / unit).max(1.0) };
        let axes = Axes {
            area: Rect { left: 52.0, top: 28.0, width: WIDTH - 60.0, height },
            x: PlotAxis { scale: x, name: x_name, label: tick, ticks: 16 },
            y: PlotAxis { scale, name, label: tick_percent, ticks: 5 },
        };
        let rows = |r: &Residence| PLACES.iter().map(|k| (k.slice)(r)).collect::<Vec<_>>();
        let values = json!({
            "slice": self.bytes, "volume": self.volume, "names": PLACES.map(|k| k.name),
            "data": self.of.iter().map(rows).collect::<Vec<_>>(),
        });
        let body = html! {
            (axes.draw())
            g class="cells" {
                @for i in 0..places.len() { path class={ "f-" (places[i].colour) } d=(self.band(places, i, unit, &axes)) {} }
            }
            (field(&axes.area, "places", &values))
        };
        svg(WIDTH, height + 74.0, name, &body)
    }

    /// Returns the path of one band: along its top from left to right, and back along its bottom.
    fn band(&self, places: &[ResidencePlace], place: usize, unit: f64, axes: &Axes<'_>) -> String {
        if self.of.iter().all(|r| (places[place].slice)(r) == 0) {
            return String::new();
        }
        let x = |i: usize| axes.x(i as f64 * self.bytes / unit);
        let y = |r: &Residence, n: usize| axes.y(pages(r, &places[..n]) / pages(r, &PLACES).max(1.0));
        let top = self
            .of
            .iter()
            .enumerate()
            .flat_map(|(i, r)| [(x(i), y(r, place + 1)), (x(i + 1), y(r, place + 1))]);
        let back = self.of.iter().enumerate().rev();
        let bottom = back.flat_map(|(i, r)| [(x(i + 1), y(r, place)), (x(i), y(r, place))]);
        line(top.chain(bottom)) + "z"
    }
}

/// Returns the number of pages of a slice in the given places.
fn pages(r: &Residence, places: &[ResidencePlace]) -> f64 {
    places.iter().map(|k| f64::from((k.slice)(r))).sum::<f64>()
}

/// Draws all places, and PCM alone if it is too small to be visible among them.
fn slices(l: &LayerReport, r: &Report) -> Markup {
    let (slices, pcm) = (AddressSlices::new(l, r), &PLACES[1..3]);
    let most = l.residence.iter().map(|s| pages(s, pcm) / pages(s, &PLACES).max(1.0)).fold(0.0, f64::max);
    html! {
        (slices.draw("share of the slice's pages", &PLACES, Scale::Linear { from: 0.0, to: 1.0 }, 170.0))
        @if most > 0.0 && most < PCM_SHARE_SMALL {
            (slices.draw("the same, PCM alone", pcm, Scale::up_to(most), 90.0))
        }
    }
}
