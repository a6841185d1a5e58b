//! An SSD of byte-addressable memory alone: the minimum cost of counting parallel writes, the layer
//! alone, and a whole replay, in pages written per second.

use super::{best, random, row};
use frit_core::{Hints, Sector, Sink, WriteData};
use frit_replay::{RunOptions, WarmUp, run};
use frit_stack::{Bytes, Stack};
use frit_trace::{Options, Workload};
use std::hint::black_box;
use std::time::Instant;

/// Number of pages written in a round.
const PAGES: u64 = 16_000_000;
const STACK: &str = "ntl-paper";
/// Number of pages of the volume that are written: 16 GiB.
const SPAN: u64 = 4 << 20;

/// Static mapping in a few lines: the pages that were written, rounds of four chips, and the wear
/// of each page; no time, no media, no rules.
struct StaticMapping {
    written: Vec<bool>,
    wear: Vec<u32>,
    rounds: [u64; 2],
}

impl StaticMapping {
    fn write(&mut self, first: u64, pages: u64) {
        let (mut chips, mut dirty) = ([0usize; 4], [false; 64]);
        for lpn in first as usize..(first + pages) as usize {
            let round = chips[lpn % 4];
            chips[lpn % 4] += 1;
            dirty[round] |= std::mem::replace(&mut self.written[lpn], true);
            self.wear[lpn] += 1;
        }
        for &d in &dirty[..chips.into_iter().max().unwrap_or(0)] {
            self.rounds[usize::from(d)] += 1;
        }
    }
}

/// Runs the benchmark and prints its results.
pub(crate) fn mapped() {
    println!("an SSD of 4 PCM chips, {} million pages a round, all of them updates", PAGES / 1_000_000);
    for pages in [1u64, 16] {
        println!("  random writes of {} KiB", 4 * pages);
        let places = SPAN / pages;
        let requests = PAGES / pages;
        let mut few = StaticMapping {
            written: vec![true; SPAN as usize],
            wear: vec![0; SPAN as usize],
            rounds: [0; 2],
        };
        let mut state = 7;
        let mut rate = || {
            let start = Instant::now();
            for _ in 0..requests {
                few.write(random(&mut state) % places * pages, pages);
            }
            PAGES as f64 / start.elapsed().as_secs_f64() / 1e6
        };
        rate();
        let base = best(rate);
        black_box(few.rounds);
        row("baseline: rounds and wear in a few lines, nothing else", base, "M pages/s", Some(1.0));
        for (name, sets) in [
            ("static", ""),
            ("dynamic", "ntl.mapping=dynamic"),
            ("block-level", "ntl.mapping=block"),
            ("static + full log", "ntl.log=full"),
            ("static + remap table", "ntl.log=remap"),
            ("static, protected", "ntl.protect=redo"),
        ] {
            let sets: Vec<String> = sets.split_whitespace().map(str::to_owned).collect();
            let stack = Stack::builtin(STACK, &sets).unwrap();
            bare(name, &stack, pages, base);
            if sets.len() < 2 {
                replay(name, &stack, pages, base);
            }
        }
    }
    println!();
}

/// Measures the layer without an engine and prints one row.
fn bare(name: &str, stack: &Stack, pages: u64, base: f64) {
    let mut built = stack.build(&Bytes::None).unwrap();
    built.layer.precondition(frit_core::Precondition::Fill).unwrap();
    let places = SPAN / pages;
    let mut state = 7;
    let mut rate = || {
        let start = Instant::now();
        let sectors = (pages * 8) as u32;
        let mut next = [(Sector(0), sectors); 16];
        for _ in 0..PAGES / pages / 16 {
            next.iter_mut().for_each(|n| n.0 = Sector(random(&mut state) % places * pages * 8));
            built.layer.prefetch(&next);
            for (at, _) in next {
                built
                    .layer
                    .write(&mut Sink::untimed(), at, WriteData::Len(sectors * 512), Hints::NONE)
                    .unwrap();
            }
        }
        PAGES as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    rate();
    let rate = best(rate);
    row(&format!("{name}: the layer without an engine"), rate, "M pages/s", Some(rate / base));
}

/// Measures a whole replay over a full volume and prints one row.
fn replay(name: &str, stack: &Stack, pages: u64, base: f64) {
    let requests = PAGES / pages;
    let spec = format!("gen:uniform,ops=write,size={}K,count={requests},span=16G,seed=3", 4 * pages);
    let rate = best(|| {
        let mut workload = Workload::open(&spec, &Options::default()).unwrap();
        let warm = "fill".parse::<WarmUp>().unwrap();
        let report = run(stack, &mut workload, &RunOptions { warm, ..RunOptions::default() }).unwrap();
        1e3 / report.software.ns_per_request * pages as f64
    });
    row(&format!("{name}: frit run, in-order engine, QD 1"), rate, "M pages/s", Some(rate / base));
}
