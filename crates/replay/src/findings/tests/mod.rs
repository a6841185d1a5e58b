//! Findings of set-ups with a flaw and of set-ups without one, and their documentation.

mod comparisons;
mod set_ups;

use super::{COMPARISON_RULES, FindingKind, RULES, of_run};
use crate::report::text;
use crate::tests::{run, small, small_without_pcm};
use crate::{Job, Report, RunOptions};
use frit_engine::LoopMode;
use frit_stack::Stack;
use frit_trace::{Fit, Options};
use std::fmt::Write;

fn options(depth: u32, warm: &str) -> RunOptions {
    RunOptions { mode: LoopMode::Closed { depth }, warm: warm.parse().unwrap(), ..RunOptions::default() }
}

fn open(speed: f64, warm: &str) -> RunOptions {
    RunOptions { mode: LoopMode::Open { speed, depth: None }, ..options(1, warm) }
}

fn builtin(name: &str, sets: &[&str]) -> Stack {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    Stack::builtin(name, &sets).unwrap_or_else(|e| panic!("{e}"))
}

fn rules(r: &Report) -> Vec<&'static str> {
    r.findings.iter().map(|f| f.rule).collect()
}

fn doubts(r: &Report) -> Vec<&'static str> {
    r.findings.iter().filter(|f| f.kind == FindingKind::Doubt).map(|f| f.rule).collect()
}

