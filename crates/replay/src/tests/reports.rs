//! Reports are reproducible, unaffected by verification and warm-up, and correct where values can
//! be computed by hand.

use super::{mixed_trace, run, small, small_without_pcm};
use crate::report::{compare::compare, text, write_json};
use crate::{Error, InitialState, Report, RunOptions, WarmUp, WarmUpRequests, sectors};
use frit_core::Op;
use frit_engine::LoopMode;
use frit_trace::{Fit, Options, Workload};

/// Returns a report as JSON, without wall-clock times.
fn fixed(r: &Report) -> serde_json::Value {
    let mut json = Vec::new();
    write_json(std::slice::from_ref(r), 1, &mut json).unwrap();
    let mut all: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let one = all[0].as_object_mut().unwrap();
    assert!(one.remove("software").is_some());
    all
}

const MIX: &str = "gen:mix,count=20k+zipf,weight=3,size=4K,read=0.4,span=800K,meta=0.1,flush=50+sequential,weight=1,size=16K,span=1M";

#[test]
fn two_runs_are_equal_but_for_the_wall_clock() {
    for sets in [&[][..], &["engine.kind=event", "engine.scheduler=hfsl"]] {
        let stack = small(sets);
        let warm = WarmUp { start: InitialState::Steady, warm_up_requests: WarmUpRequests::Share(0.1) };
        let options = RunOptions { mode: LoopMode::Closed { depth: 8 }, warm, ..RunOptions::default() };
        let (a, b) = (run(&stack, MIX, &options), run(&stack, MIX, &options));
        assert_eq!(fixed(&a), fixed(&b));
        let other = run(&stack, MIX, &RunOptions { seed: 2, ..options });
        assert_ne!(fixed(&a), fixed(&other), "the seed of `steady` changes nothing");
    }
}

#[test]
fn verification_changes_no_figure() {
    let dir = tempfile::tempdir().unwrap();
    for sets in [
        &["FUSION_METHOD=both"][..],
        &["engine.kind=event", "FUSION_METHOD=cache"],
        &["pcm_wear_leveling=start-gap", "pcm_wear_stripe=1K", "pcm_wear_ranks=1", "pcm_wear_interval=2"],
    ] {
        let stack = small(sets);
        let trace = mixed_trace(&dir, sectors(&stack).unwrap(), 3000);
        let plain = run(&stack, trace.to_str().unwrap(), &RunOptions::default());
        let mut verified =
            run(&stack, trace.to_str().unwrap(), &RunOptions { verify: true, ..RunOptions::default() });
        assert!(verified.verification.take().is_some() && verified.software.includes_verification);
        assert_eq!(fixed(&plain), fixed(&verified));
    }
}

/// One-page requests, one after another, on an idle device have the latencies of Table 7 of the
/// HFSL paper.
#[test]
fn latencies_are_those_of_the_data_sheet() {
    let stack = small_without_pcm(&[]);
    let w = run(&stack, "gen:sequential,count=100,size=2K,align=2K,span=400K", &RunOptions::default());
    let write = w.class("write").unwrap();
    assert_eq!((write.response.figures.count, write.response.figures.max_ns.0), (100, 213_200));
    assert_eq!(write.response, write.service);
    assert_eq!(w.throughput.duration_ns, 100 * 213_200);
    assert_eq!(w.write_amplification.nand, Some(1.0));
    assert_eq!(w.write_amplification.flash, Some(1.0));
    assert_eq!(w.of(Op::NandProgram).commands, 100);
    let placed = w.layers[0].residence_total;
    assert_eq!((placed.nand, placed.pcm_level), (100, 0));
    assert_eq!(w.memory.mapped_pages, 100);

    let warm = WarmUp { start: InitialState::Fill, warm_up_requests: WarmUpRequests::None };
    let options = RunOptions { warm, ..RunOptions::default() };
    let r = run(&stack, "gen:uniform,count=100,read=1,size=2K,align=2K,span=400K", &options);
    let read = r.class("read").unwrap();
    assert_eq!((read.response.figures.mean_ns, read.response.figures.max_ns.0), (75_500.0, 75_500));
    assert_eq!(r.write_amplification.nand, None);
    assert_eq!((r.of(Op::NandRead).commands, r.of(Op::NandProgram).commands), (100, 0));
}

