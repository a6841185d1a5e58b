//! `make bench`: the speed and memory use of frit, each compared with a baseline measured in the
//! same run.
//!
//! Absolute values differ between machines and over time; ratios are stable. Each value is the best
//! of some rounds, after a warm-up, on one thread. Arguments select benchmarks by name:
//! `cargo bench -p frit-replay --bench frit -- cached`.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod baseline;
mod cached;
mod ftl;
mod leveled;
mod mapped;
mod ssd_caches;
mod storeys;

use baseline::GreedyFtl;
use frit_core::{Hints, Precondition, Sector, Sink, StackDevice, WriteData};
use frit_replay::{RunOptions, WarmUp, run};
use frit_stack::{Bytes, Stack};
use frit_trace::{Options, Workload};
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

const ROUNDS: usize = 3;
const REQUESTS: u64 = 4_000_000;
const STACK: &str = "nand-only-bench";

/// Speed of random writes of 4 KiB to the first pages of a layer in steady state, without an engine, in
/// millions a second.
pub(crate) fn writes_without_engine(layer: &mut dyn StackDevice, pages: u64) -> f64 {
    layer.precondition(Precondition::Steady { seed: 1 }).unwrap();
    let mut state = 7;
    best(|| {
        let start = Instant::now();
        let mut next = [(Sector(0), 8); 16];
        for _ in 0..REQUESTS / 16 {
            next.iter_mut().for_each(|n| n.0 = Sector(random(&mut state) % pages * 8));
            layer.prefetch(&next);
            for (at, _) in next {
                layer.write(&mut Sink::untimed(), at, WriteData::Len(4096), Hints::NONE).unwrap();
            }
        }
        REQUESTS as f64 / start.elapsed().as_secs_f64() / 1e6
    })
}

fn main() {
    // `cargo test --benches` also builds and starts this program, without `--bench`; there is
    // nothing to test.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    println!("frit, one thread, best of {ROUNDS} rounds; ratios against the baseline of the same block\n");
    let blocks: [(&str, fn()); 9] = [
        ("volume", volume),
        ("writes", writes),
        ("ftl", ftl::ftl),
        ("cached", cached::cached),
        ("ssd-caches", ssd_caches::ssd_caches),
        ("mapped", mapped::mapped),
        ("leveled", leveled::leveled),
        ("storeys", storeys::storeys),
        ("parsing", parsing),
    ];
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (name, block) in blocks {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            block();
        }
    }
}

fn row(what: &str, value: f64, unit: &str, ratio: Option<f64>) {
    let ratio = ratio.map_or(String::new(), |r| format!("{r:8.2} ×"));
    println!("  {what:<58} {value:>9.2} {unit:<12} {ratio}");
}

fn best(mut f: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| f()).fold(f64::MIN, f64::max)
}

/// Returns the next number of Marsaglia's xorshift generator, which costs almost nothing.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or("0 0");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}

/// Measures preconditioning, and the memory that a full volume takes.
fn volume() {
    println!("the paper's 32 GB of NAND, 28 % over-provisioning");
    let stack = Stack::builtin(STACK, &[]).unwrap();
    for (name, how) in [("fill", Precondition::Fill), ("steady", Precondition::Steady { seed: 1 })] {
        let before = resident();
        let start = Instant::now();
        let mut built = stack.build(&Bytes::None).unwrap();
        built.layer.precondition(how).unwrap();
        let took = start.elapsed().as_secs_f64();
        let info = built.layer.info();
        let pages = (info.sectors * 512 / u64::from(info.page_bytes)) as f64;
        row(&format!("new volume and {name}"), took, "s", None);
        row("  DRAM for mapping, as the layer counts it", info.dram_bytes as f64 / pages, "B/page", None);
        row("  resident memory", (resident() - before) / pages, "B/page", None);
    }
    println!();
}

