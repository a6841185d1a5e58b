//! Address mapping on byte-addressable memory: every mode, every mapping and log, every leveler.

mod common;

use common::{MAPPINGS, many_faults, many_images};
use frit_layer::wear::LevelerKind;
use frit_torture::case::Mode;
use strum::VariantNames;

/// What is tortured, and the distinct images that it has to give.
fn variants() -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> =
        MAPPINGS.iter().map(|(name, _)| ((*name).to_owned(), 8_000)).collect();
    let levelers = LevelerKind::VARIANTS.iter().filter(|l| **l != "none");
    all.extend(levelers.map(|l| (format!("ntl-leveler-{l}"), 6_000)));
    all
}

#[test]
fn a_hundred_thousand_distinct_images_of_mappings_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= 100_000, "{distinct}");
}

/// Memory that fails, and damage in it: the client is told, and nothing that was acknowledged is lost.
#[test]
fn failing_and_damaged_memory_costs_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[Mode::Errors, Mode::Damage]);
    assert!(struck > 2_000 && seen * 4 > struck);
}
