//! One small test for the purpose of each policy and parameter.

use super::*;
use crate::hfsl::PageLocation;
use crate::hfsl::buffer::PcmBuffer;
use crate::hfsl::heat::{Heat, HeatPolicy};
use frit_core::{Cmd, Engine, Op, Sink, StackView, Tok, UnitId, UnitState};

/// Geometry with more than one chunk of the map, and with free space in PCM.
const WIDE: NandGeometry = NandGeometry { blocks_per_plane: 48, pages_per_block: 16, ..GEOMETRY };

fn wide(config: HfslConfig, chip_bytes: u64, faults: NandFaults) -> Layer {
    let mut hw = Hardware::new();
    let nand = Nand::new(nand_config(WIDE, faults), MemoryStore::new(64 << 20), &mut hw).unwrap();
    let pcm = Pcm::new(pcm_config(chip_bytes), MemoryStore::new(64 << 20), &mut hw).unwrap();
    Hfsl::new(config, nand, Some(pcm)).unwrap()
}

fn write(l: &mut Layer, at: u64, sectors: u64) {
    let data = vec![at as u8; sectors as usize * 512];
    l.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE).unwrap();
}

fn visible(l: &Layer) -> StackView {
    let mut v = StackView::default();
    BlockLayer::visible(l, &mut v);
    v
}

fn metric(l: &Layer, name: &str) -> u64 {
    visible(l).metric(name).unwrap() as u64
}

fn in_pcm(l: &Layer, lpn: u32) -> bool {
    matches!(l.entry(Lpn(lpn)).unwrap().place(), PageLocation::Pcm(_))
}

#[test]
fn a_write_of_exactly_ssw_is_small_unless_told_otherwise() {
    for (compare, ssw, sectors, small) in [
        ("le", "2048", 4, true),
        ("lt", "2048", 4, false),
        ("lt", "2048", 3, true),
        ("le", "512", 1, true),
        ("lt", "512", 1, false),
        ("le", "512", 2, false),
    ] {
        let mut l = wide(HfslConfig::default(), 16 << 10, NandFaults::default());
        l.set("SSW", ssw).unwrap();
        l.set("ssw_compare", compare).unwrap();
        write(&mut l, 0, sectors);
        assert_eq!(in_pcm(&l, 0), small, "{compare} {ssw} {sectors}");
    }
}

#[test]
fn the_size_that_counts_is_the_request_not_its_part_of_a_page() {
    let mut l = wide(HfslConfig::default(), 16 << 10, NandFaults::default());
    // 4 KiB from sector 2: half a page, a page and half a page, all of them parts of a large
    // request.
    write(&mut l, 2, 8);
    assert!((0..3).all(|p| !in_pcm(&l, p)));
    assert_eq!(metric(&l, "flash_updates"), 0, "nothing lay in NAND before");
    write(&mut l, 2, 8);
    assert_eq!(metric(&l, "flash_updates"), 2, "the two parts were merged");
}

#[test]
fn metadata_goes_to_pcm_whatever_its_size() {
    let mut l = wide(HfslConfig::default(), 16 << 10, NandFaults::default());
    l.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&[1; 16384]), Hints::METADATA).unwrap();
    assert!((0..8).all(|p| in_pcm(&l, p)));
}

#[test]
fn a_small_write_moves_a_page_out_of_nand() {
    let mut l = wide(HfslConfig::default(), 16 << 10, NandFaults::default());
    write(&mut l, 0, 64);
    assert!(!in_pcm(&l, 0));
    write(&mut l, 1, 1);
    assert!(in_pcm(&l, 0));
    assert_eq!(l.entry(Lpn(0)).unwrap().state(), 0b1111, "a page lies wholly in one medium");
    assert_eq!((metric(&l, "flash_updates"), metric(&l, "moved_to_pcm")), (1, 1));
    write(&mut l, 0, 64);
    assert!(!in_pcm(&l, 0), "a large write takes it back");
    assert_eq!(metric(&l, "moved_to_nand"), 1);
}

#[test]
fn a_small_first_write_takes_only_the_sub_pages_it_touches() {
    let mut l = wide(HfslConfig::default(), 16 << 10, NandFaults::default());
    write(&mut l, 1, 2);
    assert_eq!(l.entry(Lpn(0)).unwrap().state(), 0b0110);
}

