//! Commands by cause, and the write amplification that they cause.

use super::colour;
use super::draw::{BarSegment, PlotAxis, Rect, bar, figure, legend, svg, x_axis};
use super::numbers::{px, tick};
use super::scale::Scale;
use crate::report::show::{count, percent, ratio_or_dash};
use crate::report::{CountRow, Report};
use frit_core::{Cause, MediumKind, size};
use maud::{Markup, html};
use strum::IntoEnumIterator;

const WIDTH: f64 = 1080.0;
/// Left end of the bars.
const LEFT: f64 = 178.0;
const ROW: f64 = 26.0;

/// Draws write amplification, commands by cause, and a table of both.
pub(super) fn section(r: &Report) -> Markup {
    let causes: Vec<&str> =
        Cause::iter().map(Into::into).filter(|c| r.counts.iter().any(|x| x.cause == *c)).collect();
    let entries: Vec<_> = causes.iter().map(|c| (colour::cause(c), (*c).to_owned())).collect();
    html! {
        (legend(&entries))
        (figure("Write amplification", &amplification_note(r), &amplification(r)))
        (figure("Commands by cause", "Each bar shows all commands of one operation; their number and bytes are on the right.",
            &html! { (commands(r, &causes)) (table(r, &causes)) }))
    }
}

fn amplification_note(r: &Report) -> String {
    let w = &r.write_amplification;
    let mut by = Vec::new();
    if r.has(MediumKind::Nand) {
        by.push(format!(
            "NAND {}; flash only, per byte that reached it, {}.",
            ratio_or_dash(w.nand),
            ratio_or_dash(w.flash)
        ));
    }
    if r.has(MediumKind::Pcm) {
        by.push(format!("PCM {}.", ratio_or_dash(w.pcm)));
    }
    format!(
        "Bytes written to a medium for each byte that the host wrote ({}). {}",
        size::format(r.asked.written_bytes),
        by.join(" ")
    )
}

/// Returns the bytes written to a medium for each byte of the host, by cause.
fn parts(r: &Report, medium: &str) -> Vec<BarSegment> {
    let host = r.asked.written_bytes.max(1) as f64;
    let writes = |op: &str| {
        matches!(
            op,
            "nand-program"
                | "nand-copyback"
                | "pcm-write"
                | "pcm-write-clean"
                | "dram-write"
                | "disk-write"
                | "object-put"
        )
    };
    let of = |cause: &'static str| {
        let rows = r.counts.iter().filter(|c| c.medium == medium && c.cause == cause && writes(c.op));
        let bytes = rows.map(|c| c.count.bytes).sum::<u64>();
        let value = bytes as f64 / host;
        BarSegment {
            colour: colour::cause(cause),
            value,
            tip: format!(
                "{cause}: {} per byte of the host ({})",
                ratio_or_dash(Some(value)),
                size::format(bytes)
            ),
        }
    };
    Cause::iter().map(|c| of(c.into())).filter(|p| p.value > 0.0).collect()
}

fn amplification(r: &Report) -> Markup {
    if r.asked.written_bytes == 0 {
        return html! { p { "The host did not write." } };
    }
    let bars: Vec<(&str, Vec<BarSegment>)> =
        r.media.iter().map(|m| (m.name.as_str(), parts(r, &m.name))).collect();
    let sum = |parts: &[BarSegment]| parts.iter().fold(0.0, |s, p| s + p.value);
    let most = bars.iter().map(|(_, p)| sum(p)).fold(1.0, f64::max);
    let a = Rect { left: LEFT, top: 8.0, width: WIDTH - LEFT - 80.0, height: ROW * bars.len() as f64 };
    let axis = PlotAxis {
        scale: Scale::up_to(most),
        name: "bytes written for each byte of the host",
        label: tick,
        ticks: 10,
    };
    let one = a.left + axis.scale.at(1.0) * a.width;
    svg(
        WIDTH,
        a.bottom() + 44.0,
        "write amplification",
        &html! {
            (x_axis(&a, &axis, true))
            @for (i, (name, parts)) in bars.iter().enumerate() {
                @let top = a.top + ROW * i as f64 + 3.0;
                text class="end ink" x=(px(LEFT - 10.0)) y=(px(top + 14.0)) { (name) }
                (bar(&Rect { top, height: ROW - 7.0, ..a }, &axis.scale, parts))
                text class="strong" x=(px(a.left + axis.scale.at(sum(parts)) * a.width + 7.0)) y=(px(top + 14.0)) { (ratio_or_dash(Some(sum(parts)))) }
            }
            line class="mark" x1=(px(one)) x2=(px(one)) y1=(px(a.top - 6.0)) y2=(px(a.bottom())) {}
        },
    )
}

