//! HFSL over each wear leveler of PCM: contents, recovery, and the header before a recovery.

use super::*;
use crate::hfsl::header::formatted_sizes;
use frit_core::{Sink, StackView};
use frit_wear::{LevelerKind, PcmWearKeys};
use strum::IntoEnumIterator;

/// Bytes of a chip: leveled PCM has registers and empty stripes beside the data.
const CHIP: u64 = 8192;

/// All levelers, with few and small stripes and frequent moves.
fn levelers() -> impl Iterator<Item = PcmWearKeys> {
    LevelerKind::iter().map(|kind| PcmWearKeys {
        wear_leveling: <&str>::from(kind).into(),
        wear_stripe: 1024,
        wear_interval: 1,
        wear_ranks: 1,
        wear_banks: 2,
        wear_cubes: 2,
        wear_region: 8,
        ..PcmWearKeys::default()
    })
}

fn config(pcm_wear: PcmWearKeys, map_persist: MapPersist, flush_map: bool) -> HfslConfig {
    HfslConfig {
        pcm_wear,
        map_persist,
        flush_map,
        over_provisioning: 0.1,
        heat_window: 40,
        ..HfslConfig::default()
    }
}

fn over(config: HfslConfig, nand: impl Into<AnyStore>, pcm: impl Into<AnyStore>) -> Result<Hfsl> {
    let mut hw = Hardware::new();
    let nand = Nand::new(nand_config(GEOMETRY, NandFaults::default()), nand, &mut hw).unwrap();
    let pcm = Pcm::new(pcm_config(CHIP), pcm, &mut hw).unwrap();
    Hfsl::new(config, nand, Some(pcm))
}

fn leveled(config: HfslConfig) -> Layer {
    over(config, MemoryStore::new(64 << 20), MemoryStore::new(64 << 20)).unwrap()
}

/// Builds a layer over the media of another one, as after a restart of the process.
fn reopened(layer: &mut Layer, config: HfslConfig) -> Result<Layer> {
    let take = |store: &mut AnyStore| std::mem::replace(store, MemoryStore::new(0).into());
    let nand = take(layer.flash.nand_mut().devices_mut().next().unwrap().store_mut());
    over(config, nand, take(layer.map.pcm.as_mut().unwrap().medium.store_mut()))
}

fn moves(layer: &Layer) -> u64 {
    layer.map.pcm.as_ref().unwrap().medium.moves()
}

/// A volume that was formatted, and written until stripes moved often.
fn used(config: &HfslConfig) -> Model {
    let mut m = Model::new(leveled(config.clone()));
    m.layer.format(&mut Sink::untimed()).unwrap();
    for i in 0..1_500 {
        let at = i * 7919 % (SECTORS - 8);
        m.act(&Action::Write { at, sectors: 1 + i % 4, metadata: i % 3 == 0 }).unwrap();
    }
    m
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn levelers_below_change_no_byte(
        actions in actions(),
        each: bool,
        flush_map: bool,
        redo_lines in proptest::sample::select(vec![1u32, 2, 64]),
    ) {
        for keys in levelers() {
            let persist = if each { MapPersist::Each } else { MapPersist::Halt };
            let config = HfslConfig { redo_lines, ..config(keys, persist, each && flush_map) };
            Model::new(leveled(config)).run(&actions);
        }
    }
}

/// The number of pages in the header is read before the leveler is recovered, so it is found
/// wherever moves have put the header.
#[test]
fn a_volume_is_opened_again_wherever_its_header_lies() {
    for keys in levelers() {
        for flush_map in [false, true] {
            let config = config(keys.clone(), MapPersist::Each, flush_map);
            let mut m = used(&config);
            assert_eq!(moves(&m.layer) > 100, config.levels_pcm(), "{keys:?}");
            let mut away = 0;
            for round in 0..40 {
                let pages = m.layer.pages;
                m.layer = reopened(&mut m.layer, config.clone()).unwrap();
                let medium = &mut m.layer.map.pcm.as_mut().unwrap().medium;
                assert_eq!(
                    formatted_sizes(medium).unwrap().map(|f| f.pages),
                    Some(pages),
                    "{keys:?}, round {round}"
                );
                let mut first = [0; 8];
                medium.pcm().peek(0, &mut first).unwrap();
                away += u32::from(&first != b"fritHFSL");
                assert_eq!(m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap().lost, []);
                // Enough small writes for moves in most regions.
                for i in 0..60 {
                    let at = (round * 60 + i) * 7919 % (SECTORS - 8);
                    m.act(&Action::Write { at, sectors: 1 + i % 4, metadata: i % 3 == 0 }).unwrap();
                }
                m.layer.audit();
            }
            assert_eq!(away > 10, config.levels_pcm(), "{keys:?}: {away} times at another place");
            m.check_all();
        }
    }
}

