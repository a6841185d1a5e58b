//! `frit fs-sim` for a user: output, errors, exit codes.

use crate::models::one_in;
use serde_json::Value;
use std::process::Command;

struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn frit(args: &[&str]) -> Ended {
    let o = Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap();
    let err = String::from_utf8(o.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    Ended {
        code: o.status.code().unwrap(),
        out: String::from_utf8(o.stdout).unwrap(),
        err: err.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" "),
    }
}

fn fs_sim(args: &[&str]) -> Ended {
    frit(&[&["fs-sim"], args].concat())
}

const SMALL: [&str; 8] = ["--size", "16M", "--file", "256K", "--records", "1K,64K", "--names", "50"];

#[test]
fn a_run_shows_its_tables_and_json() {
    let e = fs_sim(&[&SMALL[..], &["--verify"]].concat());
    assert_eq!(e.code, 0, "{}", e.err);
    for part in [
        "16 MiB on lpddr2-nvm-ispfs-2018, host zedboard-2018",
        "rewrite 1 KiB",
        "random write 64 KiB",
        "unlink",
        "journal",
        "c1 g0",
        "link",
        "0 mismatches",
    ] {
        assert!(e.out.contains(part), "no {part} in\n{}", e.out);
    }
    let json = |args: &[&str]| -> Value {
        let e = fs_sim(&[&SMALL[..], &["--json"], args].concat());
        assert_eq!(e.code, 0, "{}", e.err);
        serde_json::from_str(&e.out).unwrap()
    };
    let first = json(&[]);
    assert_eq!(first, json(&[]), "the same again");
    assert_eq!(first["verified"], Value::Null);
    let reread = &first["measured"].as_array().unwrap()[3];
    assert_eq!((&reread["name"], &reread["record"]), (&"reread".into(), &1024.into()));
    // 16 rows over the link after the first one: 213 ns and 16 times 200 ns.
    assert_eq!(reread["latency"]["p50_ns"], 3413);
    assert_eq!(first["host"]["values"]["burst_bytes"], 64);
    let other = json(&["--profile", "dimm-optane-2019"]);
    assert_eq!((&other["host"]["name"], &other["profile"]), (&"direct".into(), &"dimm-optane-2019".into()));
    let none = json(&["--host", "zedboard-2018,software=1 ms"]);
    assert!(none["measured"][1]["latency"]["p50_ns"].as_u64().unwrap() > 1_000_000);
}

#[test]
fn a_plan_shows_calls_and_commands() {
    let e = fs_sim(&["--explain", "create", "--size", "64M"]);
    assert_eq!(e.code, 0, "{}", e.err);
    // The values are those of the library, and of its test by hand.
    for part in ["answered after 16.1 µs", "journal", "fence", "inodes", "ledger", "pcm-fence", "waits for"]
    {
        assert!(e.out.contains(part), "no {part} in\n{}", e.out);
    }
    let plan: Value = serde_json::from_str(&fs_sim(&["--explain", "read 4K", "--json"]).out).unwrap();
    assert_eq!(plan["latency_ns"], 213 + 64 * 200);
    assert_eq!(plan["commands"].as_array().unwrap().len(), 128);
    assert_eq!(plan["commands"][1]["after"][0], 0);
    let e = fs_sim(&["--explain", "stat", "--commands", "--profile", "cxl-mem-2023"]);
    assert!(e.code == 0 && e.out.contains("start ns") && e.out.contains("pcm-read"), "{}", e.out);
}

#[test]
fn the_former_name_of_the_command_is_a_hidden_alias() {
    let plan = |name: &str| {
        let e = frit(&[name, "--explain", "stat"]);
        assert_eq!(e.code, 0, "{}", e.err);
        e.out
    };
    assert_eq!(plan("fsrun"), plan("fs-sim"));
    let help = frit(&["--help"]).out;
    assert!(help.contains("fs-sim") && !help.contains("fsrun"), "{help}");
}

#[test]
fn the_hardware_of_the_paper_is_among_the_profiles() {
    let e = frit(&["profiles"]);
    assert!(e.code == 0 && e.out.contains("lpddr2-nvm-ispfs-2018"), "{}", e.out);
    let e = frit(&["profiles", "lpddr2-nvm-ispfs-2018"]);
    assert!(e.out.contains("groups_per_channel") && e.out.contains("150 MB/s a chip"), "{}", e.out);
}

