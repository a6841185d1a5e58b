//! `frit disk` for a user or a script.

use std::path::Path;
use std::process::{Command, Output};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(args: &[&str]) -> serde_json::Value {
    let out = frit(args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Returns the error message of a failing command, in one line.
fn told(args: &[&str]) -> String {
    let out = frit(args);
    assert_eq!(out.status.code(), Some(1), "{args:?}");
    assert!(out.stdout.is_empty(), "{args:?}");
    text(&out.stderr).replace("\n  │ ", " ").replace('\n', " ")
}

#[test]
fn drives_are_listed_with_their_sources() {
    let list = text(&frit(&["disk", "list"]).stdout);
    for name in ["st3500320as-2008", "wd1502faex-2010", "exos-x18-2020"] {
        assert!(list.contains(name), "{list}");
    }
    let all = json(&["disk", "list", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 3);
    for drive in all.as_array().unwrap() {
        for (key, value) in drive["values"].as_object().unwrap() {
            assert!(!value["source"].as_str().unwrap().is_empty(), "{key}");
        }
    }
}

#[test]
fn a_drive_is_shown() {
    let shown = text(&frit(&["disk", "show", "st3500320as-2008", "--requests", "200"]).stdout);
    for words in
        ["500.11 GB, 4 heads", "8.50 ms on average", "105.2", "random reads of 4 KiB", "c-look", "Assumed"]
    {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    let d =
        json(&["disk", "show", "wd1502faex-2010", "--write", "--span", "0.1", "--requests", "50", "--json"]);
    assert_eq!((d["sectors"].as_u64(), d["random"]["kind"].as_str()), (Some(2_930_277_168), Some("write")));
    assert_eq!(d["random"]["rows"].as_array().unwrap().len(), 30);
    assert!(d["zones"][0]["mb_per_s"].as_f64().unwrap() > d["zones"][19]["mb_per_s"].as_f64().unwrap());
}

#[test]
fn wrong_input_is_told_and_fails() {
    assert!(told(&["disk", "show", "st1"]).contains("no such disk; there are st3500320as-2008"));
    assert!(told(&["disk", "show", "./st1"]).contains("a drive is a profile, or a .toml or .diskspecs file"));
    assert!(told(&["disk", "show", "none.diskspecs"]).contains("none.diskspecs: cannot be read"));
    assert!(told(&["disk", "score", "exos-x18-2020"]).contains("has no trace after it"));
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.trace");
    let trace = trace.to_str().unwrap();
    std::fs::write(trace, "R Hit 1 1 5000 100\nR Hit 1\n").unwrap();
    assert!(told(&["disk", "score", trace]).contains("comes before any drive"));
    assert!(told(&["disk", "score", "exos-x18-2020", trace]).contains("line = 2"));
    std::fs::write(trace, "R Hit 1 1 5000 100\nR Hit 99999999999 1 5000 100\n").unwrap();
    assert!(told(&["disk", "score", "exos-x18-2020", trace]).contains("ends past the volume"));
    assert_eq!(frit(&["disk", "show", "exos-x18-2020", "--span", "2"]).status.code(), Some(2));
}

#[test]
fn measured_drives_are_scored() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/drives");
    if !dir.is_dir() {
        eprintln!("SKIPPED: {} is not there", dir.display());
        return;
    }
    let drive = |name: &str| dir.join(format!("{name}.diskspecs")).to_str().unwrap().to_string();
    let (atlas, hp) = (drive("atlas10k"), drive("hp_c2247a"));
    let scores = json(&["disk", "score", &atlas, &hp, "--bus", "0.1701,0.18686", "--json"]);
    let rms = |i: usize| scores[i]["rms_ms"].as_f64().unwrap();
    assert!(rms(0) < 0.268 && rms(1) < 1.5 * 0.089, "{scores}");
    assert!(scores[1]["notes"].to_string().contains("0.1701 ms a sector, as given"), "{scores}");
    let trace = dir.join("atlas10k.trace.zst");
    let table = text(&frit(&["disk", "score", &atlas, trace.to_str().unwrap()]).stdout);
    assert!(table.contains("QUANTUM_TORNADO_validate") && table.contains("10000"), "{table}");
}
