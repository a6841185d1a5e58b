//! Examples of each mode of the cache.

use super::*;
use crate::cache::{CacheMode, Overwrite};

#[test]
fn a_bucket_goes_back_sorted_and_in_one_write() {
    let (pcm, disk) = stores();
    let mut layer = open(&named("halo"), &pcm, &disk);
    let mut model = Model::new();
    // The blocks of one MiB in descending order: 80 of 96 slots.
    for block in (0..80).rev() {
        model.write(&mut layer, block * 8, 8);
    }
    assert_eq!(disk_commands(&layer, Op::DiskWrite), 0);
    for block in 0..16 {
        model.write(&mut layer, 8192 + block * 520, 8);
    }
    assert_eq!(metric(&layer, "destaged"), 80.0);
    assert_eq!(disk_commands(&layer, Op::DiskWrite), 1, "80 blocks that adjoin are one write");
    model.all(&mut layer);
}

#[test]
fn least_recently_used_blocks_go_one_by_one() {
    let (pcm, disk) = stores();
    let mut layer = open(&named("lru"), &pcm, &disk);
    let mut model = Model::new();
    for block in 0..120 {
        model.write(&mut layer, block * 8, 8);
    }
    assert!(disk_commands(&layer, Op::DiskWrite) >= 24);
    assert!(disk_commands(&layer, Op::DiskFlush) < 24, "flushes are for many");
    model.all(&mut layer);
}

#[test]
fn fragments_are_cached_without_the_rest_of_their_block() {
    let (pcm, disk) = stores();
    let mut layer = open(&named("halo"), &pcm, &disk);
    let mut model = Model::new();
    model.write(&mut layer, 3, 1);
    model.write(&mut layer, 5, 2);
    assert_eq!(disk_commands(&layer, Op::DiskRead), 0, "nothing is read to write a part");
    model.read(&mut layer, 5, 2);
    assert_eq!(disk_commands(&layer, Op::DiskRead), 0);
    model.read(&mut layer, 0, 8);
    assert_eq!(disk_commands(&layer, Op::DiskRead), 1);
    layer.set("dirty_low", "0").unwrap();
    while layer.step(&mut Sink::untimed(), 8).unwrap() != frit_core::Progress::Idle {}
    assert_eq!(disk_commands(&layer, Op::DiskWrite), 2, "two runs of fragments");
    assert_eq!(metric(&layer, "dirty_blocks"), 0.0);
    assert_eq!(metric(&layer, "cached_blocks"), 1.0, "what was cleaned stays");
    model.all(&mut layer);
}

#[test]
fn through_and_around_reach_the_disk_at_once() {
    for mode in [CacheMode::WriteThrough, CacheMode::WriteAround] {
        let (pcm, disk) = stores();
        let mut layer = open(&CacheConfig { mode, ..named("lru") }, &pcm, &disk);
        let mut model = Model::new();
        for block in 0..8 {
            model.write(&mut layer, block * 80, 16);
        }
        assert_eq!(disk_commands(&layer, Op::DiskWrite), 8);
        let cached = if mode == CacheMode::WriteThrough { 16.0 } else { 0.0 };
        assert_eq!(metric(&layer, "cached_blocks"), cached);
        model.all(&mut layer);
    }
}

#[test]
fn reads_are_cached_when_asked_for() {
    let (pcm, disk) = stores();
    let mut layer = open(&CacheConfig { read_caching: true, ..named("lru") }, &pcm, &disk);
    let model = Model::new();
    model.read(&mut layer, 100, 20);
    model.read(&mut layer, 100, 20);
    assert_eq!(disk_commands(&layer, Op::DiskRead), 1);
    assert_eq!(metric(&layer, "read_hits"), 3.0);
}

#[test]
fn a_long_stream_passes_the_cache_and_its_dirty_blocks_do_not() {
    let (pcm, disk) = stores();
    let config = CacheConfig { bypass_bytes: 32 << 10, ..named("halo") };
    let mut layer = open(&config, &pcm, &disk);
    let mut model = Model::new();
    model.write(&mut layer, 200, 8);
    // Two streams, interleaved.
    for i in 0..16 {
        model.write(&mut layer, 96 + i * 16, 16);
        model.write(&mut layer, 8000 + i * 16, 16);
    }
    // 64 blocks in two streams, of which one was cached before.
    assert_eq!(metric(&layer, "direct_writes") + metric(&layer, "cached_blocks"), 64.0);
    assert!(metric(&layer, "direct_writes") > 40.0);
    assert_eq!(metric(&layer, "write_hits"), 1.0, "the dirty block was written where it is");
    model.all(&mut layer);
}

#[test]
fn in_place_is_for_simulations() {
    let (pcm, disk) = stores();
    let config = CacheConfig { overwrite: Overwrite::InPlace, ..named("halo") };
    let mut layer = open(&config, &pcm, &disk);
    assert!(layer.format(&mut Sink::untimed()).unwrap_err().to_string().contains("overwrite"));
    let mut model = Model::new();
    for _ in 0..3 {
        model.write(&mut layer, 80, 8);
        model.write(&mut layer, 83, 2);
    }
    assert_eq!(metric(&layer, "cached_blocks"), 1.0);
    model.all(&mut layer);
}

#[test]
fn a_drain_writes_all_back_and_keeps_it() {
    let (pcm, disk) = stores();
    let mut layer = open(&named("halo"), &pcm, &disk);
    let mut model = Model::new();
    for block in 0..40 {
        model.write(&mut layer, block * 304, 8);
    }
    layer.format(&mut Sink::untimed()).unwrap();
    layer.set("drain", "true").unwrap();
    for _ in 0..20 {
        model.read(&mut layer, 0, 8);
        model.write(&mut layer, 0, 8);
    }
    while layer.step(&mut Sink::untimed(), 8).unwrap() != frit_core::Progress::Idle {}
    assert_eq!((metric(&layer, "dirty_blocks"), metric(&layer, "cached_blocks")), (0.0, 40.0));
    assert_eq!(layer.get("drain").unwrap(), "false");
    // The blocks that were kept are cached after a crash too.
    drop(layer);
    let mut layer = open(&named("halo"), &pcm, &disk);
    layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert_eq!(metric(&layer, "cached_blocks"), 40.0);
    model.all(&mut layer);
}
