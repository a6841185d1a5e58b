//! `frit check`, `frit profiles` and `frit layers` for a user or a script.

use std::process::{Command, Output};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_slice(&frit(args).stdout).unwrap()
}

#[test]
fn a_good_stack_is_summed_up() {
    let out = frit(&["check", "hfsl-paper", "--set", "SSW=1024"]);
    let shown = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for words in ["32 GiB", "256 MiB", "pcm-p8p-2016", "15674856 pages of 2 KiB", "119.6 MiB of 'pcm' (47 %)"]
    {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    let ssw = shown.lines().find(|l| l.trim_start().starts_with("SSW ")).unwrap();
    assert_eq!(ssw.split_whitespace().collect::<Vec<_>>(), ["SSW", "1024", "given"]);
    let all = text(&frit(&["check", "hfsl-small", "--all"]).stdout);
    assert!(all.contains("HFSL paper, Table 7") && all.contains("the stack"), "{all}");
}

#[test]
fn a_disk_is_shown_with_its_drive_and_what_it_does_with_requests() {
    let shown = text(
        &frit(&["check", "halo-small", "--set", "disk.write_back=false", "--set", "disk.queue_depth=1"])
            .stdout,
    );
    for words in
        ["drive 465.8 GiB, 7200 rpm, 105 to 52.5 MB/s", "write cache off; order sptf; queue depth 1; "]
    {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    let json = json(&["check", "halo-small", "--json"]);
    let disk = json[0]["summary"]["media"].as_array().unwrap().iter().find(|m| m["kind"] == "disk").unwrap();
    let order = disk["values"].as_array().unwrap().iter().find(|v| v["key"] == "order").unwrap();
    assert_eq!((&order["value"], &order["source"]), (&"sptf".into(), &"the drive".into()));
}

#[test]
fn a_wrong_stack_among_good_ones_is_told_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    std::fs::write(
        &file,
        "[media.nand]\nprofile = \"slc-k9-2016\"\n[hfsl]\nFUSION_METHOD = \"none\"\nSWW = 1\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let out = frit(&["check", "hfsl-small", path]);
    assert_eq!(out.status.code(), Some(1));
    let told = text(&out.stderr);
    assert!(told.contains("`hfsl` has no key `SWW`") && told.contains("did you mean `SSW`?"), "{told}");
    assert!(text(&out.stdout).starts_with("hfsl-small\n"), "the good one is shown");
    let json = json(&["check", "hfsl-small", path, "--json"]);
    assert_eq!((&json[0]["ok"], &json[1]["ok"]), (&true.into(), &false.into()));
    assert_eq!(json[1]["errors"][0]["line"], 5);
    assert_eq!(json[1]["errors"][0]["text"], path);
    assert_eq!(json[0]["summary"]["layers"][0]["page_bytes"], 2048);
}

#[test]
fn a_builtin_stack_is_printed_as_a_file_that_checks() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::write(&file, frit(&["check", "hfsl-both", "--print"]).stdout).unwrap();
    let hash = |name: &str| json(&["check", name, "--json"])[0]["summary"]["sha256"].clone();
    assert_eq!(hash(file.to_str().unwrap()), hash("hfsl-both"));
    let list = text(&frit(&["check"]).stdout);
    assert!(list.contains("hfsl-both") && list.contains("nand-only-bench"), "{list}");
}

#[test]
fn profiles_show_values_with_sources() {
    let list = text(&frit(&["profiles"]).stdout);
    let row = list.lines().find(|l| l.contains("pcm-p8p-2016")).unwrap();
    assert!(row.contains("256 MiB"), "{row}");
    assert!(list.contains("frit disk list"), "{list}");
    let one = json(&["profiles", "slc-k9-2016", "--json"]);
    assert_eq!((&one["medium"], &one["bytes"]), (&"nand".into(), &(32u64 << 30).into()));
    for v in one["values"].as_array().unwrap() {
        assert_ne!(v["source"], "", "{v}");
    }
    let out = frit(&["profiles", "slc-k9-2061"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("no such profile"), "{}", text(&out.stderr));
}

#[test]
fn layers_show_parameters_and_policies() {
    assert!(text(&frit(&["layers"]).stdout).contains("hfsl"));
    let one = json(&["layers", "hfsl", "--json"]);
    let parameters = one["parameters"].as_array().unwrap();
    let gc = parameters.iter().find(|p| p["key"] == "gc").unwrap();
    assert_eq!(gc["default"], "greedy");
    let names: Vec<&str> = gc["names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    assert!(["greedy", "cost-benefit", "fifo", "off"].iter().all(|n| names.contains(n)), "{gc}");
    assert_eq!(one["on"][1]["optional"], true);
    assert!(text(&frit(&["layers", "hfsl"]).stdout).contains(&names.join(", ")));
    assert_eq!(frit(&["layers", "zoned"]).status.code(), Some(1));
}

/// The stack that follows the HALO paper can lose data at a power loss, so it cannot be a volume.
#[test]
fn a_volume_refuses_the_stack_of_the_halo_paper() {
    let dir = tempfile::tempdir().unwrap();
    let vol = dir.path().join("vol");
    let out = frit(&["create", vol.to_str().unwrap(), "--stack", "halo-paper,disk.bytes=512M"]);
    assert_eq!(out.status.code(), Some(1));
    let told = text(&out.stderr);
    assert!(told.contains("overwrite = in-place") && told.contains("needs out-of-place"), "{told}");
}

/// Regression test: layers whose PCM was never written had no header to boot from.
#[test]
fn every_builtin_stack_boots_after_a_run_that_only_reads() {
    let stacks = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stacks");
    for file in std::fs::read_dir(stacks).unwrap() {
        let name = file.unwrap().path();
        let name = name.to_str().unwrap();
        // The tables of 2 TB take memory and time, and change nothing.
        let small = if name.ends_with("ftl-modern.toml") { ",media.nand.blocks_per_plane=16" } else { "" };
        let stack = format!("{name}{small}");
        let out = frit(&["run", &stack, "gen:uniform,count=5,read=1,span=1M", "--verify", "--quiet"]);
        assert!(out.status.success(), "{name}: {}", text(&out.stderr));
    }
}
