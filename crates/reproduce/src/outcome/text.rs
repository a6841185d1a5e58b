//! Results as text.

use super::format::{change, count, generated, percent, table};
use super::{
    ExperimentOutcome, FigureOutcome, FigureRow, FigureTable, LatencyRow, Measured, PathTime, Reproduction,
    SoftwareOutcome, TheoryOutcome, Verdict, WorkloadOutcome,
};
use super::{caching_text, comparison_text};
use crate::theory::InitialState;
use frit_core::size;
use frit_trace::identity::WorkloadKind;
use std::fmt::Write as _;

/// Returns all results as text, with tables in Markdown.
#[must_use]
pub fn text(r: &Reproduction) -> String {
    let commit = r.frit.commit.as_deref().unwrap_or("unknown");
    let seed = r.seed.map_or(String::new(), |s| format!(", seed {s}"));
    let mut out = format!("Measured by frit {}, commit {commit}{seed}.\n\n", r.frit.version);
    if r.quick {
        out += "--quick: only the first requests of a few workloads, few rounds, few cases. These are not results.\n\n";
    }
    for e in &r.experiments {
        out += &experiment(e);
        out.push('\n');
    }
    out += &sweeps(r);
    out += &caching_text::studies(r.experiments.iter().filter_map(|e| match &e.measured {
        Measured::Caching(c) => Some(c),
        _ => None,
    }));
    out += &comparison_text::readings(r.experiments.iter().filter_map(|e| match &e.measured {
        Measured::Comparison(c) => Some(c),
        _ => None,
    }));
    if !r.workloads.is_empty() {
        out += &workloads(&r.workloads);
    }
    for m in &r.missing {
        let _ = writeln!(out, "SKIPPED {}: {}", m.name, m.why);
    }
    out
}

/// Returns the assumptions of the sweeps, each once.
fn sweeps(r: &Reproduction) -> String {
    let mut out = String::new();
    let mut told: Vec<&str> = Vec::new();
    for e in &r.experiments {
        let Measured::Figure(f) = &e.measured else { continue };
        if told.contains(&f.sweep.as_str()) {
            continue;
        }
        told.push(&f.sweep);
        let _ = writeln!(out, "## Assumptions of the sweep `{}`\n", f.sweep);
        for reading in &f.readings {
            let _ = writeln!(out, "- {reading}");
        }
        out.push('\n');
    }
    out
}

fn experiment(e: &ExperimentOutcome) -> String {
    let mut out = format!("## {}: {}\n\n{}\n\n", e.id, e.title, e.source);
    for c in &e.claims {
        let _ = writeln!(out, "- published, {}: {}", c.id, c.published);
        if let Some(rule) = &c.rule {
            let _ = writeln!(out, "- rule, {}: {rule}", c.id);
        }
    }
    for reading in &e.readings {
        let _ = writeln!(out, "- reading: {reading}");
    }
    out.push('\n');
    out += &match &e.measured {
        Measured::Figure(f) => figure(f),
        Measured::Caching(c) => caching_text::caching(c),
        Measured::Comparison(c) => comparison_text::comparison(c),
        Measured::Wear(w) => super::wear::wear(w),
        Measured::Recovery(r) => super::recovery::recovery(r),
        Measured::Theory(t) => theory(t),
        Measured::Input(rows) => latency(rows),
        Measured::Software(s) => software(s),
        Measured::Nothing(why) => format!("Not measured: {why}.\n"),
    };
    out
}

fn figure(f: &FigureOutcome) -> String {
    let mut out = match &f.by {
        Some(by) => {
            format!(
                "Measured: `{}`, as a count in the column {by}, and relative to it in the others.\n",
                f.metric
            )
        }
        None => format!("Measured: `{}`, as counts.\n", f.metric),
    };
    for t in &f.tables {
        out += &figure_table(t, f.by.as_deref());
    }
    out
}

fn figure_table(t: &FigureTable, by: Option<&str>) -> String {
    let mut out = format!("\n**{}**: {}.\n\n", t.state, t.about);
    if t.rows.is_empty() {
        out += "No workload is available.\n";
        return out;
    }
    let mut head: Vec<String> = ["workload", "stands for", "volume / PCM"].map(String::from).into();
    head.extend(t.columns.iter().cloned());
    head.push("verdict".into());
    let rows: Vec<Vec<String>> = t.rows.iter().map(|r| figure_row(r, &t.columns, by)).collect();
    out += &table(&head, 3, &rows);
    for m in &t.means {
        let kind = if m.kind == WorkloadKind::Real { "recorded" } else { "GENERATED" };
        let _ = writeln!(
            out,
            "\nMean of the {kind} workloads ({}) at {}: {:.4}; {}",
            m.of.join(", "),
            m.column,
            m.value,
            judged(&m.verdict)
        );
    }
    out += &reasons(&t.rows);
    out
}

