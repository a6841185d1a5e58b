//! The word query of ISPFS beside an independent model in Python (`scripts/models/isp_query.py`): times,
//! calls and bytes are equal.

use super::models::{has_python, output};
use serde_json::Value;
use std::process::Command;

/// Sizes of files, with and without parts of rows and blocks.
const FILES: [&str; 6] = ["100K", "1M", "3M", "1", "65", "200001"];

/// Overrides of the host, and the options of the model that stand for them.
const CONFIGS: &[(&str, &[&str])] = &[
    ("", &[]),
    (",engine_cycle=20 ns", &["--engine-ns", "20"]),
    (",engine_bytes_per_cycle=10", &["--engine-ns", "1"]),
    (",engine_buffers=1", &["--buffers", "1"]),
    (",engine_cycle=2 ns,engine_buffers=2", &["--engine-ns", "2", "--buffers", "2"]),
    (",poll_period=1 ms,engine_start=7 us", &["--poll-ns", "1000000", "--start-ns", "7000"]),
    (",compare_per_byte=140 ns", &["--compare-ns", "140"]),
];

#[test]
fn the_query_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    for (overrides, options) in CONFIGS {
        let mut python = Command::new("python3");
        python.args(["-B", "scripts/models/isp_query.py", "--json"]).args(FILES).args(*options);
        let model: Value = serde_json::from_str(&output(&mut python)).unwrap();
        let mut frit = Command::new(env!("CARGO_BIN_EXE_frit"));
        let host = format!("zedboard-2018{overrides}");
        frit.args(["fs-sim", "--isp", "--size", "64M", "--json", "--host", &host]);
        frit.args(["--query-files", &FILES.join(",")]);
        let report: Value = serde_json::from_str(&output(&mut frit)).unwrap();
        for (m, r) in model.as_array().unwrap().iter().zip(report["rows"].as_array().unwrap()) {
            let program = [
                &r["file_bytes"],
                &r["isp"]["engine_ns"],
                &r["isp"]["total_ns"],
                &r["isp"]["requests"],
                &r["isp"]["link_bytes"],
                &r["software"]["total_ns"],
                &r["software"]["requests"],
            ];
            let names = [
                "file_bytes",
                "engine_ns",
                "total_ns",
                "requests",
                "link_bytes",
                "software_ns",
                "software_requests",
            ];
            for (name, value) in names.into_iter().zip(program) {
                assert_eq!(&m[name], value, "{host}, {} bytes: {name}", r["file_bytes"]);
            }
            assert_eq!(r["extents"], 1);
        }
    }
}
