//! `make bench`: the index of the cache as the cache grows. The number of probes of an access is
//! constant; its time grows, because memory accesses become slower.
//!
//! Each value is the best of several rounds, on one thread, over random blocks of 1 TiB.

#![allow(clippy::print_stdout)]

use frit_core::convert::{bounded_u32, count_u32, floor_u64, size_in_memory, to_f64, to_u64};
use frit_layer::cache::Lbn;
use frit_layer::cache::directory::SlotIndex;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 3;
/// Lookups in a round.
const LOOKUPS: usize = 1 << 20;
/// Number of lookups by which prefetches run ahead.
const AHEAD: usize = 16;
const DISK_BLOCKS: u64 = 1 << 28;

fn main() {
    // `cargo test --benches` builds and starts this too. There is nothing to test.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    println!(
        "the index of a full cache: cache lines or rows examined, and ns. A replacement is a lookup, a removal and an insertion;"
    );
    println!("rows of the insertion, the most in brackets; fetched: with prefetches {AHEAD} lookups ahead");
    println!("{:>8} {:>24} {:>22} {:>24} {:>24}", "cache", "hit", "miss", "replace", "fetched hit, miss");
    let sizes = [256u64, 512, 1024, 2048, 4096, 8192, 16_384];
    let found: Vec<(u64, Found)> = sizes.into_iter().map(|mb| (mb, size(mb))).collect();
    for (what, of) in
        [("hit", (|f| f.hit) as fn(&Found) -> (f64, f64)), ("miss", |f| f.miss), ("replace", |f| f.replace)]
    {
        plot(what, &found, of);
    }
    println!();
}

/// Probes and nanoseconds of each operation at one size.
struct Found {
    hit: (f64, f64),
    miss: (f64, f64),
    replace: (f64, f64),
}

/// Prints a bar of probes and a bar of nanoseconds for each size. The bars of probes have equal
/// lengths.
fn plot(what: &str, found: &[(u64, Found)], of: impl Fn(&Found) -> (f64, f64)) {
    let most = found.iter().map(|(_, f)| of(f).1).fold(0.0, f64::max);
    println!("\n{what}: probes (one █ each), and ns (longest bar {most:.0} ns)");
    for (megabytes, f) in found {
        let (probes, ns) = of(f);
        println!("{megabytes:>6} MB  {:<5}  {}", bar(probes), bar(ns / most * 50.0));
    }
}

/// Returns a bar with a resolution of an eighth of a character.
fn bar(length: f64) -> String {
    let eighths = size_in_memory(floor_u64((length * 8.0).round()));
    let last = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + last
}

/// Marsaglia's xorshift generator. Its cost is negligible in the measurement.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Returns an even block. Odd blocks are not in the index.
fn even_block(state: &mut u64) -> Lbn {
    Lbn(bounded_u32(random(state) % DISK_BLOCKS) & !1)
}

fn best(mut f: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| f()).fold(f64::MAX, f64::min)
}

/// Returns the nanoseconds of one of `operations` operations.
fn nanos(operations: usize, f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64() * 1e9 / to_f64(to_u64(operations))
}

fn get_all(index: &SlotIndex, of: &[Lbn]) {
    for &lbn in of {
        black_box(index.get(lbn));
    }
}

fn get_all_fetched(index: &SlotIndex, of: &[Lbn]) {
    for (i, &lbn) in of.iter().enumerate() {
        if let Some(&next) = of.get(i + AHEAD) {
            index.prefetch(next);
        }
        black_box(index.get(lbn));
    }
}

fn size(megabytes: u64) -> Found {
    let slots = size_in_memory(megabytes << 8);
    let mut index = SlotIndex::new(slots);
    let mut state = 88_172_645_463_325_252;
    let mut held = Vec::with_capacity(slots);
    while index.len() < slots {
        let lbn = even_block(&mut state);
        if index.get(lbn).is_none() {
            index.insert(lbn, count_u32(held.len()));
            held.push(lbn);
        }
    }
    let hits: Vec<Lbn> = (0..LOOKUPS).map(|_| held[size_in_memory(random(&mut state)) % slots]).collect();
    let misses: Vec<Lbn> = hits.iter().map(|lbn| Lbn(lbn.0 | 1)).collect();
    let probes = |of: &[Lbn]| {
        of.iter().map(|&lbn| f64::from(index.probes_of(lbn))).sum::<f64>() / to_f64(to_u64(of.len()))
    };
    let (hit_probes, miss_probes) = (probes(&hits), probes(&misses));
    let hit = best(|| nanos(LOOKUPS, || get_all(&index, &hits)));
    let miss = best(|| nanos(LOOKUPS, || get_all(&index, &misses)));
    let hit_fetched = best(|| nanos(LOOKUPS, || get_all_fetched(&index, &hits)));
    let miss_fetched = best(|| nanos(LOOKUPS, || get_all_fetched(&index, &misses)));

    // A full cache: each inserted block replaces another one.
    let (mut rows, mut most) = (0, 0);
    let replace = best(|| {
        nanos(LOOKUPS, || {
            for _ in 0..LOOKUPS {
                let lbn = even_block(&mut state);
                if index.get(lbn).is_none() {
                    let place = size_in_memory(random(&mut state)) % slots;
                    let slot = index.remove(std::mem::replace(&mut held[place], lbn)).unwrap_or(0);
                    let looked = index.insert(lbn, slot);
                    rows += u64::from(looked);
                    most = most.max(looked);
                }
            }
        })
    });
    assert_eq!(index.stashed(), 0, "blocks without a row");
    let per_insert = to_f64(rows) / to_f64(to_u64(ROUNDS * LOOKUPS));
    println!(
        "{megabytes:>5} MB {hit_probes:>12.2} {hit:>8.1} ns {miss_probes:>10.2} {miss:>8.1} ns {per_insert:>6.2} ({most:>3}) {replace:>8.1} ns \
         {hit_fetched:>10.1} {miss_fetched:>8.1} ns"
    );
    Found { hit: (hit_probes, hit), miss: (miss_probes, miss), replace: (per_insert, replace) }
}
