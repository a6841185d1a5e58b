//! Configurations of MQSim: their translation, refusals, and latencies of requests beside an
//! independent model of MQSim's source (`scripts/models/mqsim_timing.py`).

use crate::models::{has_python, output, root};
use std::path::Path;
use std::process::Command;

const CONFIG: &str = "examples/mqsim-ssdconfig.xml";
const MODEL: &str = "scripts/models/mqsim_timing.py";

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
fn translate(dir: &Path, text: &str) {
    std::fs::write(dir.join("ssdconfig.xml"), text).unwrap();
    let stack = output(frit().arg("mqsim").arg(dir.join("ssdconfig.xml")));
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

/// Geometries: channels, chips, dies, planes.
const GEOMETRIES: [[&str; 4]; 4] =
    [["1", "1", "1", "1"], ["4", "2", "1", "2"], ["8", "4", "2", "2"], ["3", "5", "1", "1"]];

fn geometry([channels, chips, dies, planes]: [&'static str; 4]) -> [(&'static str, &'static str); 4] {
    [
        ("Flash_Channel_Count", channels),
        ("Chip_No_Per_Channel", chips),
        ("Die_No_Per_Chip", dies),
        ("Plane_No_Per_Die", planes),
    ]
}

/// Runs a workload, and compares the latency of each request with the model.
fn compare(values: &[(&str, &str)], workload: &str, depth: &str) {
    let dir = tempfile::tempdir().unwrap();
    translate(dir.path(), &config(values));
    let (stack, requests) = (dir.path().join("ssd.toml"), dir.path().join("requests.csv"));
    output(
        frit()
            .args(["run", "--quiet", "--wrap", "--warm", "fill", "--qd", depth, "--requests"])
            .arg(&requests)
            .arg(&stack)
            .arg(workload),
    );
    let text = std::fs::read_to_string(&stack).unwrap();
    let stack: toml::Value = toml::from_str(&text).unwrap();
    let filled = stack["ssd"]["capacity"].as_integer().unwrap();
    let out = Command::new("python3")
        .current_dir(root())
        .args(["-B", MODEL])
        .args([dir.path().join("ssdconfig.xml"), requests])
        .args(["--depth", depth, "--filled", &filled.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains(" 0 differ"), "{values:?} {workload} {depth}: {said}");
}

#[test]
fn single_requests_take_the_times_of_mqsim() {
    if !has_python() {
        return;
    }
    for shape in GEOMETRIES {
        for workload in [
            "gen:uniform,count=200,read=1,size=8K,align=8K",
            "gen:uniform,count=200,ops=write,size=8K,align=8K",
            "gen:sequential,count=100,read=1,size=64K,align=64K",
            "gen:sequential,count=40,ops=write,size=64K,align=64K",
        ] {
            compare(&geometry(shape), workload, "1");
        }
    }
}

#[test]
fn sixteen_requests_take_the_times_of_mqsim_with_one_chip_on_a_channel() {
    if !has_python() {
        return;
    }
    // The transfers of reads share the link in MQSim, but not in the stack. Seven channels show it, so
    // they have a link that takes no time.
    let fast = [("PCIe_Lane_Bandwidth", "1000"), ("PCIe_Lane_Count", "64")];
    for (channels, link) in [("1", &[][..]), ("4", &[]), ("7", &fast)] {
        for workload in [
            "gen:uniform,count=200,read=1,size=8K,align=8K",
            "gen:uniform,count=200,ops=write,size=8K,align=8K",
            "gen:sequential,count=40,read=1,size=64K,align=64K",
            "gen:sequential,count=40,ops=write,size=64K,align=64K",
        ] {
            let shape = geometry([channels, "1", "1", "1"]);
            compare(&[&shape, link].concat(), workload, "16");
        }
    }
}

#[test]
fn every_parameter_is_a_key_or_a_comment() {
    let dir = tempfile::tempdir().unwrap();
    let text = config(&[]).replace("<Seed>", "<New_Parameter>5</New_Parameter><Seed>");
    translate(dir.path(), &text);
    let stack = std::fs::read_to_string(dir.path().join("ssd.toml")).unwrap();
    for words in [
        "channels = 4",
        "t_read = [\"60020 ns\", \"90020 ns\"]",
        "t_prog = [\"500071 ns\", \"900071 ns\"]",
        "bus_per_byte = \"3000 ps\"",
        "capacity = 187899904",
        "unit_order = \"CWDP\"",
        "# New_Parameter = 5: unknown to frit",
        "# CMD_Suspension_Support = ERASE: ",
        "# Data_Cache_Capacity = 1048576: ",
    ] {
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
