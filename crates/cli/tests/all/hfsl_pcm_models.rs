//! Bytes, wear and time of PCM under HFSL beside independent models in Python
//! (`scripts/models/{hfsl_bytes,hfsl_pcm_life,hfsl_redo_ring}.py`): equal to the digit.

use super::hfsl_models::{Counts, counts_of, frit, report_of, scratch, trace_of};
use super::models::{decompressed, has_python, one_in, output};
use serde_json::Value;
use std::process::Command;

/// Returns the output of a model.
fn modelled(model: &str, trace: &str, options: &str) -> Value {
    let script = format!("scripts/models/{model}.py");
    let mut python = Command::new("python3");
    let text = output(python.args(["-B", &script, trace, "--json"]).args(options.split_whitespace()));
    serde_json::from_str(&text).unwrap()
}

/// Returns PCM of a report.
fn pcm_of(report: &Value) -> &Value {
    report["media"].as_array().unwrap().iter().find(|m| m["kind"] == "pcm").unwrap()
}

/// Returns an area of PCM with its wear.
fn area<'a>(pcm: &'a Value, name: &str) -> Option<&'a Value> {
    pcm["wear"]["areas"].as_array().unwrap().iter().find(|a| a["name"] == name)
}

/// Stack, and channels and chips of its NAND.
struct Setting {
    stack: &'static str,
    nand: &'static str,
}

const SMALL: Setting = Setting { stack: "hfsl-small", nand: "8,8" };

/// Compares bytes, commands, cycles and time, and returns the counts of the model.
fn in_bytes(setting: &Setting, trace: &str, ssw: u32, gran: u32) -> Counts {
    let Setting { stack, nand } = setting;
    let report = report_of(&format!("{stack},SSW={ssw},ADDR_GRAN_PCM={gran}"), trace, "");
    let data = area(pcm_of(&report), "data").unwrap();
    let mut program = counts_of(&report);
    program.insert("most_cycles".into(), data["max"].as_f64().unwrap());
    program.insert("duration_ns".into(), report["throughput"]["duration_ns"].as_f64().unwrap());
    let slots = data["bytes"].as_u64().unwrap() / 512;
    let options = format!("--ssw {ssw} --gran {gran} --slots {slots} --nand {nand}");
    let model: Counts = serde_json::from_value(modelled("hfsl_bytes", trace, &options)).unwrap();
    for (name, value) in &model {
        assert_eq!(program.get(name), Some(value), "{trace} SSW={ssw} ADDR_GRAN_PCM={gran}: {name}");
    }
    // The model left no command of NAND or of data in PCM out.
    let data = |name: &&String| name.ends_with(" bytes") && !name.contains("meta") && !name.contains("fence");
    assert!(program.keys().filter(data).all(|name| model.contains_key(name)), "{program:?}");
    model
}

/// The figures of "Requests of bytes" in `docs/reference/hfsl.md`.
#[test]
fn bytes_and_times_of_requests_of_bytes_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    let trace = |name: &str, generator: &str| trace_of(dir.path(), name, &["generate", generator]);
    let records = trace("records.csv", "zipf,read=0.5,size=2:1/16:2/64:4/128:2,align=2,count=100k,span=1M");
    for (gran, bytes, time) in [(2, 4_636_368.0, 1.04), (64, 6_936_000.0, 1.97), (512, 28_603_904.0, 7.51)] {
        let counts = in_bytes(&SMALL, &records, 128, gran);
        assert_eq!(counts["pcm-write host bytes"], bytes);
        assert!((counts["duration_ns"] / 1e9 - time).abs() < 0.006, "{gran}: {counts:?}");
        assert_eq!(counts["slots_moved"], 1.0, "a line reached pcm_slot_spread");
    }
    let sizes = trace("sizes.csv", "zipf,read=0.5,size=64:1/128:1/256:1/512:1,align=64,count=100k,span=1M");
    for (ssw, time) in [(0, 18.15), (128, 14.51), (512, 2.98)] {
        let counts = in_bytes(&SMALL, &sizes, ssw, 64);
        assert!((counts["duration_ns"] / 1e9 - time).abs() < 0.006, "{ssw}: {counts:?}");
        assert_eq!(counts.contains_key("moved_to_pcm"), ssw == 128, "{ssw}: {counts:?}");
    }
    // Small records across sub-pages and pages, with every granularity.
    let odd = trace("odd.csv", "uniform,read=0.4,size=6:1/30:1/510:1/700:1,align=2,count=4k,span=128K");
    let cases = [2, 4, 8, 16, 32, 128, 256].into_iter().flat_map(|gran| [30, 600].map(|ssw| (gran, ssw)));
    for (gran, ssw) in one_in(3, cases) {
        in_bytes(&SMALL, &odd, ssw, gran);
    }
}

