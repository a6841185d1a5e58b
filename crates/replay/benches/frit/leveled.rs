//! HFSL over each wear leveler of PCM: the cost of the moves, relative to no leveling.

use super::{ROUNDS, row};
use frit_replay::{Report, RunOptions, WarmUp, run};
use frit_stack::Stack;
use frit_stack::layers::LayerKind;
use frit_trace::{Options, Workload};

/// Number of requests in a round, and in the warm-up before it.
const REQUESTS: u64 = 1_000_000;
const STACK: &str = "hfsl-paper";

/// Runs the benchmark and prints its results.
pub(crate) fn leveled() {
    println!("HFSL over levelers of its PCM, {} million writes of 1 KiB a round", REQUESTS / 1_000_000);
    for persist in ["halt", "each"] {
        println!("  map_persist = \"{persist}\"");
        let parameters = LayerKind::Hfsl.parameters();
        let levelers = parameters.iter().find(|def| def.key == "pcm_wear_leveling").unwrap().names;
        let stacks: Vec<Stack> = levelers
            .iter()
            .map(|leveler| {
                let sets = [
                    format!("pcm_wear_leveling={leveler}"),
                    format!("map_persist={persist}"),
                    // A bank has 63 stripes: 32 cubes, as by default, would use only 32 of them.
                    "pcm_wear_cubes=2".to_owned(),
                ];
                Stack::builtin(STACK, &sets).unwrap()
            })
            .collect();
        let mut best = vec![0.0f64; stacks.len()];
        let mut last: Vec<Option<Report>> = vec![None; stacks.len()];
        // All levelers in each round, so that other load on the machine affects all of them.
        for _ in 0..ROUNDS {
            for (i, stack) in stacks.iter().enumerate() {
                let report = replay(stack);
                best[i] = best[i].max(1e3 / report.software.ns_per_request);
                last[i] = Some(report);
            }
        }
        let reports: Vec<Report> = last.into_iter().flatten().collect();
        let amplification = |r: &Report| r.write_amplification.pcm.unwrap();
        let duration = |r: &Report| r.throughput.duration_ns as f64;
        for ((leveler, rate), report) in levelers.iter().zip(&best).zip(&reports) {
            row(
                &format!("{leveler}: frit run, in-order engine, QD 1"),
                *rate,
                "M req/s",
                Some(rate / best[0]),
            );
            let (written, none) = (amplification(report), amplification(&reports[0]));
            row("  write amplification of PCM", written, "", Some(written / none));
            let (time, none) = (duration(report), duration(&reports[0]));
            row("  time in the model", time / 1e9, "s", Some(time / none));
        }
    }
    println!();
}

/// Replays writes over a span that PCM holds, after a warm-up of the same number of requests.
fn replay(stack: &Stack) -> Report {
    let spec = format!("gen:zipf,ops=write,size=1K,span=64M,seed=3,count={}", REQUESTS * 2);
    let mut workload = Workload::open(&spec, &Options::default()).unwrap();
    let warm = REQUESTS.to_string().parse::<WarmUp>().unwrap();
    run(stack, &mut workload, &RunOptions { warm, ..RunOptions::default() }).unwrap()
}
