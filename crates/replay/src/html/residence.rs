//! Where the data lies, over the address space.

use super::colour::Colour;
use super::draw::{Area, Axes, Axis, Part, bar, field, figure, legend, svg};
use super::numbers::{put, tick, tick_percent};
use super::scale::Scale;
use crate::report::show::{count, percent};
use crate::report::{LayerReport, Placed, Report};
use frit_core::size;
use frit_core::visible::Residence;
use maud::{Markup, html};
use serde_json::json;

const WIDTH: f64 = 1080.0;

/// A place, in the order of stacking.
struct Place {
    name: &'static str,
    colour: Colour,
    slice: fn(&Residence) -> u32,
    total: fn(&Placed) -> u64,
}

const PLACES: [Place; 4] = [
    Place { name: "NAND", colour: "blue", slice: |r| r.nand, total: |p| p.nand },
    Place { name: "PCM as storage", colour: "orange", slice: |r| r.pcm_level, total: |p| p.pcm_level },
    Place { name: "PCM as cache", colour: "purple", slice: |r| r.pcm_cache, total: |p| p.pcm_cache },
    Place {
        name: "nowhere (never written, or discarded)",
        colour: "none",
        slice: |r| r.unmapped,
        total: |p| p.unmapped,
    },
];

/// The layers that place data.
pub(super) fn section(r: &Report) -> Markup {
    let layers: Vec<&LayerReport> = r.layers.iter().filter(|l| !l.residence.is_empty()).collect();
    html! {
        @if layers.is_empty() { p { "No layer of this stack tells where data lies." } }
        @for l in layers {
            (figure(&format!("{}: pages by where they lie at the end", l.name),
                "Below, the address space in equal slices: the share of each slice's pages that lies in each place.",
                &html! { (total(&l.residence_total)) (slices(l, r.stack.volume_bytes)) }))
        }
    }
}

fn total(p: &Placed) -> Markup {
    let all = PLACES.iter().map(|k| (k.total)(p)).sum::<u64>();
    let share = |k: &Place| (k.total)(p) as f64 / all.max(1) as f64;
    let text = |k: &Place| format!("{}: {} pages, {}", k.name, count((k.total)(p)), percent(share(k)));
    let parts: Vec<Part> =
        PLACES.iter().map(|k| Part { colour: k.colour, value: share(k), tip: text(k) }).collect();
    let entries: Vec<(Colour, String)> =
        PLACES.iter().filter(|k| (k.total)(p) > 0).map(|k| (k.colour, text(k))).collect();
    let a = Area { left: 52.0, top: 2.0, width: WIDTH - 60.0, height: 20.0 };
    html! {
        (legend(&entries))
        (svg(WIDTH, 26.0, "pages by where they lie", &bar(&a, &Scale::Linear { from: 0.0, to: 1.0 }, &parts)))
    }
}

fn slices(l: &LayerReport, volume: u64) -> Markup {
    let slice = volume as f64 / l.residence.len() as f64;
    let (unit, x_name) = match volume {
        v if v >= 1 << 31 => (1u64 << 30, "address, GiB"),
        v if v >= 1 << 21 => (1 << 20, "address, MiB"),
        _ => (1 << 10, "address, KiB"),
    };
    let axes = Axes {
        area: Area { left: 52.0, top: 28.0, width: WIDTH - 60.0, height: 190.0 },
        x: Axis {
            scale: Scale::Linear { from: 0.0, to: volume as f64 / unit as f64 },
            name: x_name,
            label: tick,
            ticks: 16,
        },
        y: Axis {
            scale: Scale::Linear { from: 0.0, to: 1.0 },
            name: "share of the slice's pages",
            label: tick_percent,
            ticks: 4,
        },
    };
    let rows = |r: &Residence| PLACES.iter().map(|k| (k.slice)(r)).collect::<Vec<_>>();
    let values = json!({
        "slice": slice, "volume": volume, "names": PLACES.map(|k| k.name),
        "data": l.residence.iter().map(rows).collect::<Vec<_>>(),
    });
    let about = format!("{} slices of {}", l.residence.len(), size::show(slice.round() as u64));
    svg(
        WIDTH,
        264.0,
        &format!("where the data lies, {about}"),
        &html! {
            (axes.draw())
            g class="cells" {
                @for (i, k) in PLACES.iter().enumerate() {
                    path class={ "f-" (k.colour) } d=(area(&l.residence, i, &axes)) {}
                }
            }
            (field(&axes.area, "places", &values))
        },
    )
}

/// The share of a slice that lies in the first `n` places.
fn below(r: &Residence, n: usize) -> f64 {
    let sum = |n: usize| PLACES[..n].iter().map(|k| u64::from((k.slice)(r))).sum::<u64>();
    sum(n) as f64 / sum(PLACES.len()).max(1) as f64
}

/// One band of the stack: along its top from left to right, and back along its bottom.
fn area(slices: &[Residence], place: usize, axes: &Axes<'_>) -> String {
    let (a, n) = (&axes.area, slices.len() as f64);
    let x = |i: usize| a.left + a.width * i as f64 / n;
    if slices.iter().all(|r| (PLACES[place].slice)(r) == 0) {
        return String::new();
    }
    let mut d = String::from("M");
    let mut go = |x: f64, y: f64| {
        put(&mut d, x);
        d.push(' ');
        put(&mut d, y);
        d.push(' ');
    };
    for (i, r) in slices.iter().enumerate() {
        let y = axes.y(below(r, place + 1));
        go(x(i), y);
        go(x(i + 1), y);
    }
    for (i, r) in slices.iter().enumerate().rev() {
        let y = axes.y(below(r, place));
        go(x(i + 1), y);
        go(x(i), y);
    }
    d.push('z');
    d
}
