//! Rates of zoned devices beside an independent model in Python (`scripts/models/zns.py`): flat up to the
//! limit of open zones, and what a write beyond it costs.

use crate::hfsl_models::{counts_of, report_of};
use crate::models::{has_python, output, root};
use serde_json::Value;
use std::process::Command;

const COUNT: u32 = 8192;

fn model(options: &str) -> Value {
    let script = root().join("scripts/models/zns.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).args(options.split(' '));
    serde_json::from_str(&output(&mut command)).unwrap()
}

/// Report of `writers` zones in turn.
fn run(overrides: &str, writers: u32, zone: &str) -> Value {
    let stack = format!("zns,zns.max_active=0{overrides}");
    let trace = format!("gen:zones,zone={zone},writers={writers},span=45G,size=4K,count={COUNT}");
    report_of(&stack, &trace, "--qd 32")
}

fn rate(report: &Value) -> f64 {
    f64::from(COUNT) * 4096.0 / report["throughput"]["duration_ns"].as_f64().unwrap() * 1e3
}

#[test]
fn rates_are_those_of_the_model_up_to_the_limit_and_beyond() {
    if !has_python() {
        return;
    }
    for (limit, writers) in [(14, &[1, 4, 14, 15, 28][..]), (4, &[4, 5]), (0, &[28])] {
        let names: Vec<String> = writers.iter().map(u32::to_string).collect();
        let options = format!("--writers {} --max-open {limit} --count {COUNT}", names.join(","));
        let expected = model(&options);
        for (&n, name) in writers.iter().zip(&names) {
            let report = run(&format!(",zns.max_open={limit}"), n, "288M");
            let (measured, wanted) = (rate(&report), expected[name]["mb_per_s"].as_f64().unwrap());
            assert!((measured / wanted - 1.0).abs() < 2e-3, "{limit} {n}: {measured} MB/s, model {wanted}");
            let saved = counts_of(&report)["saved_units"];
            assert_eq!(Some(saved), expected[name]["saved_units"].as_f64(), "{limit} {n}");
        }
    }
}

/// Up to the limit, the rate is the sum of the data sheet; the buffers add what they still hold at the end.
#[test]
fn the_rate_is_flat_up_to_the_limit() {
    if !has_python() {
        return;
    }
    let sum = model("--sum")["mb_per_s"].as_f64().unwrap();
    for writers in [1, 2, 8, 14] {
        let measured = rate(&run("", writers, "288M"));
        let held = f64::from(writers * 16 * 16_384) / (f64::from(COUNT) * 4096.0);
        assert!((0.999..1.01 + held).contains(&(measured / sum)), "{writers}: {measured} MB/s, sum {sum}");
    }
    // Zones of one erase block have the rate of one unit each.
    for writers in [1, 4] {
        let measured = rate(&run(",zns.zone_blocks=1", writers, "18M"));
        let share = measured / (sum * f64::from(writers) / 16.0);
        assert!((0.99..1.02).contains(&share), "{writers} narrow zones: {measured} MB/s");
    }
}
