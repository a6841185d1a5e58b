//! The write cache with one bit a cell: bytes against the shadow model, and counts by hand.

use super::*;
use crate::flash::SlcFull;
use frit_core::{Cause, Op, Progress, Sink, Tok};
use frit_media::SlcArea;

/// Two units of 18 blocks of 12 NAND pages. A block has 4 pages with one bit a cell.
pub(super) const CACHED: NandGeometry = NandGeometry {
    blocks_per_plane: 18,
    pages_per_block: 12,
    slc: SlcArea { blocks: 0, pages: 4, dynamic: false },
    ..TWO_UNITS
};

/// A cache of three blocks in each unit: 12 NAND pages.
fn cached(mapping_unit: u64, merge_buffer: u32, slc_full: SlcFull) -> FtlConfig {
    FtlConfig { slc_cache: 3.0 / 18.0, slc_full, ..config(mapping_unit, merge_buffer) }
}

fn open(config: FtlConfig, store: impl Into<AnyStore>, faults: NandFaults) -> Ftl {
    on_geometry(CACHED, config, store, faults)
}

/// Returns the configuration of a cache, from the mapping unit, the merge buffer and the rule of a full cache.
pub(super) type CacheConfig = fn(u64, u32, SlcFull) -> FtlConfig;

pub(super) fn run_cached(config: FtlConfig, actions: &[Action], faults: NandFaults) {
    run_on(CACHED, 8 << 20, config, actions, faults);
}

pub(super) fn keeps_pages(cache: CacheConfig, actions: &[Action]) {
    run_cached(cache(0, 0, SlcFull::Direct), actions, NandFaults::default());
    run_cached(cache(0, 3, SlcFull::Fold), actions, NandFaults::default());
}

/// `copied` is the rule of a full cache with copybacks.
pub(super) fn keeps_mapping_units(cache: CacheConfig, copied: SlcFull, actions: &[Action]) {
    for config in [
        cache(1024, 2, SlcFull::Fold),
        FtlConfig { copyback: true, ..cache(1024, 0, copied) },
        FtlConfig { erase_after_flush: true, ..cache(2048, 1, SlcFull::Fold) },
        FtlConfig { slc_idle_fold: false, ..cache(1024, 1, SlcFull::Direct) },
    ] {
        run_cached(config, actions, NandFaults::default());
    }
}

pub(super) fn keeps_bytes_with_faults(cache: CacheConfig, actions: &[Action], seed: u64) {
    let faults = NandFaults { program_fail: 0.004, erase_fail: 0.004, seed, ..NandFaults::default() };
    for full in [SlcFull::Direct, SlcFull::Fold] {
        let config = FtlConfig { over_provisioning: 1.0, ..cache(1024, 2, full) };
        run_cached(config, actions, faults);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_cache_keeps_every_byte(actions in actions(1200, 60, 200)) {
        keeps_pages(cached, &actions);
    }

    #[test]
    fn a_cache_of_mapping_units_keeps_every_byte(actions in actions(1200, 60, 200)) {
        keeps_mapping_units(cached, SlcFull::Fold, &actions);
    }

    #[test]
    fn failing_programs_and_erases_of_a_cache_lose_nothing(
        actions in actions(1200, 60, 200), seed in any::<u64>()
    ) {
        keeps_bytes_with_faults(cached, &actions, seed);
    }
}

#[test]
fn random_overwriting_through_a_cache_folds_for_long() {
    for config in
        [cached(0, 0, SlcFull::Fold), cached(1024, 2, SlcFull::Fold), cached(1024, 2, SlcFull::Direct)]
    {
        let mut layer = open(config, MemoryStore::new(8 << 20), NandFaults::default());
        let (pages, page) = (u64::from(layer.pages), layer.page_bytes as usize);
        let mut versions = vec![0u8; pages as usize];
        let mut state = 1u64;
        for n in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lpn = (state >> 33) % pages;
            versions[lpn as usize] = n as u8;
            write(&mut layer, lpn * page as u64 / 512, &vec![n as u8; page]);
            if n % 64 == 0 {
                layer.step(&mut Sink::untimed(), 2).unwrap();
            }
        }
        layer.audit();
        let stats = layer.flash().stats();
        assert!(stats.slc_folds > 40 && stats.victims > 100, "{stats:?}");
        for (lpn, version) in versions.iter().enumerate() {
            let out = read(&mut layer, (lpn * page / 512) as u64, page as u64 / 512).unwrap();
            assert!(out.iter().all(|b| b == version), "page {lpn}");
        }
    }
}

pub(super) fn programs(layer: &Ftl, cause: Cause) -> u64 {
    layer.flash().nand().devices().map(|d| d.counts().get(Op::NandProgram, cause).commands).sum()
}

pub(super) fn write_pages(layer: &mut Ftl, lpns: std::ops::Range<u64>) {
    for lpn in lpns {
        let at = Sector(lpn * 8);
        layer.write(&mut Sink::untimed(), at, WriteData::Len(4096), Hints::NONE).unwrap();
    }
}

fn in_simulation(full: SlcFull) -> Ftl {
    let config = FtlConfig { recovery: FtlRecovery::None, ..cached(0, 0, full) };
    open(config, NoStore, NandFaults::default())
}

#[test]
fn writes_go_past_a_full_cache() {
    let mut layer = in_simulation(SlcFull::Direct);
    assert_eq!(layer.flash().cache_pages(), 24);
    write_pages(&mut layer, 0..24);
    assert_eq!((layer.flash().cached_pages(), layer.flash().stats().slc_bypassed), (24, 0));
    write_pages(&mut layer, 24..30);
    assert_eq!((layer.flash().cached_pages(), layer.flash().stats().slc_bypassed), (24, 6));
    assert_eq!(programs(&layer, Cause::Destage), 0);
    // Blocks of overwritten pages are erased without a move, and written again: the pages 0 to 7 fill
    // the first block of each unit.
    write_pages(&mut layer, 0..8);
    assert_eq!(programs(&layer, Cause::Destage), 0);
    write_pages(&mut layer, 30..38);
    assert_eq!((layer.flash().stats().slc_written, layer.flash().stats().slc_bypassed), (32, 14));
}

#[test]
fn writes_wait_until_a_block_of_a_full_cache_is_folded() {
    let mut layer = in_simulation(SlcFull::Fold);
    write_pages(&mut layer, 0..24);
    assert_eq!(programs(&layer, Cause::Destage), 0);
    // One write into each unit: a block of four pages is folded in each.
    write_pages(&mut layer, 24..26);
    assert_eq!((programs(&layer, Cause::Destage), layer.flash().stats().slc_forced), (8, 2));
    // Three more pages fit into each of the blocks.
    write_pages(&mut layer, 26..32);
    assert_eq!((programs(&layer, Cause::Destage), layer.flash().cached_pages()), (8, 24));
    assert_eq!(programs(&layer, Cause::Host), 32);
}

#[test]
fn idle_time_empties_the_cache() {
    let mut layer = in_simulation(SlcFull::Direct);
    write_pages(&mut layer, 0..26);
    let sink = &mut Sink::untimed();
    while let Progress::Busy(Tok::DONE) = layer.step(sink, 3).unwrap() {}
    assert_eq!((layer.flash().cached_pages(), programs(&layer, Cause::Destage)), (0, 24));
    write_pages(&mut layer, 26..50);
    assert_eq!(layer.flash().stats().slc_bypassed, 2);
    frit_core::Params::set(&mut layer, "slc_idle_fold", "false").unwrap();
    assert!(matches!(layer.step(sink, 3).unwrap(), Progress::Idle));
    layer.audit();
}
