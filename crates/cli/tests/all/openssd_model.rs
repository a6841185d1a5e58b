//! Throughput of the OpenSSD board beside an independent model in Python
//! (`scripts/models/openssd_ftl.py`).

use crate::models::{has_python, one_in, output};
use std::process::Command;

const MODEL: &str = "scripts/models/openssd_ftl.py";
const REQUESTS: &str = "20000";

/// Largest difference of the throughputs, as a share. The model has unrounded times and random
/// addresses of its own, so the number of writes to pages that were written before differs.
const WITHIN: f64 = 0.01;

/// A workload: arguments of the model, and the keys of the generator.
const WORKLOADS: [(&str, &str); 8] = [
    ("--op write --size 4K", "uniform,ops=write,size=4K,align=4K,span=8G"),
    ("--op read --size 4K", "uniform,ops=read,size=4K,align=4K,span=8G"),
    ("--op write --pattern sequential --size 4K", "sequential,ops=write,size=4K,align=4K,span=8G"),
    ("--op write --pattern sequential --size 128K", "sequential,ops=write,size=128K,align=128K,span=8G"),
    (
        "--op write --pattern sequential --size 128K --base 20K --span 4G",
        "sequential,ops=write,size=128K,align=4K,base=20K,span=4G",
    ),
    ("--op read --pattern sequential --size 128K", "sequential,ops=read,size=128K,align=128K,span=8G"),
    // Requests that find their page in the read buffer, or on its way there.
    ("--op read --pattern sequential --size 4K", "sequential,ops=read,size=4K,align=4K,span=8G"),
    (
        "--op read --pattern sequential --size 128K --base 20K --span 4G",
        "sequential,ops=read,size=128K,align=4K,base=20K,span=4G",
    ),
];

/// Returns the requests a second that the program measures.
fn measured(stack: &str, workload: &str, depth: &str) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.json");
    let warm = if workload.contains("ops=read") { "fill" } else { "none" };
    output(
        Command::new(env!("CARGO_BIN_EXE_frit"))
            .args(["run", &format!("{stack},ftl.capacity=8G")])
            .arg(format!("gen:{workload},count={REQUESTS}"))
            .args(["--warm", warm, "--qd", depth, "--quiet", "--json"])
            .arg(&report),
    );
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let report = if report.is_array() { &report[0] } else { &report };
    report["throughput"]["requests_per_s"].as_f64().unwrap()
}

/// Returns the requests a second of the model.
fn modelled(ftl: &str, workload: &str, depth: &str) -> f64 {
    let said = output(
        Command::new("python3")
            .args(["-B", MODEL, ftl, "--json", "--count", REQUESTS, "--depth", depth])
            .args(workload.split(' ')),
    );
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    said["requests_per_s"].as_f64().unwrap()
}

#[test]
fn throughput_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    let ftls = [("base", "ftl-openssd-base"), ("new", "ftl-openssd")];
    let cases = ftls
        .into_iter()
        .flat_map(|ftl| WORKLOADS.map(|workload| (ftl, workload)))
        .flat_map(|(ftl, workload)| ["1", "32"].map(|depth| (ftl, workload, depth)));
    for ((ftl, stack), (model, generator), depth) in one_in(3, cases) {
        let (a, b) = (measured(stack, generator, depth), modelled(ftl, model, depth));
        assert!((a / b - 1.0).abs() <= WITHIN, "{stack}, {generator}, depth {depth}: {a}, model {b}");
    }
}
