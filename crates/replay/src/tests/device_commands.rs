//! Commands of caches and zones in a run: times and counts that can be computed by hand, equal reports of
//! all engines, layers that do not know a command, and contents.

use super::trees::stack as parse;
use super::{mixed_trace, run};
use crate::{Job, Report, RequestLog, RunOptions};
use frit_engine::LoopMode;
use frit_stack::Stack;
use frit_stack::layers::LayerKind;
use frit_trace::{DeviceCommand, Fit, Options};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Read and program of a page of 4 KiB of the NAND of `ssc-small`, in ns: `t_read`, `t_prog` and 4096 times
/// `bus_per_byte` of its profile, slc-k9-2016.
const SSC_READ: u64 = 62_301 + 26_399;
const SSC_PROGRAM: u64 = 200_001 + 26_399;
/// The same for a page of 16 KiB of `zns-small`, of the profile tlc-2020.
const ZNS_READ: u64 = 45_000 + 13_648;
const ZNS_PROGRAM: u64 = 450_000 + 13_648;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn builtin(name: &str, sets: &[&str]) -> Stack {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    Stack::builtin(name, &sets).unwrap_or_else(|e| panic!("{e}: {:?}", e.problems()))
}

fn trace(dir: &tempfile::TempDir, lines: &str) -> PathBuf {
    let path = dir.path().join("t.csv");
    std::fs::write(&path, format!("time_us,op,sector,sectors,flags\n{lines}")).unwrap();
    path
}

fn verified(stack: &Stack, path: &Path) -> Report {
    let r = run(stack, path.to_str().unwrap(), &RunOptions { verify: true, ..RunOptions::default() });
    let v = r.verification.clone().unwrap();
    assert!(v.passed(), "{:?}", v.first);
    r
}

/// Returns operation and response time of each request.
fn times(stack: &Stack, path: &Path, options: &RunOptions) -> Vec<(String, u64)> {
    let dir = tempfile::tempdir().unwrap();
    let log_path = dir.path().join("log.csv");
    let mut log = RequestLog::create(&log_path).unwrap();
    let job = Job::open(path.to_str().unwrap(), &Options::default(), Fit::Strict, &mut |_| {}).unwrap();
    job.run_logged(stack, options, &mut |_| {}, Some(&mut log)).unwrap();
    log.commit().unwrap();
    let text = std::fs::read_to_string(log_path).unwrap();
    let of = |line: &str| {
        let f: Vec<&str> = line.rsplitn(7, ',').collect();
        (f[5].to_owned(), f[0].parse::<u64>().unwrap() - f[2].parse::<u64>().unwrap())
    };
    text.lines().skip(1).map(of).collect()
}

/// Requests, blocks that were present, and blocks that were absent, by command.
fn counts(r: &Report) -> Vec<(&str, u64, Option<u64>, Option<u64>)> {
    r.commands.iter().map(|c| (c.command, c.requests, c.hits, c.misses)).collect()
}

fn error(stack: &Stack, path: &Path) -> String {
    let job = Job::open(path.to_str().unwrap(), &Options::default(), Fit::Strict, &mut |_| {}).unwrap();
    let e = job.run(stack, &RunOptions::default(), &mut |_| {}).unwrap_err();
    format!("{e}: {}", std::error::Error::source(&e).unwrap())
}

/// The table of `docs/reference/traces.md`: two blocks wait in the merge buffer, so a program is due when
/// the buffer is full, or when a block in it is read.
#[test]
fn the_example_of_a_cache_takes_the_times_of_its_data_sheet() {
    let path = example("cache-commands.csv");
    let (read, program) = (SSC_READ, SSC_PROGRAM);
    let expected = [
        ("exists", 0),
        ("read-or-miss", 0),
        ("write-clean", 0),
        // The block is in the buffer: it is programmed, and read.
        ("read-or-miss", program + read),
        // Two blocks fill the buffer, and go to the two units.
        ("write-dirty", program),
        ("read-or-miss", read),
        ("write-dirty", 0),
        // Block 0 from the buffer, block 1 behind it on its unit, block 2 on the other; block 3 is a miss.
        ("read-or-miss", program + 2 * read),
        ("clean", 0),
        ("read-or-miss", 2 * read),
        ("exists", 0),
        ("evict", 0),
        ("read-or-miss", 0),
        ("write-clean", 0),
        ("read-or-miss", program + read),
        ("evict", 0),
        ("exists", 0),
        ("read-or-miss", 0),
        // The checkpoint has one page.
        ("flush", program),
        ("write-dirty", 0),
        ("read", program + read),
    ];
    let stack = builtin("ssc-small", &[]);
    let got = times(&stack, &path, &RunOptions::default());
    assert_eq!(got.iter().map(|(op, ns)| (op.as_str(), *ns)).collect::<Vec<_>>(), expected);
    let r = verified(&stack, &path);
    let rows = [
        ("read-or-miss", 8, Some(9), Some(6)),
        ("write-dirty", 3, None, None),
        ("write-clean", 2, None, None),
        ("evict", 2, None, None),
        ("clean", 1, None, None),
        ("exists", 3, Some(3), Some(21)),
    ];
    assert_eq!(counts(&r), rows);
    let a = &r.asked;
    assert_eq!((a.requests, a.commands, a.reads, a.writes, a.flushes), (21, 19, 9, 5, 1));
    assert_eq!((a.read_bytes, a.written_bytes), (10 * 4096, 6 * 4096));
    assert_eq!(r.class("all").unwrap().response.figures.count, 14);
}