#[test]
fn open_loops_wait_in_the_host_queue() {
    let stack = small_without_pcm(&[]);
    let mode = LoopMode::Open { speed: 1.0, depth: Some(1) };
    // Ten writes arrive at once, and one is outstanding: the k-th waits for k − 1 others.
    let spec = "gen:sequential,count=10,size=2K,align=2K,span=400K,arrival=none";
    let r = run(&stack, spec, &RunOptions { mode, ..RunOptions::default() });
    let all = r.class("all").unwrap();
    assert_eq!(all.service.figures.max_ns.0, 213_200);
    assert_eq!(all.response.figures.max_ns.0, 10 * 213_200);
    assert!((all.response.figures.mean_ns - 5.5 * 213_200.0).abs() < 1e-3);
}

#[test]
fn warm_up_is_in_no_figure() {
    let stack = small_without_pcm(&[]);
    let spec = "gen:uniform,count=4000,size=2K,align=2K,span=1M";
    let of = |warm_up_requests| {
        run(
            &stack,
            spec,
            &RunOptions {
                warm: WarmUp { start: InitialState::New, warm_up_requests },
                ..RunOptions::default()
            },
        )
    };
    let (whole, cut, twice) =
        (of(WarmUpRequests::None), of(WarmUpRequests::Requests(1000)), of(WarmUpRequests::Whole));
    assert_eq!([&whole, &cut, &twice].map(|r| r.asked.requests), [4000, 3000, 4000]);
    assert_eq!([&whole, &cut, &twice].map(|r| r.run.warm_requests), [0, 1000, 4000]);
    for r in [&whole, &cut, &twice] {
        assert_eq!(r.class("all").unwrap().response.figures.count, r.asked.requests);
        let host: u64 = r
            .counts
            .iter()
            .filter(|c| c.op == "nand-program" && c.cause == "host")
            .map(|c| c.count.commands)
            .sum();
        assert_eq!(host, r.asked.writes);
        let erased =
            r.media[0].wear.run.mean * r.media[0].wear.histogram.iter().map(|b| b.groups).sum::<u64>() as f64;
        assert_eq!(erased.round() as u64, r.media[0].erases);
        let by_cause: f64 = r.write_amplification.nand_by_cause.iter().map(|c| c.ratio).sum();
        assert!((by_cause - r.write_amplification.nand.unwrap()).abs() < 1e-9);
    }
    // At the start of the second pass, every page of the volume has been written.
    assert!(twice.write_amplification.nand > whole.write_amplification.nand);
    assert!(twice.media[0].wear.total.mean > twice.media[0].wear.run.mean);
}

#[test]
fn long_uniform_overwriting_is_steady_and_a_new_volume_is_not() {
    let stack = small_without_pcm(&["over_provisioning=0.4"]);
    let span = sectors(&stack).unwrap() * 512;
    let spec = |count| format!("gen:uniform,count={count},size=2K,align=2K,span={span}");
    let warm = WarmUp { start: InitialState::Steady, warm_up_requests: WarmUpRequests::Requests(5000) };
    let r = run(&stack, &spec(60_000), &RunOptions { warm, ..RunOptions::default() });
    assert_eq!(r.steady_state.verdict, crate::steady::SteadyVerdict::Reached, "{:#?}", r.steady_state);
    // Five rounds, the first of which is before cleaning begins.
    let new = run(&stack, &spec(5200), &RunOptions::default());
    assert_ne!(new.steady_state.verdict, crate::steady::SteadyVerdict::Reached, "{:#?}", new.steady_state);
}

#[test]
fn a_steady_state_of_another_policy_is_told() {
    let told = |gc: &str, warm_up_requests| {
        let stack = small_without_pcm(&[&format!("gc={gc}")]);
        let warm = WarmUp { start: InitialState::Steady, warm_up_requests };
        let r = run(
            &stack,
            "gen:uniform,count=500,size=2K,align=2K,span=1M",
            &RunOptions { warm, ..RunOptions::default() },
        );
        text::remarks(&r).into_iter().find(|note| note.contains("--warm steady"))
    };
    assert!(
        told("cost-benefit", WarmUpRequests::None).unwrap().contains("not with that of gc = cost-benefit")
    );
    assert_eq!(told("cost-benefit", WarmUpRequests::Requests(100)), None);
    assert_eq!((told("greedy", WarmUpRequests::None), told("fifo", WarmUpRequests::None)), (None, None));
}