#[test]
fn hot_pages_stay_in_pcm_when_it_runs_short() {
    let mut l = wide(HfslConfig::default(), 4 << 10, NandFaults::default());
    write(&mut l, 0, 4);
    write(&mut l, 0, 4);
    let mut next = 4;
    while metric(&l, "destaged") == 0 {
        write(&mut l, next, 4);
        next += 4;
    }
    assert!(in_pcm(&l, 0), "written twice: hot, though the least recently written");
    assert!(!in_pcm(&l, 1), "written once: cold");
}

/// The hot pages are the least recently written ones, and more than the cold pages that leave.
#[test]
fn no_hot_page_leaves_pcm_while_a_page_is_cold() {
    for buffer in PcmBuffer::VARIANTS {
        let config = HfslConfig { buffer: (*buffer).into(), ..HfslConfig::default() };
        let mut l = wide(config, 256 << 10, NandFaults::default());
        let hot = 600;
        (0..2 * hot).for_each(|i| write(&mut l, i % hot * 4, 4));
        let mut next = hot;
        while metric(&l, "destaged") < 40 {
            write(&mut l, next * 4, 4);
            next += 1;
        }
        let left = (0..hot as u32).filter(|&p| !in_pcm(&l, p)).count();
        assert_eq!(left, 0, "{buffer}: {left} hot pages left PCM, of {}", metric(&l, "destaged"));
        assert!((hot as u32..hot as u32 + 40).all(|p| !in_pcm(&l, p)), "{buffer}: oldest cold pages");
        l.audit();
    }
}

#[test]
fn a_cache_gives_up_neighbours_together() {
    for (run, left) in [(1, 1), (6, 6)] {
        let config = HfslConfig {
            fusion_method: crate::FusionMethod::Cache,
            destage_run: run,
            ..HfslConfig::default()
        };
        let mut l = wide(config, 4 << 10, NandFaults::default());
        let mut next = 0;
        while metric(&l, "destaged") == 0 {
            write(&mut l, next, 4);
            next += 4;
        }
        assert_eq!(metric(&l, "destaged"), left);
    }
}

#[test]
fn both_sends_small_to_storage_hot_to_the_cache_and_the_rest_to_nand() {
    let config = HfslConfig { fusion_method: crate::FusionMethod::Both, ..HfslConfig::default() };
    let mut l = wide(config, 16 << 10, NandFaults::default());
    write(&mut l, 0, 1);
    write(&mut l, 8, 8);
    assert_eq!((metric(&l, "pcm_level_pages"), metric(&l, "pcm_cache_pages")), (1, 0));
    assert_eq!(metric(&l, "nand_pages"), 2);
    write(&mut l, 8, 8);
    assert_eq!((metric(&l, "pcm_cache_pages"), metric(&l, "nand_pages")), (2, 0));
}

#[test]
fn pcm_pressure_over_files_costs_a_flush_for_many_writes() {
    let config = HfslConfig { map_persist: MapPersist::Each, flush_map: true, ..HfslConfig::default() };
    let mut l = wide(config, 128 << 10, NandFaults::default());
    let slots = u64::from(l.map.pcm.as_ref().unwrap().layout.slots);
    let pages = u64::from(l.pages);
    let (mut x, mut written) = (1u64, 0);
    // PCM is filled first; then each page takes its slots from those that a flush released.
    for i in 0..6 * slots / 4 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write(&mut l, (x >> 33) % pages * 4, 4);
        if i >= 2 * slots / 4 {
            written += 4;
        } else {
            l.stats.space_flushes = 0;
        }
    }
    let flushes = l.stats.space_flushes;
    assert!(flushes > 10, "{flushes} flushes of {slots} slots: no pressure");
    // An eighth of the slots is written between two flushes; a half of it at worst.
    assert!(flushes * slots / 16 <= written, "{flushes} flushes for {written} of {slots} slots");
    assert!(metric(&l, "space_flushes") >= flushes);
    l.audit();
}

#[test]
fn changing_the_method_drains_what_is_above_its_quota() {
    let config = HfslConfig { fusion_method: crate::FusionMethod::Cache, ..HfslConfig::default() };
    let mut l = wide(config, 16 << 10, NandFaults::default());
    (0..40).for_each(|p| write(&mut l, p * 4, 4));
    assert_eq!(metric(&l, "pcm_cache_pages"), 40);
    l.set("FUSION_METHOD", "same-level").unwrap();
    for _ in 0..100 {
        l.step(&mut Sink::untimed(), 4).unwrap();
    }
    assert_eq!((metric(&l, "pcm_cache_pages"), metric(&l, "nand_pages")), (0, 40));
    l.audit();
}

