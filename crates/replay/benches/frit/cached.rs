//! A disk behind PCM: the minimum cost of an LRU cache, the layer alone, and a whole replay.

use super::{best, random, row};
use frit_core::{Hints, Sector, Sink, WriteData};
use frit_replay::{RunOptions, WarmUp, run};
use frit_stack::{Bytes, Stack};
use frit_trace::{Options, Workload};
use std::collections::HashMap;
use std::time::Instant;

const REQUESTS: u64 = 4_000_000;
const STACK: &str = "halo-ours";
/// Wear leveling has a benchmark of its own.
const SET: &str = "cache.wear_leveling=none";
/// Number of blocks in the cache of 2 GB.
const BLOCKS: usize = 520_000;

/// Workloads: name, span in 4 KiB blocks, and the same as a generator specification.
const WORKLOADS: [(&str, u64, &str); 2] = [
    ("4 KiB writes over 1 GiB, which all hit", 1 << 18, "gen:uniform,ops=write,size=4K,span=1G,seed=3"),
    (
        "4 KiB writes over 100 GiB, which all destage",
        25 << 20,
        "gen:uniform,ops=write,size=4K,span=100G,seed=3",
    ),
];

/// An LRU cache in some forty lines, based on the standard hash map. It only inserts and evicts
/// blocks: no media, no time, no fragments, no counts.
struct LruCache {
    at: HashMap<u32, u32>,
    /// Block, newer, older.
    nodes: Vec<(u32, u32, u32)>,
    newest: u32,
    oldest: u32,
    free: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl LruCache {
    fn new(blocks: usize) -> LruCache {
        let free = (0..blocks as u32).collect();
        let (at, nodes) = (HashMap::with_capacity(blocks), vec![(0, NONE, NONE); blocks]);
        LruCache { at, nodes, newest: NONE, oldest: NONE, free }
    }

    fn unlink(&mut self, slot: u32) {
        let (_, newer, older) = self.nodes[slot as usize];
        if newer == NONE {
            self.newest = older;
        } else {
            self.nodes[newer as usize].2 = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            self.nodes[older as usize].1 = newer;
        }
    }

    fn write(&mut self, block: u32) {
        let slot = if let Some(&slot) = self.at.get(&block) {
            self.unlink(slot);
            slot
        } else {
            let slot = self.free.pop().unwrap_or_else(|| {
                let slot = self.oldest;
                self.at.remove(&self.nodes[slot as usize].0);
                self.unlink(slot);
                slot
            });
            self.at.insert(block, slot);
            slot
        };
        self.nodes[slot as usize] = (block, NONE, self.newest);
        if self.newest == NONE {
            self.oldest = slot;
        } else {
            self.nodes[self.newest as usize].1 = slot;
        }
        self.newest = slot;
    }
}

/// Runs the benchmark and prints its results.
pub(crate) fn cached() {
    println!("a disk behind 2 GB of PCM, {} million requests a round", REQUESTS / 1_000_000);
    for (name, span, spec) in WORKLOADS {
        println!("  {name}");
        let mut forty = LruCache::new(BLOCKS);
        let mut state = 7;
        let mut rate = || {
            let start = Instant::now();
            for _ in 0..REQUESTS {
                forty.write((random(&mut state) % span) as u32);
            }
            REQUESTS as f64 / start.elapsed().as_secs_f64() / 1e6
        };
        rate();
        let base = best(rate);
        row("baseline: LRU on the standard hash map, nothing else", base, "M req/s", Some(1.0));

        let stack = Stack::builtin(STACK, &[SET.into()]).unwrap();
        let mut built = stack.build(&Bytes::None).unwrap();
        let mut state = 7;
        let mut rate = || {
            let start = Instant::now();
            let mut next = [(Sector(0), 8); 16];
            for _ in 0..REQUESTS / 16 {
                next.iter_mut().for_each(|n| n.0 = Sector(random(&mut state) % span * 8));
                built.layer.prefetch(&next);
                for (at, _) in next {
                    built.layer.write(&mut Sink::untimed(), at, WriteData::Len(4096), Hints::NONE).unwrap();
                }
            }
            REQUESTS as f64 / start.elapsed().as_secs_f64() / 1e6
        };
        rate();
        let bare = best(rate);
        row("the layer without an engine", bare, "M req/s", Some(bare / base));
        drop(built);
        for engine in ["in-order", "event"] {
            let stack = Stack::builtin(STACK, &[SET.into(), format!("engine.kind={engine}")]).unwrap();
            replay(&format!("frit run, {engine} engine, QD 1"), &stack, spec, base);
        }
    }
    println!();
}

/// Measures a whole replay, with a warm-up of the same number of requests, and prints one row.
fn replay(name: &str, stack: &Stack, spec: &str, base: f64) {
    let spec = format!("{spec},count={}", REQUESTS * 2);
    let mut commands = 0.0;
    let rate = best(|| {
        let mut workload = Workload::open(&spec, &Options::default()).unwrap();
        let warm = REQUESTS.to_string().parse::<WarmUp>().unwrap();
        let report = run(stack, &mut workload, &RunOptions { warm, ..RunOptions::default() }).unwrap();
        commands = report.software.ns_per_request / report.software.ns_per_command.unwrap_or(f64::NAN);
        1e3 / report.software.ns_per_request
    });
    row(name, rate, "M req/s", Some(rate / base));
    row("  media commands a request", commands, "", None);
}
