//! A disk behind a cache in PCM, with every mode, policy and wear leveler.

use crate::common::{many_faults, many_images, share_of};
use frit_layer::cache::policy::Policy;
use frit_torture::block::case::TortureMode;
use frit_wear::LevelerKind;
use strum::VariantNames;

/// Returns the variants under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> = [
        ("halo", 7_000),
        ("cleaning", 6_000),
        ("read-caching", 6_000),
        ("write-through", 6_000),
        // This mode caches nothing, so recovery reads the same bytes from each image.
        ("write-around", 1),
        ("around-read-caching", 1_000),
        ("bypass", 6_000),
    ]
    .map(|(name, images)| (name.to_owned(), images))
    .into();
    // Belady's policy needs the future requests.
    let policies = Policy::VARIANTS.iter().filter(|p| **p != "belady" && **p != "halo");
    all.extend(policies.map(|p| (format!("policy-{p}"), 2_000)));
    let levelers = LevelerKind::VARIANTS.iter().filter(|l| **l != "none");
    all.extend(levelers.map(|l| (format!("leveler-{l}"), 5_500)));
    all
}

#[test]
fn distinct_images_of_caches_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(100_000), "{distinct}");
}

/// A disk that fails and works again, failing PCM, and damage in PCM: the client receives an error,
/// no acknowledged data is lost, and the layer continues where it can.
#[test]
fn disks_that_fail_and_damaged_pcm_cost_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 1_250 && seen * 4 > struck);
}
