//! Counts of HALO's evictions and wear of levelers beside independent models in Python
//! (`scripts/models/halo_buckets.py`, `scripts/models/pcm_wear.py`): equal to the digit on the
//! bundled recordings.

use super::models::{decompressed, has_python, output, root};
use serde_json::Value;
use std::io::Write;
use std::process::Command;

fn modelled(model: &str, args: &[&str]) -> Value {
    let mut python = Command::new("python3");
    let path = root().join("scripts/models").join(model);
    serde_json::from_str(&output(python.arg("-B").arg(path).args(args).arg("--json"))).unwrap()
}

fn counted(args: &[&str]) -> Value {
    let text = output(Command::new(env!("CARGO_BIN_EXE_frit")).args(args).arg("--json"));
    serde_json::from_str(&text).unwrap()
}

/// Constants of HALO as options of the model and as overrides of the program.
const CONSTANTS: &[(&str, &str)] = &[
    ("", ""),
    (
        "--th-bcounts 16 --th-recency 0.25 --outdate-recency 4 --halo-scan 256",
        "TH_BCOUNTS=16 TH_RECENCY=0.25 OUTDATE_RECENCY=4 halo_scan=256",
    ),
    (
        "--th-bcounts -40 --th-recency 1 --outdate-recency 1 --halo-scan 30",
        "TH_BCOUNTS=-40 TH_RECENCY=1 OUTDATE_RECENCY=1 halo_scan=30",
    ),
    (
        "--th-recency 900 --outdate-recency 900 --halo-scan 7",
        "OUTDATE_RECENCY=900 TH_RECENCY=900 halo_scan=7",
    ),
];

/// Compares all constants, and returns the sum of the evictions by reason.
fn compare(trace: &str, size: &str) -> [u64; 4] {
    let plain = decompressed(trace);
    let plain = plain.path().to_str().unwrap();
    let mut reasons = [0; 4];
    for (options, sets) in CONSTANTS {
        let options: Vec<&str> = options.split_whitespace().collect();
        let model = modelled("halo_buckets.py", &[&[plain, "--size", size][..], &options].concat());
        let sets: Vec<&str> = sets.split_whitespace().flat_map(|s| ["--set", s]).collect();
        let args = ["cache", plain, "--policy", "halo", "--writes-only", "--size", size];
        let program = &counted(&[&args[..], &sets].concat())[0];
        for (name, value) in model.as_object().unwrap() {
            assert_eq!(&program[name], value, "{trace}, {size}, {sets:?}: {name}");
        }
        let names = ["thresholds", "lowered_thresholds", "outdated", "end_of_scan"];
        for (sum, name) in reasons.iter_mut().zip(names) {
            *sum += program[format!("evictions_{name}")].as_u64().unwrap();
        }
        assert_eq!(program["evicted"], program["destaged"], "only writes bring blocks in");
    }
    reasons
}

#[test]
fn evictions_of_halo_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let mut reasons = [0; 4];
    for (trace, size) in [
        ("traces/mail-60k.csv.zst", "6M"),
        ("traces/mail-60k.csv.zst", "24M"),
        ("traces/pgbench-60k.csv.zst", "8M"),
    ] {
        let found = compare(trace, size);
        reasons.iter_mut().zip(found).for_each(|(sum, n)| *sum += n);
    }
    assert!(reasons.iter().all(|n| *n > 0), "a reason never occurred: {reasons:?}");
}

/// Compares the wear of all banks, the most worn block and the moves.
fn compare_wear(trace: &str, pcm: &str) {
    let args = [trace, "--pcm", pcm, "--compact"];
    let model = modelled("pcm_wear.py", &args);
    let program = counted(&[&["wear", "--leveler", "start-gap,round-robin"][..], &args].concat());
    for (model, program) in model.as_array().unwrap().iter().zip(program["levelers"].as_array().unwrap()) {
        assert!(model["moves"].as_u64().unwrap() > 300, "{trace}: few moves");
        for (name, value) in model.as_object().unwrap() {
            assert_eq!(&program[name], value, "{trace}, {pcm}: {name}");
        }
    }
}

#[test]
fn wear_of_start_gap_and_round_robin_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    for (trace, pcm) in [("traces/mail-60k.csv.zst", "512M"), ("traces/pgbench-60k.csv.zst", "2G")] {
        compare_wear(decompressed(trace).path().to_str().unwrap(), pcm);
    }
    // Banks of two stripes, in which the gap goes round more than once.
    let mut text = String::from("time_us,op,sector,sectors,flags\n");
    for i in 0..100_000u64 {
        text += &format!("{i},W,{},8,\n", i * i % 2039 * 8);
    }
    let mut file = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    file.write_all(text.as_bytes()).unwrap();
    compare_wear(file.path().to_str().unwrap(), "8M");
}
