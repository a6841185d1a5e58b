//! Wear is spread evenly, including that of the registers.

use super::*;
use frit_core::{Cause, Sink, Tok, WriteData};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Number of writes to each line of the registers and of the data.
fn lines(d: &Leveled) -> (Vec<u32>, Vec<u32>) {
    let line = u64::from(d.geometry().line_bytes);
    let data = u64::from(d.leveler.physical()) * u64::from(d.shape.stripe_bytes) / line;
    let from = d.area.header_at() / line + 2;
    let rings = u64::from(d.leveler.regions() * d.area.lines) * if d.config.over_files { 2 } else { 1 };
    let wear = |l: u64| d.pcm.wear_of(l * line);
    ((from..from + rings).map(wear).collect(), (0..data).map(wear).collect())
}

#[test]
fn no_line_of_the_registers_wears_more_than_twice_the_mean_of_the_data() {
    for kind in kinds().filter(|&k| k != LevelerKind::NoLeveling) {
        for over_files in [false, true] {
            // Each write makes a move: the smallest wear of the data for each register write.
            let config = WearConfig { over_files, ..small(kind) };
            let mut d = Leveled::new(without_bytes(40 << 10, 64), config).unwrap();
            d.interval_bytes = 8;
            let mut rng = SmallRng::seed_from_u64(3);
            for _ in 0..60_000 {
                let at = rng.random_range(0..d.bytes() / 8) * 8;
                d.write(&mut Sink::untimed(), at, WriteData::Len(8), Cause::Host, Tok::DONE).unwrap();
            }
            let (registers, data) = lines(&d);
            let mean = data.iter().map(|&w| f64::from(w)).sum::<f64>() / data.len() as f64;
            let most = f64::from(registers.iter().copied().max().unwrap());
            assert!(mean > 100.0 && most > 50.0, "{kind:?}: {mean} {most}");
            assert!(most <= 2.0 * mean, "{kind:?}, files {over_files}: {most} of {mean}");
        }
    }
}

#[test]
fn a_hot_stripe_is_spread_over_its_region_and_without_leveling_is_not() {
    for kind in kinds() {
        let mut d: Leveled = Leveled::new(without_bytes(40 << 10, 64), small(kind)).unwrap();
        for _ in 0..200_000 {
            d.write(&mut Sink::untimed(), 0, WriteData::Len(256), Cause::Host, Tok::DONE).unwrap();
        }
        let most = (0..d.leveler.physical()).map(|s| d.pcm.wear_of(u64::from(s) * 256)).max().unwrap();
        let even = 200_000 / d.leveler.region_stripes();
        if kind == LevelerKind::NoLeveling {
            assert_eq!(most, 200_000);
        } else {
            assert!(most < 2 * even, "{kind:?}: {most}, and {even} would be even");
        }
    }
}
