//! Address mapping on byte-addressable memory, with every mode, mapping, log and wear leveler.

use crate::common::{MAPPINGS, many_faults, many_images, share_of};
use frit_torture::block::case::TortureMode;
use frit_wear::LevelerKind;
use strum::VariantNames;

/// Returns the variants under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> =
        MAPPINGS.iter().map(|(name, _)| ((*name).to_owned(), 8_000)).collect();
    let levelers = LevelerKind::VARIANTS.iter().filter(|l| **l != "none");
    all.extend(levelers.map(|l| (format!("ntl-leveler-{l}"), 6_000)));
    all
}

#[test]
fn distinct_images_of_mappings_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(100_000), "{distinct}");
}

/// Failing memory, and damage in it: the client receives an error, and no acknowledged data is
/// lost.
#[test]
fn failing_and_damaged_memory_costs_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 500 && seen * 4 > struck);
}
