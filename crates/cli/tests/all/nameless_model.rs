//! Throughput and memory of nameless writes on the OpenSSD board beside an independent model in Python
//! (`scripts/models/nameless_ftl.py`).

use crate::models::{has_python, one_in, output};
use std::process::Command;

const MODEL: &str = "scripts/models/nameless_ftl.py";
const REQUESTS: &str = "20000";

/// Largest difference of the throughputs, as a share. The model has unrounded times and random addresses
/// of its own.
const WITHIN: f64 = 0.01;

/// A workload: arguments of the model, keys of the generator, and overrides of the stack.
const WORKLOADS: [(&str, &str, &str); 7] = [
    ("--op write --size 4K", "uniform,ops=write,size=4K,align=4K,span=8G", ""),
    (
        "--op write --size 4K --merge 2",
        "uniform,ops=write,size=4K,align=4K,span=8G",
        ",nameless.queue_writes=2",
    ),
    (
        "--op write --size 4K --merge 4",
        "uniform,ops=write,size=4K,align=4K,span=8G",
        ",nameless.queue_writes=4",
    ),
    ("--op write --pattern sequential --size 128K", "sequential,ops=write,size=128K,align=128K,span=8G", ""),
    ("--op read --size 4K", "uniform,ops=read,size=4K,align=4K,span=8G", ""),
    (
        "--op read --size 4K --block-reads",
        "uniform,ops=read,size=4K,align=4K,span=8G",
        ",nameless.page_reads=false",
    ),
    ("--op read --pattern sequential --size 128K", "sequential,ops=read,size=128K,align=128K,span=8G", ""),
];

/// Returns the report of a run.
fn report(stack: &str, workload: &str, depth: &str) -> serde_json::Value {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.json");
    let warm = if workload.contains("ops=read") { "fill" } else { "none" };
    output(
        Command::new(env!("CARGO_BIN_EXE_frit"))
            .args(["run", stack, &format!("gen:{workload}"), "--warm", warm, "--qd", depth])
            .args(["--quiet", "--json"])
            .arg(&report),
    );
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    if report.is_array() { report[0].clone() } else { report }
}

fn model(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&output(Command::new("python3").args(["-B", MODEL]).args(arguments))).unwrap()
}

#[test]
fn throughput_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    let cases = WORKLOADS.into_iter().flat_map(|workload| ["1", "32"].map(|depth| (workload, depth)));
    for ((arguments, generator, set), depth) in one_in(3, cases) {
        let stack = format!("nameless-openssd,nameless.capacity=8G{set}");
        let run = report(&stack, &format!("{generator},count={REQUESTS}"), depth);
        let a = run["throughput"]["requests_per_s"].as_f64().unwrap();
        let mut of: Vec<&str> = vec!["--json", "--count", REQUESTS, "--depth", depth];
        of.extend(arguments.split(' '));
        let b = model(&of)["requests_per_s"].as_f64().unwrap();
        assert!((a / b - 1.0).abs() <= WITHIN, "{stack}, {generator}, depth {depth}: {a}, model {b}");
    }
}

#[test]
fn memory_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    for (name, stack) in [
        ("page", "ftl-openssd-base,ftl.mapping_unit=4K,media.nand.blocks_per_plane=144"),
        ("nameless", "nameless-openssd,nameless.recovery=scan,media.nand.blocks_per_plane=144"),
    ] {
        let run = report(stack, "uniform,ops=read,size=4K,align=4K,span=3G,count=1", "1");
        let metric = |name: &str| {
            let all = run["layers"][0]["metrics"].as_array().unwrap();
            all.iter().find(|m| m["name"] == name).unwrap()["value"].as_f64().unwrap()
        };
        let (volume, nand) = (metric("pages") * 4096.0, 144.0 * 8.0 * 4194304.0);
        let of = model(&["--memory", &volume.to_string(), &nand.to_string()]);
        let (a, b) = (metric("dram_bytes"), of[name].as_f64().unwrap());
        assert!((a / b - 1.0).abs() <= WITHIN, "{name}: {a}, model {b}");
    }
}
