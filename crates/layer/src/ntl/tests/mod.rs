//! Property tests of every mapping, log and protection against a model of the contents, and the
//! examples of the paper.

use super::*;
use crate::numbers::{Place, RecordSlot};
use crate::record::RecordAddr;
use frit_core::{
    BlockLayer, CheckScope, CrashKind, Durable, Hints, Lpn, Nanos, Precondition, Preconditioning, Quiesce,
    ReadTarget, Sector, Sink, StackView, WriteData,
};
use frit_media::{
    Hardware, LatencyCurve, MemoryStore, NoStore, Pcm, PcmConfig, PcmGeometry, PcmTiming, Store,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use strum::VariantNames;

mod halt;
mod rounds;

/// Four chips of 256 KiB with refresh units of 16 KiB, and the times of the paper's Table 2.
fn chips() -> PcmConfig {
    let us = Nanos::from_us;
    let curve = |t| LatencyCurve::new(vec![(4096, us(t))], 4096).unwrap();
    PcmConfig {
        name: "chips".into(),
        geometry: PcmGeometry {
            channels: 4,
            chips_per_channel: 1,
            groups: 1,
            chip_bytes: 256 << 10,
            write_unit: 512,
            line_bytes: 512,
            interleave_bytes: 64 << 10,
        },
        timing: PcmTiming {
            read: curve(50.0),
            write: curve(250.0),
            write_clean: Some(curve(200.0)),
            refresh: us(100_000.0),
            bus_ps_per_byte: 0,
            fence: Nanos::ZERO,
        },
        endurance: 1_000_000,
        refresh_bytes: Some(16 << 10),
        serial: 0,
    }
}

type Held = Ntl;

fn held(config: &NtlConfig) -> Held {
    let chips = chips();
    let store = MemoryStore::new(chips.geometry.store_bytes());
    Ntl::new(config.clone(), Pcm::new(chips, store, &mut Hardware::new()).unwrap()).unwrap()
}

fn counted(config: &NtlConfig) -> Ntl {
    Ntl::new(config.clone(), Pcm::new(chips(), NoStore, &mut Hardware::new()).unwrap()).unwrap()
}

fn layer<L: BlockLayer>(layer: &L) -> impl Fn(&str) -> u64 + use<L> {
    let mut view = StackView::default();
    layer.visible(&mut view);
    move |name| view.metric(name).unwrap_or_else(|| panic!("no metric {name}")) as u64
}

/// Returns all valid configurations.
fn variants() -> Vec<NtlConfig> {
    let mut all = Vec::new();
    for mapping in MappingKind::VARIANTS {
        for log in [LogKind::None, LogKind::Full, LogKind::Coarse, LogKind::Remap] {
            for protect in [Protect::None, Protect::Redo] {
                for (log_buffer, merge) in
                    [(LogBuffer::Dram, MergeUnit::All), (LogBuffer::None, MergeUnit::Row)]
                {
                    for page_bytes in [512, 4096] {
                        all.push(NtlConfig {
                            mapping: (*mapping).into(),
                            log,
                            protect,
                            log_buffer,
                            merge,
                            page_bytes,
                            block_pages: 16384 / page_bytes as u32,
                            log_share: 0.05,
                            ..NtlConfig::default()
                        });
                    }
                }
            }
        }
    }
    // A full log that large requests bypass.
    let full: Vec<NtlConfig> = all.iter().filter(|c| c.log == LogKind::Full).cloned().collect();
    all.extend(full.into_iter().map(|c| NtlConfig { log_request_pages: 2, ..c }));
    all.retain(|c| c.validate().is_ok());
    all
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u64, u64, u8),
    Read(u64, u64),
    Discard(u64, u64),
    Flush,
    Halt,
    CrashKind,
    Scrub,
}

