//! Every mapping is one-to-one at every moment, and changes exactly as its steps describe.

use super::*;
use frit_core::convert::to_usize;
use proptest::prelude::*;
use strum::IntoEnumIterator;

/// Logical stripe at each physical one. Fails if two share a physical stripe.
fn places(l: &Levelers) -> Vec<Option<LogicalStripe>> {
    let mut at = vec![None; to_usize(l.physical())];
    for stripe in LogicalStripe::first(l.logical()) {
        let place = l.map(stripe);
        assert!(place.region.0 < l.regions().max(1), "stripe {stripe}");
        let was = at[place.stripe.idx()].replace(stripe);
        assert_eq!(was, None, "{stripe} and {was:?} both at {}", place.stripe);
    }
    at
}

fn check_steps(l: &mut Levelers, regions: &[u32]) {
    let mut at = places(l);
    for &r in regions {
        let region = RegionId(r % l.regions());
        let step = l.step(region);
        assert!(step.number > l.number(region));
        assert_ne!(step.from, step.to);
        assert_eq!(at[step.to.idx()], None, "something lives at {}", step.to);
        let mover = at[step.from.idx()].take().expect("a step moves a stripe");
        assert_eq!(l.map(mover).region, region);
        at[step.to.idx()] = Some(mover);
        l.set_number(region, step.number);
        assert_eq!(places(l), at, "after {step:?}");
    }
}

fn leveler(config: &WearConfig, shape: &Shape) -> Option<Levelers> {
    Levelers::new(config, shape).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn mappings_are_one_to_one_under_any_steps_and_sizes(
        ranks in 1u32..5, banks in 1u32..5, bank_stripes in 2u32..24,
        cubes in 1u32..4, region in 0u32..9, turn: bool, seed: u64, interval in 1u32..4,
        stripe_shift in 10u32..14,
        regions in prop::collection::vec(any::<u32>(), 1..300),
    ) {
        let shape = Shape { stripe_bytes: 1 << stripe_shift, ranks, banks, bank_stripes };
        for kind in LevelerKind::iter() {
            let config = WearConfig {
                leveler: kind, stripe_bytes: shape.stripe_bytes, ranks, banks, cubes, turn, seed, interval,
                region_stripes: if kind == LevelerKind::SecurityRefresh { region.next_power_of_two() } else { region },
                over_files: false,
            };
            let Some(mut l) = leveler(&config, &shape) else { continue };
            prop_assert!(l.logical() > 0 && l.physical() <= shape.stripes(), "{kind:?}");
            if l.regions() == 0 {
                places(&l);
            } else {
                prop_assert!(l.logical() + l.regions() <= l.regions() * l.region_stripes());
                check_steps(&mut l, &regions);
            }
        }
    }
}

#[test]
fn every_leveler_takes_odd_sizes() {
    // Sizes that the property test may skip: each leveler must accept these.
    for (ranks, banks, bank_stripes) in [(8, 16, 512), (3, 5, 40), (2, 2, 11), (1, 2, 7)] {
        let shape = Shape { stripe_bytes: 4096, ranks, banks, bank_stripes };
        for kind in LevelerKind::iter() {
            let cubes = if bank_stripes == 512 { 32 } else { 2 };
            let config = WearConfig { leveler: kind, ranks, banks, cubes, ..WearConfig::default() };
            let l = Levelers::new(&config, &shape);
            // There is no continuous curve through 3 × 5 banks.
            if kind == LevelerKind::Sfc && banks == 5 {
                assert!(l.unwrap_err().to_string().contains("even"));
            } else {
                assert!(l.is_ok(), "{kind:?} {ranks} {banks} {bank_stripes}: {l:?}");
            }
        }
    }
}

#[test]
fn a_cube_of_the_paper_has_2047_stripes_and_each_region_comes_round() {
    let shape = Shape { stripe_bytes: 32 << 10, ranks: 8, banks: 16, bank_stripes: 512 };
    let mut l = Levelers::new(&WearConfig::default(), &shape).unwrap();
    assert_eq!((l.logical(), l.regions(), l.region_stripes()), (32 * 2047, 32, 2048));
    // A whole round of cube 3: every position of it is written once.
    let mut written = vec![0; to_usize(l.physical())];
    for _ in 0..2048 {
        let step = l.step(RegionId(3));
        written[step.to.idx()] += 1;
        l.set_number(RegionId(3), step.number);
    }
    assert_eq!(written.iter().filter(|&&w| w == 1).count(), 2048);
    assert!(written.iter().all(|&w| w <= 1));
    let banks: std::collections::HashSet<u32> = PhysicalStripe::first(l.physical())
        .filter(|p| written[p.idx()] == 1)
        .map(|p| shape.bank_of(p))
        .collect();
    assert_eq!(banks.len(), 128, "a cube reaches all banks");
    places(&l);
}

#[test]
fn stripes_that_follow_each_other_lie_on_different_ranks() {
    let shape = Shape { stripe_bytes: 32 << 10, ranks: 8, banks: 16, bank_stripes: 512 };
    let ranks = |kind, turn| {
        let config = WearConfig { leveler: kind, turn, ..WearConfig::default() };
        let l = Levelers::new(&config, &shape).unwrap();
        let rank = |s| shape.bank_of(l.map(s).stripe) / shape.banks;
        LogicalStripe::first(8).map(rank).collect::<std::collections::HashSet<u32>>().len()
    };
    assert_eq!(ranks(LevelerKind::RoundRobin, true), 8);
    assert_eq!(ranks(LevelerKind::Sfc, true), 8);
    assert_eq!(ranks(LevelerKind::Sfc, false), 1, "equation 1 by the letter");
    assert_eq!(ranks(LevelerKind::StartGap, true), 1);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let shape = Shape { stripe_bytes: 4096, ranks: 2, banks: 2, bank_stripes: 8 };
    let refused = |config: WearConfig| Levelers::new(&config, &shape).unwrap_err().to_string();
    let with = |leveler| WearConfig { leveler, ..WearConfig::default() };
    let region = |leveler, region_stripes| WearConfig { region_stripes, ..with(leveler) };
    assert!(refused(region(LevelerKind::StartGap, 1)).starts_with("region_stripes = 1"));
    assert!(refused(region(LevelerKind::StartGap, 33)).contains("32 stripes"));
    assert!(refused(region(LevelerKind::SecurityRefresh, 6)).contains("power of two"));
    assert!(refused(region(LevelerKind::SecurityRefresh, 32)).contains("scratch"));
    assert!(refused(WearConfig { cubes: 9, ..with(LevelerKind::Sfc) }).starts_with("cubes = 9"));
    assert!(refused(WearConfig { cubes: 0, ..with(LevelerKind::Sfc) }).starts_with("cubes = 0"));
    let fit = |config: WearConfig, bytes| Shape::fit(&config, bytes, 64, 128).unwrap_err().to_string();
    assert!(
        fit(WearConfig { stripe_bytes: 3000, ..with(LevelerKind::Sfc) }, 1 << 30).contains("power of two")
    );
    assert!(fit(WearConfig { banks: 0, ..with(LevelerKind::Sfc) }, 1 << 30).starts_with("banks = 0"));
    assert!(fit(with(LevelerKind::Sfc), 1 << 20).contains("two stripes"));
    assert!(WearConfig { interval: 0, ..with(LevelerKind::Sfc) }.interval_bytes().is_err());
}
