//! `frit run` for a user: output, errors, exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Ended {
    code: i32,
    out: String,
    /// Standard error, without the line breaks of its layout.
    err: String,
}

fn frit(args: &[&str]) -> Ended {
    let o =
        Command::new(env!("CARGO_BIN_EXE_frit")).arg("run").args(args).stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(o.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    Ended {
        code: o.status.code().unwrap(),
        out: String::from_utf8(o.stdout).unwrap(),
        err: err.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" "),
    }
}

const LOAD: &str = "gen:uniform,count=3k,size=4K,span=16M,read=0.3";

#[test]
fn one_run_shows_its_report() {
    let e = frit(&["hfsl-small", LOAD, "--qd", "4", "--warm", "steady+10%"]);
    assert_eq!(e.code, 0, "{}", e.err);
    for part in [
        "2,700 requests, queue depth 4",
        "steady+trace:10% (300 requests)",
        "p99.9",
        "write amplification",
        "nand-program",
    ] {
        assert!(e.out.contains(part), "no {part} in\n{}", e.out);
    }
}

#[test]
fn findings_come_first_and_percentiles_are_chosen() {
    let e = frit(&["hfsl-small", LOAD, "--percentiles", "90,12.5"]);
    assert_eq!(e.code, 0, "{}", e.err);
    assert!(e.out.starts_with(" doubt         ") && e.out.contains("PCM unused"), "{}", e.out);
    let head = e.out.lines().find(|l| l.starts_with(" latency")).unwrap();
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>(),
        ["latency", "requests", "mean", "p12.5", "p90", "max"]
    );
    let e = frit(&["--stack", "hfsl-small", "--stack", "no-pcm", "--trace", LOAD, "--percentiles", "90"]);
    let rows = e.out.lines().filter(|l| l.contains(" latency, p"));
    let names: Vec<_> = rows.map(|l| l.split_whitespace().take(2).collect::<Vec<_>>()).collect();
    assert_eq!(names, [["latency,", "p90"]], "{}", e.out);
    let e = frit(&["hfsl-small", LOAD, "--percentiles", "100"]);
    assert!(e.code == 2 && e.err.contains("not a percentile"), "{}", e.err);
}

/// Failures of worn lines are not modelled, so the report does not call them out of use.
#[test]
fn lines_beyond_their_endurance_are_still_in_use() {
    let load = "gen:hotcold,count=2000,span=1M";
    let e = frit(&["ntl-paper,media.pcm.endurance=3", load]);
    assert_eq!(e.code, 0, "{}", e.err);
    assert!(e.out.contains(" written beyond the endurance and still in use"), "{}", e.out);
    let e = frit(&["ntl-paper", load]);
    assert!(!e.out.contains("beyond the endurance") && !e.out.contains("out of use"), "{}", e.out);
}

#[test]
fn several_runs_show_one_table_and_are_written_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.json");
    let e = frit(&[
        "no-pcm-small",
        LOAD,
        "hfsl-small",
        "gen:zipf,count=2k,size=2K,span=8M",
        "--json",
        file.to_str().unwrap(),
    ]);
    assert_eq!(e.code, 0, "{}", e.err);
    assert!(e.out.contains("no-pcm-small") && e.out.contains('×') && e.out.contains("zipf"), "{}", e.out);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let of = |i: usize| {
        let r = &json[i];
        (
            r["stack"]["name"].as_str().unwrap(),
            r["workload"]["name"].as_str().unwrap(),
            r["asked"]["requests"].as_u64().unwrap(),
        )
    };
    assert_eq!(json.as_array().unwrap().len(), 4);
    assert_eq!(of(0), ("no-pcm-small", "uniform", 3000));
    assert_eq!(of(3), ("hfsl-small", "zipf", 2000));
    let shown = e.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for i in [0, 2] {
        let conclusion = json[i]["comparison"]["conclusion"].as_array().unwrap();
        assert!(!conclusion.is_empty());
        for f in conclusion {
            let text = f["text"].as_str().unwrap();
            assert!(shown.contains(text), "{text}: {}", e.out);
        }
    }
    // Standard output holds nothing but the JSON.
    let e = frit(&["hfsl-small", LOAD, "--json", "-"]);
    assert!(serde_json::from_str::<serde_json::Value>(&e.out).is_ok(), "{}", e.out);
}