#[test]
fn another_leveler_than_that_of_the_volume_is_refused() {
    let keys = |kind: &str| levelers().find(|k| k.wear_leveling == kind).unwrap();
    let refusal = |was: PcmWearKeys, is: PcmWearKeys| {
        let mut m = used(&config(was, MapPersist::Each, false));
        let mut other = reopened(&mut m.layer, config(is, MapPersist::Each, false)).unwrap();
        other.recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err().to_string()
    };
    let other = "made for another leveler, seed, stripe size, division or PCM";
    let e = refusal(keys("start-gap"), keys("sfc"));
    // Levelers whose registers begin at another place find no header there.
    assert!(e.contains(other) || e.contains("not the header of wear-leveling registers"), "{e}");
    let seed = PcmWearKeys { wear_seed: 2, ..keys("security-refresh") };
    let e = refusal(keys("security-refresh"), seed);
    assert!(e.contains(other), "{e}");
    let e = refusal(keys("start-gap"), keys("none"));
    assert!(e.contains("of HFSL") || e.contains("of an HFSL"), "{e}");
    let e = refusal(keys("none"), keys("start-gap"));
    assert!(e.contains("wear-leveling registers") || e.contains("no wear leveling was formatted"), "{e}");
}

#[test]
fn a_leveler_that_does_not_fit_is_refused_by_key() {
    let refused = |keys: PcmWearKeys| {
        let store = || MemoryStore::new(64 << 20);
        over(config(keys, MapPersist::Halt, false), store(), store()).unwrap_err().to_string()
    };
    let start_gap = || levelers().find(|k| k.wear_leveling == "start-gap").unwrap();
    let e = refused(PcmWearKeys { wear_stripe: 32 << 10, ..start_gap() });
    assert!(e.starts_with("pcm_wear_stripe = 32768"), "{e}");
    let e = refused(PcmWearKeys { wear_banks: 0, ..start_gap() });
    assert!(e.starts_with("pcm_wear_banks = 0"), "{e}");
    let e = refused(PcmWearKeys { wear_leveling: "best".into(), ..start_gap() });
    assert!(e.starts_with("pcm_wear_leveling = best"), "{e}");
    let mut hw = Hardware::new();
    let nand = Nand::new(nand_config(GEOMETRY, NandFaults::default()), NoStore, &mut hw).unwrap();
    let config = HfslConfig {
        fusion_method: crate::FusionMethod::None,
        pcm_wear: start_gap(),
        ..HfslConfig::default()
    };
    let e = Hfsl::new(config, nand, None).unwrap_err().to_string();
    assert!(e.starts_with("pcm_wear_leveling = start-gap") && e.contains("needs a PCM"), "{e}");
}

/// Requests with a length only and requests with bytes give the same commands, those of the moves
/// included. Only a leveler has metrics of wear leveling.
#[test]
fn moves_count_alike_with_and_without_bytes() {
    for keys in levelers() {
        let config = config(keys.clone(), MapPersist::Halt, false);
        let mut lengths = over(config.clone(), NoStore, NoStore).unwrap();
        let mut bytes = leveled(config.clone());
        for i in 0..3_000u64 {
            let (at, sectors) = (i * 7919 % (SECTORS - 16), 1 + i % 5);
            let data = vec![i as u8; sectors as usize * 512];
            lengths
                .write(&mut Sink::untimed(), Sector(at), WriteData::Len(data.len() as u32), Hints::NONE)
                .unwrap();
            bytes.write(&mut Sink::untimed(), Sector(at), WriteData::Bytes(&data), Hints::NONE).unwrap();
        }
        let (mut a, mut b) = (StackView::default(), StackView::default());
        BlockLayer::visible(&lengths, &mut a);
        BlockLayer::visible(&bytes, &mut b);
        assert_eq!(a.counts(), b.counts(), "{keys:?}");
        let metric = a.layers[0].metrics.iter().find(|m| m.name == "wear_moves").map(|m| m.value);
        assert_eq!(metric.is_some_and(|moves| moves > 100.0), config.levels_pcm(), "{keys:?}: {metric:?}");
        assert_eq!(metric.is_none(), !config.levels_pcm());
    }
}
