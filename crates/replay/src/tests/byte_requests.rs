//! Requests that begin and end inside a sector.

use super::{run, small};
use crate::{Job, Report, RunOptions};
use frit_core::Count;
use frit_stack::Stack;
use frit_trace::{Fit, Options};

fn verified(stack: &Stack, spec: &str) -> Report {
    let r = run(stack, spec, &RunOptions { verify: true, ..RunOptions::default() });
    let v = r.verification.clone().unwrap();
    assert!(v.passed(), "{spec}: {:?}", v.first);
    assert!(v.sectors_read_back > 0 && v.sectors_after_boot > 0);
    r
}

/// Sum over the commands of an operation for the host.
fn written(r: &Report, op: &str, of: fn(&Count) -> u64) -> u64 {
    r.counts.iter().filter(|c| c.op == op && c.cause == "host").map(|c| of(&c.count)).sum()
}

/// Bytes written to PCM, and the time of the run.
fn cost(r: &Report) -> (u64, u64) {
    (written(r, "pcm-write", |c| c.bytes), r.throughput.duration_ns)
}

#[test]
fn every_byte_of_a_byte_request_is_verified() {
    let spec = "gen:uniform,count=6k,read=0.4,size=1..700,align=1,span=900K";
    let mixed = "gen:mix,count=6k+zipf,weight=1,read=0.5,size=64,span=512K+uniform,weight=1,read=0.3,size=512..8K,span=900K";
    for sets in [
        &["FUSION_METHOD=same-level", "SSW=128"][..],
        &["FUSION_METHOD=same-level", "map_persist=each"],
        &["FUSION_METHOD=cache", "ADDR_GRAN_PCM=2"],
        &["FUSION_METHOD=both", "SSW=256", "map_persist=each"],
        &["FUSION_METHOD=none"],
    ] {
        verified(&small(sets), spec);
        verified(&small(sets), mixed);
    }
}

#[test]
fn the_granularity_of_pcm_changes_time_and_bytes() {
    // The working set fits PCM, so that all rewrites are in place.
    let spec = "gen:uniform,count=4k,ops=write,size=2:1/16:1/64:1,align=2,span=32K,arrival=none";
    let costs: Vec<(u64, u64)> = ["2", "16", "64", "128", "256", "512"]
        .iter()
        .map(|gran| cost(&verified(&small(&["SSW=128", &format!("ADDR_GRAN_PCM={gran}")]), spec)))
        .collect();
    assert!(costs.windows(2).all(|w| w[0].1 < w[1].1), "time: {costs:?}");
    // Eight chips in lockstep write at least 16 bytes, so 2 bytes save only the read of the others.
    assert_eq!(costs[0].0, costs[1].0);
    assert!(costs[1..].windows(2).all(|w| w[0].0 < w[1].0), "bytes: {costs:?}");
}

#[test]
fn ssw_below_a_sector_selects_the_medium() {
    let spec = "gen:uniform,count=500,ops=write,size=200,align=8,span=900K";
    let host = |ssw: &str, op: &str| written(&verified(&small(&[ssw]), spec), op, |c| c.commands);
    assert_eq!((host("SSW=128", "pcm-write"), host("SSW=256", "nand-program")), (0, 0));
    assert!(host("SSW=128", "nand-program") >= 500 && host("SSW=256", "pcm-write") >= 500);
}

#[test]
fn a_layer_of_sectors_refuses_bytes_and_takes_them_widened() {
    let stack = Stack::builtin("ntl-small", &[]).unwrap();
    let spec = "gen:uniform,count=50,read=0.5,size=100,align=4,span=1M";
    let job = |options: &Options| Job::open(spec, options, Fit::Strict, &mut |_| {}).unwrap();
    let e = job(&Options::default()).run(&stack, &RunOptions::default(), &mut |_| {}).unwrap_err();
    let e = format!("{e}: {}", std::error::Error::source(&e).unwrap());
    for part in ["request 1 ", "100 bytes at byte", "ntl", "hfsl", "--whole-sectors"] {
        assert!(e.contains(part), "{part}: {e}");
    }
    let options = Options { whole_sectors: true, ..Options::default() };
    let r = job(&options)
        .run(&stack, &RunOptions { verify: true, ..RunOptions::default() }, &mut |_| {})
        .unwrap();
    assert_eq!(r.workload.problems.widened, 50);
    assert!(r.verification.unwrap().passed());
}