#[test]
fn writes_to_pcm_are_rounded_to_their_granularity() {
    for (gran, bytes) in [("128", 128), ("16", 16), ("512", 512)] {
        let mut l = wide(HfslConfig::default(), 16 << 10, NandFaults::default());
        l.set("ADDR_GRAN_PCM", gran).unwrap();
        write(&mut l, 0, 1);
        let before = visible(&l).counts();
        l.write_bytes(&mut Sink::untimed(), 4, WriteData::Bytes(&[9; 8]), Hints::NONE).unwrap();
        let after = visible(&l).counts().since(&before);
        assert_eq!(after.get(Op::PcmWrite, Cause::Host).bytes, bytes, "{gran}");
    }
}

#[test]
fn a_map_that_is_persisted_with_each_write_needs_no_halt() {
    let config = HfslConfig { map_persist: MapPersist::Each, ..HfslConfig::default() };
    let mut m = Model::new(wide(config, 8 << 10, NandFaults::default()));
    for i in 0..3_000u64 {
        let action = match i % 7 {
            0 => Action::Discard { at: i * 31 % SECTORS, sectors: 1 + i % 9 },
            _ => Action::Write { at: i * 7919 % (SECTORS - 9), sectors: 1 + i % 9, metadata: i % 5 == 0 },
        };
        m.act(&action).unwrap();
    }
    m.layer.boot(&mut Sink::untimed()).unwrap();
    m.layer.audit();
    m.check_all();
}

#[test]
fn halt_and_boot_keep_a_map_of_many_chunks() {
    let mut m = Model::new(wide(HfslConfig::default(), 64 << 10, NandFaults::default()));
    let pages = u64::from(m.layer.pages);
    assert!(pages > 2_000, "{pages}");
    for p in 0..pages {
        let data = m.fresh(2048);
        m.layer.write(&mut Sink::untimed(), Sector(p * 4), WriteData::Bytes(&data), Hints::NONE).unwrap();
        m.shadow[p as usize * 2048..][..2048].copy_from_slice(&data);
    }
    m.layer.halt(&mut Sink::untimed()).unwrap();
    m.layer.boot(&mut Sink::untimed()).unwrap();
    m.layer.audit();
    m.check_all();
}

#[test]
fn blocks_that_fail_are_retired_and_not_used_again() {
    let faults = NandFaults { program_fail: 0.002, erase_fail: 0.002, factory_bad: 0.0, seed: 3 };
    let config = HfslConfig {
        fusion_method: crate::FusionMethod::None,
        over_provisioning: 1.0,
        ..HfslConfig::default()
    };
    let mut l = wide(config, 16 << 10, faults);
    let places = u64::from(l.pages);
    for i in 0..20_000u64 {
        write(&mut l, i * 7919 % places * 4, 4);
        if metric(&l, "blocks_retired") >= 12 {
            break;
        }
    }
    assert!(metric(&l, "program_retries") > 0);
    let bad = (0..l.flash.nand().geometry().blocks()).filter(|&b| l.flash.blocks().state(b) == BlockUse::Bad);
    let bad: Vec<u32> = bad.collect();
    assert_eq!(bad.len() as u64, metric(&l, "blocks_retired"));
    assert!(bad.len() >= 4, "{bad:?}");
    assert!(bad.iter().all(|&b| l.flash.nand().is_bad(frit_core::BlockId(b))));
    l.audit();
}

#[test]
fn cleaning_keeps_ahead_of_writes() {
    let config =
        HfslConfig { fusion_method: crate::FusionMethod::None, heat: "off".into(), ..HfslConfig::default() };
    let mut l = wide(config, 16 << 10, NandFaults::default());
    l.precondition(Precondition::Fill).unwrap();
    let places = u64::from(l.pages);
    (0..20_000u64).for_each(|i| write(&mut l, i * 7919 % places * 4, 4));
    assert!(metric(&l, "gc_victims") > 1000);
    assert_eq!(metric(&l, "gc_forced"), 0, "no write waited for a whole block");
}

