//! Power losses under an image in an ordinary file: random sequences, syncs within operations, and
//! operations within syncs. A direct mapping of the file through the page cache must fail the same
//! test.

use crate::workload::{number, workload};
use frit_torture::fs::crash::{CutReport, PowerLossCuts};
use frit_torture::fs::every::base;

fn conclude(what: &str, found: &CutReport) {
    let (images, nested, n) = (found.images, found.nested, found.violations.len());
    println!("{what}: {images} images, {nested} cuts of recoveries, {n} violations");
    if let Some(violation) = found.violations.first() {
        println!("---\n{violation}");
    }
}

/// Runs several sequences, each with other cuts.
fn all(what: &str, sequences: u64, cuts: PowerLossCuts) -> CutReport {
    let mut found = CutReport::default();
    let first = number("SEED", 0) * 1_000_000;
    for seed in first..first + number("FSMACHINE_SEQUENCES", sequences) {
        found.add(PowerLossCuts { seed, ..cuts }.run(&base(), &workload(seed, 24)));
    }
    conclude(what, &found);
    found
}

#[test]
fn a_cut_of_the_machine_finds_the_last_sync() {
    let found = all("syncs between operations", 4, PowerLossCuts::default());
    assert!(found.images > 400 && found.nested > 400);
    assert!(found.violations.is_empty());
}

#[test]
fn a_sync_takes_one_moment_while_operations_go_on() {
    let found = all("operations meanwhile", 4, PowerLossCuts { meanwhile: true, ..PowerLossCuts::default() });
    assert!(found.images > 200 && found.nested > 200);
    assert!(found.violations.is_empty());
}

#[test]
fn a_sync_in_the_middle_of_an_operation_is_as_good() {
    for pages in [2, 4, 6] {
        let bound = pages * 2 * 4096;
        let found = all(
            "syncs in operations",
            2,
            PowerLossCuts { bound, sync_one_in: 0, ..PowerLossCuts::default() },
        );
        assert!(found.images > 400 && found.nested > 400);
        assert!(found.violations.is_empty());
    }
}

#[test]
fn a_mapping_behind_the_page_cache_is_damaged_by_the_same_cuts() {
    let found = PowerLossCuts::default().run_mapped(&base(), &workload(1, 24));
    conclude("a mapping", &found);
    let damaged = found.violations.iter().filter(|v| !v.what.starts_with("neither")).count();
    println!("{damaged} of them cannot be opened or fail a check");
    assert!(damaged > 20, "{}", found.images);
}
