//! `frit trace` for a user.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn frit(args: &[&str], input: Option<&[u8]>) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_frit"))
        .arg("trace")
        .args(args)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if let Some(bytes) = input {
        child.stdin.take().unwrap().write_all(bytes).unwrap();
    }
    child.wait_with_output().unwrap()
}

fn ok(args: &[&str]) -> (String, String) {
    let o = frit(args, None);
    let (out, err) = (String::from_utf8(o.stdout).unwrap(), String::from_utf8(o.stderr).unwrap());
    assert!(o.status.success(), "{args:?}: {err}");
    (out, err)
}

/// Returns the error message of a failing command, without its line breaks.
fn fails(args: &[&str]) -> String {
    let o = frit(args, None);
    assert!(!o.status.success(), "{args:?}");
    let err = String::from_utf8(o.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    err.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&ok(&[&["stat", "--json"], args].concat()).0).unwrap()
}

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const SPC: &str =
    "0,303567,3584,w,0.000000\n1,55590,3072,w,0.000000\n0,303574,3584,w,0.026214\n1,240840,3072,r,0.5\n";

#[test]
fn stat_says_what_it_read_and_how() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "fin.spc", SPC);
    let (out, err) = ok(&["stat", &path]);
    for part in ["fin.spc (real)", "SPC trace", "write ratio       75.0 %", "2 devices", "sha256"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert_eq!(err, "");
    let v = json(&[&path]);
    assert_eq!((v["requests"].as_u64(), v["writes"]["count"].as_u64()), (Some(4), Some(3)));
    assert_eq!(v["writes"]["mean_bytes"].as_f64().unwrap().round(), 3413.0);
    assert_eq!(
        (v["duration_ns"].as_u64(), v["identity"]["kind"].as_str()),
        (Some(500_000_000), Some("real"))
    );
    // The devices are concatenated: 303581 sectors end in the 149th MiB.
    assert_eq!(v["end_sector"].as_u64(), Some(149 * 2048 + 240_846));
    assert_eq!(json(&["--devices", "merge", &path])["end_sector"].as_u64(), Some(303_581));
}

#[test]
fn standard_input_works_and_a_limit_counts() {
    let o = frit(&["stat", "--json", "--limit", "2", "-"], Some(SPC.as_bytes()));
    let v: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!((v["requests"].as_u64(), v["identity"]["name"].as_str()), (Some(2), Some("standard input")));
    let o = frit(&["convert", "--to", "spc", "-", "-"], Some(SPC.as_bytes()));
    let text = String::from_utf8(o.stdout).unwrap();
    assert!(text.starts_with("0,303567,3584,w,0.000000000\n1,55590,3072,w,0"), "{text}");
}

#[test]
fn malformed_lines_are_shown_and_strict_stops() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "bad.spc", &format!("{SPC}0,1,0,w,0.6\n0,1,512,x,0.7\n"));
    let (_, err) = ok(&["stat", &path]);
    assert!(
        err.contains("2 of 6 lines") && err.contains("line 5: size is zero") && err.contains("line 6"),
        "{err}"
    );
    assert_eq!(json(&[&path])["problems"]["malformed"].as_u64(), Some(2));
    let e = fails(&["stat", "--strict", &path]);
    assert!(e.contains("line 5") && e.contains("size is zero"), "{e}");
}

#[test]
fn errors_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let garbage = file(dir.path(), "garbage", "What a day.\nNo trace at all.\n");
    let empty = file(dir.path(), "empty", "");
    let e = fails(&["stat", &garbage]);
    assert!(e.contains("What a day.") && e.contains("--columns") && e.contains("blkparse"), "{e}");
    assert!(fails(&["stat", &empty]).contains("is empty"));
    assert!(fails(&["stat", "/no/such/file"]).contains("/no/such/file"));
    assert!(fails(&["stat", "--format", "xyz", &garbage]).contains("there is no format 'xyz'"));
    assert!(fails(&["stat", "--format", "msr", &garbage]).contains("held no request"));
    assert!(fails(&["stat", "gen:unifrom"]).contains("hfsl-fin1"));
    assert!(fails(&["head", "--columns", "time=1", &garbage]).contains("no unit"));
    let path = file(dir.path(), "t.spc", SPC);
    let e = fails(&["convert", &path, "-", "--volume", "1M"]);
    assert!(e.contains("--wrap") && e.contains("--compact") && e.contains("1 MiB"), "{e}");
    let out = file(dir.path(), "there.csv", "precious");
    assert!(fails(&["convert", &path, &out]).contains("--force"));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
    // A failed conversion leaves no partial file.
    let bad = file(dir.path(), "bad.spc", &format!("{SPC}oops\n"));
    let half = dir.path().join("half.csv");
    fails(&["convert", "--strict", &bad, half.to_str().unwrap()]);
    assert!(!half.exists());
}

