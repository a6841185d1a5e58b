//! The dynamic write cache with one bit a cell: bytes against the shadow model, sizes by hand.

use super::slc::{
    CACHED, keeps_bytes_with_faults, keeps_mapping_units, keeps_pages, programs, run_cached, write_pages,
};
use super::*;
use crate::flash::SlcFull;
use crate::ftl::SlcMode;
use frit_core::{Cause, Op, Progress, Sink, Tok};

/// A cache of up to ten blocks of each unit.
fn dynamic(mapping_unit: u64, merge_buffer: u32, slc_full: SlcFull) -> FtlConfig {
    let slc_mode = SlcMode::Dynamic;
    FtlConfig { slc_cache: 10.0 / 18.0, slc_full, slc_mode, ..config(mapping_unit, merge_buffer) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_dynamic_cache_keeps_every_byte(actions in actions(1200, 60, 200)) {
        keeps_pages(dynamic, &actions);
    }

    #[test]
    fn a_dynamic_cache_of_mapping_units_keeps_every_byte(actions in actions(1200, 60, 200)) {
        keeps_mapping_units(dynamic, SlcFull::Direct, &actions);
        let paced = FtlConfig { gc_pacing: "token".into(), ..dynamic(1024, 1, SlcFull::Direct) };
        run_cached(paced, &actions, NandFaults::default());
    }

    #[test]
    fn failing_programs_and_erases_of_a_dynamic_cache_lose_nothing(
        actions in actions(1200, 60, 200), seed in any::<u64>()
    ) {
        keeps_bytes_with_faults(dynamic, &actions, seed);
    }
}

#[test]
fn random_overwriting_through_a_dynamic_cache_for_long() {
    for config in
        [dynamic(0, 0, SlcFull::Fold), dynamic(1024, 2, SlcFull::Fold), dynamic(1024, 2, SlcFull::Direct)]
    {
        let mut layer = on_geometry(CACHED, config, MemoryStore::new(8 << 20), NandFaults::default());
        let (pages, page) = (u64::from(layer.pages), layer.page_bytes as usize);
        let mut versions = vec![0u8; pages as usize];
        let mut state = 1u64;
        for n in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // The first third of the volume, then all of it, then the first third again.
            let span = if (5_000..12_000).contains(&n) { pages } else { pages / 3 };
            let lpn = (state >> 33) % span;
            if n == 12_000 {
                let sink = &mut Sink::untimed();
                let (at, rest) = (pages / 3 * page as u64 / 512, (pages - pages / 3) * page as u64 / 512);
                layer.discard(sink, Sector(at), rest).unwrap();
                versions[(pages / 3) as usize..].fill(0);
                while let Progress::Busy(Tok::DONE) = layer.step(sink, 8).unwrap() {}
            }
            versions[lpn as usize] = n as u8;
            write(&mut layer, lpn * page as u64 / 512, &vec![n as u8; page]);
            if n % 64 == 0 {
                layer.step(&mut Sink::untimed(), 2).unwrap();
            }
        }
        layer.audit();
        let stats = layer.flash().stats();
        assert!(
            stats.slc_folds > 40 && stats.slc_written > 2_000 && stats.slc_mode_changes > 10,
            "{stats:?}"
        );
        layer.flush(&mut Sink::untimed()).unwrap();
        let (mut layer, recovery) = reopen_on(CACHED, layer, NandFaults::default());
        assert_eq!(recovery.losses(), 0);
        layer.audit();
        for (lpn, version) in versions.iter().enumerate() {
            let out = read(&mut layer, (lpn * page / 512) as u64, page as u64 / 512).unwrap();
            assert!(out.iter().all(|b| b == version), "page {lpn}");
        }
    }
}

/// Two units of 18 blocks of 12 pages, with a volume of so many blocks in each.
fn in_simulation(slc_full: SlcFull, blocks: u64) -> Ftl {
    let config = FtlConfig {
        recovery: FtlRecovery::None,
        slc_idle_fold: false,
        capacity: (2 * blocks * 12) << 12,
        ..dynamic(0, 0, slc_full)
    };
    on_geometry(CACHED, config, NoStore, NandFaults::default())
}

fn erases(layer: &Ftl, cause: Cause) -> u64 {
    layer.flash().nand().devices().map(|d| d.counts().get(Op::NandErase, cause).commands).sum()
}

#[test]
fn the_cache_has_the_blocks_that_the_volume_leaves_free() {
    let mut layer = in_simulation(SlcFull::Direct, 8);
    // 8 blocks of each unit are free, with 4 pages each.
    assert_eq!(layer.flash().cache_pages(), 2 * 8 * 4);
    write_pages(&mut layer, 0..64);
    assert_eq!((layer.flash().cached_pages(), layer.flash().stats().slc_bypassed), (64, 0));
    // Each of these blocks was erased to change its mode.
    assert_eq!((erases(&layer, Cause::Destage), layer.flash().stats().slc_mode_changes), (16, 16));
    // 24 more pages past the cache take a block of each unit, so the cache may have one less.
    write_pages(&mut layer, 64..88);
    assert_eq!((layer.flash().stats().slc_bypassed, layer.flash().cache_pages()), (24, 2 * 7 * 4));
}

#[test]
fn a_full_volume_has_no_cache() {
    let mut layer = in_simulation(SlcFull::Direct, 8);
    layer.precondition(Precondition::Fill).unwrap();
    assert_eq!(layer.flash().cache_pages(), 0);
    write_pages(&mut layer, 0..40);
    assert_eq!((layer.flash().stats().slc_written, layer.flash().stats().slc_bypassed), (0, 40));
    // Half of it is discarded.
    layer.discard(&mut Sink::untimed(), Sector(0), 96 * 8).unwrap();
    assert_eq!(layer.flash().cache_pages(), 2 * 4 * 4);
}

#[test]
fn the_cache_gives_its_blocks_back_as_the_volume_is_filled() {
    for full in [SlcFull::Direct, SlcFull::Fold] {
        // All pages do not fit beside ten blocks with one bit a cell.
        let mut layer = in_simulation(full, 11);
        write_pages(&mut layer, 0..264);
        layer.audit();
        let stats = layer.flash().stats();
        assert!(stats.slc_folds > 0 && stats.slc_folded > 0, "{stats:?}");
        assert_eq!(layer.flash().valid_pages(), 264);
        assert!(programs(&layer, Cause::Destage) > 0);
        // Ten blocks of each unit were full.
        assert!(layer.flash().cached_pages() < 2 * 10 * 4);
        write_pages(&mut layer, 0..264);
        write_pages(&mut layer, 0..264);
        layer.audit();
        assert!(layer.flash().cached_pages() <= 2 * 4, "{}", layer.flash().cached_pages());
    }
}

#[test]
fn uses_with_one_bit_a_cell_are_counted_apart() {
    let mut layer = in_simulation(SlcFull::Fold, 8);
    for _ in 0..20 {
        write_pages(&mut layer, 0..64);
    }
    let view = layer.flash().nand().views().next().unwrap();
    let one_bit = view.wear.one_bit.unwrap();
    let (all, of_cache) = (view.wear.cycles.iter().sum::<u32>(), one_bit.cycles.iter().sum::<u32>());
    let folds = layer.flash().stats().slc_folds as u32;
    assert!(folds > 100 && of_cache >= folds && of_cache < all, "{of_cache} of {all}, {folds} folds");
    assert!(one_bit.cycles.iter().zip(&view.wear.cycles).all(|(one, all)| one <= all));
}