fn step(sectors: u64) -> impl Strategy<Value = Step> {
    let place = prop_oneof![3 => 0..64u64, 1 => 0..sectors];
    let len = prop_oneof![2 => 1..9u64, 2 => Just(8u64), 1 => 1..80u64];
    let range = (place, len).prop_map(move |(at, n)| (at, n.min(sectors - at)));
    // Often whole pages, as file systems write them.
    let range = (range, any::<bool>()).prop_map(move |((at, n), whole)| {
        if whole { (at / 8 * 8, n.next_multiple_of(8).min(sectors - at / 8 * 8)) } else { (at, n) }
    });
    prop_oneof![
        30 => (range.clone(), any::<u8>()).prop_map(|((at, n), v)| Step::Write(at, n, v)),
        10 => range.clone().prop_map(|(at, n)| Step::Read(at, n)),
        4 => range.prop_map(|(at, n)| Step::Discard(at, n)),
        2 => Just(Step::Flush),
        1 => Just(Step::Halt),
        2 => Just(Step::CrashKind),
        1 => Just(Step::Scrub),
    ]
}

fn read_all(ntl: &mut Held, len: usize) -> Vec<u8> {
    let mut out = vec![0xEE; len];
    ntl.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut out), Hints::NONE).unwrap();
    out
}

fn content(at: u64, sectors: u64, value: u8) -> Vec<u8> {
    (0..sectors * 512).map(|i| value.wrapping_add((at + i / 512) as u8).wrapping_mul(31) ^ i as u8).collect()
}

fn play(config: &NtlConfig, steps: &[Step]) {
    let mut ntl = held(config);
    let bytes = BlockLayer::info(&ntl).sectors as usize * 512;
    let mut model = vec![0u8; bytes];
    let range = |at: u64, n: u64| at as usize * 512..(at + n) as usize * 512;
    if config.protect == Protect::Redo {
        ntl.format(&mut Sink::untimed()).unwrap();
    }
    let mut used = false;
    for &step in steps {
        match step {
            Step::Write(at, n, v) => {
                let data = content(at, n, v);
                ntl.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE).unwrap();
                model[range(at, n)].copy_from_slice(&data);
                used = true;
            }
            Step::Read(at, n) => {
                let mut out = vec![0xEE; n as usize * 512];
                ntl.read(&mut Sink::untimed(), Sector(at), ReadTarget::Bytes(&mut out), Hints::NONE).unwrap();
                assert_eq!(out, model[range(at, n)], "{config:?}");
            }
            Step::Discard(at, n) => {
                ntl.discard(&mut Sink::untimed(), Sector(at), n).unwrap();
                model[range(at, n)].fill(0);
                used = true;
            }
            Step::Flush => ntl.flush(&mut Sink::untimed()).unwrap(),
            Step::Halt if used => {
                ntl.halt(&mut Sink::untimed()).unwrap();
                ntl.boot(&mut Sink::untimed()).unwrap();
            }
            Step::CrashKind if config.protect == Protect::Redo => {
                // Pages that wait in DRAM would be lost without a flush.
                ntl.flush(&mut Sink::untimed()).unwrap();
                let found = ntl.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
                assert_eq!(found.pages, ntl.live.len());
            }
            Step::Scrub => {
                let scope = CheckScope { data: true, ..CheckScope::default() };
                ntl.check(&mut Sink::untimed(), scope, &mut |f| panic!("{config:?}: {f:?}")).unwrap();
            }
            Step::Halt | Step::CrashKind => {}
        }
        let logged = Lpn::first(ntl.pages()).filter(|&l| ntl.is_logged(l)).count() as u32;
        assert_eq!(logged, ntl.log.as_ref().map_or(0, log::LogTables::pages), "{config:?}");
    }
    assert!(read_all(&mut ntl, bytes) == model, "{config:?}");
}

