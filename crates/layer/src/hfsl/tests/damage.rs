//! Damage found by recovery and by checks: each case is reported, and repaired where a good version
//! exists.

use super::*;
use frit_core::Finding;

fn volume() -> Model {
    let config =
        HfslConfig { map_persist: MapPersist::Each, over_provisioning: 0.1, ..HfslConfig::default() };
    let mut m = Model::new(layer(config, true, NandFaults::default()));
    for at in (0..SECTORS - 4).step_by(4) {
        m.act(&Action::Write { at, sectors: 4, metadata: at % 28 == 0 }).unwrap();
    }
    m
}

fn findings(m: &mut Model, repair: bool) -> Vec<Finding> {
    check(m, CheckScope { data: true, repair, older: false })
}

fn check(m: &mut Model, scope: CheckScope) -> Vec<Finding> {
    let mut all = Vec::new();
    m.layer.check(&mut Sink::untimed(), scope, &mut |f| all.push(f)).unwrap();
    all
}

fn entry_at(m: &Model, lpn: u32) -> u64 {
    m.layer.map.pcm.as_ref().unwrap().layout.map_at + 8 * u64::from(lpn)
}

fn pcm_bytes(m: &mut Model, at: u64, into: &mut [u8], write: bool) {
    let store = m.layer.map.pcm.as_mut().unwrap().medium.store_mut();
    if write { store.write(at, into).unwrap() } else { store.read(at, into).unwrap() }
}

#[test]
fn a_flipped_bit_in_an_entry_loses_one_page_and_says_which() {
    let mut m = volume();
    let at = entry_at(&m, 9);
    for bit in 0..64 {
        let mut b = [0; 8];
        pcm_bytes(&mut m, at, &mut b, false);
        b[bit / 8] ^= 1 << (bit % 8);
        pcm_bytes(&mut m, at, &mut b, true);
        let found = m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
        assert_eq!(found.lost.iter().map(|l| l.lpn).collect::<Vec<_>>(), [9], "bit {bit}");
        let mut out = [0; 2048];
        let e = m
            .layer
            .read(&mut Sink::untimed(), Sector(36), ReadTarget::Bytes(&mut out), Hints::NONE)
            .unwrap_err();
        assert!(e.to_string().contains("page 9 is lost"), "{e}");
        m.layer.read(&mut Sink::untimed(), Sector(40), ReadTarget::Bytes(&mut out), Hints::NONE).unwrap();
        b[bit / 8] ^= 1 << (bit % 8);
        pcm_bytes(&mut m, at, &mut b, true);
    }
    assert_eq!(m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap().lost, []);
    m.check_all();
}

#[test]
fn a_lost_page_is_found_again_or_written_anew() {
    let mut m = volume();
    let at = entry_at(&m, 9);
    pcm_bytes(&mut m, at, &mut [0xFF; 8], true);
    m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    let kinds: Vec<_> = findings(&mut m, false).iter().map(|f| (f.kind, f.lpn)).collect();
    assert_eq!(kinds, [("lost", Some(9))]);
    // A lost page is not a hole: a copy by extents meets the error.
    let mut places = Vec::new();
    let each = &mut |e: frit_core::Extent| places.push((e.sectors, e.place.is_some()));
    Durable::extents(&m.layer, Sector(32), 12, each).unwrap();
    assert!(places.iter().all(|p| p.1), "{places:?}");
    // The entry is lost, so the page found may be older: mapping it requires `older`.
    let left = findings(&mut m, true);
    assert!(left.len() == 1 && !left[0].repaired && left[0].what.contains("--repair --older"), "{left:?}");
    let mended = check(&mut m, CheckScope { data: true, repair: true, older: true });
    assert!(mended.len() == 1 && mended[0].repaired && mended[0].what.contains("may be older"), "{mended:?}");
    assert_eq!(findings(&mut m, false).len(), 0);
    m.layer.audit();
    m.check_all();

    pcm_bytes(&mut m, at, &mut [0xFF; 8], true);
    m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    // A partial write of a lost page fails; a full write succeeds.
    let part = Action::Write { at: 37, sectors: 1, metadata: false };
    assert!(matches!(m.act(&part), Err(Error::Corrupt { .. })));
    m.act(&Action::Write { at: 36, sectors: 4, metadata: false }).unwrap();
    m.check_all();
}

#[test]
fn a_lost_map_write_is_found_by_a_check_and_mended() {
    for (lpn, metadata) in [(9, false), (7, true)] {
        let mut m = volume();
        // Pages from before the last crash are not judged, so start with a clean boot.
        m.layer.halt(&mut Sink::untimed()).unwrap();
        m.layer.boot(&mut Sink::untimed()).unwrap();
        let at = entry_at(&m, lpn);
        let mut old = [0; 8];
        pcm_bytes(&mut m, at, &mut old, false);
        m.act(&Action::Write { at: u64::from(lpn) * 4, sectors: 4, metadata }).unwrap();
        pcm_bytes(&mut m, at, &mut old, true);
        // Detected while the layer runs …
        assert!(findings(&mut m, false).iter().any(|f| f.kind == "stale-entry" && f.lpn == Some(lpn)));
        // … and after halt and boot, when only the newer page reveals it.
        m.layer.usage.in_use = true;
        m.layer.halt(&mut Sink::untimed()).unwrap();
        pcm_bytes(&mut m, at, &mut old, true);
        m.layer.boot(&mut Sink::untimed()).unwrap();
        let found = findings(&mut m, true);
        assert!(
            found.iter().any(|f| f.kind == "stale-entry" && f.lpn == Some(lpn) && f.repaired),
            "{found:?}"
        );
        m.layer.audit();
        m.check_all();
    }
}

