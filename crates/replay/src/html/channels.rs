//! Channel use over time: one lane per channel.

use super::draw::{PlotAxis, Rect, field, figure, svg, x_axis};
use super::heat_map::{ColourScale, cells};
use super::numbers::{ceiling, px, tick_time};
use super::scale::Scale;
use crate::report::show::{percent, time};
use crate::report::{ChannelUse, Report};
use maud::{Markup, html};
use serde_json::json;

const WIDTH: f64 = 1080.0;
/// Maximum number of lanes that are shown.
const LANES: usize = 64;

/// Draws the lanes of all media.
pub(super) fn section(r: &Report) -> Markup {
    let s = &r.channels;
    let bins = s.channels.iter().map(|c| c.busy.len()).max().unwrap_or(0);
    if bins == 0 {
        return html! { p { "No channel transferred data." } };
    }
    let most = s.channels.iter().flat_map(|c| &c.busy).fold(0.0f32, |m, &b| m.max(b));
    let ramp = ColourScale::linear(ceiling(f64::from(most)).min(1.0));
    let hidden = s.channels.len().saturating_sub(LANES);
    let more = if hidden > 0 {
        format!(" The first {LANES} channels; {hidden} more are in the JSON report.")
    } else {
        String::new()
    };
    let note = format!(
        "The share of each bin of {} in which the bus of a channel was busy; the mean is on the right.{more}",
        time(s.bin_ns as f64)
    );
    let shown = &s.channels[..s.channels.len().min(LANES)];
    figure(
        "Channels",
        &note,
        &html! {
            (lanes(r, shown, bins, &ramp))
            (ramp.legend(|v| format!("{} busy", percent(v))))
        },
    )
}

fn lanes(r: &Report, channels: &[ChannelUse], bins: usize, ramp: &ColourScale) -> Markup {
    let bin_ns = r.channels.bin_ns;
    let names: Vec<String> = channels.iter().map(|c| format!("{} {}", c.medium, c.channel)).collect();
    let levels: Vec<Vec<usize>> = channels
        .iter()
        .map(|c| (0..bins).map(|i| ramp.level(c.busy.get(i).map_or(0.0, |&b| f64::from(b)))).collect())
        .collect();
    let row = if channels.len() > 24 { 13.0 } else { 20.0 };
    let a = Rect { left: 96.0, top: 6.0, width: WIDTH - 160.0, height: row * channels.len() as f64 };
    let time = PlotAxis {
        scale: Scale::Linear { from: 0.0, to: bins as f64 * bin_ns as f64 },
        name: "virtual time since the start of the measured part",
        label: tick_time,
        ticks: 10,
    };
    // Values in ten-thousandths are precise enough and half as long. A lane without a bus has no
    // values.
    let busy = |c: &ChannelUse| {
        let shares = c.busy.iter().map(|&b| (f64::from(b) * 1e4).round() as u32);
        busy_unit(r, c).is_none().then(|| shares.collect::<Vec<_>>())
    };
    let values = json!({
        "rows": names, "bins": bins, "bin": bin_ns, "busy": channels.iter().map(busy).collect::<Vec<_>>(),
    });
    let middle = |i: usize| px(a.top + row * (i as f64 + 0.5) + 4.0);
    svg(
        WIDTH,
        a.bottom() + 44.0,
        "channel use over time",
        &html! {
            (cells(&a, bins, levels.iter().map(Vec::as_slice), channels.len()))
            @for (i, c) in channels.iter().enumerate() {
                text class="end ink" x=(px(a.left - 8.0)) y=(middle(i)) { (short(&names[i])) }
                @let unit = busy_unit(r, c);
                @if unit.is_some() {
                    text class="ink" x=(px(a.left + 8.0)) y=(middle(i)) { "has no bus of its own; the share of time in which it was busy is on the right" }
                }
                text class="end" x=(px(WIDTH - 2.0)) y=(middle(i)) { (percent(unit.unwrap_or_else(|| mean(c, bins)))) }
                @if i > 0 {
                    line stroke="var(--panel)" x1=(px(a.left)) x2=(px(a.right())) y1=(px(a.top + row * i as f64)) y2=(px(a.top + row * i as f64)) {}
                }
            }
            (x_axis(&a, &time, false))
            (field(&a, "lanes", &values))
        },
    )
}

/// Returns the busy share of a channel that is a single unit without transfers of its own:
/// published latencies of PCM include the transfer, so that its commands have no bus phase. Returns
/// `None` for every other channel.
fn busy_unit(r: &Report, c: &ChannelUse) -> Option<f64> {
    let m = r.media.iter().find(|m| m.name == c.medium)?;
    let alone = m.unit_busy.len() == m.channel_busy.len() && c.busy.iter().all(|&b| b == 0.0);
    m.unit_busy.get(c.channel as usize).copied().filter(|b| alone && *b > 0.0)
}

fn mean(c: &ChannelUse, bins: usize) -> f64 {
    c.busy.iter().map(|&b| f64::from(b)).sum::<f64>() / bins.max(1) as f64
}

/// Shortens a name so that it fits in front of a lane.
fn short(name: &str) -> String {
    if name.chars().count() <= 14 {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(name.chars().count() - 13).collect::<String>())
    }
}