#[test]
fn the_example_of_zones_takes_the_times_of_its_data_sheet() {
    let path = example("zone-commands.csv");
    let stack = builtin("zns-small", &["zns.recovery=scan"]);
    let open = RunOptions { mode: LoopMode::Open { speed: 1.0, depth: None }, ..RunOptions::default() };
    let got = times(&stack, &path, &open);
    let expected = [
        (0, "zone-open", 0),
        // 64 KiB are four pages on two units; the buffer of two pages delays two of them by a program.
        (1, "zone-append", ZNS_PROGRAM),
        (2, "zone-append", ZNS_PROGRAM),
        (3, "zone-append", ZNS_PROGRAM),
        (4, "zone-close", 0),
        // The table of zones has two copies, on the two units.
        (5, "flush", ZNS_PROGRAM),
        // Eight pages on two units.
        (6, "read", 4 * ZNS_READ),
        (7, "read", 2 * ZNS_READ),
        (8, "zone-finish", ZNS_PROGRAM),
        (9, "zone-reset", ZNS_PROGRAM),
        // Less than a page waits in the buffer.
        (10, "zone-append", 0),
        (11, "write", 0),
    ];
    for (i, op, ns) in expected {
        assert_eq!((got[i].0.as_str(), got[i].1), (op, ns), "{i}");
    }
    let r = verified(&stack, &path);
    let rows = [
        ("zone-append", 5, None, None),
        ("zone-open", 2, None, None),
        ("zone-close", 1, None, None),
        ("zone-finish", 1, None, None),
        ("zone-reset", 2, None, None),
    ];
    assert_eq!(counts(&r), rows);
    assert_eq!((r.asked.writes, r.asked.written_bytes), (6, (3 * 64 + 4 + 4 + 8) * 1024));
}

#[test]
fn all_engines_execute_commands() {
    for (name, file) in [("ssc-small", "cache-commands.csv"), ("zns-small", "zone-commands.csv")] {
        let report = |sets: &[&str]| {
            let options = RunOptions { mode: LoopMode::Closed { depth: 4 }, ..RunOptions::default() };
            let r = run(&builtin(name, sets), example(file).to_str().unwrap(), &options);
            serde_json::to_value(r).unwrap()
        };
        let first = report(&["engine.kind=in-order"]);
        let event = report(&["engine.kind=event"]);
        for key in ["latency", "throughput", "counts", "commands", "asked"] {
            assert_eq!(first[key], event[key], "{name}: {key}");
        }
        for scheduler in ["hfsl", "read-first"] {
            let stack = builtin(name, &["engine.kind=event", &format!("engine.scheduler={scheduler}")]);
            let r = run(&stack, example(file).to_str().unwrap(), &RunOptions::default());
            assert_eq!(serde_json::to_value(&r.commands).unwrap(), first["commands"], "{name} {scheduler}");
        }
    }
}