#[test]
fn conversions_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "t.spc", SPC);
    let same = ["requests", "writes", "reads", "footprint_pages", "end_sector", "sequential", "devices"];
    let want = json(&[&path]);
    for (to, name) in [
        ("recorded", "a.csv.zst"),
        ("msr", "a.msr.gz"),
        ("disksim", "a.ds"),
        ("mqsim", "a.mq"),
        ("fio2", "a.f2"),
        ("fio3", "a.f3"),
    ] {
        let out = dir.path().join(name);
        let out = out.to_str().unwrap();
        let (_, err) = ok(&["convert", "--to", to, &path, out]);
        assert!(err.contains(&format!("wrote 4 requests to {out} as {to}")), "{err}");
        let unit = if to == "mqsim" { "ns" } else { "ms" };
        let got = json(&["--time-unit", unit, "--size-unit", "sectors", out]);
        for key in &same[..6] {
            assert_eq!(got[key], want[key], "{to}: {key}");
        }
    }
    let out = dir.path().join("packed.csv");
    let out = out.to_str().unwrap();
    ok(&["convert", "--volume", "8M", "--compact", &path, out]);
    let v = json(&[out]);
    assert_eq!((v["requests"].as_u64(), v["chunks"].as_u64()), (Some(4), Some(3)));
    assert!(v["end_sector"].as_u64().unwrap() <= 3 * 2048);
}

#[test]
fn devices_stay_apart_through_every_format_that_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let path =
        file(dir.path(), "t.trace", "0.001 4 100 8 1\n1.002 7 100 8 0\n2.003 4 108 8 1\n3.5 7 4 8 1\n");
    let mut from = path;
    for to in ["mqsim", "recorded", "msr", "spc", "fio3", "recorded", "fio2", "disksim"] {
        let out = dir.path().join(format!("{to}.{}", from.len())).to_str().unwrap().to_owned();
        ok(&["convert", "--time-unit", "ms", "--size-unit", "sectors", "--to", to, &from, &out]);
        let v = json(&["--time-unit", "ms", "--size-unit", "sectors", &out]);
        assert_eq!(v["devices"].as_array().map(Vec::len), Some(2), "{to}: {v}");
        assert_eq!((v["requests"].as_u64(), v["end_sector"].as_u64()), (Some(4), Some(2048 + 108)), "{to}");
        from = out;
    }
}

#[test]
fn what_a_format_cannot_say_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let csv = "time_us,op,sector,sectors,flags\n0,W,8,8,MS\n1,F,0,0,\n2,D,8,8,\n3,R,8,8,\n";
    let path = file(dir.path(), "t.csv", csv);
    let out = dir.path().join("t.msr");
    let (_, err) = ok(&["convert", "--to", "msr", &path, out.to_str().unwrap()]);
    for part in ["1 flushes were left out", "1 discards were left out", "hints", "wrote 2 requests"] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn generated_workloads_say_so_and_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("g.csv");
    let out = out.to_str().unwrap();
    let (_, err) = ok(&["generate", "hfsl-fin1,count=2k,seed=3", out]);
    assert!(err.contains("generated") && err.contains("wrote 2000 requests"), "{err}");
    let first = std::fs::read(out).unwrap();
    ok(&["generate", "--force", "gen:hfsl-fin1,count=2k,seed=3", out]);
    assert_eq!(std::fs::read(out).unwrap(), first);
    let (stat, _) = ok(&["stat", "gen:hfsl-fin1,count=2k"]);
    assert!(stat.contains("(GENERATED)") && stat.contains("published: 59.0 % writes of 2.91 KB"), "{stat}");
    let (list, _) = ok(&["generate", "--list"]);
    for name in ["uniform", "mix", "hfsl-radius", "halo-randw", "assumed"] {
        assert!(list.contains(name), "{name}");
    }
    let (head, _) = ok(&["head", "-n", "3", "gen:uniform,ops=read"]);
    assert_eq!(head.lines().filter(|l| l.contains(" read ")).count(), 3, "{head}");
}

#[test]
fn help_has_examples() {
    for command in ["stat", "convert", "head", "generate"] {
        assert!(ok(&[command, "--help"]).0.contains("Examples:"), "{command}");
    }
}

/// The command of docs/reference/filebench.md.
#[test]
fn a_personality_of_filebench_has_statistics() {
    let shown = json(&["gen:varmail,count=100k"]);
    let count = |key: &str| shown[key].as_u64().unwrap();
    assert!(count("requests") >= 100_000 && count("flushes") > 0, "{shown}");
}
