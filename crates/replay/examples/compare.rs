//! A comparison of two stacks by a program: `cargo run --release -p frit-replay --example compare`.
//!
//! A generated workload and a bundled recording are replayed over flash with PCM (HFSL) and over
//! the same flash without PCM. Times are virtual, so every run prints the same.

#![allow(clippy::print_stdout, reason = "an example prints its results")]

use frit_replay::{InitialState, Job, Report, RunOptions, WarmUp};
use frit_stack::Stack;
use frit_trace::{Fit, Options};
use std::error::Error;

/// Builtin stacks. `Stack::load` reads a file, and takes overrides such as `SSW=1024`.
const STACKS: [&str; 2] = ["no-pcm-small", "hfsl-small"];
/// Workloads, in the form of `frit run --trace`.
const WORKLOADS: [&str; 2] = [
    "gen:zipf,count=20k,size=2K,span=64M,read=0.5",
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/pgbench-60k.csv.zst"),
];

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let stacks = STACKS.iter().map(|name| Stack::builtin(name, &[])).collect::<Result<Vec<_>, _>>()?;
    // Every page is written once before the measurement, as with `--warm fill`.
    let warm = WarmUp { start: InitialState::Fill, ..WarmUp::default() };
    let options = RunOptions { warm, ..RunOptions::default() };
    for workload in WORKLOADS {
        // A trace is read here, for its size and its hash. `Wrap` takes its addresses modulo the
        // volume, which is smaller than the recorded disk.
        let job = Job::open(workload, &Options::default(), Fit::Wrap, &mut |_| {})?;
        let runs = stacks.iter().map(|stack| job.run(stack, &options, &mut |_| {}));
        print_reports(&runs.collect::<Result<Vec<_>, _>>()?)?;
    }
    Ok(())
}

/// Prints one line for each report of a workload. `frit_replay::report::compare` prints all metrics.
fn print_reports(reports: &[Report]) -> Result<(), Box<dyn Error>> {
    let first = reports.first().ok_or("no stacks")?;
    println!("{}, {} requests", first.workload.identity.name, first.asked.requests);
    println!("  stack           mean (us)    p99 (us)  write amplification (NAND, PCM)");
    for report in reports {
        let latency = &report.class("all").ok_or("no requests")?.response.figures;
        println!(
            "  {:<14} {:>10.1}  {:>10.1}  {:>6} {:>6}",
            report.stack.name,
            latency.mean_ns / 1e3,
            latency.p99_ns.as_us(),
            ratio(report.write_amplification.nand),
            ratio(report.write_amplification.pcm),
        );
    }
    Ok(())
}

/// Formats a ratio. It is `None` if the host wrote nothing.
fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{v:.2}"))
}
