//! Counts of HFSL and of its FTL beside independent models in Python
//! (`scripts/models/{hfsl_merge_move,greedy_ftl}.py`): equal to the digit.

use crate::models::{has_python, output, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;

pub(crate) fn frit(args: &[&str]) -> String {
    output(Command::new(env!("CARGO_BIN_EXE_frit")).args(args))
}

pub(crate) type Counts = BTreeMap<String, f64>;

/// Returns the report of a run.
pub(crate) fn report_of(stack: &str, trace: &str, options: &str) -> Value {
    let fixed = ["run", stack, trace, "--quiet", "--json", "-"];
    let options: Vec<&str> = options.split_whitespace().collect();
    let mut reports: Value = serde_json::from_str(&frit(&[&fixed[..], &options].concat())).unwrap();
    reports[0].take()
}

/// Returns the metrics of a run by name, and its commands and bytes as "operation cause unit".
pub(crate) fn counted(stack: &str, trace: &str, options: &str) -> Counts {
    counts_of(&report_of(stack, trace, options))
}

/// Returns the metrics of a report by name, and its commands and bytes as "operation cause unit".
pub(crate) fn counts_of(report: &Value) -> Counts {
    let mut counts = Counts::new();
    for metric in report["layers"][0]["metrics"].as_array().unwrap() {
        counts.insert(metric["name"].as_str().unwrap().into(), metric["value"].as_f64().unwrap());
    }
    for c in report["counts"].as_array().unwrap() {
        for unit in ["commands", "bytes"] {
            let name = format!("{} {} {unit}", c["op"].as_str().unwrap(), c["cause"].as_str().unwrap());
            counts.insert(name, c[unit].as_f64().unwrap());
        }
    }
    counts
}

/// Compares the counts of a model with those of a run, and returns them.
pub(crate) fn compare(model: &str, stack: &str, trace: &str, run: &str, options: &str) -> Counts {
    let mut python = Command::new("python3");
    let script = format!("scripts/models/{model}.py");
    let text = output(python.args(["-B", &script, trace, "--json"]).args(options.split_whitespace()));
    let model: Counts = serde_json::from_str(&text).unwrap();
    let program = counted(stack, trace, run);
    for (name, value) in &model {
        // The program lists no command that was never given.
        let found = program.get(name).copied().unwrap_or(0.0);
        assert!(name.contains(' ') || program.contains_key(name), "no metric {name}");
        assert!((value - found).abs() < 1e-9, "{trace} {stack} {run}: {name}: {found}, model {value}");
    }
    model
}

/// Bytes of a page and blocks of a plane of NAND.
#[derive(Clone, Copy)]
struct Sizes {
    page: u32,
    blocks: u32,
}

/// Compares placement with SSW, and returns the counts.
fn placed(trace: &str, limit: u32, ssw: u32, lt: bool, sizes: Sizes) -> Counts {
    let Sizes { page, blocks } = sizes;
    let compare_by = if lt { "lt" } else { "le" };
    let stack = format!(
        "hfsl-paper,hfsl.SSW={ssw},hfsl.ssw_compare={compare_by},\
         media.nand.page_bytes={page},media.nand.blocks_per_plane={blocks}"
    );
    let limit = format!("--limit {limit}");
    let options = format!(
        "--ssw {ssw} --compare {compare_by} --page-bytes {page} --sub-bytes {} {limit}",
        (page / 8).max(512)
    );
    compare("hfsl_merge_move", &stack, trace, &limit, &options)
}

/// Writes a trace of the program into a directory, and returns its path.
pub(crate) fn trace_of(dir: &Path, name: &str, args: &[&str]) -> String {
    let path = dir.join(name);
    let path = path.to_str().unwrap();
    frit(&[&["trace"], args, &[path]].concat());
    path.to_owned()
}

/// Files that tests remove at their end.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn merges_and_moves_of_small_writes_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    for (name, span) in [("fin1", "4M"), ("radius", "8M")] {
        let generator = format!("hfsl-{name},count=2000,span={span}");
        let trace = trace_of(dir.path(), &format!("{name}.csv"), &["generate", &generator]);
        let none = {
            let options = "--method none";
            compare("hfsl_merge_move", "no-pcm,media.nand.blocks_per_plane=128", &trace, "", options)["flash_updates"]
        };
        for (ssw, lt) in [(512, false), (1024, false), (2048, false), (512, true), (2048, true)] {
            let counts = placed(&trace, 2000, ssw, lt, Sizes { page: 2048, blocks: 128 });
            let moved = counts["moved_to_pcm"];
            assert_eq!(moved > 0.0, (ssw, lt) != (512, true), "{name} {ssw} {lt}: {moved} moved");
            assert!(counts["flash_updates"] <= none && counts["flash_updates"] > 0.0, "{name} {ssw}");
        }
    }
}

