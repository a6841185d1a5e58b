//! Golden reports: what `frit run` reports of each built-in stack must not change unnoticed.
//!
//! The reports of all built-in stacks under three workloads, in both engines, are kept in one compressed file, a line
//! for each run. They have times, counts of the media, memory, findings and the identity of the stack; only the version
//! and wall-clock times are left out. `make test` compares a sixth of the runs: each stack in one of its six
//! combinations. `make golden` compares all, and `make golden RECORD=1` keeps the reports of the present program after
//! a change that is meant.

use frit_core::SECTOR_BYTES;
use frit_stack::{Bytes, Stack, builtins};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Differences that are shown of one run.
const SHOWN: usize = 12;
/// Compression of the file: a report has much in common with the others.
const LEVEL: i32 = 19;
const WINDOW_LOG: u32 = 27;
/// Largest volume that is filled before a workload that overwrites it, so that cleaning begins.
const FILLED_BYTES: u64 = 600 << 20;

const ENGINES: [&str; 2] = ["in-order", "event"];

/// Name and arguments of a workload.
type Workload = (&'static str, &'static [&'static str]);

const WORKLOADS: [Workload; 3] = [
    (
        "overwrites",
        &["gen:uniform,count=3000,size=4K,align=4K,span=24M,read=0.3,seed=7", "--wrap", "--qd", "16"],
    ),
    (
        "small writes",
        &[
            "gen:zipf,count=3000,size=512:2/2K:2/12K,span=8M,read=0.3,meta=0.1,flush=40,seed=8,rate=20k",
            "--wrap",
            "--open",
        ],
    ),
    ("mail", &["traces/mail-60k.csv.zst", "--limit", "2000", "--compact=64K", "--qd", "4"]),
];
/// The same for zones, which are written in order, and each but once. `{zone}` is their size.
const OF_ZONES: [Workload; 3] = [
    ("overwrites", &["gen:zones,count=1500,size=16K,zone={zone},writers=2,seed=7", "--wrap", "--qd", "16"]),
    (
        "small writes",
        &["gen:zones,count=1500,size=4K,zone={zone},flush=40,seed=8,rate=20k", "--wrap", "--open"],
    ),
    ("large writes", &["gen:zones,count=300,size=64K,zone={zone},writers=3,seed=9", "--wrap", "--qd", "4"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/reports.jsonl.zst")
}

/// A run of one stack.
struct Case {
    name: String,
    arguments: Vec<String>,
}

/// All runs, in groups of six: those of one stack.
fn cases() -> Vec<Case> {
    let of_stack = |stack: &'static str| {
        let mut built = Stack::builtin(stack, &[]).unwrap().build(&Bytes::None).unwrap();
        let is_small = built.layer.info().sectors * SECTOR_BYTES <= FILLED_BYTES;
        let zone = built.layer.zone_access().map(|zones| zones.zoned_info().zone_sectors * SECTOR_BYTES);
        let workloads = if zone.is_some() { OF_ZONES } else { WORKLOADS };
        // Nameless writes have no addresses that could be filled.
        let is_filled = is_small && zone.is_none() && built.layer.nameless_device().is_none();
        let zone = zone.unwrap_or(0).to_string();
        let combinations =
            workloads.into_iter().flat_map(|workload| ENGINES.map(|engine| (workload, engine)));
        combinations.map(move |((workload, arguments), engine)| {
            let mut all = vec!["run".to_owned(), format!("{stack},engine.kind={engine}")];
            all.extend(arguments.iter().map(|argument| argument.replace("{zone}", &zone)));
            let warm = if is_filled && workload == "overwrites" { "fill" } else { "none" };
            all.extend(["--warm", warm, "--quiet", "--json", "-"].map(str::to_owned));
            Case { name: format!("{stack}, {workload}, {engine}"), arguments: all }
        })
    };
    builtins().iter().flat_map(|builtin| of_stack(builtin.name)).collect()
}

/// Runs a case.
fn run(case: &Case) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frit"));
    let output = command.args(&case.arguments).current_dir(root()).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: frit {}\n{error}", case.name, case.arguments.join(" "));
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = report[0].take();
    let Value::Object(mut fields) = report else { panic!("{}: {report}", case.name) };
    fields.retain(|field, _| !["frit", "software"].contains(&field.as_str()));
    Value::Object(fields)
}

/// Runs cases on all processors.
fn run_all(cases: &[Case], each: impl Fn(&Case, Value) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            each(case, run(case));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
}

fn read() -> BTreeMap<String, Value> {
    let packed = std::fs::File::open(file()).unwrap();
    let mut decoder = zstd::Decoder::new(packed).unwrap();
    decoder.window_log_max(WINDOW_LOG).unwrap();
    let text = std::io::read_to_string(decoder).unwrap();
    let line = |line| {
        let (name, report): (String, Value) = serde_json::from_str(line).unwrap();
        (name, report)
    };
    text.lines().map(line).collect()
}

fn write(reports: &BTreeMap<String, Value>) {
    use std::io::Write;

    let mut encoder = zstd::Encoder::new(std::fs::File::create(file()).unwrap(), LEVEL).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(WINDOW_LOG).unwrap();
    for line in reports {
        writeln!(encoder, "{}", serde_json::to_string(&line).unwrap()).unwrap();
    }
    encoder.finish().unwrap();
}

/// Adds the places where two values differ.
fn differences(at: &str, was: &Value, is: &Value, found: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let keys: std::collections::BTreeSet<_> = was.keys().chain(is.keys()).collect();
            for key in keys {
                let [was, is] = [was, is].map(|fields| fields.get(key).unwrap_or(&Value::Null));
                differences(&format!("{at}.{key}"), was, is, found);
            }
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            for (index, (was, is)) in was.iter().zip(is).enumerate() {
                differences(&format!("{at}[{index}]"), was, is, found);
            }
        }
        _ if was == is => {}
        _ => {
            let short = |value: &Value| value.to_string().chars().take(80).collect::<String>();
            found.push(format!("  {}: {} -> {}", at.trim_start_matches('.'), short(was), short(is)));
        }
    }
}

