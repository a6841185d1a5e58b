//! Caches on flash before a disk: the minimum cost of a set-associative cache, the solid-state cache and
//! its manager, and the manager over an FTL.

use super::{best, random, row};
use frit_core::{Hints, Sector, Sink, StackDevice, WriteData};
use frit_stack::{Bytes, Stack};
use std::time::Instant;

const REQUESTS: u64 = 4_000_000;
/// Blocks of the disk that are written: half of the cache, which has all of them, and twice the cache.
const SPANS: [(&str, u64); 2] = [("which all hit", 1 << 20), ("over twice the cache", 1 << 22)];
/// Blocks of a cache of 8 GB of 4 KiB each.
const BLOCKS: usize = 2 << 20;
/// Requests that are announced together.
const BATCH: usize = 16;
/// Blocks of a set.
const SET: usize = 512;

/// A set-associative cache in twenty lines: it finds a block in its set or replaces the next one in
/// FIFO order. No media, no metadata, no dirty blocks.
struct SetCache {
    blocks: Vec<u32>,
    next: Vec<u16>,
}

impl SetCache {
    fn write(&mut self, block: u32) {
        let set = block as usize / SET % self.next.len();
        let slots = &mut self.blocks[set * SET..(set + 1) * SET];
        if !slots.contains(&block) {
            let next = &mut self.next[set];
            slots[usize::from(*next)] = block;
            *next = (*next + 1) % SET as u16;
        }
    }
}

/// Runs the benchmark and prints its results.
pub(crate) fn ssd_caches() {
    println!("caches of 8 GB on flash before a disk of 75 GB, random 4 KiB writes without an engine");
    for (name, span) in SPANS {
        let mut cache = SetCache { blocks: vec![u32::MAX; BLOCKS], next: vec![0; BLOCKS / SET] };
        let base = rate(span, |blocks| blocks.iter().for_each(|&block| cache.write(block as u32)));
        row(&format!("baseline: twenty lines of sets, {name}"), base, "M req/s", Some(1.0));
        for (what, stack, sets) in [
            ("flashtier, write-back", "ssc-flashtier", &[][..]),
            ("flashtier, write-back, sparse map", "ssc-flashtier", &["flashtier.map=sparse"]),
            ("flashtier, write-through", "ssc-flashtier", &["flashtier.mode=write-through"]),
            ("flashcache over ftl, write-back", "ssc-flashcache", &[]),
            ("flashcache over ftl, write-through", "ssc-flashcache", &["flashcache.mode=write-through"]),
        ] {
            let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
            let mut built = Stack::builtin(stack, &sets).unwrap().build(&Bytes::None).unwrap();
            let rate = rate(span, |blocks| write(built.layer.as_mut(), blocks));
            row(&format!("{what}, {name}"), rate, "M req/s", Some(rate / base));
        }
    }
    println!();
}

fn write(layer: &mut dyn StackDevice, blocks: &[u64]) {
    let mut next = [(Sector(0), 8); BATCH];
    next.iter_mut().zip(blocks).for_each(|(n, block)| n.0 = Sector(block * 8));
    layer.prefetch(&next);
    for (at, _) in next {
        layer.write(&mut Sink::untimed(), at, WriteData::Len(4096), Hints::NONE).unwrap();
    }
}

/// Speed of random writes to blocks below `span`, after as many for warm-up, in millions a second. The
/// writes are announced in batches, as a replay does.
fn rate(span: u64, mut write: impl FnMut(&[u64])) -> f64 {
    let mut state = 7;
    let mut all = || {
        for _ in 0..REQUESTS / BATCH as u64 {
            let blocks: [u64; BATCH] = std::array::from_fn(|_| random(&mut state) % span);
            write(&blocks);
        }
    };
    all();
    best(|| {
        let start = Instant::now();
        all();
        REQUESTS as f64 / start.elapsed().as_secs_f64() / 1e6
    })
}
