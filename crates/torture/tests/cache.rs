//! A disk behind a cache in PCM: every mode, every policy, every leveler.

mod common;

use common::{many_faults, many_images};
use frit_layer::cache::policy::Policy;
use frit_layer::wear::LevelerKind;
use frit_torture::case::Mode;
use strum::VariantNames;

/// What is tortured, and the distinct images that it has to give.
fn variants() -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> = [
        ("halo", 7_000),
        ("cleaning", 6_000),
        ("read-caching", 6_000),
        ("write-through", 6_000),
        // Nothing is cached there: all images are one to the recovery.
        ("write-around", 1),
        ("around-read-caching", 1_000),
        ("bypass", 6_000),
    ]
    .map(|(name, images)| (name.to_owned(), images))
    .into();
    // That one asks for the future.
    let policies = Policy::VARIANTS.iter().filter(|p| **p != "belady" && **p != "halo");
    all.extend(policies.map(|p| (format!("policy-{p}"), 2_000)));
    let levelers = LevelerKind::VARIANTS.iter().filter(|l| **l != "none");
    all.extend(levelers.map(|l| (format!("leveler-{l}"), 5_500)));
    all
}

#[test]
fn a_hundred_thousand_distinct_images_of_caches_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= 100_000, "{distinct}");
}

/// A disk that fails and works again, PCM that fails, damage in PCM: the client is told, nothing that was
/// acknowledged is lost, and what can go on does.
#[test]
fn disks_that_fail_and_damaged_pcm_cost_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[Mode::Errors, Mode::Damage]);
    assert!(struck > 5_000 && seen * 4 > struck);
}
