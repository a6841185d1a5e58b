//! The cost of composition: layers that pass every request on, above a layer.

use crate::{random, row};
use frit_core::{Hints, ReadTarget, Sector, Sink, StackDevice, WriteData};
use frit_replay::{RunOptions, WarmUp, run};
use frit_stack::{Bytes, Stack};
use frit_trace::{Options, Workload};
use std::fmt::Write;
use std::time::Instant;

/// Numbers of layers that pass requests on.
const STOREYS: [usize; 4] = [0, 1, 2, 4];
/// The machine is slower in one minute than in another. So the stacks take turns, and medians are
/// shown.
const LIVE_TURNS: usize = 41;
const LIVE_REQUESTS: u64 = 100_000;
const REPLAY_TURNS: usize = 9;
const REPLAY_REQUESTS: u64 = 500_000;
/// A disk of this size, whose bytes are in memory.
const DISK_BYTES: u64 = 1 << 20;

const DISK: &str = "[media.hdd]\nprofile = \"st3500320as-2008\"\nbytes = \"1M\"\n\
                    [low]\nkind = \"flaky\"\ndevice = \"hdd\"\n";
const NAND: &str = "[media.nand]\nprofile = \"slc-k9-2016\"\n\
                    [low]\nkind = \"hfsl\"\nFUSION_METHOD = \"none\"\nover_provisioning = 0.28\ngc = \"greedy\"\n\
                    wear_leveling = \"none\"\nheat = \"off\"\n";

/// Returns a stack with layers `flaky` without faults above `low`.
fn stack(bottom: &str, storeys: usize) -> Stack {
    let mut text = bottom.to_owned();
    let mut below = "low".to_owned();
    for i in 0..storeys {
        writeln!(text, "[storey-{i}]\nkind = \"flaky\"\ndevice = \"{below}\"").unwrap();
        below = format!("storey-{i}");
    }
    Stack::parse("storeys", &text, &[]).unwrap()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Measures each stack this often, in turn. Returns the medians.
fn in_turns(turns: usize, mut measure: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut times = vec![Vec::new(); STOREYS.len()];
    for turn in 0..=turns {
        for (i, all) in times.iter_mut().enumerate() {
            let time = measure(i);
            // The first turn is a warm-up.
            if turn > 0 {
                all.push(time);
            }
        }
    }
    times.into_iter().map(median).collect()
}

/// Runs the benchmark and prints its results.
pub(crate) fn storeys() {
    println!("layers that pass each request on, 4 KiB; medians of {LIVE_TURNS} and {REPLAY_TURNS} turns");
    for (name, write) in [("reads", false), ("writes", true)] {
        let build = |n: &usize| stack(DISK, *n).build(&Bytes::Memory).unwrap().layer;
        let mut layers: Vec<_> = STOREYS.iter().map(build).collect();
        let times = in_turns(LIVE_TURNS, |i| live(&mut *layers[i], write));
        for (storeys, time) in STOREYS.into_iter().zip(&times) {
            row(&format!("live {name} of a disk in memory, {storeys} storeys"), *time, "ns", None);
            if storeys > 0 {
                row("  a storey", (time - times[0]) / storeys as f64, "ns", None);
            }
        }
    }
    let stacks: Vec<Stack> = STOREYS.iter().map(|n| stack(NAND, *n)).collect();
    let times = in_turns(REPLAY_TURNS, |i| replay(&stacks[i]));
    for (storeys, time) in STOREYS.into_iter().zip(&times) {
        row(
            &format!("frit run, in-order engine, QD 1, {storeys} storeys"),
            *time,
            "ns",
            Some(times[0] / time),
        );
        if storeys > 0 {
            let share = (time / times[0] - 1.0) / storeys as f64;
            row("  a storey", 100.0 * share, "% of 0", None);
        }
    }
    println!();
}

/// Returns the time of a request without virtual time, in ns.
fn live(layer: &mut dyn StackDevice, write: bool) -> f64 {
    let (mut sink, mut data, mut state) = (Sink::untimed(), vec![7; 4096], 7);
    let start = Instant::now();
    for _ in 0..LIVE_REQUESTS {
        let at = Sector(random(&mut state) % (DISK_BYTES / 4096) * 8);
        match write {
            true => layer.write(&mut sink, at, WriteData::Bytes(&data), Hints::NONE),
            false => layer.read(&mut sink, at, ReadTarget::Bytes(&mut data), Hints::NONE),
        }
        .unwrap();
    }
    start.elapsed().as_nanos() as f64 / LIVE_REQUESTS as f64
}

/// Returns the software time of a request in a replay of random writes in steady state, in ns.
fn replay(stack: &Stack) -> f64 {
    let spec = format!("gen:uniform,ops=write,size=4K,count={},span=24G,seed=3", REPLAY_REQUESTS * 2);
    let mut workload = Workload::open(&spec, &Options::default()).unwrap();
    let options = RunOptions {
        warm: format!("steady+trace:{REPLAY_REQUESTS}").parse::<WarmUp>().unwrap(),
        ..RunOptions::default()
    };
    run(stack, &mut workload, &options).unwrap().software.ns_per_request
}