/// Returns the findings as a user sees them: the text that begins the report.
fn head(r: &Report) -> String {
    let shown = text::report(r);
    shown.split("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A wrong finding is worse than none: long runs with mixed requests on a volume in use.
#[test]
fn good_set_ups_have_no_doubt() {
    for (stack, workload, options) in [
        (
            builtin("no-pcm-small", &[]),
            "gen:uniform,count=120k,size=2K,align=2K,span=200M,read=0.5",
            options(32, "steady+25%"),
        ),
        (
            builtin("hfsl-small", &[]),
            "gen:zipf,theta=1.2,count=120k,size=1K,span=100M,read=0.5",
            options(32, "steady+25%"),
        ),
        (
            builtin("no-pcm-small", &[]),
            "gen:uniform,count=60k,size=2K,align=2K,span=200M,read=0.5,rate=1000",
            open(1.0, "steady+25%"),
        ),
    ] {
        let r = run(&stack, workload, &options);
        assert_eq!(doubts(&r), [""; 0], "{workload}: {}", head(&r));
    }
}

/// Nearly the same set-ups as those with a flaw, without it.
#[test]
fn rules_are_silent_when_their_cause_is_gone() {
    let nand = builtin("no-pcm-small", &[]);
    for (stack, workload, options, rule) in [
        (
            &builtin("hfsl-small", &["SSW=4096"]),
            "gen:uniform,count=6k,size=4K,span=100M,read=0.3",
            options(32, "steady"),
            "pcm-unused",
        ),
        (&nand, "gen:uniform,count=6k,size=4K,span=100M,read=0.5", options(32, "fill"), "unwritten-reads"),
        (
            &nand,
            "gen:uniform,count=6k,size=2K,align=2K,span=200M,read=0.5",
            options(8, "steady"),
            "depth-limits",
        ),
        (
            &nand,
            "gen:uniform,count=6k,size=2K,align=2K,span=200M,read=0.5",
            open(0.1, "steady"),
            "overloaded",
        ),
        (
            &nand,
            "gen:uniform,count=6k,size=2K,align=2K,span=200M,read=0.5",
            options(8, "steady"),
            "no-cleaning",
        ),
        (
            &builtin("disk-alone", &[]),
            "gen:uniform,count=600,size=4K,span=1G,read=0.5",
            options(8, "none"),
            "pcm-unused",
        ),
        (
            &builtin("disk-alone", &[]),
            "gen:uniform,count=600,size=4K,span=1G,read=0.5",
            options(8, "none"),
            "unwritten-reads",
        ),
    ] {
        let r = run(stack, workload, &options);
        assert!(!rules(&r).contains(&rule), "{rule} for {workload}: {}", head(&r));
    }
}

/// A small write to a page in NAND that moves the page to PCM costs no NAND program.
#[test]
fn partial_writes_that_move_to_pcm_are_not_blamed_on_nand() {
    let load = "gen:uniform,count=200,size=512,align=512,span=64K";
    let moved = run(&small(&[]), load, &options(4, "fill"));
    assert!(moved.counted("moved_to_pcm") > Some(0.0) && moved.flash_updates > Some(0));
    assert!(!rules(&moved).contains(&"partial-writes"), "{}", head(&moved));
    let nand = run(&small_without_pcm(&[]), load, &options(4, "fill"));
    assert!(rules(&nand).contains(&"partial-writes"), "{}", head(&nand));
}

#[test]
fn a_smaller_ssw_is_proposed_only_where_it_has_an_effect() {
    let text = |method: &str| {
        let stack = builtin("hfsl-small", &[method, "SSW=4096"]);
        let load = "gen:uniform,count=6k,size=4K,span=100M,read=0.3";
        let r = run(&stack, load, &options(8, "steady"));
        assert!(rules(&r).contains(&"pcm-too-small"), "{}", head(&r));
        head(&r)
    };
    assert!(text("FUSION_METHOD=same-level").contains("smaller SSW"));
    assert!(!text("FUSION_METHOD=cache").contains("smaller SSW"));
}

#[test]
fn a_larger_ssw_is_proposed_for_small_writes_only() {
    let text = |size: &str| {
        let load = format!("gen:uniform,count=2k,size={size},span=100M,read=0.3");
        head(&run(&builtin("hfsl-small", &[]), &load, &options(8, "fill")))
    };
    assert!(text("4K").contains("SSW=4K"));
    let large = text("128K");
    assert!(large.contains("PCM unused") && !large.contains("SSW="), "{large}");
}

/// Writes a trace and runs it.
fn run_trace(stack: &Stack, lines: impl Iterator<Item = String>, fit: Fit, options: &RunOptions) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.csv");
    let mut trace = String::from("time_us,op,sector,sectors,flags\n");
    lines.for_each(|l| writeln!(trace, "{l}").unwrap());
    std::fs::write(&path, trace).unwrap();
    let job = Job::open(path.to_str().unwrap(), &Options::default(), fit, &mut |_| {}).unwrap();
    job.run(stack, options, &mut |_| {}).unwrap()
}

#[test]
fn folded_traces_are_told() {
    let stack = small_without_pcm(&[]);
    // Each line is a write in a MiB of its own; the volume holds one and a half.
    let lines = |n: u64| (0..n).map(|i| format!("{},W,{},8,", i * 50, i * 2048));
    let many = run_trace(&stack, lines(64), Fit::Wrap, &options(1, "none"));
    assert!(rules(&many).contains(&"wrapped"), "{}", head(&many));
    assert!(head(&many).contains("--wrap folded 64 MiB"), "{}", head(&many));
    let fitting = run_trace(&stack, lines(1), Fit::Wrap, &options(1, "none"));
    assert_eq!((fitting.run.wrapped, rules(&fitting).contains(&"wrapped")), (None, false));
}

#[test]
fn flushes_are_in_no_mean_of_reads_and_writes() {
    let lines = || {
        (0..4000u64).map(|i| match i % 2 {
            0 => format!("{},W,{},4,", i * 50, i % 256 * 4),
            _ => format!("{},F,0,0,", i * 50),
        })
    };
    let r = run_trace(&small_without_pcm(&[]), lines(), Fit::Strict, &options(1, "none"));
    let of = |class: &str| r.class(class).unwrap().response.figures;
    assert_eq!((of("all").count, of("flush").count, of("write").count), (2000, 2000, 2000));
    assert_eq!(of("all").mean_ns, of("write").mean_ns);
    assert!(rules(&r).contains(&"free-flushes"), "{}", head(&r));
    // Each flush of a disk waits for its write cache.
    let disk = run_trace(&builtin("disk-alone", &[]), lines().take(400), Fit::Strict, &options(1, "none"));
    assert!(rules(&disk).contains(&"flush-time"), "{}", head(&disk));
    assert!(!rules(&disk).contains(&"free-flushes"), "{}", head(&disk));
}

#[test]
fn only_flushes_measure_nothing() {
    let lines = (0..10u64).map(|i| format!("{},F,0,0,", i * 50));
    let r = run_trace(&small(&[]), lines, Fit::Strict, &options(1, "none"));
    assert_eq!(rules(&r)[0], "nothing-measured", "{}", head(&r));
}

#[test]
fn a_failed_verification_comes_first() {
    let load = "gen:uniform,count=200,size=4K,span=512K,read=0.3";
    let mut r = run(&small(&[]), load, &RunOptions { verify: true, ..options(1, "none") });
    assert!(!rules(&r).contains(&"verification-failed"));
    r.verification.as_mut().unwrap().mismatches = 3;
    let found = of_run(&r);
    assert_eq!(found[0].rule, "verification-failed");
    assert!(found[0].text.contains("3 sectors"), "{}", found[0].text);
}

#[test]
fn findings_are_doubts_first_and_in_the_order_of_the_list() {
    let r = run(
        &builtin("hfsl-small", &[]),
        "gen:uniform,count=3k,size=4K,span=100M,read=0.3",
        &options(1, "none"),
    );
    let place = |name: &str| RULES.iter().position(|rule| rule.name == name).unwrap();
    let order: Vec<_> = r.findings.iter().map(|f| (f.kind, place(f.rule))).collect();
    assert!(order.len() > 3 && order.is_sorted(), "{order:?}");
    let json = serde_json::to_value(&r).unwrap();
    assert_eq!(json["findings"][0]["rule"], r.findings[0].rule);
    assert_eq!(json["findings"][0]["kind"], "doubt");
}

/// Returns the table of rules as the manual has it.
fn table() -> String {
    let mut out = String::from("| rule | kind | condition | reason |\n|---|---|---|---|\n");
    let kind = |k| match k {
        FindingKind::Doubt => "doubt",
        FindingKind::Explanation => "explanation",
    };
    let one_run = RULES.iter().map(|r| (r.name, r.kind, (r.condition)(), r.reason));
    let comparisons = COMPARISON_RULES.iter().map(|r| (r.name, r.kind, (r.condition)(), r.reason));
    for (name, k, condition, reason) in one_run.chain(comparisons) {
        writeln!(out, "| `{name}` | {} | {condition} | {reason} |", kind(k)).unwrap();
    }
    out
}

/// With `UPDATE_DOCS=1` the test writes the table into the page.
#[test]
fn the_manual_has_every_rule() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/findings.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("<!-- rules -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let right = format!("{before}<!-- rules -->\n{}<!-- end -->{after}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, right).unwrap();
    } else {
        assert!(
            page == right,
            "findings.md is out of date; UPDATE_DOCS=1 cargo test -p frit-replay findings writes it"
        );
    }
}
