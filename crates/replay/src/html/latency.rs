//! HTML section: latency by request class.

use super::colour;
use super::distribution::{Curve, ccdf, cdf, legend};
use super::draw::figure;
use crate::report::show::{count, time};
use crate::report::{ClassLatency, Distribution, PercentileTime, Report};
use maud::{Markup, html};

/// Draws distributions and metrics of latency.
pub(super) fn section(r: &Report) -> Markup {
    let curves = curves(r);
    let queued = curves.iter().any(|c| c.dashed);
    let note = match queued {
        true => {
            "Solid: response time, from arrival to acknowledgement. Dashed: service time, without the wait in the host's queue."
        }
        false => "Response time equals service time: no request waited in the host's queue.",
    };
    html! {
        @if !curves.is_empty() {
            (legend(&curves))
            div class="pair" {
                (figure("Latency distribution", note, &cdf(&curves)))
                (figure("Tail", "The share of requests that take longer: one step down is ten times fewer requests.", &ccdf(&curves)))
            }
        }
        (table(r))
    }
}

/// Returns the curves of the classes that had requests. The class `all` is left out.
fn curves(r: &Report) -> Vec<Curve<'_>> {
    let named = r.latency.iter().filter(|l| l.class != "all" && l.response.figures.count > 0);
    let classes: Vec<&ClassLatency> = named.collect();
    let queued = classes.iter().any(|l| l.response.buckets != l.service.buckets);
    let mut all = Vec::new();
    for l in classes {
        let mut curve =
            |name: String, of, dashed| all.push(Curve { name, colour: colour::class(l.class), dashed, of });
        curve(if queued { format!("{}, response", l.class) } else { l.class.into() }, &l.response, false);
        if queued {
            curve(format!("{}, service", l.class), &l.service, true);
        }
    }
    all
}

/// A kind of latency distribution: name and accessor.
type LatencyKind = (&'static str, fn(&ClassLatency) -> &Distribution);

fn table(r: &Report) -> Markup {
    let queued = r.latency.iter().any(|l| l.response.buckets != l.service.buckets);
    let names = r.latency.first().into_iter().flat_map(|l| &l.response.percentiles).map(PercentileTime::name);
    let kinds: [LatencyKind; 2] = [("response", |l| &l.response), ("service", |l| &l.service)];
    html! {
        div class="scroll" { table {
            thead { tr {
                th { "latency" } th { }
                @for name in ["requests", "mean"] { th class="num" { (name) } }
                @for name in names { th class="num" { (name) } }
                th class="num" { "max" }
            } }
            tbody {
                @for (kind, of) in kinds.iter().take(if queued { 2 } else { 1 }) {
                    @for l in &r.latency {
                        @let f = of(l).figures;
                        tr {
                            td { (if l.class == "all" { "reads, writes" } else { l.class }) } td class="soft" { @if queued { (kind) } }
                            td class="num" { (count(f.count)) }
                            td class="num" { (time(f.mean_ns)) }
                            @for p in &of(l).percentiles { td class="num" { (time(p.ns as f64)) } }
                            td class="num" { (time(f.max_ns.0 as f64)) }
                        }
                    }
                }
            }
        } }
    }
}
