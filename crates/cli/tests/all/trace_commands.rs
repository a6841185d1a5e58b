//! Commands of caches and zones in traces: the examples of `docs/reference/traces.md`, statistics and
//! conversion.

use crate::models::root;
use std::path::Path;
use std::process::Command;

/// Exit success, standard output, and standard error without its line breaks.
fn frit(args: &[&str]) -> (bool, String, String) {
    let o = Command::new(env!("CARGO_BIN_EXE_frit")).current_dir(root()).args(args).output().unwrap();
    let err = String::from_utf8(o.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    let err = err.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ");
    (o.status.success(), String::from_utf8(o.stdout).unwrap(), err)
}

/// The table of the page is that of the program.
#[test]
fn the_example_of_a_cache_prints_the_table_of_the_page() {
    let (ok, out, err) = frit(&["run", "ssc-small", "examples/cache-commands.csv", "--verify"]);
    assert!(ok, "{err}");
    let page = std::fs::read_to_string(root().join("docs/reference/traces.md")).unwrap();
    let begin = page.find(" command       requests").unwrap();
    let table = &page[begin..begin + page[begin..].find("```").unwrap()];
    assert_eq!(table.lines().count(), 7);
    assert!(out.contains(table), "{out}");
    assert!(out.contains("0 mismatches"), "{out}");
}

#[test]
fn the_example_of_zones_is_verified() {
    let args = ["run", "zns-small", "examples/zone-commands.csv", "--open", "--verify"];
    let (ok, out, err) = frit(&args);
    assert!(ok && out.contains("0 mismatches"), "{out}{err}");
    assert!(out.contains(" zone-append         5  204 KiB"), "{out}");
}

/// Zones without recovery are stated at a halt, so a reset is not undone.
#[test]
fn a_halt_keeps_resets_of_zones_without_recovery() {
    let dir = tempfile::tempdir().unwrap();
    for (name, requests) in [
        ("writes.csv", "0,W,2048,128,\n1000,D,2048,2048,\n2000,W,2048,16,\n3000,F,0,0,\n"),
        ("appends.csv", "0,zone-append,0,128,\n1000,zone-reset,0,0,\n2000,zone-append,0,128,\n3000,F,0,0,\n"),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("time_us,op,sector,sectors,flags\n{requests}")).unwrap();
        let (ok, out, err) = frit(&["run", "zns-small", path.to_str().unwrap(), "--verify"]);
        assert!(ok && out.contains("0 mismatches"), "{name}: {out}{err}");
    }
}

#[test]
fn trace_commands_show_count_and_convert_commands() {
    let path = "examples/cache-commands.csv";
    let (_, out, _) = frit(&["trace", "stat", path]);
    let row = |name: &str, n: &str| {
        let fits = |l: &str| l.trim_start().starts_with(name) && l.contains(n);
        assert!(out.lines().any(fits), "{name} {n}: {out}");
    };
    row("read-or-miss", " 8 ");
    row("evict", " 2 ");
    let (_, out, _) = frit(&["trace", "head", path, "-n", "3"]);
    assert!(out.contains("write-clean") && out.contains("0.001000000"), "{out}");
    let dir = tempfile::tempdir().unwrap();
    let to = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for format in ["spc", "fio3", "msr", "disksim"] {
        let (ok, _, err) = frit(&["trace", "convert", path, &to("out"), "--to", format]);
        assert!(!ok && err.contains("has no command exists (request 1, at sector 0)"), "{err}");
        assert!(!Path::new(&to("out")).exists());
    }
    let (ok, _, err) = frit(&["trace", "convert", path, &to("out.csv.zst"), "--to", "recorded"]);
    assert!(ok, "{err}");
    let of = |p: &str| {
        let v: serde_json::Value = serde_json::from_str(&frit(&["trace", "stat", "--json", p]).1).unwrap();
        (v["commands"].clone(), v["requests"].clone())
    };
    assert_eq!(of(&to("out.csv.zst")), of(path));
    assert_eq!(of(path).0[1]["command"], "write-dirty");
}

/// A command that the top layer does not know is one error.
#[test]
fn an_unknown_command_is_one_clear_error() {
    let (ok, _, err) = frit(&["run", "hfsl-small", "examples/cache-commands.csv", "--compact"]);
    assert!(!ok && err.contains("exists at sector 0 cannot be moved"), "{err}");
    let (ok, _, err) = frit(&["run", "zns-small", "examples/cache-commands.csv"]);
    let parts =
        ["request 1 (exists of 64 sectors at sector 0", "zns does not know", "top layer of a stack: ssc"];
    assert!(!ok && parts.iter().all(|p| err.contains(p)), "{err}");
}
