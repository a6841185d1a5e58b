//! The page-mapped FTL with garbage collection active: the baseline, the layer alone, and the engines.

use super::baseline::GreedyFtl;
use super::{ROUNDS, best, random, row, writes_without_engine};
use frit_engine::LoopMode;
use frit_replay::{RunOptions, WarmUp, run};
use frit_stack::{Bytes, Stack};
use frit_trace::{Options, Workload};
use std::time::Instant;

const REQUESTS: u64 = 4_000_000;
const STACK: &str = "ftl-openssd";
const SETS: [&str; 1] = ["over_provisioning=0.28"];
/// Blocks of the baseline, with as many pages in all as the stack has mapping units.
const BASELINE_BLOCKS: usize = (64 << 30) / 4096 / 64;

/// Runs the benchmark and prints its results.
pub(crate) fn ftl() {
    println!("FTL, mapping units of 4 KiB, 64 GB of NAND, 28 % over-provisioning, random 4 KiB requests");
    let stack = stack(&[]);
    let mut built = stack.build(&Bytes::None).unwrap();
    let info = built.layer.info();
    let pages = info.sectors / 8;
    row("DRAM for mapping, as the layer counts it", info.dram_bytes as f64 / pages as f64, "B/page", None);
    let base = baseline(pages);
    let bare = writes_without_engine(built.layer.as_mut(), pages);
    row("the layer without an engine, writes", bare, "M req/s", Some(bare / base));
    drop(built);
    const EVENT: [&str; 2] = ["engine.kind=event", "engine.scheduler=read-first"];
    for (name, ops, sets, depth) in [
        ("in-order engine, QD 1, writes", "read=0", &[][..], 1),
        ("in-order engine, QD 32, writes", "read=0", &[], 32),
        ("event engine, read-first, QD 32, writes", "read=0", &EVENT, 32),
        ("in-order engine, QD 32, half reads", "read=0.5", &[], 32),
        ("event engine, read-first, QD 32, half reads", "read=0.5", &EVENT, 32),
    ] {
        engine(name, ops, &self::stack(sets), depth, base, pages);
    }
    println!();
}

fn stack(more: &[&str]) -> Stack {
    let sets: Vec<String> = SETS.iter().chain(more).map(|&s| s.to_owned()).collect();
    Stack::builtin(STACK, &sets).unwrap()
}

/// Measures the baseline in steady state.
fn baseline(pages: u64) -> f64 {
    let mut forty = GreedyFtl::new(pages as usize, BASELINE_BLOCKS);
    let mut state = 7;
    let mut rate = || {
        let (start, before) = (Instant::now(), forty.programs);
        (0..REQUESTS).for_each(|_| forty.write((random(&mut state) % pages) as usize));
        let amplification = (forty.programs - before) as f64 / REQUESTS as f64;
        (REQUESTS as f64 / start.elapsed().as_secs_f64() / 1e6, amplification)
    };
    // From full to steady state: several times the over-provisioned space.
    for _ in 0..6 {
        rate();
    }
    let rates: Vec<(f64, f64)> = (0..ROUNDS).map(|_| rate()).collect();
    let base = rates.iter().fold(0.0, |a: f64, r| r.0.max(a));
    row("baseline: forty lines, no time, no rules", base, "M req/s", Some(1.0));
    row("  its write amplification", rates[0].1, "", None);
    base
}

fn engine(name: &str, ops: &str, stack: &Stack, depth: u32, base: f64, pages: u64) {
    let span = pages * 4096;
    let spec = format!("gen:uniform,{ops},size=4K,align=4K,count={},span={span},seed=3", REQUESTS * 2);
    let (mut command, mut amplification, mut commands) = (0.0, 0.0, 0.0);
    let rate = best(|| {
        let mut workload = Workload::open(&spec, &Options::default()).unwrap();
        let options = RunOptions {
            mode: LoopMode::Closed { depth },
            warm: format!("steady+trace:{REQUESTS}").parse::<WarmUp>().unwrap(),
            ..RunOptions::default()
        };
        let report = run(stack, &mut workload, &options).unwrap();
        command = report.software.ns_per_command.unwrap_or(0.0);
        amplification = report.write_amplification.flash.unwrap_or(0.0);
        commands = report.software.ns_per_request / command;
        1e3 / report.software.ns_per_request
    });
    row(&format!("frit run, {name}"), rate, "M req/s", Some(rate / base));
    row("  media commands a request", commands, "", None);
    row("  a media command", command, "ns", None);
    row("  write amplification", amplification, "", None);
}