#[test]
fn verification_is_shown() {
    let e = frit(&["hfsl-small", LOAD, "--verify", "--open", "--speed", "100", "--seed", "9"]);
    assert_eq!(e.code, 0, "{}", e.err);
    assert!(e.out.contains("0 mismatches") && e.out.contains("seed=9"), "{}", e.out);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for (args, part) in [
        (&[][..], "no stack is given"),
        (&["hfsl-small"], "no workload is given"),
        (&["hfsl-smal", LOAD], "neither a stack nor a workload"),
        (&["hfsl-small", LOAD, "--qd", "0"], "--qd"),
        (&["hfsl-small", LOAD, "--speed", "2"], "--open"),
        (&["hfsl-small", LOAD, "--open", "--speed", "-1"], "speed"),
        (&["hfsl-small", LOAD, "--warm", "hot"], "is not a warm-up"),
        (&["hfsl-small", LOAD, "--wrap", "--compact"], "--compact"),
        (&["hfsl-small", "no-pcm", "-"], "only once"),
    ] {
        let e = frit(args);
        assert_eq!(e.code, 2, "{args:?}: {}", e.err);
        assert!(e.err.contains(part), "{args:?}: {}", e.err);
        assert!(e.err.contains("--help"), "{args:?}: {}", e.err);
    }
}

#[test]
fn a_run_that_fails_ends_with_1_and_says_why() {
    for (args, parts) in [
        (&["hfsl-small", "none.csv"][..], &["none.csv", "No such file"][..]),
        (&["none.toml", LOAD], &["none.toml", "No such file"]),
        (&["hfsl-small", "--stack", "odd", LOAD], &["odd", "builtin"]),
        (&["hfsl-small", LOAD, "--set", "SSV=1"], &["SSV", "did you mean `SSW`"]),
        (
            &["hfsl-small", "gen:uniform,count=9,span=4G"],
            &["234.6 MiB", "--wrap", "--compact", "larger volume"],
        ),
        (&["hfsl-small", "gen:uniform,cuont=9"], &["there is no cuont here"]),
        (&["hfsl-small", "gen:uniform,count=9,span=8M", "--warm", "10"], &["the warm-up took all"]),
        (&["hfsl-small", LOAD, "--json", "/nowhere/x.json"], &["/nowhere/x.json", "No such file"]),
    ] {
        let e = frit(args);
        assert_eq!(e.code, 1, "{args:?}: {}", e.err);
        for part in parts {
            assert!(e.err.contains(part), "{args:?}: no {part} in {}", e.err);
        }
    }
}

#[test]
fn a_trace_that_is_too_large_names_both_sizes_and_what_was_finished_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("big.csv");
    std::fs::write(&trace, "time_us,op,sector,sectors,flags\n0,W,0,8,\n1,R,4194304,8,\n").unwrap();
    let trace = trace.to_str().unwrap();
    let e = frit(&["hfsl-small", trace]);
    assert_eq!(e.code, 1);
    for part in ["big.csv", "2.0 GiB", "234.6 MiB", "--wrap", "--compact"] {
        assert!(e.err.contains(part), "no {part} in {}", e.err);
    }
    assert_eq!(frit(&["hfsl-small", trace, "--compact", "--verify"]).code, 0);
    assert_eq!(frit(&["hfsl-small", trace, "--wrap", "--verify"]).code, 0);
    // The second workload fails during its run; the report of the first is written all the same.
    let json = dir.path().join("r.json");
    let e = frit(&[
        "hfsl-small",
        LOAD,
        "gen:sequential,count=10k,size=64K,span=300M",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert_eq!(e.code, 1, "{}", e.err);
    let reports: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(reports.as_array().unwrap().len(), 1);
}

/// Returns all traces of `../shared/traces`, to be used with their first requests.
fn traces() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let mut all = Vec::new();
    for folder in ["recorded", "public"] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        all.extend(entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "zst")));
    }
    all.sort();
    all
}