/// Measures random 4 KiB writes with cleaning active: the baseline, the layer alone, and the
/// engines.
fn writes() {
    println!("random 4 KiB writes in steady state, {} million a round", REQUESTS / 1_000_000);
    let stack = Stack::builtin(STACK, &[]).unwrap();
    let mut built = stack.build(&Bytes::None).unwrap();
    let places = built.layer.info().sectors / 8;
    let base = {
        let mut forty = GreedyFtl::new(places as usize * 2, 262_144);
        let mut state = 7;
        let mut rate = || {
            let (start, before) = (Instant::now(), forty.programs);
            for _ in 0..REQUESTS {
                let page = (random(&mut state) % places) as usize * 2;
                forty.write(page);
                forty.write(page + 1);
            }
            let wa = (forty.programs - before) as f64 / (2 * REQUESTS) as f64;
            (REQUESTS as f64 / start.elapsed().as_secs_f64() / 1e6, wa)
        };
        // From full to steady state: several times the over-provisioned space.
        for _ in 0..6 {
            rate();
        }
        let rates: Vec<(f64, f64)> = (0..ROUNDS).map(|_| rate()).collect();
        row(
            "baseline: forty lines, no time, no rules",
            rates.iter().fold(0.0, |a, r| r.0.max(a)),
            "M req/s",
            Some(1.0),
        );
        row("  its write amplification", rates[0].1, "", None);
        rates.iter().fold(0.0, |a: f64, r| r.0.max(a))
    };

    let bare = writes_without_engine(built.layer.as_mut(), places);
    row("the layer without an engine: rules, counts, policies", bare, "M req/s", Some(bare / base));
    drop(built);

    let sets = |s: &[&str]| s.iter().map(|&s| s.to_owned()).collect::<Vec<_>>();
    for (name, sets, requests, depth) in [
        ("frit run, in-order engine, QD 1", sets(&[]), REQUESTS, 1),
        ("frit run, in-order engine, QD 32", sets(&[]), REQUESTS, 32),
        ("frit run, in-order engine, QD 1, cleaning by copyback", sets(&["copyback=true"]), REQUESTS, 1),
        ("frit run, event engine, FIFO, QD 32", sets(&["engine.kind=event"]), REQUESTS / 4, 32),
        (
            "frit run, event engine, HFSL scheduler, QD 32",
            sets(&["engine.kind=event", "engine.scheduler=hfsl"]),
            REQUESTS / 4,
            32,
        ),
    ] {
        engine(name, &Stack::builtin(STACK, &sets).unwrap(), requests, depth, base);
    }
    println!();
}

fn engine(name: &str, stack: &Stack, requests: u64, depth: u32, base: f64) {
    let spec = format!("gen:uniform,ops=write,size=4K,count={},span=24G,seed=3", requests * 2);
    let mut commands = 0.0;
    let mut wa = 0.0;
    let rate = best(|| {
        let mut workload = Workload::open(&spec, &Options::default()).unwrap();
        let options = RunOptions {
            mode: frit_engine::LoopMode::Closed { depth },
            warm: format!("steady+trace:{requests}").parse::<WarmUp>().unwrap(),
            ..RunOptions::default()
        };
        let report = run(stack, &mut workload, &options).unwrap();
        commands = report.software.ns_per_command.unwrap_or(0.0);
        wa = report.write_amplification.flash.unwrap_or(0.0);
        1e3 / report.software.ns_per_request
    });
    row(name, rate, "M req/s", Some(rate / base));
    row("  a media command", commands, "ns", None);
    row("  write amplification", wa, "", None);
}

/// Measures parsing of text traces of a million lines from a file, relative to counting the lines.
fn parsing() {
    println!("uncompressed text traces, one million lines each");
    let dir = std::env::temp_dir().join(format!("frit-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut state = 9;
    for (format, line) in LINES {
        let path = dir.join(format!("{format}.txt"));
        let mut text = Vec::new();
        for i in 0..1_000_000u64 {
            line(&mut text, i, random(&mut state) % 50_000_000);
        }
        std::fs::write(&path, &text).unwrap();
        let base = best(|| {
            let start = Instant::now();
            let bytes = std::fs::read(&path).unwrap();
            black_box(bytes.iter().filter(|&&b| b == b'\n').count());
            1.0 / start.elapsed().as_secs_f64()
        });
        let spec = path.to_str().unwrap().to_owned();
        let rate = best(|| {
            let start = Instant::now();
            let mut w = Workload::open(&spec, &Options::default()).unwrap();
            let (mut batch, mut n) = (Vec::new(), 0);
            while w.fill(&mut batch).unwrap() {
                n += batch.len();
            }
            assert!(n >= 999_999, "{format}: {n}");
            1.0 / start.elapsed().as_secs_f64()
        });
        row(
            &format!("{format} (baseline: read the file and count its lines)"),
            rate,
            "M lines/s",
            Some(rate / base),
        );
    }
    let _ = std::fs::remove_dir_all(&dir);
}

/// Appends a formatted line to a buffer, which cannot fail.
macro_rules! line {
    ($($a:tt)*) => {
        writeln!($($a)*).unwrap()
    };
}

type Line = fn(&mut Vec<u8>, u64, u64);

const LINES: [(&str, Line); 4] = [
    ("disksim", |t, i, at| line!(t, "{}.{:03} 0 {} 8 {}", i / 10, i % 1000, at * 8, i % 2)),
    ("msr", |t, i, at| {
        let op = if i % 2 == 0 { "Read" } else { "Write" };
        line!(t, "{},web,3,{op},{},4096,{}", 128_166_465_299_039_421 + i * 1000, at * 4096, 1960 + i % 900);
    }),
    ("spc", |t, i, at| {
        line!(t, "0,{},4096,{},{}.{:06}", at * 8, if i % 2 == 0 { 'r' } else { 'w' }, i / 100, i % 100);
    }),
    ("recorded", |t, i, at| {
        if i == 0 {
            t.extend_from_slice(b"time_us,op,sector,sectors,flags\n");
        }
        line!(
            t,
            "{},{},{},8,{}",
            i * 7,
            if i % 2 == 0 { 'R' } else { 'W' },
            at * 8,
            if i % 5 == 0 { "S" } else { "" }
        );
    }),
];
