//! `frit wear` for a user or a script.

use std::process::{Command, Output};

fn frit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frit")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the error message of a failing command, in one line.
fn told(args: &[&str]) -> String {
    let out = frit(args);
    assert!(!out.status.success() && out.stdout.is_empty(), "{args:?}");
    text(&out.stderr).replace("\n  │ ", " ").replace('\n', " ")
}

const WORKLOAD: &str = "gen:uniform,count=20k,size=4K,span=64M,read=0";

#[test]
fn levelers_are_compared() {
    let out = frit(&["wear", WORKLOAD, "--pcm", "64M", "--cubes", "2"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    for words in ["20000 writes of 4 KiB to 64 MiB", "beyond", "sfc", "security-refresh", "life rate"] {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    let out =
        frit(&["wear", WORKLOAD, "--pcm", "64M", "--leveler", "none,start-gap", "--repeat", "2", "--json"]);
    let all: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let of = |i: usize, key: &str| all["levelers"][i][key].clone();
    assert_eq!((of(0, "leveler"), of(0, "writes"), of(0, "moves")), ("none".into(), 40_000.into(), 0.into()));
    assert!(of(1, "moves").as_u64().unwrap() > 200 && of(1, "life_rate").as_f64().unwrap() > 0.5);
    assert_eq!(all["blocks"], 128 * 16 * 8);
    let beyond = of(1, "pcm_bytes").as_u64().unwrap() - (64 << 20);
    assert_eq!(beyond, 128 * (32 << 10), "start-gap has an empty stripe in each bank");
    assert_eq!(of(1, "bank_writes").as_array().unwrap().len(), 128);
}

/// Writing every block once wears all banks alike, whatever the leveler.
#[test]
fn every_block_written_once_has_a_life_rate_of_about_one() {
    let out = frit(&["wear", "gen:sequential,count=524288,size=4K,span=2G,read=0", "--json"]);
    let all: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for l in all["levelers"].as_array().unwrap() {
        let rate = l["life_rate"].as_f64().unwrap();
        assert!(rate > 0.99, "{}: {rate}", l["leveler"]);
    }
}

#[test]
fn an_address_beyond_the_pcm_is_refused() {
    let e = told(&["wear", WORKLOAD, "--pcm", "32M", "--leveler", "none"]);
    assert!(e.contains("beyond the PCM of 32 MiB") && e.contains("--compact"), "{e}");
    let e = told(&["wear", WORKLOAD, "--pcm", "32M", "--leveler", "none", "--compact"]);
    assert!(e.contains("more different blocks than fit into 32 MiB"), "{e}");
}

#[test]
fn what_cannot_be_is_told() {
    let e = told(&["wear", WORKLOAD, "--leveler", "sfcc"]);
    assert!(e.contains("sfc, security-refresh"), "{e}");
    assert!(told(&["wear", WORKLOAD, "--stripe-size", "48K"]).contains("power of two"));
    assert!(told(&["wear", WORKLOAD, "--pcm", "1M"]).contains("two stripes"));
    assert!(told(&["wear", WORKLOAD, "--interval", "0"]).contains("at least 1"));
    assert!(told(&["wear", "gen:uniform,count=100,size=4K,span=1M,read=1"]).contains("writes nothing"));
    assert!(told(&["wear", "-", "--repeat", "2"]).contains("only once"));
    assert!(told(&["wear", "no-such-file.csv"]).contains("no-such-file.csv"));
}