#[test]
fn real_traces_come_back_byte_by_byte() {
    let all = traces();
    if all.is_empty() {
        eprintln!("SKIPPED: there is no ../shared/traces beside the repository");
        return;
    }
    // Each trace runs with another fusion method and cleaning policy.
    let (fusion, gc) = (["same-level", "cache", "both", "none"], ["greedy", "cost-benefit", "fifo"]);
    for (i, trace) in all.iter().enumerate() {
        let sets = [format!("FUSION_METHOD={}", fusion[i % 4]), format!("gc={}", gc[i % 3])];
        let trace = trace.to_str().unwrap();
        let args = [
            "hfsl-small",
            trace,
            "--limit",
            "600",
            "--wrap",
            "--verify",
            "--warm",
            "steady",
            "--set",
            &sets[0],
            "--set",
            &sets[1],
        ];
        let e = frit(&args);
        assert_eq!(e.code, 0, "{trace}: {} {}", e.out, e.err);
        assert!(e.out.contains(" 0 mismatches"), "{trace}: {}", e.out);
    }
}

#[test]
fn a_page_is_written_with_a_section_for_each_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.html");
    let e = frit(&["no-pcm-small", "hfsl-small", LOAD, "--html", file.to_str().unwrap()]);
    assert_eq!(e.code, 0, "{}", e.err);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert_eq!(page.matches("<h2 ").count(), 2);
    let e = frit(&["hfsl-small", LOAD, "--html", dir.path().join("none/r.html").to_str().unwrap()]);
    assert!(e.code == 1 && e.err.contains("none/r.html"), "{} {}", e.code, e.err);
}

#[test]
fn variants_of_one_stack_are_compared() {
    let out = Command::new(env!("CARGO_BIN_EXE_frit"))
        .args(["run", "hfsl-small", "hfsl-small,SSW=512,gc=fifo", "--set", "SSW=1024"])
        .args(["gen:uniform,ops=write,size=2K,count=2000,span=16M,seed=1", "--json", "-"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let reports: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let toml = |i: usize| reports[i]["stack"]["toml"].as_str().unwrap().to_owned();
    assert_eq!(reports[1]["stack"]["name"], "hfsl-small,SSW=512,gc=fifo");
    assert!(toml(0).contains("SSW = 1024") && !toml(0).contains("gc = "), "{}", toml(0));
    assert!(toml(1).contains("SSW = 512") && toml(1).contains("gc = \"fifo\""), "{}", toml(1));
}

#[test]
fn a_disk_behind_a_cache_gives_every_byte_back() {
    for sets in [
        &["policy=halo", "overwrite=in-place", "disk_flush=never"][..],
        &["policy=wow", "mode=write-through", "wear_leveling=sfc", "wear_stripe=4K", "wear_cubes=4"],
        &["policy=arc", "mode=write-around", "read_caching=true"],
        &["policy=2q", "bypass_bytes=64K", "engine.kind=event"],
    ] {
        let load = "gen:uniform,size=1K..64K,align=512,count=4k,span=64M";
        let mut args = vec!["halo-small", load, "--verify", "--qd", "4"];
        args.extend(sets.iter().flat_map(|s| ["--set", s]));
        let e = frit(&args);
        assert_eq!(e.code, 0, "{sets:?}: {}", e.err);
        assert!(e.out.contains("0 mismatches"), "{sets:?}: {}", e.out);
    }
}
