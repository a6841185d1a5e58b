//! Reports as one self-contained page of HTML: no network, no fonts, no other files.
//!
//! The entry point is [`write()`]. Every drawing is SVG whose colours are CSS variables, so that
//! one file is legible on a light screen, on a dark one and on paper. Plotting libraries are not
//! used because they write fixed colours into a drawing. All text is escaped by `maud`: names of
//! stacks and traces are chosen by users. `docs/guide/html.md` explains the page.

mod channels;
mod colour;
mod commands;
mod compare;
mod counts;
mod disks;
mod distribution;
mod draw;
mod findings;
mod head;
mod heat_map;
mod latency;
mod numbers;
mod residence;
mod scale;
mod steady;
mod tables;
mod wear;

#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::report::Report;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::path::Path;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Content security policy: nothing may be loaded, and only the contents of the page are used.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes reports as one page. The output is deterministic.
///
/// # Errors
/// A file that cannot be written.
pub fn write(reports: &[Report], path: &Path) -> Result<()> {
    frit_core::files::write(path, page(reports).as_bytes())
        .map_err(|source| Error::Write { path: path.display().to_string(), source })
}

/// Returns the page. Consecutive reports of the same workload are compared; the first one is the
/// baseline.
#[must_use]
pub fn page(reports: &[Report]) -> String {
    let title = title(reports);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "frit " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (body(reports, &title))
                    footer { "Made by frit. Times are virtual time of the simulated stack, except those called “software”. \
                              Hover or tap for exact values." }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn title(reports: &[Report]) -> String {
    match reports {
        [] => "frit: no reports".into(),
        [r] => format!("{} over {}", r.workload.identity.name, head::stack(&r.stack.name)),
        several => format!("{} runs compared", several.len()),
    }
}

fn body(reports: &[Report], title: &str) -> Markup {
    match reports {
        [] => html! { h1 { (title) } p { "No run has finished." } },
        [r] => html! { h1 { (title) } (findings::of_run(r)) (head::identity(r)) (sections(r, "")) },
        several => html! {
            h1 { (title) }
            (contents(several))
            (compare::all(several))
            @for (i, r) in several.iter().enumerate() {
                h2 id=(format!("r{}", i + 1)) { (format!("{}  ", i + 1)) (r.workload.identity.name) " over " (head::stack(&r.stack.name)) }
                (findings::of_run(r))
                (head::identity(r))
                (sections(r, &format!("r{}-", i + 1)))
            }
        },
    }
}

fn contents(reports: &[Report]) -> Markup {
    html! {
        nav aria-label="Contents" {
            a href="#compare" { "Comparison" }
            ol {
                @for (i, r) in reports.iter().enumerate() {
                    li {
                        a href=(format!("#r{}", i + 1)) { (r.workload.identity.name) " over " (head::stack(&r.stack.name)) }
                        " " (head::kind(r)) (head::verdict(r))
                    }
                }
            }
        }
    }
}

/// Draws all sections that apply to a report. `prefix` makes the anchors of several reports unique.
fn sections(r: &Report, prefix: &str) -> Markup {
    let all: [(&str, &str, Option<Markup>); 10] = [
        ("latency", "Latency", Some(latency::section(r))),
        ("writes", "Write amplification, and commands by cause", Some(counts::section(r))),
        ("commands", "Time of commands", Some(commands::section(r))),
        ("channels", "Channel use over time", Some(channels::section(r))),
        ("disks", "Disks", disks::section(r)),
        ("residence", "Where the data lies", Some(residence::section(r))),
        ("wear", "Wear", Some(wear::section(r))),
        ("steady", "Steady state", Some(steady::section(r))),
        ("layers", "Layers, media and memory", Some(tables::section(r))),
        ("stack", "The stack and the workload", Some(tables::inputs(r))),
    ];
    html! {
        @for (id, name, body) in all.iter().filter_map(|(id, name, body)| Some((id, name, body.as_ref()?))) {
            section id={ (prefix) (id) } {
                h3 { (name) }
                (body)
            }
        }
    }
}
