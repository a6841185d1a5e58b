//! Times and counts of writes through a cache with one bit a cell beside an independent model in Python
//! (`scripts/models/slc_cache.py`): equal to the nanosecond and to the digit. The throughput cliff of a
//! drive lies where the sums of the data sheet place it.

use crate::hfsl_models::{counts_of, report_of};
use crate::models::{has_python, output, root};
use serde_json::Value;
use std::process::Command;

const MODEL: &str = "scripts/models/slc_cache.py";

/// Runs the model, and returns its output as JSON.
fn model(options: &str) -> Value {
    let text = output(
        Command::new("python3").current_dir(root()).args(["-B", MODEL]).args(options.split_whitespace()),
    );
    serde_json::from_str(&text).unwrap()
}

/// Compares one unit of 8 blocks of 12 pages with one bit a cell with the model.
fn compare(full: &str, nand: &str, model_options: &str, workload: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.csv");
    let file = file.to_str().unwrap();
    let stack = format!(
        "ftl-slc,media.nand.channels=1,media.nand.blocks_per_plane=160,media.nand.pages_per_block=36,\
         ftl.mapping_unit=0,ftl.merge_buffer=0,ftl.capacity=32M,ftl.slc_cache=0.05,ftl.slc_full={full}{nand}"
    );
    // The host does not wait between requests, so there is no idle time.
    let trace = format!("gen:{workload},size=16K,align=16K,span=16M");
    let report = report_of(&stack, &trace, &format!("--qd 1 --requests {file}"));
    let counts = counts_of(&report);
    let expected = model(&format!(
        "{file} --json --full {full} --cache-blocks 8 --cache-pages 12 --pages-per-block 36 {model_options}"
    ));
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(counts[name], value.as_f64().unwrap(), "{full} {workload}: {name}");
    }
    assert!(counts["slc_folds"] > 5.0 && counts["gc_victims"] == 0.0, "{full} {workload}: {counts:?}");
}

#[test]
fn writes_take_the_times_of_the_model() {
    if !has_python() {
        return;
    }
    let typed = ",media.nand.profile=tlc-pages-2018,media.nand.t_read_slc=20us,media.nand.t_prog_slc=160us";
    let typed_options =
        "--t-prog 820500,2225000,5734000 --t-read-slc 20000 --t-prog-slc 160000 --t-erase 3000000";
    for (nand, options) in [("", ""), (typed, typed_options)] {
        for workload in ["uniform,ops=write,count=800,seed=3", "zipf,ops=write,count=800,seed=5"] {
            compare("fold", nand, options, workload);
        }
        compare("direct", nand, options, "sequential,ops=write,count=1100");
    }
}

/// A host that waits for 50 ms after each write leaves idle time, and one that waits for 2 ms does not.
#[test]
fn the_cache_is_folded_after_idle_time() {
    let stack = "ftl-slc,media.nand.channels=1,media.nand.blocks_per_plane=160,media.nand.pages_per_block=36,\
                 ftl.mapping_unit=0,ftl.merge_buffer=0,ftl.capacity=32M,ftl.slc_cache=0.05";
    let counts = |rate: u32| {
        let trace = format!(
            "gen:sequential,ops=write,size=16K,align=16K,span=16M,count=300,rate={rate},arrival=fixed"
        );
        let counts = counts_of(&report_of(stack, &trace, "--open"));
        ["slc_written", "slc_bypassed", "slc_folds", "slc_folded"].map(|name| counts[name])
    };
    // Each of the 24 full blocks before the last page is folded with its 12 pages.
    assert_eq!(counts(20), [300.0, 0.0, 24.0, 288.0]);
    assert_eq!(counts(500), [96.0, 204.0, 0.0, 0.0]);
}

#[test]
fn the_cliff_lies_where_the_data_sheet_places_it() {
    if !has_python() {
        return;
    }
    // 603 979 776 bytes of cache on four channels.
    for full in ["direct", "fold"] {
        let sizes = ["256M", "576M", "640M", "1G", "2G"];
        let options = "--units 4 --cache-blocks 24 --cache-pages 384";
        let expected = model(&format!("--rates {} --full {full} {options}", sizes.join(",")));
        assert_eq!(expected["cliff_bytes"], 603_979_776);
        for size in sizes {
            let stack = format!("ftl-slc,ftl.slc_full={full},ftl.slc_idle_fold=false");
            let megabytes = match size.strip_suffix('G') {
                Some(n) => n.parse::<u64>().unwrap() << 10,
                None => size.trim_end_matches('M').parse().unwrap(),
            };
            let trace =
                format!("gen:sequential,ops=write,size=256K,align=256K,span=8G,count={}", megabytes * 4);
            let report = report_of(&stack, &trace, "--qd 32");
            let rate = (megabytes << 20) as f64 / report["throughput"]["duration_ns"].as_f64().unwrap() * 1e3;
            let sum = expected[size].as_f64().unwrap();
            assert!((rate / sum - 1.0).abs() < 0.01, "{full} {size}: {rate} MB/s, model {sum}");
        }
    }
}
