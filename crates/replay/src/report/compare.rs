//! Comparison of several reports: absolute values for the first stack, ratios for the others,
//! workload by workload.

use super::show::{count, figure, lines, table, time};
use super::{DiskReport, PercentileTime, Report};
use crate::findings::{ComparisonFindings, of_comparison};
use frit_core::Op;
use std::fmt::Write;

/// A metric of a comparison, with its accessor and its format.
pub(crate) struct ComparedMetric {
    pub(crate) name: &'static str,
    pub(crate) value: fn(&Report) -> Option<f64>,
    pub(crate) show: fn(f64) -> String,
}

fn whole(v: f64) -> String {
    count(v as u64)
}

fn three(v: f64) -> String {
    format!("{v:.3}")
}

fn mean(r: &Report, class: &str) -> Option<f64> {
    r.class(class).map(|c| c.response.figures.mean_ns)
}

/// Returns the number of commands of an operation, if the stack has a medium for it.
fn commands(r: &Report, op: Op) -> Option<f64> {
    r.media.iter().any(|m| m.kind == op.medium()).then(|| r.of(op).commands as f64)
}

fn wear_max(r: &Report) -> Option<f64> {
    let nand = r.media.iter().filter(|m| m.kind == frit_core::MediumKind::Nand);
    nand.map(|m| f64::from(m.wear.run.max)).reduce(f64::max)
}

/// Returns a metric of the first disk.
fn disk(r: &Report, of: impl Fn(&DiskReport) -> Option<f64>) -> Option<f64> {
    r.media.iter().find_map(|m| m.disk.as_ref()).and_then(of)
}

/// The percentiles that findings compare, whichever a run was asked for.
const SUMMARY_PERCENTILES: [ComparedMetric; 2] = [
    ComparedMetric {
        name: "latency, p99",
        value: |r| Some(r.class("all")?.response.figures.p99_ns.0 as f64),
        show: time,
    },
    ComparedMetric {
        name: "latency, p99.9",
        value: |r| Some(r.class("all")?.response.figures.p999_ns.0 as f64),
        show: time,
    },
];

const MEAN_LATENCY: ComparedMetric =
    ComparedMetric { name: "latency, mean", value: |r| mean(r, "all"), show: time };

/// The metrics of comparisons except latency of reads and writes together, which comes first.
const OTHER_METRICS: [ComparedMetric; 25] = [
    ComparedMetric { name: "read latency, mean", value: |r| mean(r, "read"), show: time },
    ComparedMetric { name: "write latency, mean", value: |r| mean(r, "write"), show: time },
    ComparedMetric { name: "requests/s", value: |r| Some(r.throughput.requests_per_s), show: figure },
    ComparedMetric { name: "MB/s", value: |r| Some(r.throughput.mb_per_s), show: figure },
    ComparedMetric { name: "write amplification, NAND", value: |r| r.write_amplification.nand, show: three },
    ComparedMetric {
        name: "write amplification, flash",
        value: |r| r.write_amplification.flash,
        show: three,
    },
    ComparedMetric { name: "flash updates", value: |r| r.flash_updates.map(|n| n as f64), show: whole },
    ComparedMetric { name: "NAND reads", value: |r| commands(r, Op::NandRead), show: whole },
    ComparedMetric { name: "NAND programs", value: |r| commands(r, Op::NandProgram), show: whole },
    ComparedMetric { name: "NAND erases", value: |r| commands(r, Op::NandErase), show: whole },
    ComparedMetric { name: "NAND wear, maximum erases", value: wear_max, show: whole },
    ComparedMetric { name: "PCM reads", value: |r| commands(r, Op::PcmRead), show: whole },
    ComparedMetric {
        name: "PCM writes",
        value: |r| Some(commands(r, Op::PcmWrite)? + commands(r, Op::PcmWriteClean)?),
        show: whole,
    },
    ComparedMetric {
        name: "parallel writes, clean",
        value: |r| r.counted("parallel_clean_writes"),
        show: whole,
    },
    ComparedMetric {
        name: "parallel writes, dirty",
        value: |r| r.counted("parallel_dirty_writes"),
        show: whole,
    },
    ComparedMetric { name: "merges of the log", value: |r| r.counted("merges"), show: whole },
    ComparedMetric { name: "refreshes", value: |r| r.counted("refreshes"), show: whole },
    ComparedMetric {
        name: "parallel writes, time",
        value: |r| r.counted("parallel_time").map(|s| s * 1e9),
        show: time,
    },
    ComparedMetric { name: "disk reads", value: |r| commands(r, Op::DiskRead), show: whole },
    ComparedMetric { name: "disk writes", value: |r| commands(r, Op::DiskWrite), show: whole },
    ComparedMetric { name: "disk, busy time", value: |r| disk(r, |d| Some(d.busy_ns as f64)), show: time },
    ComparedMetric { name: "disk, time per request", value: |r| disk(r, |d| d.served_mean_ns), show: time },
    ComparedMetric { name: "disk, traffic rate", value: |r| disk(r, |d| d.traffic_rate), show: three },
    ComparedMetric {
        name: "disk, mean distance",
        value: |r| disk(r, |d| d.distance_mean_sectors),
        show: figure,
    },
    ComparedMetric { name: "software per request", value: |r| Some(r.software.ns_per_request), show: time },
];

