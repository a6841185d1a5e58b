//! `frit cache` for a user or a script.

use std::process::{Command, Output};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn rows(args: &[&str]) -> Vec<serde_json::Value> {
    let out = frit(args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

const LOOP: &str = "gen:sequential,count=3000,size=4K,span=4M";

#[test]
fn a_loop_larger_than_the_cache_defeats_lru_but_not_the_oracle() {
    // 1024 blocks in a loop, 3000 accesses; the cache holds 512 blocks.
    let rows = rows(&["cache", LOOP, "--policy", "lru,belady", "--size", "2M,4M", "--json"]);
    let hits: Vec<_> =
        rows.iter().map(|r| (r["policy"].as_str().unwrap(), r["hits"].as_u64().unwrap())).collect();
    assert_eq!(hits[0], ("lru", 0));
    assert_eq!(hits[1], ("lru", 3000 - 1024));
    assert!(hits[2].1 > 900 && hits[2].0 == "belady", "{hits:?}");
    assert_eq!(hits[3], ("belady", 3000 - 1024));
    assert!(rows.iter().all(|r| r["accesses"] == 3000));
}

/// Gelenbe ("A Unified Approach to the Evaluation of a Class of Replacement Algorithms", IEEE Transactions on
/// Computers, 1973): random eviction and FIFO have the same hit ratio if references are independent. A loop is no such
/// workload: it defeats FIFO.
#[test]
fn random_eviction_has_the_hits_of_fifo_where_references_are_independent() {
    let hits = |trace: &str, size: &str| {
        let all = rows(&["cache", trace, "--policy", "fifo,random", "--size", size, "--json"]);
        let accesses = all[0]["accesses"].as_f64().unwrap();
        [0, 1].map(|n| all[n]["hits"].as_f64().unwrap() / accesses)
    };
    for size in ["4M", "16M"] {
        let [fifo, random] = hits("gen:zipf,count=200k,size=4K,align=4K,span=64M", size);
        assert!((fifo - random).abs() < 0.003, "{size}: {fifo} {random}");
    }
    let [fifo, random] = hits(LOOP, "2M");
    assert!(fifo == 0.0 && random > 0.1, "{fifo} {random}");
}

#[test]
fn a_table_has_a_row_a_policy_and_parameters_count() {
    let out = frit(&["cache", LOOP, "--size", "1M,2M"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let table = text(&out.stdout);
    // The table has every policy that the layer lists, and those that only this command has.
    let cache: serde_json::Value =
        serde_json::from_slice(&frit(&["layers", "cache", "--json"]).stdout).unwrap();
    let policies = cache["parameters"].as_array().unwrap().iter().find(|p| p["key"] == "policy").unwrap();
    let names: Vec<&str> =
        policies["names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    assert!(["halo", "lru", "sieve", "belady"].iter().all(|n| names.contains(n)), "{names:?}");
    for name in names {
        assert!(
            table.lines().any(|l| l.trim_start().starts_with(name) && l.ends_with('%')),
            "{name}:\n{table}"
        );
    }
    // Larger groups are evicted together.
    let groups = |set: &str| {
        let rows = rows(&["cache", LOOP, "--policy", "wow", "--size", "2M", "--set", set, "--json"]);
        rows[0]["evictions"].as_u64().unwrap()
    };
    assert!(groups("wow_group=16K") > 3 * groups("wow_group=128K"));
}

#[test]
fn only_writes_bring_blocks_in_where_that_is_asked_for() {
    let reads = "gen:sequential,count=3000,size=4K,span=4M,read=1";
    let hits = |more: &[&str]| {
        let args = ["cache", reads, "--policy", "lru", "--size", "8M", "--json"];
        rows(&[&args[..], more].concat())[0]["hits"].as_u64().unwrap()
    };
    assert_eq!((hits(&[]), hits(&["--writes-only"])), (3000 - 1024, 0));
}

#[test]
fn what_cannot_be_is_told_in_a_sentence() {
    for (args, code, part) in [
        (&["--policy", "mru"][..], 2, "s3-fifo"),
        (&["--size", "5K"], 2, "multiple of 4 KiB"),
        (&["--set", "TH_BCOUNTS=many"], 1, "TH_BCOUNTS"),
        (&["--set", "th"], 1, "KEY=VALUE"),
        (&["--set", "OUTDATE_RECENCY=0"], 1, "at least TH_RECENCY"),
        (&["--set", "nonsense=1"], 1, "no such parameter"),
    ] {
        let out = frit(&[&["cache", LOOP], args].concat());
        assert_eq!(out.status.code(), Some(code), "{args:?}");
        assert!(text(&out.stderr).contains(part), "{args:?}: {}", text(&out.stderr));
    }
}
