//! Configurations of MQSim: their translation, refusals, and latencies of requests beside an
//! independent model of MQSim's source (`scripts/models/mqsim_timing.py`, `mqsim_cache.py`).

use crate::models::{has_python, one_in, output, root};
use std::path::Path;
use std::process::Command;

const CONFIG: &str = "examples/mqsim-ssdconfig.xml";
const MODEL: &str = "scripts/models/mqsim_timing.py";
const CACHE_MODEL: &str = "scripts/models/mqsim_cache.py";
const OFF: &str = "turned-off";
/// A drive that is filled fast, and collects no garbage.
const SMALL: [(&str, &str); 2] = [("Block_No_Per_Plane", "32"), ("Overprovisioning_Ratio", "0.5")];

/// Returns the example with other values of some parameters.
fn config(values: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(root().join(CONFIG)).unwrap();
    for (name, value) in values {
        let (before, rest) = text.split_once(&format!("<{name}>")).unwrap();
        let (_, after) = rest.split_once('<').unwrap();
        text = format!("{before}<{name}>{value}<{after}");
    }
    text
}

fn frit() -> Command {
    Command::new(env!("CARGO_BIN_EXE_frit"))
}

/// Writes the configuration and its stack into a folder.
fn translate(dir: &Path, text: &str, caching: &str) {
    std::fs::write(dir.join("ssdconfig.xml"), text).unwrap();
    let stack = output(frit().args(["mqsim", "--caching", caching]).arg(dir.join("ssdconfig.xml")));
    std::fs::write(dir.join("ssd.toml"), stack).unwrap();
}