/// Random commands and requests of blocks over a cache that has to drop clean blocks, verified.
#[test]
fn contents_of_a_full_cache_are_verified() {
    let mut state = 7u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut lines = String::new();
    let (span, mut dirty) = (2048, std::collections::BTreeSet::new());
    for i in 0..6000 {
        let blocks = 1 + next(6);
        let at = next(span - blocks);
        // The program keeps its dirty blocks few, as a cache manager has to.
        let op = match next(100) {
            0..25 => "read-or-miss",
            25..55 => "write-clean",
            55..65 if dirty.len() < 100 => "write-dirty",
            65..70 if dirty.len() < 100 => "W",
            70..78 => "evict",
            80..84 => "exists",
            92..96 => "R",
            96..98 => "D",
            98 => "F",
            _ => "clean",
        };
        let range = at..at + blocks;
        match op {
            "write-dirty" | "W" => dirty.extend(range),
            "clean" | "evict" | "write-clean" | "D" => dirty.retain(|b| !range.contains(b)),
            _ => {}
        }
        let (at, n) = if op == "F" { (0, 0) } else { (8 * at, 8 * blocks) };
        writeln!(lines, "{},{op},{at},{n},", 10 * i).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = trace(&dir, &lines);
    for durability in ["deferred", "synchronous"] {
        let set = format!("ssc.durability={durability}");
        let stack = builtin("ssc-small", &["media.nand.blocks_per_plane=12", "ssc.address_bytes=8M", &set]);
        let r = verified(&stack, &path);
        let reads = r.commands.iter().find(|c| c.command == "read-or-miss").unwrap();
        assert!(reads.hits.unwrap() > 500 && reads.misses.unwrap() > 500, "{reads:?}");
        let metric = |name| r.layers[0].metrics.iter().find(|m| m.name == name).unwrap().value;
        assert!(metric("ssc_evicted_silently") > 100.0, "the cache drops blocks");
    }
}

/// A zone at its limits: appends and requests of blocks, resets of several zones, verified.
#[test]
fn contents_of_zones_are_verified() {
    let mut lines = String::new();
    for round in 0..6 {
        for zone in 0..4 {
            for part in 0..=round {
                let at = 2048 * zone;
                writeln!(lines, "{},zone-append,{at},{},", round * 1000 + part, 8 * (1 + zone)).unwrap();
            }
            writeln!(lines, "{},R,{},{},", round * 1000, 2048 * zone, 8 * (1 + zone)).unwrap();
        }
        lines.push_str("9000,F,0,0,\n9000,zone-finish,2048,2048,\n9000,zone-reset,0,8192,\n");
    }
    lines.push_str("9000,zone-append,4096,64,\n9001,zone-append,0,2048,\n");
    let dir = tempfile::tempdir().unwrap();
    verified(&builtin("zns-small", &["zns.recovery=scan"]), &trace(&dir, &lines));
}

#[test]
fn a_layer_without_the_interface_refuses_each_command() {
    let dir = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for name in ["hfsl-small", "ftl-small", "halo-small", "ntl-small", "flashtier-small", "nameless-small"]
        .into_iter()
        .chain(["ssc-small", "zns-small", "disk-alone"])
    {
        let stack = builtin(name, &[]);
        let kind = stack.layer().kind;
        for &command in DeviceCommand::all() {
            let cache = !command.name().starts_with("zone-");
            if (cache && kind.has_cache_commands()) || (!cache && kind.has_zone_commands()) {
                continue;
            }
            let path = trace(&dir, &format!("0,R,0,8,\n5,{},0,8,\n", command.name()));
            let e = error(&stack, &path);
            let known = if cache { "stack: ssc" } else { "stack: zns" };
            for part in ["request 2 ", command.name(), "at sector 0", kind.name(), known] {
                assert!(e.contains(part), "{part}: {e}");
            }
            refused += 1;
        }
    }
    assert_eq!(refused, 7 * 11 + 5 + 6);
}

/// The names in messages are those of the layers that have the interface.
#[test]
fn layers_have_the_interfaces_that_messages_name() {
    for builtin in frit_stack::builtins() {
        let stack = Stack::builtin(builtin.name, &[]).unwrap();
        let kind: LayerKind = stack.layer().kind;
        let mut built = stack.build(&frit_stack::Bytes::None).unwrap();
        assert_eq!(built.layer.cache_access().is_some(), kind.has_cache_commands(), "{}", builtin.name);
        assert_eq!(built.layer.zone_access().is_some(), kind.has_zone_commands(), "{}", builtin.name);
    }
}

#[test]
fn composers_pass_no_command_on() {
    let dir = tempfile::tempdir().unwrap();
    let ssc = "[media.nand]\nprofile = \"slc-k9-2016\"\nchannels = 1\nchips_per_channel = 1\nblocks_per_plane = 64\n\
               [device]\nkind = \"ssc\"\nnand = \"nand\"\n";
    let second = ssc
        .replace("media.nand", "media.nand2")
        .replace("\"nand\"", "\"nand2\"")
        .replace("[device]", "[other]");
    for (top, more) in [
        ("kind = \"delay\"\ndevice = \"device\"\n", ""),
        ("kind = \"host-link\"\ndevice = \"device\"\n", ""),
        ("kind = \"record\"\ndevice = \"device\"\nfile = \"record.csv\"\n", ""),
        ("kind = \"concat\"\ndevices = [\"device\", \"other\"]\n", second.as_str()),
        ("kind = \"stripe\"\ndevices = [\"device\", \"other\"]\n", second.as_str()),
        ("kind = \"mirror\"\ndevices = [\"device\", \"other\"]\n", second.as_str()),
        ("kind = \"thin\"\ndevice = \"device\"\nsize = \"64M\"\n", ""),
        ("kind = \"compress\"\ndevice = \"device\"\nsize = \"4M\"\n", ""),
    ] {
        let stack = parse(&format!("[top]\n{top}{ssc}{more}"));
        let e = error(&stack, &trace(&dir, "0,W,0,8,\n1,evict,0,8,\n"));
        assert!(e.contains("request 2 ") && e.contains("evict") && e.contains("stack: ssc"), "{top}: {e}");
        // The same stack serves requests of blocks.
        let path = trace(&dir, "0,W,0,8,\n1,R,0,8,\n2,D,0,8,\n3,F,0,0,\n");
        assert_eq!(verified(&stack, &path).asked.requests, 4);
    }
}

/// Commands of media by operation.
fn of_media(r: &Report, op: &str) -> u64 {
    r.counts.iter().filter(|c| c.op == op).map(|c| c.count.commands).sum()
}

fn metric(r: &Report, name: &str) -> f64 {
    let mut all = r.layers.iter().flat_map(|l| &l.metrics).filter(|m| m.name == name);
    all.next().unwrap_or_else(|| panic!("no metric {name}")).value
}

/// The column "media" of the table in `docs/reference/interfaces.md`: reads, programs and erases that a
/// command adds to those of the commands before it.
#[test]
fn media_receive_what_the_table_says() {
    let dir = tempfile::tempdir().unwrap();
    let cached = "0,write-dirty,0,16,\n";
    let zone = "0,zone-append,0,8,\n";
    for (name, before, line, expected) in [
        ("ssc-small", "", "1,write-dirty,0,16,\n", [0, 2, 0]),
        ("ssc-small", "", "1,write-clean,0,16,\n", [0, 2, 0]),
        ("ssc-small", cached, "1,read-or-miss,0,32,\n", [2, 0, 0]),
        ("ssc-small", cached, "1,clean,0,16,\n", [0, 0, 0]),
        ("ssc-small", cached, "1,exists,0,64,\n", [0, 0, 0]),
        ("ssc-small", cached, "1,evict,0,16,\n", [0, 0, 0]),
        ("zns-small", "", "1,zone-append,0,64,\n", [0, 2, 0]),
        ("zns-small", "", "1,zone-open,0,2048,\n", [0, 0, 0]),
        ("zns-small", zone, "1,zone-close,0,2048,\n", [0, 1, 0]),
        ("zns-small", zone, "1,zone-finish,0,2048,\n", [0, 1, 0]),
        ("zns-small", "0,zone-append,0,64,\n", "1,zone-reset,0,2048,\n", [0, 0, 2]),
    ] {
        let count = |lines: &str| {
            // A read of a place that was never written, later, gives the device time for its erases.
            let path = trace(&dir, &format!("{lines}100000,R,40960,8,\n"));
            let mode = LoopMode::Open { speed: 1.0, depth: None };
            let options = RunOptions { mode, ..RunOptions::default() };
            let r = run(&builtin(name, &[]), path.to_str().unwrap(), &options);
            ["nand-read", "nand-program", "nand-erase"].map(|op| of_media(&r, op))
        };
        let (with, without) = (count(&format!("{before}{line}")), count(before));
        let added: Vec<u64> = with.iter().zip(without).map(|(a, b)| a - b).collect();
        assert_eq!(added, expected, "{before}{line}");
    }
    // With durability at the acknowledgement, the record of an eviction is written at once.
    let sync = builtin("ssc-small", &["ssc.durability=synchronous"]);
    let programs = |lines: &str| {
        of_media(&run(&sync, trace(&dir, lines).to_str().unwrap(), &RunOptions::default()), "nand-program")
    };
    assert!(programs("0,write-dirty,0,16,\n1,evict,0,16,\n") > programs(cached));
}

/// The column "composer": requests of sectors reach the device as the commands that they correspond to.
#[test]
fn requests_reach_a_device_below_a_composer_as_its_commands() {
    let dir = tempfile::tempdir().unwrap();
    let nand = "[media.nand]\nprofile = \"slc-k9-2016\"\nchannels = 1\nchips_per_channel = 1\nblocks_per_plane = 64\n";
    let over = |device: &str| {
        parse(&format!(
            "[top]\nkind = \"delay\"\ndevice = \"device\"\n{nand}[device]\nnand = \"nand\"\n{device}"
        ))
    };
    let lines = "0,W,0,16,\n1,D,0,8,\n2,F,0,0,\n";
    let path = trace(&dir, lines);
    let r = run(&over("kind = \"ssc\"\n"), path.to_str().unwrap(), &RunOptions::default());
    // Blocks of 2 KiB: four were written, and two evicted.
    assert_eq!((metric(&r, "ssc_dirty"), metric(&r, "ssc_evicted")), (2.0, 2.0));
    let zns = over("kind = \"zns\"\nrecovery = \"scan\"\n");
    let path = trace(&dir, "0,W,0,16,\n1,D,0,16,\n2,W,0,8,\n3,F,0,0,\n");
    let r = run(&zns, path.to_str().unwrap(), &RunOptions::default());
    assert_eq!(metric(&r, "resets"), 1.0);
    let e = error(&zns, &trace(&dir, "0,W,0,8,\n1,zone-append,0,8,\n"));
    assert!(e.contains("request 2 ") && e.contains("zone-append") && e.contains("stack: zns"), "{e}");
}

#[test]
fn a_command_has_whole_blocks_or_zones() {
    let dir = tempfile::tempdir().unwrap();
    for (name, line, parts) in [
        ("ssc-small", "0,evict,4,8,", ["8 sectors at sector 4", "8 sectors (4096 bytes)"]),
        ("ssc-small", "0,write-clean,8,12,", ["12 sectors at sector 8", "8 sectors (4096 bytes)"]),
        ("zns-small", "0,zone-append,8,8,", ["sector = 8", "zones have 2048 sectors"]),
        ("zns-small", "0,zone-append,0,2056,", ["zone 0", "divide them"]),
        ("zns-small", "0,zone-append,0,4,", ["zone 0", "whole blocks"]),
        ("zns-small", "0,zone-reset,0,8,", ["sectors = 8", "whole zones of 2048 sectors"]),
        ("zns-small", "0,zone-close,0,2048,", ["zone 0", "request 1"]),
    ] {
        let e = error(&builtin(name, &[]), &trace(&dir, line));
        assert!(parts.iter().all(|p| e.contains(p)), "{line}: {e}");
    }
}

/// Neighbouring requests that arrive together, each with a command of its own. If two were merged, a clean
/// block would be dirty, or a dirty one would be gone.
#[test]
fn requests_of_different_commands_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "0,write-dirty,0,8,\n0,write-clean,8,8,\n0,W,16,8,\n0,evict,24,8,\n0,write-dirty,32,8,\n\
                 0,clean,32,8,\n0,write-dirty,24,8,\n0,D,16,8,\n0,exists,0,40,\n0,F,0,0,\n";
    let path = trace(&dir, lines);
    for sets in [&["engine.kind=in-order"][..], &["engine.kind=event"]] {
        let stack = builtin("ssc-small", sets);
        let mode = LoopMode::Open { speed: 1.0, depth: None };
        let r =
            run(&stack, path.to_str().unwrap(), &RunOptions { mode, verify: true, ..RunOptions::default() });
        assert!(r.verification.as_ref().unwrap().passed());
        let rows = [
            ("write-dirty", 3, None, None),
            ("write-clean", 1, None, None),
            ("evict", 1, None, None),
            ("clean", 1, None, None),
            ("exists", 1, Some(4), Some(1)),
        ];
        assert_eq!(counts(&r), rows);
        let dirty = r.layers[0].metrics.iter().find(|m| m.name == "dirty_blocks").unwrap();
        assert_eq!(dirty.value, 2.0, "blocks 0 and 3");
        assert_eq!((r.asked.requests, r.asked.writes, r.asked.discards), (10, 5, 1));
    }
}

/// A trace without commands has no table of them.
#[test]
fn a_plain_trace_has_no_commands() {
    let dir = tempfile::tempdir().unwrap();
    let stack = super::small(&[]);
    let path = mixed_trace(&dir, crate::sectors(&stack).unwrap(), 200);
    let r = run(&stack, path.to_str().unwrap(), &RunOptions::default());
    assert!(r.commands.is_empty() && r.asked.commands == 0);
    assert!(!serde_json::to_string(&r).unwrap().contains("\"commands\":["), "no table in JSON");
}