/// Returns the operations that occurred, with their rows.
fn operations(r: &Report) -> Vec<(&str, &str, Vec<&CountRow>)> {
    let mut all: Vec<(&str, &str, Vec<&CountRow>)> = Vec::new();
    for c in &r.counts {
        match all.iter_mut().find(|(m, op, _)| *m == c.medium && *op == c.op) {
            Some((_, _, rows)) => rows.push(c),
            None => all.push((&c.medium, c.op, vec![c])),
        }
    }
    all
}

fn commands(r: &Report, causes: &[&str]) -> Markup {
    let all = operations(r);
    let a = Rect { left: LEFT, top: 6.0, width: WIDTH - LEFT - 240.0, height: ROW * all.len() as f64 };
    let whole = Scale::Linear { from: 0.0, to: 1.0 };
    let share = |rows: &[&CountRow]| -> Vec<BarSegment> {
        let sum = rows.iter().map(|c| c.count.commands).sum::<u64>().max(1) as f64;
        let part = |cause: &&str| {
            let c = rows.iter().find(|c| c.cause == *cause)?;
            let value = c.count.commands as f64 / sum;
            let tip = format!(
                "{}: {} commands ({}), {}",
                c.cause,
                count(c.count.commands),
                percent(value),
                size::format(c.count.bytes)
            );
            Some(BarSegment { colour: colour::cause(c.cause), value, tip })
        };
        causes.iter().filter_map(part).collect()
    };
    svg(
        WIDTH,
        a.bottom() + 4.0,
        "commands by cause",
        &html! {
        @for (i, (medium, op, rows)) in all.iter().enumerate() {
            @let top = a.top + ROW * i as f64 + 2.0;
            text class="end ink" x=(px(LEFT - 10.0)) y=(px(top + 14.0)) { (name(medium, op)) }
            (bar(&Rect { top, height: ROW - 7.0, ..a }, &whole, &share(rows)))
            text class="end ink" x=(px(WIDTH - 118.0)) y=(px(top + 14.0)) { (count(rows.iter().map(|c| c.count.commands).sum())) }
            text class="end" x=(px(WIDTH - 2.0)) y=(px(top + 14.0)) { (bytes(rows)) } } },
    )
}

/// Formats the bytes that commands transferred; an erase and a fence transfer none.
fn bytes(rows: &[&CountRow]) -> String {
    match rows.iter().map(|c| c.count.bytes).sum() {
        0 => "–".into(),
        bytes => size::format(bytes),
    }
}

/// Returns the name of an operation, with the medium if the name does not contain it.
fn name(medium: &str, op: &str) -> String {
    match op.split_once('-') {
        Some((kind, _)) if kind == medium => op.to_owned(),
        _ => format!("{medium}: {op}"),
    }
}

fn table(r: &Report, causes: &[&str]) -> Markup {
    html! {
        details {
            summary { "Table" }
            div class="scroll" { table {
                thead { tr {
                    th { "medium" } th { "operation" }
                    @for cause in causes { th class="num" { (cause) } }
                    th class="num" { "all" } th class="num" { "bytes" }
                } }
                tbody {
                    @for (medium, op, rows) in operations(r) {
                        tr {
                            td { (medium) } td class="pre" { (op) }
                            @for cause in causes {
                                td class="num" { (rows.iter().find(|c| c.cause == *cause).map_or("–".into(), |c| count(c.count.commands))) }
                            }
                            td class="num" { (count(rows.iter().map(|c| c.count.commands).sum())) }
                            td class="num" { (bytes(&rows)) }
                        }
                    }
                }
            } }
        }
    }
}