#[test]
fn errors_say_who_what_and_where() {
    let stack = small(&[]);
    let fail = |spec: &str, options: &RunOptions| {
        let mut w = Workload::open(spec, &Options::default()).unwrap();
        crate::run(&stack, &mut w, options).unwrap_err()
    };
    let e = fail("gen:sequential,count=10k,size=64K,span=1G", &RunOptions::default());
    assert!(matches!(e, Error::Request { .. }), "{e}");
    for part in ["hfsl-small", "request ", "write of 128 sectors at sector ", "--wrap"] {
        assert!(e.to_string().contains(part), "{e}");
    }
    let warm_up_requests = WarmUpRequests::Requests(20);
    let warm = WarmUp { start: InitialState::New, warm_up_requests };
    let e = fail("gen:uniform,count=10,size=4K,span=1M", &RunOptions { warm, ..RunOptions::default() });
    assert!(e.to_string().contains("the warm-up took all"), "{e}");
    let job = crate::Job::open("gen:uniform,count=9,span=1G", &Options::default(), Fit::Strict, &mut |_| {})
        .unwrap();
    let e = job.run(&stack, &RunOptions::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("--compact") && e.contains("larger volume"), "{e}");
}

#[test]
fn reports_and_comparisons_show_what_they_hold() {
    let (with, without) = (small(&[]), small_without_pcm(&[]));
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let reports = [run(&without, MIX, &options), run(&with, MIX, &options)];
    let shown = text::report(&reports[1]);
    for part in [
        "hfsl-small",
        "generated: gen:mix",
        "p99.9",
        "nand-program",
        "verification        0 mismatches",
        "steady state",
        "requests/s",
    ] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    assert!(shown.lines().all(|l| l.chars().count() < 300), "{shown}");
    let table = compare(&reports, 2);
    let row = table.lines().find(|l| l.contains("NAND programs")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    let base = reports[0].of(Op::NandProgram).commands as f64;
    let want = format!("{:.3}×", reports[1].of(Op::NandProgram).commands as f64 / base);
    assert_eq!(cells.last(), Some(&want.as_str()), "{table}");
    // Numbers end in the same column.
    let rows = table.lines().skip_while(|l| !l.starts_with(" workload")).take_while(|l| !l.is_empty());
    let lines: Vec<usize> = rows.map(|l| l.chars().count()).collect();
    assert!(lines.len() > 10 && lines.iter().all(|l| *l == lines[0]), "{table}");
}

/// Collects every key of the JSON at any depth.
fn keys(value: &serde_json::Value, all: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|v| keys(v, all)),
        serde_json::Value::Object(map) => {
            for (key, v) in map {
                all.insert(key.clone());
                // Names of geometry are defined by the medium.
                if key != "geometry" {
                    keys(v, all);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_manual_names_every_field() {
    let manual =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/report.md"))
            .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let stack = small(&["engine.kind=event"]);
    let trace = mixed_trace(&dir, sectors(&stack).unwrap(), 6000);
    let r = run(&stack, trace.to_str().unwrap(), &RunOptions { verify: true, ..RunOptions::default() });
    let mut all = std::collections::BTreeSet::new();
    let plain = run(&stack, trace.to_str().unwrap(), &RunOptions::default());
    let mut json = Vec::new();
    write_json(&[r, plain], 2, &mut json).unwrap();
    keys(&serde_json::from_slice(&json).unwrap(), &mut all);
    assert!(all.len() > 100, "{all:?}");
    let words: std::collections::BTreeSet<&str> =
        manual.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let missing: Vec<&String> = all.iter().filter(|k| !words.contains(k.as_str())).collect();
    assert!(missing.is_empty(), "docs/reference/report.md does not name {missing:?}");
}

#[test]
fn the_stack_of_a_report_builds_the_same_stack() {
    for sets in [&["FUSION_METHOD=both", "gc=fifo"][..], &["engine.kind=event", "engine.scheduler=hfsl"]] {
        let r = run(&small(sets), "gen:uniform,count=100,size=4K,span=512K", &RunOptions::default());
        let again = frit_stack::Stack::parse(&r.stack.name, &r.stack.toml, &[]).unwrap();
        assert_eq!(again.identity().sha256, r.stack.sha256);
    }
}