#[test]
fn idle_time_cleans_ahead_and_then_rests() {
    let config = HfslConfig {
        fusion_method: crate::FusionMethod::None,
        heat: "off".into(),
        gc_high_blocks: 6,
        ..HfslConfig::default()
    };
    let mut l = wide(config, 16 << 10, NandFaults::default());
    l.precondition(Precondition::Steady { seed: 1 }).unwrap();
    let before = metric(&l, "nand_free_blocks");
    let places = u64::from(l.pages);
    (0..500u64).for_each(|i| write(&mut l, i * 7919 % places * 4, 4));
    let steps = (0..10_000)
        .take_while(|_| l.step(&mut Sink::untimed(), 4).unwrap() != frit_core::Progress::Idle)
        .count();
    assert!(steps > 10 && steps < 10_000, "{steps}");
    assert!(metric(&l, "nand_free_blocks") > before, "pools are above the level that writes keep");
    let units = u64::from(l.flash.nand().geometry().units());
    assert!(metric(&l, "nand_free_blocks") >= 6 * units);
    l.audit();
}

/// Media in files hold emptied blocks back, so garbage collection starts with more free blocks than
/// configured.
#[test]
fn the_steady_state_begins_where_garbage_collection_starts() {
    for flush_map in [false, true] {
        let config = HfslConfig {
            map_persist: if flush_map { MapPersist::Each } else { MapPersist::Halt },
            flush_map,
            over_provisioning: 0.2,
            ..HfslConfig::default()
        };
        let mut l = wide(config, 16 << 10, NandFaults::default());
        l.precondition(Precondition::Steady { seed: 7 }).unwrap();
        l.audit();
        let units = u64::from(l.flash.nand().geometry().units());
        let low = l.flash.config().low_blocks as u64;
        assert_eq!(low > u64::from(l.config().gc_low_blocks), flush_map);
        assert_eq!(l.flash.free_blocks(), units * (low + 2), "flush_map = {flush_map}");
        assert_eq!(l.flash.valid_pages(), u64::from(l.pages));
    }
}

#[test]
fn the_steady_state_has_every_page_without_over_provisioning() {
    let config =
        HfslConfig { over_provisioning: 0.0, gc_low_blocks: 8, gc_high_blocks: 8, ..HfslConfig::default() };
    let mut l = wide(config, 16 << 10, NandFaults::default());
    l.precondition(Precondition::Steady { seed: 7 }).unwrap();
    l.audit();
    assert_eq!(l.flash.valid_pages(), u64::from(l.pages));
}

#[test]
fn static_leveling_wears_blocks_evenly_where_others_do_not() {
    let spread = |leveling: &str| {
        let config = HfslConfig {
            fusion_method: crate::FusionMethod::None,
            wear_leveling: leveling.into(),
            wear_threshold: 8,
            ..HfslConfig::default()
        };
        let mut l = wide(config, 16 << 10, NandFaults::default());
        l.precondition(Precondition::Fill).unwrap();
        // A sixteenth of the volume takes all writes.
        let hot = u64::from(l.pages) / 16;
        (0..60_000u64).for_each(|i| write(&mut l, i * 7919 % hot * 4, 4));
        let wear = visible(&l).media[0].wear.summary();
        (wear.max - wear.min, metric(&l, "wear_relocated"))
    };
    let (without, with) = (spread("none"), spread("static"));
    assert_eq!(without.1, 0);
    assert!(with.1 > 0);
    assert!(with.0 < without.0 / 2, "{with:?} {without:?}");
}

#[test]
fn cold_data_takes_the_most_worn_free_block() {
    use crate::flash::WearPolicy;
    let erases = |b: u32| [5, 1, 9, 1][b as usize];
    for name in ["dynamic", "static"] {
        let mut wear: WearLeveling = name.parse().unwrap();
        let pool = || std::collections::VecDeque::from([0, 1, 2, 3]);
        assert_eq!(wear.take(&mut pool(), true, &erases), Some(2), "{name}");
        assert_eq!(wear.take(&mut pool(), false, &erases), Some(1), "{name}");
    }
    let mut none: WearLeveling = "none".parse().unwrap();
    assert_eq!(none.take(&mut std::collections::VecDeque::from([3, 0]), true, &erases), Some(3));
}

