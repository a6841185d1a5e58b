//! Contents are read back as written, after any moves and after recovery.

use super::*;
use crate::RegionId;
use frit_core::{Cause, CrashKind, ReadTarget, Sink, Tok, WriteData};
use proptest::prelude::*;

/// Performs one call on the device and on a plain array, and compares the results.
fn agree(d: &mut Leveled, plain: &mut [u8], at: u64, len: usize, byte: u8, write: bool) {
    let at = at % d.bytes();
    let fits = at + len as u64 <= d.bytes();
    let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8)).collect();
    let mut out = vec![0xEE; len];
    let done = if write {
        d.write(&mut Sink::untimed(), at, WriteData::Bytes(&data), Cause::Host, Tok::DONE)
    } else {
        d.read(&mut Sink::untimed(), at, ReadTarget::Bytes(&mut out), Cause::Host, Tok::DONE)
    };
    assert_eq!(done.is_ok(), fits);
    if fits && write {
        plain[at as usize..at as usize + len].copy_from_slice(&data);
    } else if fits {
        assert_eq!(out, plain[at as usize..at as usize + len]);
    }
}

pub(super) fn all(d: &Leveled) -> Vec<u8> {
    let mut all = vec![0; d.bytes() as usize];
    d.peek(0, &mut all).unwrap();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn it_is_a_plain_array_through_any_number_of_moves_and_restarts(
        over_files: bool,
        extra in 0u64..3,
        ops in prop::collection::vec((any::<u64>(), 0usize..3000, any::<u8>(), 0u8..10), 1..120),
    ) {
        for kind in kinds() {
            let config = WearConfig { over_files, ..small(kind) };
            let size = (24 << 10) + extra * 1024;
            let mut d = Leveled::new(in_memory(size, 64), config.clone()).unwrap();
            d.format(&mut Sink::untimed()).unwrap();
            let mut plain = vec![0; d.bytes() as usize];
            for &(at, len, byte, what) in &ops {
                match what {
                    0 => d.flush(&mut Sink::untimed()).unwrap(),
                    1 => {
                        d = Leveled::new(reopened(d.into_store(), size), config.clone()).unwrap();
                        d.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
                        prop_assert!(all(&d) == plain, "{kind:?}");
                    }
                    _ => agree(&mut d, &mut plain, at, len, byte, what < 8),
                }
            }
            prop_assert!(all(&d) == plain, "{kind:?}");
        }
    }
}

fn reopened(store: AnyStore, size: u64) -> Pcm {
    Pcm::new(pcm_config(size, 64), store, &mut Hardware::new()).unwrap()
}

#[test]
fn moves_happen_and_are_counted_as_wear_leveling() {
    for kind in kinds() {
        let mut d: Leveled = Leveled::new(in_memory(24 << 10, 64), small(kind)).unwrap();
        d.format(&mut Sink::untimed()).unwrap();
        let before = d.move_bytes();
        for i in 0..800u64 {
            d.write(&mut Sink::untimed(), i % 4 * 256, WriteData::Bytes(&[7; 256]), Cause::Host, Tok::DONE)
                .unwrap();
        }
        // 800 × 256 bytes with an interval of 4096 bytes: 50 moves, less the remainders of the
        // regions.
        let moved = d.moves();
        if kind == LevelerKind::NoLeveling {
            assert_eq!((moved, d.bytes()), (0, 24 << 10));
            continue;
        }
        assert!((45..=50).contains(&moved), "{kind:?}: {moved}");
        assert_eq!(d.move_bytes() - before, moved * (256 + 8), "a stripe and a register each");
        assert!(d.metrics().iter().any(|m| m.name == "wear_moves" && m.value == moved as f64));
        let life = d.life();
        assert!(life.rate > 0.0 && life.rate <= 1.0, "{kind:?} {life:?}");
    }
}

#[test]
fn a_device_is_divided_and_what_is_left_over_is_told() {
    let d: Leveled = Leveled::new(without_bytes(2 << 30, 64), WearConfig::default()).unwrap();
    // 511 stripes a bank fit beside the registers; 15 of each bank belong to a cube.
    assert_eq!(d.shape().bank_stripes, 511);
    let cube = d.leveler.region_stripes();
    assert_eq!(d.leveler.logical(), 32 * (cube - 1));
    assert!(cube == 15 * 128 || cube == 14 * 128, "{cube}");
    let view = d.view();
    let of = |name| view.geometry.iter().find(|g| g.0 == name).unwrap().1;
    assert_eq!(of("wear_logical_bytes"), d.bytes());
    let used = u64::from(d.leveler.regions() * cube) * (32 << 10);
    assert_eq!(used + of("wear_register_bytes") + of("wear_unused_bytes"), 2 << 30);
}

#[test]
fn partitions_are_of_the_logical_bytes() {
    let mut d: Leveled = Leveled::new(without_bytes(1 << 20, 64), small(LevelerKind::StartGap)).unwrap();
    assert!(d.bytes() < 1 << 20);
    let a = d.add_partition("head", 100, 64).unwrap();
    let rest = d.bytes() - 128;
    assert!(d.add_partition("all", rest + 1, 64).is_err());
    let b = d.add_partition("all", rest, 64).unwrap();
    assert_eq!((a.start, b.start, d.partitioned_bytes()), (0, 128, d.bytes()));
    assert_eq!((d.partition("all"), d.partitions().len()), (Some(b), 2));
}

#[test]
fn registers_of_something_else_are_refused() {
    let config = small(LevelerKind::RoundRobin);
    let what = |d: Result<WearRecovery>| d.unwrap_err().to_string();
    let mut blank: Leveled = Leveled::new(in_memory(24 << 10, 64), config.clone()).unwrap();
    assert!(
        what(blank.recover(&mut Sink::untimed(), CrashKind::Process))
            .contains("no wear leveling was formatted here")
    );
    blank.format(&mut Sink::untimed()).unwrap();
    for i in 0..2000u64 {
        blank
            .write(&mut Sink::untimed(), i % 50 * 256, WriteData::Bytes(&[1; 256]), Cause::Host, Tok::DONE)
            .unwrap();
    }
    let store = blank.into_store();
    let other = WearConfig { seed: 2, ..config.clone() };
    let mut d: Leveled = Leveled::new(reopened(store, 24 << 10), other).unwrap();
    assert!(what(d.recover(&mut Sink::untimed(), CrashKind::Process)).contains("another leveler, seed"));
    let store = d.into_store();
    // With the newest register of a region damaged, the number before it would be wrong.
    let mut d: Leveled = Leveled::new(reopened(store, 24 << 10), config).unwrap();
    d.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    let region = RegionId::first(d.leveler.regions()).max_by_key(|&r| d.leveler.number(r)).unwrap();
    let number = d.leveler.number(region);
    assert!(number > 3);
    let line = |d: &Leveled, n| d.area.line_at(area::RegisterRing::Current, region, d.area.line_of(n));
    let newest = line(&d, number);
    d.store_mut().write(newest, &[0; 8]).unwrap();
    assert!(what(d.recover(&mut Sink::untimed(), CrashKind::Process)).contains("is damaged"));
    // Damage of an older register has no effect.
    let word = d.area.encode(number, area::RegisterRing::Current, region);
    d.store_mut().write(newest, &word).unwrap();
    let older = line(&d, number - 1);
    d.store_mut().write(older, &[0; 8]).unwrap();
    d.recover(&mut Sink::untimed(), CrashKind::Process).unwrap();
    assert_eq!(d.leveler.number(region), number);
}