fn play_many(config: &NtlConfig, cases: u32) {
    let sectors = BlockLayer::info(&held(config)).sectors;
    let mut runner = TestRunner::new(ProptestConfig::with_cases(cases));
    runner
        .run(&prop::collection::vec(step(sectors), 1..120), |steps| {
            play(config, &steps);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{config:?}: {e}"));
}

#[test]
fn all_of_them_give_back_what_was_written() {
    for config in variants() {
        play_many(&config, 24);
    }
}

#[test]
fn levelers_below_change_no_byte() {
    for leveler in ["start-gap", "security-refresh", "sfc"] {
        for (log, protect) in
            [(LogKind::None, Protect::None), (LogKind::Full, Protect::None), (LogKind::Full, Protect::Redo)]
        {
            let mut config = NtlConfig { log, protect, log_share: 0.05, ..NtlConfig::default() };
            config.wear.wear_leveling = leveler.into();
            config.wear.wear_stripe = 16384;
            (config.wear.wear_ranks, config.wear.wear_banks, config.wear.wear_cubes) = (1, 1, 2);
            config.wear.wear_interval = 4;
            play_many(&config, 12);
        }
    }
}

fn write_pages(ntl: &mut Ntl, lpn: u64, pages: u32)
where
    Ntl: BlockLayer,
{
    ntl.write(&mut Sink::untimed(), Sector(lpn * 8), WriteData::Len(pages * 4096), Hints::NONE).unwrap();
}

/// Section IV.A.1: "w 0 A0-3, 4" takes one write time under page-level mapping, four under
/// block-level.
#[test]
fn four_pages_take_one_round_on_four_chips_and_four_in_one_block() {
    for (mapping, rounds) in [("static", 1), ("dynamic", 1), ("block", 4)] {
        let rounds_of = RoundScope::Request;
        let config =
            NtlConfig { mapping: mapping.into(), block_pages: 8, rounds: rounds_of, ..NtlConfig::default() };
        let mut ntl = counted(&config);
        write_pages(&mut ntl, 0, 4);
        let see = layer(&ntl);
        assert_eq!((see("parallel_clean_writes"), see("parallel_dirty_writes")), (rounds, 0), "{mapping}");
        write_pages(&mut ntl, 0, 4);
        let see = layer(&ntl);
        assert_eq!(
            (see("parallel_clean_writes"), see("parallel_dirty_writes")),
            (rounds, rounds),
            "{mapping}"
        );
    }
}

/// Section IV.C.1: two valid pages of chip 0 and one of each other chip are merged in two dirty
/// writes.
#[test]
fn a_merge_takes_the_time_of_equation_1() {
    let config = NtlConfig { log: LogKind::Full, log_share: 0.0001, ..NtlConfig::default() };
    let mut ntl = counted(&config);
    let capacity = layer(&ntl)("log_capacity");
    assert_eq!(capacity, 2 * 4 * 4, "two refresh units of four pages on each of four chips");
    for lpn in [0, 1, 2, 3, 4] {
        write_pages(&mut ntl, lpn, 1);
    }
    // Five pages are valid in the log: 0 and 4 of chip 0, and one of each other chip. The buffer
    // takes four at a time.
    for lpn in [0, 1, 2, 3].iter().cycle().take(capacity as usize - 4).chain(&[4, 1, 2, 3]) {
        write_pages(&mut ntl, *lpn, 1);
    }
    let before = layer(&ntl);
    assert_eq!((before("merges"), before("logged_pages")), (0, 5));
    for lpn in 0..4 {
        write_pages(&mut ntl, lpn, 1);
    }
    let see = layer(&ntl);
    assert_eq!((see("merges"), see("merged_pages"), see("refreshes")), (1, 5, 2));
    assert_eq!(see("parallel_dirty_writes"), 2, "M of Equation 1");
    let mut view = StackView::default();
    BlockLayer::visible(&ntl, &mut view);
    let time = view.metric("merge_time").unwrap();
    assert!((time - (2.0 * 250e-6 + 2.0 * 0.1)).abs() < 1e-9, "{time}");
}

#[test]
fn the_buffer_collects_updates_and_a_flush_empties_it() {
    let config = NtlConfig { log: LogKind::Full, log_share: 0.05, ..NtlConfig::default() };
    let mut ntl = counted(&config);
    write_pages(&mut ntl, 0, 8);
    for lpn in [0, 5, 0] {
        write_pages(&mut ntl, lpn, 1);
    }
    let see = layer(&ntl);
    assert_eq!((see("buffer_hits"), see("buffer_flushes"), see("parallel_clean_writes")), (1, 0, 2));
    BlockLayer::flush(&mut ntl, &mut Sink::untimed()).unwrap();
    let see = layer(&ntl);
    assert_eq!((see("buffer_flushes"), see("parallel_clean_writes"), see("log_writes")), (1, 3, 2));
    assert_eq!(see("parallel_dirty_writes"), 0);
}

#[test]
fn large_requests_pass_a_log_of_small_ones() {
    let config =
        NtlConfig { log: LogKind::Full, log_share: 0.05, log_request_pages: 3, ..NtlConfig::default() };
    let mut ntl = counted(&config);
    write_pages(&mut ntl, 0, 8);
    for lpn in [0, 1, 2, 3, 4] {
        write_pages(&mut ntl, lpn, 1);
    }
    let see = layer(&ntl);
    assert_eq!((see("log_writes"), see("logged_pages")), (4, 4));
    write_pages(&mut ntl, 0, 8);
    let see = layer(&ntl);
    assert_eq!((see("logged_pages"), see("parallel_dirty_writes")), (0, 2), "in place, and newer");
    BlockLayer::flush(&mut ntl, &mut Sink::untimed()).unwrap();
    assert_eq!(layer(&ntl)("log_writes"), 4, "page 4 waits no more");
}

#[test]
fn hot_pages_alone_are_remapped() {
    let config = NtlConfig { log: LogKind::Remap, log_share: 0.05, ..NtlConfig::default() };
    let mut ntl = counted(&config);
    write_pages(&mut ntl, 0, 40);
    for lpn in [0, 4, 8, 0, 0, 0] {
        write_pages(&mut ntl, lpn, 1);
    }
    let see = layer(&ntl);
    assert_eq!((see("log_writes"), see("logged_pages")), (3, 1), "page 0, from its second update on");
    assert_eq!(see("refreshes"), 0);
    let slots = see("log_capacity");
    for _ in 0..slots {
        write_pages(&mut ntl, 0, 1);
    }
    let see = layer(&ntl);
    assert!(see("merged_pages") <= 1 && see("merges") >= 1, "what is overwritten need not come home");
}

#[test]
fn what_is_damaged_is_told_and_written_anew() {
    let config = NtlConfig { protect: Protect::Redo, ..NtlConfig::default() };
    let mut ntl = held(&config);
    ntl.format(&mut Sink::untimed()).unwrap();
    let data = content(0, 8, 7);
    ntl.write(&mut Sink::untimed(), Sector(80), WriteData::Bytes(&data), Hints::NONE).unwrap();
    ntl.halt(&mut Sink::untimed()).unwrap();
    let at = ntl.space.layout.data(Place(10)) + 100;
    let copy = ntl.space.layout.record(RecordAddr { slot: RecordSlot(10), copy: 1 }) + 9;
    for at in [at, copy] {
        let mut b = [0];
        ntl.space.pcm.store_mut().read(at, &mut b).unwrap();
        ntl.space.pcm.store_mut().write(at, &[b[0] ^ 1]).unwrap();
    }
    ntl.boot(&mut Sink::untimed()).unwrap();
    let mut out = vec![0; 4096];
    let e = ntl
        .read(&mut Sink::untimed(), Sector(80), ReadTarget::Bytes(&mut out), Hints::NONE)
        .unwrap_err()
        .to_string();
    assert!(e.contains("page 10 of the volume: the data does not match its checksum"), "{e}");
    let mut kinds = Vec::new();
    let scope = CheckScope { data: true, repair: true, older: true };
    ntl.check(&mut Sink::untimed(), scope, &mut |f| kinds.push((f.kind, f.repaired))).unwrap();
    assert_eq!(kinds, [("bad-data", false)], "the copy of the record was mended by the recovery");
    // A part of it cannot be written, because the rest is damaged. All of it can be overwritten.
    assert!(
        ntl.write(&mut Sink::untimed(), Sector(81), WriteData::Bytes(&data[..512]), Hints::NONE).is_err()
    );
    ntl.write(&mut Sink::untimed(), Sector(80), WriteData::Bytes(&data), Hints::NONE).unwrap();
    ntl.read(&mut Sink::untimed(), Sector(80), ReadTarget::Bytes(&mut out), Hints::NONE).unwrap();
    assert_eq!(out, data);
}

/// A record that lost a word in a power loss is invalid. Together with the same word of the next
/// record of the page it would be valid again, although its page is not.
#[test]
fn what_a_stop_left_of_a_record_goes() {
    let mut ntl = held(&NtlConfig { protect: Protect::Redo, ..NtlConfig::default() });
    ntl.format(&mut Sink::untimed()).unwrap();
    ntl.write(&mut Sink::untimed(), Sector(80), WriteData::Bytes(&content(0, 8, 7)), Hints::NONE).unwrap();
    let records: Vec<u64> = ntl.space.layout.places(Place(10)).map(|p| ntl.space.layout.record(p)).collect();
    for &at in &records {
        ntl.space.pcm.store_mut().write(at, &[0; 8]).unwrap();
    }
    let data = ntl.space.layout.data(Place(10));
    ntl.space.pcm.store_mut().write(data, &[1; 8]).unwrap();
    ntl.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    for at in records {
        let mut left = [1; 32];
        ntl.space.pcm.peek(at, &mut left).unwrap();
        assert_eq!(left, [0; 32]);
    }
    assert!(!ntl.live.has(Lpn(10)) && !ntl.used.has(Lpn(10)));
}

/// A discard whose note was lost. Only a check while the layer is open can detect it.
#[test]
fn a_discard_that_was_not_noted_is_found_and_mended() {
    let mut ntl = held(&NtlConfig { protect: Protect::Redo, ..NtlConfig::default() });
    ntl.format(&mut Sink::untimed()).unwrap();
    ntl.write(&mut Sink::untimed(), Sector(80), WriteData::Bytes(&content(0, 8, 7)), Hints::NONE).unwrap();
    let mut before = [[0; 32]; 2];
    for (copy, bytes) in ntl.space.layout.places(Place(10)).zip(&mut before) {
        ntl.space.pcm.peek(ntl.space.layout.record(copy), bytes).unwrap();
    }
    ntl.discard(&mut Sink::untimed(), Sector(80), 8).unwrap();
    for (copy, bytes) in ntl.space.layout.places(Place(10)).zip(&before) {
        let at = ntl.space.layout.record(copy);
        ntl.space.pcm.store_mut().write(at, bytes).unwrap();
    }
    let mut found = |repair| {
        let mut kinds = Vec::new();
        let scope = CheckScope { repair, ..CheckScope::default() };
        ntl.check(&mut Sink::untimed(), scope, &mut |f| kinds.push((f.kind, f.lpn, f.repaired))).unwrap();
        kinds
    };
    assert_eq!(found(true), [("stale-entry", Some(10), true)]);
    assert_eq!(found(false), []);
}

#[test]
fn a_filled_volume_has_updates_only_and_lasts() {
    for config in variants().into_iter().filter(|c| c.page_bytes == 4096) {
        let mut ntl = held(&config);
        ntl.precondition(Precondition::Fill).unwrap();
        assert!(ntl.precondition(Precondition::Fill).is_err());
        let data = content(0, 8, 9);
        ntl.write(&mut Sink::untimed(), Sector(16), WriteData::Bytes(&data), Hints::NONE).unwrap();
        assert_eq!(layer(&ntl)("first_writes"), 0);
        ntl.halt(&mut Sink::untimed()).unwrap();
        ntl.boot(&mut Sink::untimed()).unwrap();
        assert_eq!(ntl.live.len(), u64::from(ntl.pages()), "{config:?}");
        let all = read_all(&mut ntl, 16384);
        assert_eq!((&all[8192..12288], &all[..8192]), (&data[..], &[0; 8192][..]), "{config:?}");
    }
}

#[test]
fn an_unprotected_layer_is_no_volume_and_does_not_survive_a_stop() {
    let mut ntl = held(&NtlConfig::default());
    assert!(ntl.format(&mut Sink::untimed()).unwrap_err().to_string().contains("needs redo"));
    ntl.write(&mut Sink::untimed(), Sector(0), WriteData::Bytes(&[1; 4096]), Hints::NONE).unwrap();
    let e = ntl.recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err().to_string();
    assert!(e.contains("use redo"), "{e}");
}