/// Returns the explanations of differing rows. Rows with the same reasons are grouped.
fn reasons(rows: &[FigureRow]) -> String {
    let mut groups: Vec<(&[String], Vec<String>)> = Vec::new();
    for r in rows.iter().filter(|r| !r.why.is_empty()) {
        match groups.iter_mut().find(|(why, _)| *why == r.why.as_slice()) {
            Some((_, names)) => names.push(name(r)),
            None => groups.push((&r.why, vec![name(r)])),
        }
    }
    let mut out = String::new();
    if !groups.is_empty() {
        out += "\nDifferences and their reasons:\n";
    }
    for (why, names) in groups {
        let _ = writeln!(out, "- {}: {}.", names.join(", "), why.join("; "));
    }
    out
}

fn name(r: &FigureRow) -> String {
    let hints = if r.hints { " + hints" } else { "" };
    generated(&format!("{}{hints}", r.workload), r.kind)
}

fn figure_row(r: &FigureRow, columns: &[String], by: Option<&str>) -> Vec<String> {
    let mut row = vec![
        name(r),
        r.stands_for.clone().unwrap_or_else(|| "–".into()),
        format!("{} / {}", size::format(r.volume_bytes), size::format(r.pcm_bytes)),
    ];
    for (i, column) in columns.iter().enumerate() {
        row.push(match &r.relative {
            Some(relative) if by != Some(column) => format!("{:.3}", relative[i]),
            _ => count(r.values[i] as u64),
        });
    }
    let verdicts: Vec<String> = r.verdicts.iter().map(judged).collect();
    row.push(if verdicts.is_empty() { "–".into() } else { verdicts.join("; ") });
    row
}

/// Returns a verdict as text.
fn judged(v: &Verdict) -> String {
    let mut words = Vec::new();
    match (v.judged, v.direction) {
        (true, Some(true)) => words.push("direction agrees".to_owned()),
        (true, Some(false)) => words.push("direction DIFFERS".to_owned()),
        (true, None) => words.push("nothing to count".to_owned()),
        (false, _) => {}
    }
    for b in &v.bands {
        let band = match b.most {
            Some(most) => format!("{}–{most}", b.least),
            None => format!("at least {}", b.least),
        };
        words.push(match b.holds {
            true => format!("value agrees ({band})"),
            false => format!("value DIFFERS ({:.4}, {band})", b.value),
        });
    }
    words.join(", ")
}

fn theory(t: &TheoryOutcome) -> String {
    let head = [
        "blocks",
        "units",
        "from",
        "over-prov.",
        "free",
        "open",
        "rounds",
        "theory",
        "measured",
        "distance",
        "largest difference of a share",
        "Kolmogorov",
        "verdict",
    ];
    let mut rows = Vec::new();
    for c in &t.cases {
        let from = if c.case.start == InitialState::Fill { "fill" } else { "steady" };
        let unsettled = if c.settled { "" } else { ", not settled" };
        let agrees = if c.distance().abs() <= t.within { "agrees" } else { "DIFFERS" };
        rows.push(vec![
            count(u64::from(c.case.blocks)),
            c.case.units.to_string(),
            from.into(),
            format!("{:.2} %", c.over_provisioning * 100.0),
            format!("{:.1}", c.free_blocks),
            format!("{:.1}", c.open_blocks),
            format!("{}{unsettled}", c.rounds),
            format!("{:.3}", c.theory),
            format!("{:.3}", c.measured),
            format!("{:+.2} %", c.distance() * 100.0),
            format!("{:+.4} at {}", c.worst_share, c.worst_at),
            format!("{:.4}", c.kolmogorov),
            agrees.into(),
        ]);
    }
    let mut out = table(&head.map(String::from), 0, &rows);
    let _ = writeln!(
        out,
        "\nThe theory is computed for the measured over-provisioning. Values within {} of it agree.",
        percent(t.within)
    );
    out
}