/// Requests of many pages on chips of NAND that share a channel, with merges and moves.
#[test]
fn bytes_and_times_on_the_prototype_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    for name in ["fin1", "radius"] {
        let generator = format!("hfsl-{name},count=8000,span=16M");
        let trace = trace_of(dir.path(), &format!("{name}.csv"), &["generate", &generator]);
        for ssw in [0, 1024, 2048] {
            let counts = in_bytes(&Setting { stack: "hfsl-paper", nand: "8,16" }, &trace, ssw, 512);
            assert_eq!(ssw > 0, counts.contains_key("pcm-write migrate bytes"), "{counts:?}");
        }
    }
}

/// Whole sectors of a bundled recording, all in PCM.
#[test]
fn bytes_and_times_of_a_recording_are_those_of_the_model() {
    if !has_python() {
        return;
    }
    let recording = decompressed("traces/pgbench-60k.csv.zst");
    let lines = std::fs::read_to_string(recording.path()).unwrap();
    let dir = scratch();
    let path = dir.path().join("start.csv");
    // The first requests at small addresses, which are of at most 8 KiB.
    let near = |line: &&str| {
        let field = |i: usize| line.split(',').nth(i).unwrap().parse::<u64>().unwrap();
        field(2) + field(3) < 400_000 && field(3) <= 16
    };
    let (head, rest) = lines.split_once('\n').unwrap();
    let some: Vec<&str> = rest.lines().filter(near).take(600).collect();
    assert_eq!(some.len(), 600);
    std::fs::write(&path, format!("{head}\n{}\n", some.join("\n"))).unwrap();
    let counts = in_bytes(&SMALL, path.to_str().unwrap(), 8192, 512);
    assert!(counts["pcm-write host bytes"] > 1e5 && counts["most_cycles"] > 1.0, "{counts:?}");
}

/// Compares the life of PCM in the figures of `frit reproduce`, on traces in place of recordings.
#[test]
fn the_life_of_pcm_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    let trace = |name: &str, generator: &str| trace_of(dir.path(), name, &["generate", generator]);
    let small = "zipf,read=0.3,size=512:2/1K:3/1536:1/2K:1,align=512,count=4000,span=4M";
    let traces = [
        ("fin1-50k", trace("fin1.csv", "hfsl-fin1,count=4000,span=8M")),
        ("fin1-asu0", trace("small.csv", small)),
    ];
    let own = traces.each_ref().map(|(name, file)| format!("{name}={file}"));
    let found = frit(
        &[
            &["reproduce", "hfsl.f19.life", "hfsl.f19.leveled", "--quick", "--quiet", "--json", "-"][..],
            &["--trace", &own[0], "--trace", &own[1]],
        ]
        .concat(),
    );
    let found: Value = serde_json::from_str(&found).unwrap();
    let columns = [("≤512", "512"), ("≤1024", "1024"), ("≤2048", "2048"), ("<1024", "1024 --compare lt")];
    let cases = traces.iter().flat_map(|t| columns.iter().map(move |c| (t, c)));
    for ((name, file), (column, ssw)) in one_in(3, cases) {
        for (experiment, line) in found["experiments"].as_array().unwrap().iter().zip(["max", "mean"]) {
            let tables = experiment["measured"]["figure"]["tables"].as_array().unwrap();
            let table = tables.iter().find(|t| t["state"] == "new").unwrap();
            let at = table["columns"].as_array().unwrap().iter().position(|c| c == column).unwrap();
            let row = table["rows"].as_array().unwrap().iter().find(|r| r["workload"] == *name).unwrap();
            let days = row["values"][at].as_f64().unwrap();
            let [volume, pcm] = ["volume_bytes", "pcm_bytes"].map(|key| &row[key]);
            let options = format!("--ssw {ssw} --volume-bytes {volume} --pcm-bytes {pcm}");
            let model = modelled("hfsl_pcm_life", file, &options)[line].as_f64().unwrap();
            assert!((days / model - 1.0).abs() < 1e-12, "{name} {column} {line}: {days} days, model {model}");
        }
    }
}