/// A row of a comparison: the name of the metric, its values by report, and their format.
pub(crate) struct ComparedRow {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) show: fn(f64) -> String,
}

/// Returns the metrics that findings compare.
pub(crate) fn compared_metrics() -> impl Iterator<Item = &'static ComparedMetric> {
    std::iter::once(&MEAN_LATENCY).chain(&SUMMARY_PERCENTILES).chain(&OTHER_METRICS)
}

/// Returns the rows of a comparison of these reports, without rows of zeros. Latency has the
/// percentiles that the runs were asked for.
pub(crate) fn compared_rows(reports: &[Report]) -> Vec<ComparedRow> {
    let row = |m: &ComparedMetric| {
        let values = reports.iter().map(m.value).collect();
        ComparedRow { name: m.name.to_owned(), values, show: m.show }
    };
    let mut rows = vec![row(&MEAN_LATENCY)];
    rows.extend(percentile_rows(reports));
    rows.extend(OTHER_METRICS.iter().map(row));
    rows.retain(|r| r.values.iter().flatten().any(|v| *v != 0.0));
    rows
}

/// Returns a row for each percentile of the first report.
fn percentile_rows(reports: &[Report]) -> Vec<ComparedRow> {
    fn percentiles(r: &Report) -> &[PercentileTime] {
        r.class("all").map_or(&[], |c| &c.response.percentiles)
    }
    let row = |p: &PercentileTime| {
        let time_of = |r| percentiles(r).iter().find(|t| t.percentile == p.percentile).map(|t| t.ns as f64);
        let values = reports.iter().map(time_of).collect();
        ComparedRow { name: format!("latency, {}", p.name()), values, show: time }
    };
    reports.first().map_or(&[][..], percentiles).iter().map(row).collect()
}

/// Formats the comparison: findings of the runs, a table, and a conclusion. `stacks` is the number
/// of stacks over which each workload was run. Reports are ordered by workload, with the stacks in
/// the same order for each.
#[must_use]
pub fn compare(reports: &[Report], stacks: usize) -> String {
    let Some(first) = reports.get(..stacks).filter(|f| !f.is_empty()) else { return String::new() };
    let names = numbered(&first.iter().map(|r| r.stack.name.as_str()).collect::<Vec<_>>());
    let workloads: Vec<&str> =
        reports.iter().step_by(stacks).map(|r| r.workload.identity.name.as_str()).collect();
    let workloads = numbered(&workloads);
    let head: Vec<&str> =
        ["workload", "figure"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let found: Vec<ComparisonFindings> = reports.chunks(stacks).map(of_comparison).collect();
    let mut t = table(&head, 2);
    for (k, of_one) in reports.chunks(stacks).enumerate() {
        if k > 0 {
            t.add_row(vec![""; head.len()]);
        }
        let mut name = workloads[k].as_str();
        for ComparedRow { name: metric, values, show } in compared_rows(of_one) {
            let mut row = vec![name.to_owned(), metric];
            row.extend(values.iter().enumerate().map(|(i, v)| cell(values[0], *v, i, show)));
            t.add_row(row);
            name = "";
        }
    }
    let note = if stacks > 1 {
        format!("\n {}: absolute values; other stacks: relative to it (×)\n", names[0])
    } else {
        String::new()
    };
    let mut out: String = found.iter().map(ComparisonFindings::head).collect();
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&lines(&t));
    out.push_str(&note);
    for (f, workload) in found.iter().zip(&workloads).filter(|(f, _)| stacks > 1 && !f.conclusion.is_empty())
    {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "\n {workload}:");
        out.push_str(&f.conclusion());
    }
    out
}

/// Returns the names; those that occur more than once are numbered.
pub(crate) fn numbered(all: &[&str]) -> Vec<String> {
    let name = |(i, n): (usize, &&str)| match all.iter().filter(|m| *m == n).count() {
        1 => (*n).to_owned(),
        _ => format!("{n} #{}", 1 + all[..i].iter().filter(|m| *m == n).count()),
    };
    all.iter().enumerate().map(name).collect()
}

/// Formats a cell: the first value as it is; another one relative to the first, or as it is if the
/// first is zero or missing.
fn cell(first: Option<f64>, value: Option<f64>, i: usize, show: fn(f64) -> String) -> String {
    match (first, value) {
        (_, None) => "–".into(),
        (Some(f), Some(v)) if i > 0 && f != 0.0 => format!("{:.3}×", v / f),
        (_, Some(v)) => show(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_occur_twice_are_numbered() {
        assert_eq!(numbered(&["a", "b", "a"]), ["a #1", "b", "a #2"]);
    }

    #[test]
    fn others_are_shown_by_the_first() {
        let show = |v: f64| format!("{v}");
        assert_eq!(cell(Some(4.0), Some(4.0), 0, show), "4");
        assert_eq!(cell(Some(4.0), Some(1.0), 1, show), "0.250×");
        assert_eq!(cell(Some(0.0), Some(3.0), 1, show), "3");
        assert_eq!(cell(None, Some(3.0), 1, show), "3");
        assert_eq!(cell(Some(4.0), None, 1, show), "–");
    }
}