/// With pages of 8 KiB the writes of a file system are parts of pages.
#[test]
fn merges_and_moves_of_recordings_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    for (trace, limit) in [("traces/mail-60k.csv.zst", 3000), ("traces/pgbench-60k.csv.zst", 1500)] {
        for ssw in [4096, 8192] {
            let counts = placed(trace, limit, ssw, false, Sizes { page: 8192, blocks: 4096 });
            assert!(counts["moved_to_pcm"] > 0.0 && counts["flash_updates"] > 0.0, "{trace} {ssw}");
        }
    }
}

#[test]
fn merges_and_moves_of_a_real_trace_are_those_of_the_model() {
    let file = root().join("../shared/traces/public/Financial1-snippet.spc.zst");
    if !has_python() || !file.is_file() {
        eprintln!("skipped: no python3, or {} does not exist", file.display());
        return;
    }
    let dir = scratch();
    let convert = ["convert", "--devices", "concat", file.to_str().unwrap()];
    let trace = trace_of(dir.path(), "financial1.csv", &convert);
    for ssw in [512, 1024, 2048] {
        placed(&trace, 10_000, ssw, false, Sizes { page: 2048, blocks: 16_384 });
    }
}

/// Compares garbage collection on two units, and returns the write amplification. The requests are
/// so far apart that all work ends between them, and the last one is a read.
fn collected(dir: &Path, generator: &str, pages_per_block: u32, policy: &str) -> f64 {
    let trace = dir.join("gc.csv").to_str().unwrap().to_owned();
    let generator = format!("{generator},read=0,align=2K,rate=1,arrival=fixed");
    frit(&["trace", "generate", &generator, &trace, "--force"]);
    writeln!(std::fs::OpenOptions::new().append(true).open(&trace).unwrap(), "1e10,R,0,4,").unwrap();
    let stack = format!(
        "no-pcm,media.nand.channels=2,media.nand.chips_per_channel=1,media.nand.blocks_per_plane=64,\
         media.nand.pages_per_block={pages_per_block},hfsl.heat=off,hfsl.wear_leveling=none,\
         hfsl.over_provisioning=0.2,hfsl.gc_high_blocks=6,hfsl.gc={policy}"
    );
    let pages = counted(&stack, &trace, "--open --warm fill --limit 1")["pages"];
    let options = format!(
        "--units 2 --blocks 64 --fill --pages {pages} --pages-per-block {pages_per_block} --policy {policy}"
    );
    let counts = compare("greedy_ftl", &stack, &trace, "--open --warm fill", &options);
    1.0 + counts["nand-program gc commands"] / counts["nand-program host commands"]
}

#[test]
fn write_amplification_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    for generator in ["uniform,count=1500,size=2K:3/32K:1,span=780K", "zipf,count=1500,size=2K,span=780K"] {
        let [greedy, fifo] = ["greedy", "fifo"].map(|policy| collected(dir.path(), generator, 4, policy));
        assert!(1.0 < greedy && greedy < fifo, "{generator}: greedy {greedy}, FIFO {fifo}");
    }
    let large = collected(dir.path(), "zipf,count=1500,size=2K:3/64K:1,span=12M", 64, "fifo");
    assert!(large > 1.5, "{large}");
}