/// Returns the message of a refusal, without line breaks.
fn refusal(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.xml"), text).unwrap();
    let out = frit().arg("mqsim").arg(dir.path().join("x.xml")).output().unwrap();
    assert!(!out.status.success() && out.stdout.is_empty(), "{text}");
    let said = String::from_utf8(out.stderr).unwrap();
    said.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

/// Channels, chips, dies and planes of a drive.
fn geometry(shape: [&'static str; 4]) -> Vec<(&'static str, &'static str)> {
    let names = ["Flash_Channel_Count", "Chip_No_Per_Channel", "Die_No_Per_Chip", "Plane_No_Per_Die"];
    names.into_iter().zip(shape).collect()
}

/// Runs a workload, and compares the latency of each request with the model.
fn compare(values: &[(&str, &str)], workload: &str, depth: &str, interleaves: bool) {
    compare_cached(values, OFF, workload, depth, interleaves);
}

/// Compares requests to a drive whose data cache has this mode.
fn compare_cached(values: &[(&str, &str)], caching: &str, workload: &str, depth: &str, interleaves: bool) {
    let dir = tempfile::tempdir().unwrap();
    translate(dir.path(), &config(&[&SMALL[..], values].concat()), caching);
    let (stack, requests) = (dir.path().join("ssd.toml"), dir.path().join("requests.csv"));
    output(
        frit()
            .args(["run", "--quiet", "--wrap", "--warm", "fill", "--qd", depth, "--requests"])
            .arg(&requests)
            .arg("--set")
            .arg(format!("engine.interleave-dies={interleaves}"))
            .arg(&stack)
            .arg(workload),
    );
    let text = std::fs::read_to_string(&stack).unwrap();
    let stack: toml::Value = toml::from_str(&text).unwrap();
    let filled = stack["ssd"]["capacity"].as_integer().unwrap();
    let out = Command::new("python3")
        .current_dir(root())
        .args(if caching == OFF { vec!["-B", MODEL] } else { vec!["-B", CACHE_MODEL, "--caching", caching] })
        .args([dir.path().join("ssdconfig.xml"), requests])
        .args(["--depth", depth, "--filled", &filled.to_string(), "--within", "0.0001"])
        .args(interleaves.then_some("--interleave-dies"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains(" 0 differ"), "{values:?} {workload} {depth}: {said}");
}

/// Requests of whole pages, of parts of pages, and of both operations.
const WORKLOADS: [&str; 6] = [
    "gen:uniform,count=150,read=1,size=8K,align=8K",
    "gen:uniform,count=150,ops=write,size=8K,align=8K",
    "gen:uniform,count=150,read=0.6,size=4K,align=4K",
    "gen:uniform,count=100,ops=write,size=20K,align=512",
    "gen:sequential,count=60,read=1,size=64K,align=64K",
    "gen:sequential,count=40,ops=write,size=64K,align=64K",
];

#[test]
fn requests_take_the_times_of_mqsim_at_every_depth() {
    if !has_python() {
        return;
    }
    let shapes = [["4", "1", "1", "1"], ["3", "5", "1", "1"], ["4", "2", "1", "2"], ["8", "4", "2", "2"]];
    let cases = shapes
        .into_iter()
        .flat_map(|shape| WORKLOADS.map(|workload| (shape, workload)))
        .flat_map(|(shape, workload)| ["1", "16", "64"].map(|depth| (shape, workload, depth)));
    for (shape, workload, depth) in one_in(5, cases) {
        compare(&geometry(shape), workload, depth, false);
    }
}

#[test]
fn requests_take_the_times_of_mqsim_on_other_parts() {
    if !has_python() {
        return;
    }
    let shape = geometry(["2", "3", "2", "4"]);
    for (more, depth) in [
        (&[("Plane_Allocation_Scheme", "PDWC"), ("Channel_Transfer_Rate", "166")][..], "16"),
        (&[("Plane_Allocation_Scheme", "DWPC"), ("Page_Capacity", "16384")], "8"),
        (&[("Flash_Channel_Width", "2"), ("Page_No_Per_Block", "128"), ("PCIe_Lane_Count", "1")], "32"),
        (&[("Plane_Allocation_Scheme", "WCPD"), ("Page_Capacity", "4096")], "4"),
    ] {
        for workload in one_in(2, WORKLOADS) {
            compare(&[&shape[..], more].concat(), workload, depth, false);
        }
    }
    // The first versions of MQSim gave an idle chip commands for all its dies.
    for workload in &WORKLOADS[..2] {
        compare(&geometry(["2", "2", "4", "1"]), workload, "16", true);
    }
}

/// Writes that fill the cache and wait for the NAND, reads, and pages that are written again and evicted.
#[test]
fn requests_take_the_times_of_mqsim_with_a_data_cache() {
    if !has_python() {
        return;
    }
    for depth in ["1", "8"] {
        compare_cached(&geometry(["4", "2", "1", "2"]), "write-cache", WORKLOADS[5], depth, false);
    }
    let shapes = [["4", "1", "1", "1"], ["4", "2", "1", "2"], ["8", "4", "2", "2"]];
    for shape in one_in(2, shapes) {
        for workload in &WORKLOADS[..2] {
            for depth in ["1", "16", "64"] {
                compare_cached(&geometry(shape), "write-cache", workload, depth, false);
            }
        }
        let again = "gen:uniform,count=300,read=0.3,size=8K,align=8K,span=2M";
        compare_cached(&geometry(shape), "write-cache", again, "1", false);
        compare_cached(&geometry(shape), "read-cache", again, "1", false);
    }
    // Pages are evicted, one for each write.
    let small = [("Data_Cache_Capacity", "524288"), ("Data_Cache_DRAM_Row_Size", "2048")];
    let again = "gen:uniform,count=300,read=0.5,size=8K,align=8K,span=1M";
    compare_cached(&small, "write-cache", again, "1", false);
}

/// Copies and erases of random writes, beside MQSim's block manager (`mqsim_gc.py`).
#[test]
fn garbage_collection_copies_what_mqsim_copies() {
    if !has_python() {
        return;
    }
    for (shape, blocks, ratio) in [(["2", "1", "1", "2"], "64", "0.4"), (["1", "1", "2", "1"], "64", "0.3")] {
        let more = [("Block_No_Per_Plane", blocks), ("Overprovisioning_Ratio", ratio)];
        let dir = tempfile::tempdir().unwrap();
        translate(dir.path(), &config(&[&geometry(shape)[..], &more].concat()), OFF);
        let path = |name: &str| dir.path().join(name);
        output(
            frit()
                .args(["run", "--quiet", "--wrap", "--warm", "fill", "--qd", "16", "--requests"])
                .arg(path("requests.csv"))
                .arg("--json")
                .args([path("report.json"), path("ssd.toml")])
                .arg("gen:uniform,count=12k,ops=write,size=8K,align=8K"),
        );
        let stack: toml::Value = toml::from_str(&std::fs::read_to_string(path("ssd.toml")).unwrap()).unwrap();
        let out = Command::new("python3")
            .current_dir(root())
            .args(["-B", "scripts/models/mqsim_gc.py"])
            .args([path("ssdconfig.xml"), path("requests.csv")])
            .args(["--filled", &stack["ssd"]["capacity"].as_integer().unwrap().to_string(), "--report"])
            .arg(path("report.json"))
            .output()
            .unwrap();
        assert!(out.status.success(), "{shape:?}: {}", String::from_utf8_lossy(&out.stdout));
    }
}

/// Drives that are drawn at random.
#[test]
fn other_drives_take_the_times_of_mqsim() {
    if !has_python() {
        return;
    }
    let out = Command::new("python3")
        .current_dir(root())
        .env("FRIT", env!("CARGO_BIN_EXE_frit"))
        .args(["-B", "scripts/mqsim_drives.py", "--count", "12", "--seed", "3"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains(" 0 with requests that differ"), "{said}");
}

#[test]
fn every_parameter_is_a_key_or_a_comment() {
    let dir = tempfile::tempdir().unwrap();
    let text = config(&[]).replace("<Seed>", "<New_Parameter>5</New_Parameter><Seed>");
    translate(dir.path(), &text, "write-cache");
    let stack = std::fs::read_to_string(dir.path().join("ssd.toml")).unwrap();
    for words in [
        "channels = 4",
        "t_read = [\"60020 ns\", \"90020 ns\"]",
        "t_prog = [\"500000 ns\", \"900000 ns\"]",
        "t_command_program = \"361 ns\"",
        "t_plane_program = \"816 ns\"",
        "nvme_lanes = 4",
        "scheduler = \"out-of-order\"",
        "bus_per_byte = \"3000 ps\"",
        "capacity = 375808000",
        "gc_low_blocks = 10",
        "unit_order = \"CWDP\"",
        "# New_Parameter = 5: unknown to frit",
        "# CMD_Suspension_Support = ERASE: ",
        "mode = \"write\"\ncapacity = 1048576\npage = 8192",
        "write_back = 131072",
        "row = 8192\nrate = 800\nburst = 4\nt_rcd = 13",
        "device = \"cache\"",
    ] {
        assert!(stack.contains(words), "{words} in\n{stack}");
    }
    translate(dir.path(), &text, OFF);
    let stack = std::fs::read_to_string(dir.path().join("ssd.toml")).unwrap();
    for words in ["# Data_Cache_Capacity = 1048576: the cache is off", "device = \"ssd\""] {
        assert!(stack.contains(words), "{words} in\n{stack}");
    }
}

#[test]
fn commands_of_the_page_work() {
    let page = std::fs::read_to_string(root().join("docs/guide/from-mqsim.md")).unwrap();
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("frit ")).collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        assert!(!output(frit().args(command.split(' '))).is_empty(), "{command}");
    }
}

#[test]
fn errors_name_the_place_and_the_remedy() {
    for (text, words) in [
        ("<a".to_owned(), "malformed XML"),
        ("<MQSim_IO_Scenarios/>".to_owned(), "definition of workloads"),
        (config(&[("Flash_Channel_Count", "four")]), "Flash_Channel_Count = four: not a number"),
        (config(&[("Flash_Channel_Count", "0")]), "out of range"),
        (config(&[("Page_Capacity", "1000")]), "not a multiple of 512"),
        (config(&[("Plane_Allocation_Scheme", "CCCC")]), "the letters C, W, D and P"),
        (config(&[("Address_Mapping", "HYBRID")]), "no counterpart"),
        (config(&[("Ideal_Mapping_Table", "maybe")]), "valid: true, false"),
        (config(&[]).replace("Chip_No_Per_Channel", "Chips"), "Chip_No_Per_Channel: missing"),
        (config(&[]).replace("<Seed>", "<Seed>1</Seed><Seed>"), "Seed is given twice"),
    ] {
        let said = refusal(&text);
        assert!(said.contains(words), "'{words}' in {said}");
    }
}