/// Compares runs with what is kept of them, and returns how they differ.
fn compare(cases: &[Case]) -> Vec<String> {
    let golden = read();
    let differ = Mutex::new(Vec::new());
    run_all(cases, |case, report| {
        let mut found = Vec::new();
        match golden.get(&case.name) {
            Some(was) => differences("", was, &report, &mut found),
            None => found.push("  is not recorded".into()),
        }
        if !found.is_empty() {
            let more = found.len().saturating_sub(SHOWN);
            found.truncate(SHOWN);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            differ.lock().unwrap().push(format!("{}:\n{}{more}", case.name, found.join("\n")));
        }
    });
    differ.into_inner().unwrap()
}

const REMEDY: &str =
    "if the change is meant, record the reports of the present program: make golden RECORD=1";

#[test]
fn reports_are_as_recorded() {
    // The tables of 2 TB take half of the time. `make golden` has them.
    let is_drawn = |at: usize, case: &Case| at % 6 == at / 6 % 6 && !case.name.starts_with("ftl-modern,");
    let all = cases().into_iter().enumerate();
    let drawn: Vec<_> = all.filter(|(at, case)| is_drawn(*at, case)).map(|(_, case)| case).collect();
    let differ = compare(&drawn);
    assert!(differ.is_empty(), "{}\n{REMEDY}", differ.join("\n"));
}

#[test]
#[ignore = "takes minutes: make golden"]
fn all_reports_are_as_recorded() {
    let cases = cases();
    if std::env::var_os("RECORD").is_some() {
        let reports = Mutex::new(BTreeMap::new());
        run_all(&cases, |case, report| {
            reports.lock().unwrap().insert(case.name.clone(), report);
        });
        return write(&reports.into_inner().unwrap());
    }
    let differ = compare(&cases);
    assert!(
        differ.is_empty(),
        "{} of {} runs differ\n{}\n{REMEDY}",
        differ.len(),
        cases.len(),
        differ.join("\n")
    );
    let golden = read();
    assert_eq!(golden.len(), cases.len(), "the file has runs of stacks that are no longer there\n{REMEDY}");
}

#[test]
fn a_difference_is_named_by_its_place() {
    let was = serde_json::json!({ "a": [1, { "b": 2 }], "gone": true, "same": "x" });
    let is = serde_json::json!({ "a": [1, { "b": 2.5 }], "new": null, "same": "x" });
    let mut found = Vec::new();
    differences("", &was, &is, &mut found);
    assert_eq!(found, ["  a[1].b: 2 -> 2.5", "  gone: true -> null"]);
}
