//! Recordings of layers in a run.

use super::trees::{FRONT, flash, stack};
use crate::{Job, Report, RunOptions, WarmUp};
use frit_core::Nanos;
use frit_engine::LoopMode;
use frit_stack::Stack;
use frit_trace::{Fit, Options, ReqOp, Request, Workload};
use std::path::Path;

/// A recording of a mail server.
const MAIL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/mail-60k.csv.zst");

/// A flash device with HALO in front of it, and a recording between them.
fn recorded(file: &Path, limit: u64) -> Stack {
    stack(&format!(
        "{FRONT}{}[top]\nkind = \"cache\"\npcm = \"front\"\ndisk = \"rec\"\n\
         [rec]\nkind = \"record\"\ndevice = \"ssd\"\nfile = \"{}\"\nlimit = {limit}\n",
        flash("ssd"),
        file.display()
    ))
}

fn job(spec: &str) -> Job {
    Job::open(spec, &Options::default(), Fit::Wrap, &mut |_| {}).unwrap()
}

fn requests(file: &Path) -> Vec<Request> {
    let mut workload = Workload::open(file.to_str().unwrap(), &Options::default()).unwrap();
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while workload.fill(&mut batch).unwrap() {
        all.extend_from_slice(&batch);
    }
    all
}

/// Requests and bytes of reads and of writes, discards and flushes that `rec` received.
fn received(r: &Report) -> [u64; 7] {
    let link = r.links.iter().find(|l| l.from == "top" && l.to == "rec").unwrap();
    let [reads, writes, discards] = [link.reads, link.writes, link.discards];
    [
        reads.commands,
        reads.bytes,
        writes.commands,
        writes.bytes,
        discards.commands,
        discards.bytes,
        link.flushes,
    ]
}

fn asked(r: &Report) -> [u64; 7] {
    let a = &r.asked;
    [a.reads, a.read_bytes, a.writes, a.written_bytes, a.discards, a.discarded_bytes, a.flushes]
}

#[test]
fn a_recording_below_a_cache_is_the_workload_of_the_layer_below() {
    let dir = tempfile::tempdir().unwrap();
    // Neither the warm-up nor the verification is part of the recording.
    let warm: WarmUp = "fill+10%".parse().unwrap();
    for (name, mode) in [
        ("closed.csv.zst", LoopMode::Closed { depth: 4 }),
        ("open.csv", LoopMode::Open { speed: 1.0, depth: None }),
    ] {
        let file = dir.path().join(name);
        let options = RunOptions { mode, warm, verify: true, ..RunOptions::default() };
        let first =
            job(MAIL).with_records().run(&recorded(&file, 1_000_000_000), &options, &mut |_| {}).unwrap();
        assert_eq!(first.verification.as_ref().unwrap().mismatches, 0);
        let counts = received(&first);
        assert!(counts[0] > 1000 && counts[2] > 1000, "{counts:?}");
        assert_eq!((first.records.len(), &first.records[0].error), (1, &None));
        assert_eq!(first.records[0].requests, counts[0] + counts[2] + counts[4] + counts[6]);
        // Times are those of the measurement.
        let all = requests(&file);
        assert!(all.windows(2).all(|w| w[0].at <= w[1].at));
        let span = all.last().unwrap().at.since(all[0].at);
        // In an open loop, the device is slower than the arrivals.
        let least = if name.starts_with("closed") { first.throughput.duration_ns / 2 } else { 0 };
        assert!(span.0 > least, "{name}: {span:?}");
        assert!(all.last().unwrap().at <= Nanos(first.throughput.duration_ns));
        // The layer below alone receives the same requests from the trace.
        let alone = stack(&flash("ssd"));
        let second = job(file.to_str().unwrap()).run(&alone, &RunOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(asked(&second), counts);
    }
}

#[test]
fn a_recording_ends_at_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("first.csv");
    let spec = "gen:uniform,count=3000,size=4K,align=4K,span=1500K,read=0.5";
    let r = job(spec).with_records().run(&recorded(&file, 100), &RunOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(r.records[0].requests, 100);
    assert_eq!(requests(&file).len(), 100);
    let layer = r.layers.iter().find(|l| l.name == "rec").unwrap();
    let metric = |name: &str| layer.metrics.iter().find(|m| m.name == name).unwrap().value;
    let counts = received(&r);
    let all = counts[0] + counts[2] + counts[4] + counts[6];
    assert_eq!((metric("recorded_requests"), metric("unrecorded_requests")), (100.0, all as f64 - 100.0));
}

#[test]
fn only_a_run_that_records_touches_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kept.csv");
    std::fs::write(&file, "an older trace").unwrap();
    let kept = || std::fs::read_to_string(&file).unwrap() == "an older trace";
    let stack = recorded(&file, 1000);
    crate::sectors(&stack).unwrap();
    assert!(kept(), "a build");
    let spec = "gen:uniform,count=500,size=4K,align=4K,span=400K,read=0.5";
    let options = RunOptions { warm: "fill".parse().unwrap(), ..RunOptions::default() };
    let r = job(spec).run(&stack, &options, &mut |_| {}).unwrap();
    assert!(r.records.is_empty() && kept(), "a run without recordings");
    // So does a run that fails: the requests are too large for the trace's device.
    let far =
        Job::open("gen:uniform,count=500,size=4K,span=1T", &Options::default(), Fit::Strict, &mut |_| {});
    assert!(far.unwrap().with_records().run(&stack, &options, &mut |_| {}).is_err() && kept());
    job(spec).with_records().run(&stack, &options, &mut |_| {}).unwrap();
    assert!(requests(&file).iter().any(|r| r.op == ReqOp::Read));
    // A file that cannot be created is an error before the run.
    let nowhere = recorded(&dir.path().join("none/x.csv"), 1000);
    let e = job(spec).with_records().run(&nowhere, &options, &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("none/x.csv"), "{e}");
}