#[test]
fn wrong_command_lines_end_with_2_and_failed_runs_with_1() {
    for (args, code, part) in [
        (&["--explain", "creat"][..], 2, "no plan"),
        (&["--explain", "create", "--names", "5"], 2, "cannot be used with"),
        (&["--commands"], 2, "--explain"),
        (&["--records", "x"], 2, "is not a size"),
        (&["--no-records", "--records", "4K"], 2, "cannot be used with"),
        (&["--records", "3000"], 1, "multiple of 1 KiB"),
        (&["--no-records", "--names", "0"], 1, "nothing to play"),
        (&["--profile", "tlc-2020"], 1, "byte-addressable"),
        (&["--profile", "none"], 1, "no such profile"),
        (&["--host", "zed"], 1, "no such host"),
        (&["--host", "direct,posted=1"], 1, "the keys are"),
        (&["--size", "2G"], 1, "more than the 1 GiB"),
        (&["--size", "8M", "--file", "16M"], 1, "no space"),
    ] {
        let e = fs_sim(args);
        assert_eq!(e.code, code, "{args:?}: {}", e.err);
        assert!(e.err.contains(part), "{args:?}: {}", e.err);
    }
}

fn manual() -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("docs/guide/fs-sim.md")).unwrap()
}

#[test]
fn the_plan_in_the_manual_is_what_is_shown() {
    let e = fs_sim(&["--explain", "create"]);
    assert!(manual().contains(&format!("$ frit fs-sim --explain create\n{}```", e.out)), "{}", e.out);
}

#[test]
fn figures_in_the_manual_are_those_of_the_command() {
    let manual = manual();
    let (_, table) = manual.split_once("create, one after the other |").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 7);
    for row in one_in(2, rows) {
        let value = row[0].split('`').nth(1).map_or_else(String::new, |v| format!(",{v}"));
        let host = format!("zedboard-2018{value}");
        let e = fs_sim(&["--file", "8M", "--records", "1K,4K", "--host", &host, "--json"]);
        let report: Value = serde_json::from_str(&e.out).unwrap();
        let of = |name: &str, record: Value| {
            let all = report["measured"].as_array().unwrap();
            all.iter().find(|m| m["name"] == name && m["record"] == record).unwrap().clone()
        };
        let mb_s = |name| format!("{:.1}", of(name, 4096.into())["mb_s"].as_f64().unwrap());
        let create = of("create", Value::Null)["latency"]["mean_ns"].as_f64().unwrap() / 1e3;
        let shown = [mb_s("write"), mb_s("rewrite"), mb_s("reread"), format!("{create:.1}")];
        let told: Vec<&str> = row[1..].iter().map(|cell| cell.split(' ').next().unwrap()).collect();
        assert_eq!(told, shown, "{host}");
    }
}

#[test]
fn a_query_inside_the_memory_is_compared_with_software() {
    const QUERY: [&str; 5] = ["--isp", "--size", "64M", "--query-files", "100K,1M"];
    let e = fs_sim(&[&QUERY[..], &["--foreground", "4K@10000"]].concat());
    assert_eq!(e.code, 0, "{}", e.err);
    for part in
        ["A: zedboard-2018 on lpddr2-nvm-ispfs-2018", "B: cxl-compute-2023", "100 KiB", "link ISP", "p99 ×"]
    {
        assert!(e.out.contains(part), "no {part} in\n{}", e.out);
    }
    let json = |args: &[&str]| -> Value {
        let e = fs_sim(&[&QUERY[..], &["--json"], args].concat());
        assert_eq!(e.code, 0, "{}", e.err);
        serde_json::from_str(&e.out).unwrap()
    };
    let paper = json(&["--host", "zedboard-2018"]);
    assert_eq!(paper["rows"].as_array().unwrap().len(), 2);
    // 800 rows of 64 bytes for each of two units, in 640 ns; start and inode, and the first row, before.
    assert_eq!(paper["rows"][0]["isp"]["engine_ns"], 1000 + 2 * 213 + 213 + 800 * 640);
    assert_eq!(paper["rows"][0]["foreground"], Value::Null);
    assert_eq!(paper["machines"][0]["host"]["isp"]["values"]["engine_bytes_per_cycle"], 1);
    let counts = |words: &str| {
        json(&["--host", "zedboard-2018", "--words", words])["rows"][1]["isp"]["counts"].clone()
    };
    // The text has the words of the query. A word is found within another one as well.
    let found = counts("storage,phase,change,chang");
    assert!(found[3].as_u64() > found[2].as_u64(), "{found}");
    for (args, code, part) in [
        (&["--isp", "--explain", "create"][..], 2, "cannot be used with"),
        (&["--query-files", "1M"], 2, "--isp"),
        (&["--isp", "--foreground", "4K"], 2, "SIZE@RATE"),
        (&["--isp", "--words", "a,b"], 1, "4 words"),
        (&["--isp", "--host", "direct"], 1, "no engine"),
    ] {
        let e = fs_sim(args);
        assert!(e.code == code && e.err.contains(part), "{args:?}: {} {}", e.code, e.err);
    }
}
