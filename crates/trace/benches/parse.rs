//! Benchmark of trace parsing: lines per second on one core, through the public API, from an
//! uncompressed file in the page cache to requests.
//!
//! `cargo bench -p frit-trace` writes a trace of a million requests (or `LINES=N`) in each format,
//! reads it three times and prints the best result.

use frit_trace::write::{WRITABLE, Writer};
use frit_trace::{DeviceMapping, Options, ReqOp, TimeUnit, Workload};
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Reads everything. Returns the number of requests, and a checksum so that the compiler cannot
/// remove the work.
fn drain(spec: &str, options: &Options) -> Outcome<(u64, u64)> {
    let mut workload = Workload::open(spec, options)?;
    let (mut batch, mut requests, mut sum) = (Vec::new(), 0, 0u64);
    while workload.fill(&mut batch)? {
        requests += batch.len() as u64;
        sum = batch.iter().fold(sum, |s, r| s.wrapping_add(r.sector.0 ^ r.at.0));
    }
    Ok((requests, sum))
}

fn best(spec: &str, options: &Options) -> Outcome<(u64, f64)> {
    let mut best = (0, f64::MAX);
    for _ in 0..3 {
        let begin = Instant::now();
        let (n, sum) = drain(spec, options)?;
        std::hint::black_box(sum);
        let seconds = begin.elapsed().as_secs_f64();
        if seconds < best.1 {
            best = (n, seconds);
        }
    }
    Ok(best)
}

#[allow(clippy::print_stdout, reason = "a benchmark prints its results")]
fn main() -> Outcome<()> {
    let lines = std::env::var("LINES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000u64);
    let dir = tempfile::tempdir()?;
    let spec = format!("gen:zipf,count={lines},span=32G,read=0.4,size=512..64K,rate=20000");
    println!("{:<12} {:>12} {:>12} {:>10}", "format", "lines/s", "ns/line", "MB/s");
    for (name, format) in WRITABLE {
        let path = dir.path().join(name);
        let path = path.to_string_lossy();
        let mut source = Workload::open(&spec, &Options::default())?;
        let mut writer = Writer::create(&path, format, false)?;
        let mut batch = Vec::new();
        while source.fill(&mut batch)? {
            batch.retain(|r| r.op != ReqOp::Flush);
            writer.write(&batch, &[])?;
        }
        writer.finish()?;
        let time_unit = (name == "disksim").then_some(TimeUnit::Ms);
        let options = Options { time_unit, devices: DeviceMapping::Merge, ..Options::default() };
        let (n, seconds) = best(&path, &options)?;
        let bytes = std::fs::metadata(&*path)?.len() as f64;
        println!(
            "{name:<12} {:>12.0} {:>12.1} {:>10.0}",
            n as f64 / seconds,
            seconds * 1e9 / n as f64,
            bytes / seconds / 1e6
        );
    }
    for spec in ["uniform", "zipf", "sequential", "hotcold", "hfsl-fin1", "hfsl-msnfs"] {
        let (n, seconds) = best(&format!("gen:{spec},count={lines}"), &Options::default())?;
        println!(
            "gen:{spec:<14} {:>6.0} requests/s {:>8.1} ns",
            n as f64 / seconds,
            seconds * 1e9 / n as f64
        );
    }
    Ok(())
}
