use super::*;
use crate::LevelerKind;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use strum::IntoEnumIterator;

fn small(leveler: LevelerKind) -> WearConfig {
    WearConfig { leveler, ranks: 2, banks: 4, cubes: 2, interval: 20, ..WearConfig::default() }
}

/// Size of the PCM: eight banks of eight stripes.
const BYTES: u64 = 64 * (32 << 10);

fn skewed(rng: &mut SmallRng, blocks: u64) -> u32 {
    let span = if rng.random_ratio(3, 4) { blocks / 8 } else { blocks };
    rng.random_range(0..span) as u32
}

#[test]
fn every_write_and_move_is_counted_once() {
    for kind in LevelerKind::iter() {
        let mut s = Simulation::new(&small(kind), BYTES).unwrap();
        let mut rng = SmallRng::seed_from_u64(1);
        let blocks: Vec<u32> = (0..100_000).map(|_| skewed(&mut rng, s.blocks())).collect();
        s.write(&blocks).unwrap();
        let r = s.report(1000);
        assert_eq!(s.bank_writes().iter().sum::<u64>(), 100_000 + r.moves * 8, "{kind:?}");
        assert!((r.extra_writes - r.moves as f64 * 8.0 / 1e5).abs() < 1e-9);
        let moves = if kind == LevelerKind::NoLeveling { 0 } else { 100_000 / 20 };
        assert!(r.moves <= moves && r.moves + 8 >= moves, "{kind:?}: {}", r.moves);
        assert!(r.life_rate > 0.0 && r.life_rate <= 1.0);
        assert_eq!(r.overhead_bytes, BYTES - s.blocks() * 4096);
    }
}

/// Runs until the first block exceeds its endurance, and compares with the prediction after a part
/// of the run.
#[test]
fn the_lifetime_that_is_foretold_is_the_one_that_comes() {
    let endurance = 20_000;
    for kind in LevelerKind::iter() {
        let mut s = Simulation::new(&small(kind), BYTES).unwrap();
        let mut rng = SmallRng::seed_from_u64(2);
        let mut foretold = None;
        while s.block_max() <= endurance {
            let blocks: Vec<u32> = (0..1000).map(|_| skewed(&mut rng, s.blocks())).collect();
            s.write(&blocks).unwrap();
            if foretold.is_none() && s.block_max() > endurance / 5 {
                foretold = s.report(endurance).lifetime_writes;
            }
        }
        let ratio = foretold.unwrap() / s.writes as f64;
        assert!((0.9..1.1).contains(&ratio), "{kind:?}: {ratio}");
    }
}

/// Life rate if half of the writes go to the first `hot` blocks of a PCM.
fn rate(config: &WearConfig, bytes: u64, hot: u32, writes: u32) -> f64 {
    let mut s = Simulation::new(config, bytes).unwrap();
    let mut rng = SmallRng::seed_from_u64(3);
    let all = s.blocks() as u32;
    let mut block = || {
        let span = if rng.random_ratio(1, 2) { hot } else { all };
        rng.random_range(0..span)
    };
    let blocks: Vec<u32> = (0..writes).map(|_| block()).collect();
    s.write(&blocks).unwrap();
    s.report(100_000_000).life_rate
}

#[test]
fn hot_stripes_spread_over_banks_only_where_the_leveler_takes_them_there() {
    // 4 MiB of 2 GiB: one stripe for each bank with round robin, a quarter of a bank without
    // leveling.
    let short = |leveler| rate(&WearConfig { leveler, ..WearConfig::default() }, 2 << 30, 1024, 400_000);
    assert!(short(LevelerKind::NoLeveling) < 0.02);
    assert!(short(LevelerKind::StartGap) < 0.02);
    assert!(short(LevelerKind::RoundRobin) > 0.9);
    // Eight stripes of 64 MiB, long enough for gaps to move them through their whole regions. Round
    // robin keeps each stripe in its bank; a cube moves its stripes through all banks.
    let long = |leveler| {
        let config = WearConfig { leveler, cubes: 2, interval: 2, ..WearConfig::default() };
        rate(&config, 64 << 20, 64, 8_000_000)
    };
    assert!(long(LevelerKind::RoundRobin) < 0.15);
    assert!(long(LevelerKind::Sfc) > 0.9);
}

#[test]
fn table_one_divides_two_gibibytes() {
    let of = |kind| {
        let config = WearConfig { leveler: kind, ..WearConfig::default() };
        Simulation::new(&config, 2 << 30).unwrap().report(1).overhead_bytes
    };
    assert_eq!(of(LevelerKind::NoLeveling), 0);
    assert_eq!(of(LevelerKind::Sfc), 32 * (32 << 10), "a stripe of each cube");
    assert_eq!(of(LevelerKind::RoundRobin), 128 * (32 << 10), "a stripe of each bank");
    let small = WearConfig { stripe_bytes: 256, ..WearConfig::default() };
    assert!(Simulation::new(&small, 2 << 30).unwrap_err().to_string().contains("4096"));
}

/// Writes every block of 2 GiB once: no leveler can do better than one, and none may do worse.
#[test]
fn every_block_written_once_wears_all_banks_alike() {
    let blocks: Vec<u32> = (0..(2 << 30) / WRITE_BYTES).collect();
    for kind in LevelerKind::iter() {
        for turn in [true, false] {
            let config = WearConfig { leveler: kind, turn, ..WearConfig::default() };
            let mut s = Simulation::offering(&config, to_u64(blocks.len())).unwrap();
            s.write(&blocks).unwrap();
            let r = s.report(1000);
            // The cubes of the curve are two stripes deeper, which are written last: 0.96 by the letter.
            assert!(r.life_rate > 0.95, "{kind:?}, turn {turn}: {}", r.life_rate);
            assert_eq!(r.bank_writes.iter().sum::<u64>(), r.writes + r.moves * 8, "{kind:?}");
        }
    }
}

#[test]
fn a_pcm_that_offers_blocks_is_the_smallest_with_these_banks() {
    for kind in LevelerKind::iter() {
        for blocks in [1, 511, 512, 513, 4000] {
            let config = small(kind);
            let s = Simulation::offering(&config, blocks).unwrap();
            assert!(s.blocks() >= blocks, "{kind:?}, {blocks}: {}", s.blocks());
            let row = 8 * u64::from(config.stripe_bytes);
            let smaller = Simulation::new(&config, s.report(1).pcm_bytes - row);
            assert!(smaller.is_err() || smaller.unwrap().blocks() < blocks, "{kind:?}, {blocks}");
        }
    }
    let nonsense = WearConfig { region_stripes: 3, ..small(LevelerKind::SecurityRefresh) };
    assert!(Simulation::offering(&nonsense, 512).unwrap_err().to_string().contains("power of two"));
}

#[test]
fn an_address_beyond_the_blocks_is_an_error_and_counts_nothing() {
    for kind in LevelerKind::iter() {
        let mut s = Simulation::new(&small(kind), BYTES).unwrap();
        let end = s.blocks() as u32;
        let e = s.write(&[0, end]).unwrap_err().to_string();
        assert!(e.starts_with(&format!("block = {end}")) && e.contains(<&str>::from(kind)), "{e}");
        assert_eq!(s.report(1000).writes, 0, "{kind:?}");
        s.write(&[0, end - 1]).unwrap();
    }
}