fn latency(rows: &[LatencyRow]) -> String {
    let head = ["command", "bytes", "published", "profile", ""].map(String::from);
    let shown: Vec<Vec<String>> = rows
        .iter()
        .map(|r| {
            vec![
                r.op.into(),
                if r.bytes == 0 { "–".into() } else { r.bytes.to_string() },
                format!("{}{} µs", if r.or_more { "more than " } else { "" }, r.published_us),
                format!("{:.1} µs", r.profile_us),
                if r.agrees { "the same".into() } else { "DIFFERS".into() },
            ]
        })
        .collect();
    let profile = rows.first().map_or("", |r| r.profile.as_str());
    format!(
        "An INPUT, not a result: the profile `{profile}` is made from these values.\n\n{}",
        table(&head, 1, &shown)
    )
}

fn software(s: &SoftwareOutcome) -> String {
    let kernel = s.paths.iter().find(|p| p.kernel);
    let head = ["path", "", "read", "write", "read, relative to kernel", "write, relative to kernel"];
    let mut rows = Vec::new();
    for p in &s.paths {
        let by = |mine: f64, theirs: Option<f64>| match theirs {
            Some(t) if !p.kernel => change(mine / t),
            _ => "–".into(),
        };
        let mut row = |name: &str, what: &str, of: fn(&PathTime) -> (f64, f64)| {
            let ((read, write), theirs) = (of(p), kernel.map(of));
            rows.push(vec![
                name.to_owned(),
                what.to_owned(),
                format!("{read:.0} ns"),
                format!("{write:.0} ns"),
                by(read, theirs.map(|t| t.0)),
                by(write, theirs.map(|t| t.1)),
            ]);
        };
        row(p.name, "median", |p| (p.read_ns, p.write_ns));
        row("", "fastest", |p| (p.read_range_ns.0, p.write_range_ns.0));
        row("", "slowest", |p| (p.read_range_ns.1, p.write_range_ns.1));
    }
    let mut out = format!(
        "Wall-clock time of a request of {} at random places, over {} rounds of {} reads and as many writes. The paths are measured in \
         turns. The times differ from run to run. On a busy machine the fastest rounds are more reliable than the medians, because the \
         path of the kernel waits until its worker is scheduled.\n\n{}\n",
        size::format(s.request_bytes),
        s.rounds,
        count(u64::from(s.requests)),
        table(&head.map(String::from), 2, &rows)
    );
    for p in &s.paths {
        let _ = writeln!(out, "- {}: {}", p.name, p.contains);
    }
    if let Some(why) = &s.skipped {
        let _ = writeln!(out, "\nThe path of the kernel was SKIPPED: {why}.");
    }
    out
}

fn workloads(all: &[WorkloadOutcome]) -> String {
    let mut head: Vec<String> =
        ["workload", "stands for", "requests", "writes", "mean write", "mean read", "smallest write"]
            .map(String::from)
            .into();
    let sizes = all.first().map(|w| w.write_shares.clone()).unwrap_or_default();
    head.extend(sizes.iter().map(|(s, _)| format!("≤{s}")));
    head.push("partial pages".into());
    head.push("written".into());
    let mut rows = Vec::new();
    for w in all {
        let kb = |b: f64| format!("{:.2} KB", b / 1024.0);
        let mut row = vec![
            generated(&w.name, w.kind),
            w.stands_for.clone().unwrap_or_else(|| "–".into()),
            count(w.requests),
            percent(w.write_ratio),
            kb(w.mean_write_bytes),
            kb(w.mean_read_bytes),
            w.smallest_write_bytes.map_or_else(|| "–".into(), |b| format!("{b} B")),
        ];
        row.extend(w.write_shares.iter().map(|(_, share)| percent(*share)));
        row.push(percent(w.partial));
        row.push(size::format(w.written_pages * w.page_bytes));
        rows.push(row);
    }
    let page = all.first().map_or(0, |w| w.page_bytes);
    let mut out = format!(
        "## Workloads\n\n≤N: share of the writes with N bytes or less. Partial pages: share of the page writes that cover only a part of a page of {}. Written: \
         pages that are written at least once.\n\n{}\n",
        size::format(page),
        table(&head, 2, &rows)
    );
    for w in all {
        let kind = if w.kind == WorkloadKind::Real { "recorded" } else { "GENERATED" };
        let _ = writeln!(out, "- {} ({kind}): {}; `{}`", w.name, w.about, w.identity);
    }
    out.push('\n');
    out
}
