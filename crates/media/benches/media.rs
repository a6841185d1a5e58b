//! Benchmark of media commands without an engine, in nanoseconds per command: `cargo bench -p
//! frit-media`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use frit_core::{BlockId, Cause, Ppn, ReadTarget, Sink, Tok, WriteData};
use frit_media::{AnyStore, Hardware, MediumConfig, MediumSpec, MemoryStore, Nand, NoStore, Pcm, Spare};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

fn spec(profile: &str) -> MediumSpec {
    let config = MediumConfig { profile: Some(profile.into()), ..MediumConfig::default() };
    config.resolve("bench", Path::new(".")).unwrap()
}

/// Runs `f`, which executes `n` commands, five times and prints the fastest run.
fn time(name: &str, n: u64, mut f: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_nanos() as f64 / n as f64);
    }
    println!("{name:<44} {best:>8.2} ns a command");
}

fn nand(profile: &str, what: &str, store: impl Fn(u64) -> AnyStore, blocks: u32) {
    let MediumSpec::Nand(config) = spec(profile) else { return };
    let g = config.geometry;
    let mut nand = Nand::new(config, store(g.store_bytes()), &mut Hardware::new()).unwrap();
    let page = vec![0x5A; g.page_bytes as usize];
    let bytes = nand.stores_bytes();
    let source = if bytes { WriteData::Bytes(&page) } else { WriteData::Len(g.page_bytes) };
    let pages = u64::from(blocks) * u64::from(g.pages_per_block);
    // Takes the blocks from all units in turn, as striping does.
    let block = |i: u32| BlockId(g.first_block(i % g.units()).0 + i / g.units());
    let mut seq = 0;
    time(&format!("{profile}, {what}: erase + program"), pages + u64::from(blocks), || {
        for i in 0..blocks {
            nand.erase(&mut Sink::untimed(), block(i), Cause::Gc, Tok::DONE).unwrap();
        }
        for p in 0..g.pages_per_block {
            for i in 0..blocks {
                seq += 1;
                let ppn = g.ppn(block(i), p);
                nand.program(
                    &mut Sink::untimed(),
                    ppn,
                    source,
                    Spare { lpn: i, seq },
                    Cause::Host,
                    Tok::DONE,
                )
                .unwrap();
            }
        }
    });
    let mut out = vec![0; g.page_bytes as usize];
    // Random order: a linear congruential walk over the pages.
    let mut at = 1u64;
    time(&format!("{profile}, {what}: random page read"), pages, || {
        for _ in 0..pages {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let n = ((at >> 33) % pages) as u32;
            let ppn: Ppn = g.ppn(block(n / g.pages_per_block), n % g.pages_per_block);
            let into = if bytes { ReadTarget::Bytes(&mut out) } else { ReadTarget::Len(g.page_bytes) };
            nand.read(&mut Sink::untimed(), ppn, 0, into, Cause::Host, Tok::DONE).unwrap();
        }
    });
    black_box(nand.counts());
}

fn pcm(profile: &str, len: u32) {
    let MediumSpec::Pcm(config) = spec(profile) else { return };
    let mut pcm = Pcm::new(config, NoStore, &mut Hardware::new()).unwrap();
    let n = 4_000_000u64;
    let slots = pcm.bytes().min(256 << 20) / u64::from(len);
    let mut at = 1u64;
    time(&format!("{profile}, no bytes: random write of {len} B"), n, || {
        for _ in 0..n {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let to = (at >> 33) % slots * u64::from(len);
            pcm.write(&mut Sink::untimed(), to, WriteData::Len(len), Cause::Host, Tok::DONE).unwrap();
        }
    });
    black_box(pcm.counts());
}

/// Writes pages over refreshed cells, and again over data, in random order.
fn fresh(profile: &str, len: u32) {
    let MediumSpec::Pcm(config) = spec(profile) else { return };
    let mut pcm = Pcm::new(config, NoStore, &mut Hardware::new()).unwrap();
    let unit = u64::from(pcm.config().refresh_bytes.unwrap());
    let (pages, per_unit) = (pcm.bytes() / u64::from(len), unit / u64::from(len));
    // An odd stride visits each page once per pass; the first pass writes clean cells.
    let stride = (pages / 5) | 1;
    time(&format!("{profile}, no bytes: write_fresh of {len} B, half clean"), 2 * pages, || {
        for block in 0..pages / per_unit {
            pcm.refresh(&mut Sink::untimed(), block * unit, Cause::Gc, Tok::DONE).unwrap();
        }
        let mut at = 0;
        for _ in 0..2 * pages {
            at = (at + stride) % pages;
            pcm.write_fresh(
                &mut Sink::untimed(),
                at * u64::from(len),
                WriteData::Len(len),
                Cause::Host,
                Tok::DONE,
            )
            .unwrap();
        }
    });
    black_box(pcm.counts());
}

fn main() {
    nand("slc-k9-2016", "no bytes", |_| NoStore.into(), 65_536);
    nand("tlc-2020", "no bytes", |_| NoStore.into(), 4_096);
    nand("slc-k9-2016", "in memory", |len| MemoryStore::new(len).into(), 2_048);
    pcm("pcm-p8p-2016", 512);
    pcm("pcm-p8p-2016", 2048);
    pcm("bnvm-pcm-2019", 4096);
    fresh("bnvm-pcm-2019", 4096);
    let t = Instant::now();
    let MediumSpec::Nand(config) = spec("slc-k9-2016") else { return };
    let g = config.geometry;
    let mut nand = Nand::new(config, NoStore, &mut Hardware::new()).unwrap();
    for b in 0..g.blocks() {
        nand.preset(BlockId(b), g.pages_per_block, 3);
    }
    println!("{:<44} {:>8.2} ms", "preset of all blocks of 32 GB", t.elapsed().as_secs_f64() * 1e3);
}
