//! FTLs with mapping units of a page and below, with and without a merge buffer. Power cuts tear each
//! page of a program unit in its own way.

use crate::common::{FTLS, many_faults, many_images, share_of, target};
use frit_core::planted::{self, PlantedBug};
use frit_layer::planted::FtlBug;
use frit_torture::block::campaign::run;
use frit_torture::block::case::TortureMode;
use frit_torture::block::options::CampaignOptions;
use frit_torture::block::replay::replay;

/// Returns the stacks under torture, and the number of distinct images that each must give.
fn variants() -> Vec<(String, usize)> {
    FTLS.iter().map(|name| ((*name).to_owned(), 8_000)).collect()
}

#[test]
fn distinct_images_of_ftls_hold() {
    let distinct = many_images(&variants());
    assert!(distinct >= share_of(24_000), "{distinct}");
}

/// Failing and worn-out media, and damage in them: no acknowledged data is lost, and damage is
/// reported.
#[test]
fn failing_and_damaged_ftls_cost_nothing_that_was_acknowledged() {
    let (struck, seen) = many_faults(&variants(), &[TortureMode::Errors, TortureMode::Damage]);
    assert!(struck > 125 && seen * 4 > struck, "{struck} {seen}");
}

/// A read that returns the former contents of a page lets a write fail after some of its pages. Each of its
/// sectors is then old or new, and no acknowledged write is lost.
#[test]
fn a_failed_write_leaves_each_sector_old_or_new() {
    let stack = target("ftl-one-unit");
    for case in ["d20.0.2", "d26.0.105", "d42.0.122", "d42.0.379", "d43.0.353", "d57.0.17"] {
        let report = replay(&stack, &CampaignOptions::default(), case.parse().unwrap());
        assert_eq!(report.faults_struck, 1, "{case}");
        assert!(report.violations.is_empty(), "{case}: {:?}", report.violations[0].violation);
    }
}

/// Random tree 37, whose FTL has one NAND unit of few blocks.
#[test]
fn a_block_begun_before_erases_can_leave_no_page_for_a_recovery() {
    let options = CampaignOptions {
        seed: 37,
        modes: vec![TortureMode::Cuts],
        items: Some(1),
        cuts_most: Some(400),
        nested_every: 256,
        threads: 1,
        ..CampaignOptions::default()
    };
    let tree = target("tree-mirror-ftl");
    let found = run(&tree, &options, &|_| {}).violations;
    assert!(found.is_empty(), "{:?}", found[0].violation);
    planted::set(Some(FtlBug::BegunBeforeErases.id()));
    let found = run(&tree, &CampaignOptions { first_only: true, ..options }, &|_| {}).violations;
    planted::set(None);
    assert!(found[0].violation.what.contains("no free block"), "{:?}", found[0].violation);
}