#[test]
fn what_is_hot_outlives_the_end_of_a_window() {
    let mut heat: Heat = "bloom".parse().unwrap();
    heat.set_window(10);
    heat.record_write(Lpn(1), 0);
    heat.record_write(Lpn(1), 0);
    for i in 0..12 {
        heat.record_write(Lpn(100 + i), 0);
    }
    assert!(heat.is_hot(Lpn(1), 0), "written in the last window");
}

/// Engine in which the given units are busy.
struct Busy(Vec<UnitId>);

impl Engine for Busy {
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    fn unit(&self, unit: UnitId) -> UnitState {
        if self.0.contains(&unit) { UnitState::BusyUntil(Nanos(1)) } else { UnitState::Idle }
    }
    fn emit(&mut self, _: Cmd, _: Tok) -> Tok {
        Tok::DONE
    }
    fn join(&mut self, a: Tok, _: Tok) -> Tok {
        a
    }
}

#[test]
fn a_first_write_takes_an_idle_unit_and_a_rewrite_stays() {
    let mut l = layer(HfslConfig::default(), true, NandFaults::default());
    let unit = |l: &Layer| {
        let PageLocation::Nand(ppn) = l.entry(Lpn(4)).unwrap().place() else { panic!("in NAND") };
        let g = l.flash.nand().geometry();
        g.unit_of_block(g.block_of(ppn))
    };
    let home = l.flash.nand().unit_id(0);
    // The home of page 4 is unit 0 of 4. The request is above SSW, so it goes to NAND.
    let data = [1; 4096];
    l.write(&mut Sink::new(Busy(vec![home])), Sector(16), WriteData::Bytes(&data), Hints::NONE).unwrap();
    assert_eq!(unit(&l), 1);
    l.write(&mut Sink::new(Busy(vec![])), Sector(16), WriteData::Bytes(&data), Hints::NONE).unwrap();
    assert_eq!(unit(&l), 1, "a rewrite stays on its unit");
}

/// The steady state generated by `steady` equals the one reached by real overwriting.
#[test]
fn steady_is_what_overwriting_ends_in() {
    let geometry = NandGeometry { blocks_per_plane: 512, pages_per_block: 32, ..GEOMETRY };
    for gc in ["greedy", "fifo"] {
        let volume = |how| {
            let config = HfslConfig {
                fusion_method: crate::FusionMethod::None,
                heat: "off".into(),
                gc: gc.into(),
                over_provisioning: 0.25,
                ..HfslConfig::default()
            };
            let nand = Nand::new(nand_config(geometry, NandFaults::default()), NoStore, &mut Hardware::new());
            let mut l = Hfsl::new(config, nand.unwrap(), None).unwrap();
            l.precondition(how).unwrap();
            l
        };
        let mut state = 1u64;
        let mut overwrite = |l: &mut Hfsl, times: u64| {
            let before = l.flash.nand().devices().next().unwrap().counts().of(Op::NandProgram).commands;
            let writes = u64::from(l.pages) * times;
            for _ in 0..writes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let lpn = (state >> 33) % u64::from(l.pages);
                l.write(&mut Sink::untimed(), Sector(lpn * 4), WriteData::Len(2048), Hints::NONE).unwrap();
            }
            let programs =
                l.flash.nand().devices().next().unwrap().counts().of(Op::NandProgram).commands - before;
            programs as f64 / writes as f64
        };
        let shares = |l: &Hfsl| {
            let mut n = [0f64; 33];
            let sealed = |b: &u32| l.flash.blocks().state(*b) == BlockUse::Sealed;
            (0..l.flash.blocks().count())
                .filter(sealed)
                .for_each(|b| n[l.flash.blocks().valid(b) as usize] += 1.0);
            let all: f64 = n.iter().sum();
            n.map(|x| x / all)
        };
        let mut real = volume(Precondition::Fill);
        overwrite(&mut real, 8);
        let drawn = volume(Precondition::Steady { seed: 5 });
        let (a, b) = (shares(&real), shares(&drawn));
        let distance: f64 = a.iter().zip(b).map(|(x, y)| (x - y).abs()).sum::<f64>() / 2.0;
        assert!(distance < 0.12, "{gc}: {distance}\n{a:.3?}\n{b:.3?}");
        let mut drawn = drawn;
        let (wa, ours) = (overwrite(&mut real, 2), overwrite(&mut drawn, 2));
        assert!((ours / wa - 1.0).abs() < 0.03, "{gc}: {ours} {wa}");
    }
}
