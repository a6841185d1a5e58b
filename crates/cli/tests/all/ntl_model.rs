//! Counts of rounds beside an independent model in Python (`scripts/models/ntl_rounds.py`): equal
//! to the digit on the bundled recordings, and on real traces if they are there.

use super::models::{decompressed, has_python, one_in, output, root};
use serde_json::Value;
use std::process::Command;

/// The model, relative to the root of the repository.
const MODEL: &str = "scripts/models/ntl_rounds.py";

/// Returns the counts of the model, by the names of the program's metrics.
fn modelled(trace: &str, options: &[&str]) -> Value {
    let mut python = Command::new("python3");
    let text = output(python.args(["-B", MODEL, trace, "--json"]).args(options));
    serde_json::from_str(&text).unwrap()
}

/// Returns the metrics of a run of the program.
fn counted(workload: &str, sets: &str, options: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let mut frit = Command::new(env!("CARGO_BIN_EXE_frit"));
    let stack = format!("ntl-paper{sets}");
    let text = output(frit.args(["run", &stack, workload, "--quiet", "--json", "-"]).args(options));
    let report: Value = serde_json::from_str(&text).unwrap();
    let report = report.get(0).unwrap_or(&report).clone();
    move |name| {
        let all = report["layers"][0]["metrics"].as_array().unwrap();
        all.iter().find(|m| m["name"] == name).unwrap_or_else(|| panic!("no metric {name}"))["value"]
            .as_f64()
            .unwrap()
    }
}

/// Configurations as overrides of the stack and as options of the model.
const CONFIGS: &[(&str, &str)] = &[
    ("", ""),
    (",ntl.mapping=dynamic", "--mapping dynamic"),
    (",ntl.round_flag=any", "--flag any"),
    (",ntl.mapping=dynamic,ntl.round_flag=most", "--mapping dynamic --flag most"),
    (",ntl.rounds=request", "--rounds request"),
    (",ntl.mapping=dynamic,ntl.rounds=request", "--mapping dynamic --rounds request"),
    (",ntl.log=full,ntl.log_share=0.0001", "--log full --log-share 0.0001"),
    (
        ",ntl.mapping=dynamic,ntl.log=full,ntl.log_request_pages=1",
        "--mapping dynamic --log full --request-pages 1",
    ),
    (
        ",ntl.log=full,ntl.log_share=0.0001,ntl.rounds=request",
        "--log full --log-share 0.0001 --rounds request",
    ),
];

/// Compares all configurations, and returns the number of merges.
fn compare(trace: &str, more: &[&str]) -> f64 {
    let plain = decompressed(trace);
    let trace = plain.path().to_str().unwrap();
    let mut merges = 0.0;
    for (sets, options) in CONFIGS {
        let model = modelled(trace, &[&options.split_whitespace().collect::<Vec<_>>()[..], more].concat());
        let program = counted(trace, sets, more);
        for (name, value) in model.as_object().unwrap() {
            let (model, program) = (value.as_f64().unwrap(), program(name));
            assert!((model - program).abs() < 1e-9, "{trace}{sets}: {name}: {program}, model {model}");
            merges += if name == "merges" { model } else { 0.0 };
        }
    }
    merges
}

#[test]
fn rounds_of_bundled_recordings_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    for (trace, limit) in
        one_in(2, [("traces/mail-60k.csv.zst", "12000"), ("traces/pgbench-60k.csv.zst", "6000")])
    {
        assert!(compare(trace, &["--limit", limit]) > 0.0, "{trace}: no log was merged");
    }
}

/// Returns a real trace, or reports that the test is skipped.
fn real(name: &str) -> Option<String> {
    let path = root().join("../shared/traces/public").join(name);
    if path.is_file() {
        return Some(path.to_str().unwrap().to_owned());
    }
    eprintln!("skipped: {} does not exist", path.display());
    None
}

#[test]
fn rounds_of_real_traces_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let all = ["Installing_log181.txt.zst", "Booting_log176.txt.zst", "Movie_log121.txt.zst"];
    for name in one_in(3, all) {
        let Some(trace) = real(name) else { continue };
        compare(&trace, &["--limit", "2500", "--whole-pages"]);
    }
}

/// Trace C of the paper, whole: static mapping has the published total, dynamic mapping the
/// published clean and dirty rounds.
#[test]
fn trace_c_has_the_published_rounds() {
    let Some(trace) = real("Installing_log181.txt.zst") else { return };
    let rounds = |sets: &str| {
        let see = counted(&trace, sets, &["--whole-pages"]);
        (see("parallel_clean_writes"), see("parallel_dirty_writes"))
    };
    assert_eq!(rounds(",ntl.mapping=dynamic"), (64_797.0, 43_119.0));
    let (clean, dirty) = rounds("");
    assert_eq!((clean + dirty, clean, dirty), (67_595.0 + 38_714.0, 65_169.0, 41_140.0));
}

#[test]
fn the_model_prints_readings_of_a_trace() {
    if !has_python() {
        return;
    }
    let mut python = Command::new("python3");
    let text = output(python.args(["-B", MODEL, "--readings", "examples/ntl-dozen.csv"]));
    let rows: Vec<Vec<&str>> = text.lines().skip(2).map(|l| l.split('|').map(str::trim).collect()).collect();
    assert_eq!(rows.len(), 13, "{text}");
    for row in &rows {
        let [_, name, static_rounds, total, dynamic_rounds, ..] = row[..] else { panic!("{row:?}") };
        let [clean, dirty] = static_rounds.split(", ").collect::<Vec<_>>()[..] else { panic!("{row:?}") };
        let sum = clean.parse::<u32>().unwrap() + dirty.parse::<u32>().unwrap();
        let of_request = name.starts_with("of one request");
        assert_eq!((total, sum), if of_request { ("13", 13) } else { (total, total.parse().unwrap()) });
        assert!(dynamic_rounds.contains(", "), "{row:?}");
    }
}

/// What the paper says of its traces A, B, D, E and F holds for the workloads that stand for them.
#[test]
fn generated_workloads_compare_mappings_as_the_paper_says() {
    for (name, fewer, slower) in [
        ("twitter", true, false),
        ("copy", true, false),
        ("facebook", false, true),
        ("maps", false, true),
        ("web", true, true),
    ] {
        let workload = format!("gen:nexus-{name},count=20k");
        let [fixed, dynamic] = ["", ",ntl.mapping=dynamic"].map(|sets| counted(&workload, sets, &[]));
        let ratio = |metric: &str| dynamic(metric) / fixed(metric);
        let (total, time) = (ratio("parallel_writes"), ratio("parallel_time"));
        assert_eq!((total < 1.0, time > 1.0), (fewer, slower), "{name}: {total}, {time}");
        assert!(ratio("parallel_clean_writes") < 1.0 && ratio("parallel_dirty_writes") > 1.0, "{name}");
    }
}