/// Settings of the program and options of the model for a ring.
struct RingCase<'a> {
    stack: &'a str,
    run: &'a str,
    model: &'a str,
}

/// Compares the cycles of each line of the ring, and returns the numbers of records and
/// retirements.
fn ring(trace: &str, case: &RingCase<'_>) -> (u64, u64) {
    let stack = format!("hfsl-small,hfsl.map_persist=each,{}", case.stack);
    let report = report_of(&stack, trace, case.run);
    let counts = counts_of(&report);
    for left_out in ["destaged", "gc_victims", "wear_relocated"] {
        assert_eq!(counts[left_out], 0.0, "{stack}: {left_out}");
    }
    let pcm = pcm_of(&report);
    let options = format!("--pcm-bytes {} {}", pcm["bytes"], case.model);
    let model = modelled("hfsl_redo_ring", trace, &options);
    let cycles: Vec<u64> = serde_json::from_value(model["cycles"].clone()).unwrap();
    let Some(area) = area(pcm, "redo-ring") else {
        assert!(cycles.is_empty(), "{stack}: no ring");
        return (0, 0);
    };
    // A place of the map is one line of PCM.
    let map = &pcm["wear"]["map"];
    assert_eq!(map["groups"], 1, "{stack}");
    let [at, bytes] = ["at", "bytes"].map(|key| area[key].as_u64().unwrap() as usize / 512);
    let found: Vec<u64> =
        serde_json::from_value::<Vec<u64>>(map["max"].clone()).unwrap()[at..at + bytes].into();
    assert_eq!(found, cycles, "{stack}: {model}");
    assert_eq!(area["max"].as_u64(), cycles.iter().max().copied(), "{stack}");
    (model["records"].as_u64().unwrap(), model["retirements"].as_u64().unwrap())
}

#[test]
fn the_wear_of_the_redo_ring_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    let dir = scratch();
    let load = "mix,count=1500+zipf,weight=3,size=512:1/2K:3/4K:3/8K:1,read=0.2,span=256K\
                +sequential,weight=1,size=16K,span=2M";
    let mixed = trace_of(dir.path(), "mixed.csv", &["generate", load]);
    let small = "media.nand.blocks_per_plane=32,media.pcm.chip_bytes=32K";
    let on = |more: &str| format!("{small}{more}");
    for (more, model) in [
        ("", ""),
        (",redo_lines=7", "--lines 7"),
        (",redo_lines=1", "--lines 1"),
        (",media.nand.page_bytes=1K", "--page-bytes 1024"),
        (",FUSION_METHOD=none", ""),
    ] {
        let (records, _) = ring(&mixed, &RingCase { stack: &on(more), run: "", model });
        assert!(records > 1000, "{more}: {records}");
    }
    let large = RingCase { stack: &on(",media.nand.page_bytes=4K"), run: "", model: "--page-bytes 4096" };
    assert_eq!(ring(&mixed, &large), (0, 0));
    // A page of the latest record changes alone. A discard covers both pages of a block, or one page
    // that is discarded already, or pages that were never written.
    let path = dir.path().join("turns.csv");
    let mut text = String::from("time_us,op,sector,sectors,flags\n");
    for i in 0..300u64 {
        let block = i % 40 * 8;
        text += &format!("{i},W,{block},8,\n{i},W,{},4,\n", block + i % 3 * 4);
        if i % 5 == 0 {
            text += &format!("{i},D,{block},8,\n{i},D,{block},4,\n{i},D,{},8,\n", block + 400);
        }
    }
    std::fs::write(&path, text).unwrap();
    let (records, retirements) = ring(path.to_str().unwrap(), &RingCase { stack: small, run: "", model: "" });
    assert!(records > 300 && retirements > 100, "{records} records, {retirements} retirements");
}

#[test]
fn the_wear_of_the_redo_ring_by_a_recording_is_that_of_the_model() {
    if !has_python() {
        return;
    }
    let mail = decompressed("traces/mail-60k.csv.zst");
    let stack = "FUSION_METHOD=none,media.nand.blocks_per_plane=64,media.pcm.chip_bytes=32K";
    let case = RingCase { stack, run: "--compact=64K --limit 2500", model: "--limit 2500" };
    let (records, _) = ring(mail.path().to_str().unwrap(), &case);
    assert!(records > 3000, "{records}");
}