#[test]
fn flipped_bits_in_descriptors_and_data_are_seen() {
    let mut m = volume();
    let lpn =
        (0..m.layer.pages).map(Lpn).find(|&l| matches!(m.layer.map.get(l).place(), PageLocation::Pcm(_)));
    let lpn = lpn.expect("metadata lies in PCM");
    let PageLocation::Pcm(desc) = m.layer.map.get(lpn).place() else { unreachable!() };
    let pcm = m.layer.map.pcm.as_ref().unwrap();
    let slot = pcm.desc[desc as usize].subs.into_iter().find(|&s| s != NONE).unwrap();
    let (data, record) = (pcm.slot_at(slot), pcm.layout.desc_at + u64::from(desc) * 64);
    for (at, bits) in [(data, 512 * 8), (record, 64 * 8)] {
        for bit in (0..bits).step_by(if bits > 512 { 37 } else { 1 }) {
            let mut b = [0];
            pcm_bytes(&mut m, at + bit / 8, &mut b, false);
            b[0] ^= 1 << (bit % 8);
            pcm_bytes(&mut m, at + bit / 8, &mut b, true);
            let found = findings(&mut m, false);
            assert!(found.iter().any(|f| f.lpn == Some(lpn.0)), "bit {bit} at {at}: {found:?}");
            b[0] ^= 1 << (bit % 8);
            pcm_bytes(&mut m, at + bit / 8, &mut b, true);
        }
    }
    m.check_all();
}

#[test]
fn media_of_another_make_are_refused() {
    let mut m = volume();
    m.layer.halt(&mut Sink::untimed()).unwrap();
    for at in [0, 8, 12, 20, 60, 72] {
        let mut b = [0];
        pcm_bytes(&mut m, at, &mut b, false);
        b[0] ^= 0x40;
        pcm_bytes(&mut m, at, &mut b, true);
        let e = m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err();
        assert!(matches!(e, Error::Corrupt { medium: MediumKind::Pcm, .. }), "{at}: {e}");
        b[0] ^= 0x40;
        pcm_bytes(&mut m, at, &mut b, true);
    }
    m.layer.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    let mut blank = layer(HfslConfig::default(), true, NandFaults::default());
    let e = blank.recover(&mut Sink::untimed(), CrashKind::Process).unwrap_err().to_string();
    assert!(e.contains("no HFSL was formatted here"), "{e}");
}

#[test]
fn after_a_stop_of_the_machine_the_last_flush_counts() {
    let config = HfslConfig {
        map_persist: MapPersist::Each,
        flush_map: true,
        over_provisioning: 0.1,
        ..HfslConfig::default()
    };
    let mut m = Model::new(layer(config, true, NandFaults::default()));
    for round in 0..40u64 {
        for i in 0..60 {
            m.act(&Action::Write {
                at: (i * 11 + round * 7) % (SECTORS - 8),
                sectors: 1 + i % 8,
                metadata: i % 5 == 0,
            })
            .unwrap();
        }
        m.layer.flush(&mut Sink::untimed()).unwrap();
        let flushed = m.shadow.clone();
        // Few writes, so that space does not run short: that would cause a flush.
        for i in 0..3 {
            m.act(&Action::Write { at: i * 50 + round, sectors: 3, metadata: false }).unwrap();
        }
        m.act(&Action::Discard { at: 300, sectors: 9 }).unwrap();
        let now = m.shadow.clone();
        let found = m.layer.recover(&mut Sink::untimed(), CrashKind::PowerLoss).unwrap();
        assert!(found.from_flush && found.lost.is_empty());
        let mut got = vec![0; now.len()];
        m.layer.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut got), Hints::NONE).unwrap();
        for (i, got) in got.chunks(4096).enumerate() {
            let at = i * 4096..i * 4096 + got.len();
            assert!(got == &flushed[at.clone()] || got == &now[at], "block {i} is neither old nor new");
        }
        m.shadow = got;
        m.layer.audit();
        m.checked();
    }
}

#[test]
fn blocks_that_go_bad_do_not_change_the_size() {
    let mut m = volume();
    let pages = m.layer.pages;
    m.layer.halt(&mut Sink::untimed()).unwrap();
    let config = m.layer.config().clone();
    let mut hw = Hardware::new();
    for block in [3, 20, 30] {
        m.layer.flash.nand_mut().retire(frit_core::BlockId(block));
    }
    let take = |store: &mut AnyStore| std::mem::replace(store, NoStore.into());
    let nand = take(m.layer.flash.nand_mut().devices_mut().next().unwrap().store_mut());
    let nand = Nand::new(nand_config(GEOMETRY, NandFaults::default()), nand, &mut hw).unwrap();
    let pcm = take(m.layer.map.pcm.as_mut().unwrap().medium.store_mut());
    let pcm = Pcm::new(pcm_config(4096), pcm, &mut hw).unwrap();
    let mut again = Hfsl::new(config, nand, Some(pcm)).unwrap();
    assert_eq!(again.pages, pages);
    assert_eq!(again.recover(&mut Sink::untimed(), CrashKind::Process).unwrap().lost, []);
    let mut got = vec![0; m.shadow.len()];
    again.read(&mut Sink::untimed(), Sector(0), ReadTarget::Bytes(&mut got), Hints::NONE).unwrap();
    assert!(got == m.shadow);
}
